//! The commands that `all` runs, as data.

/// A command that `all` runs.
pub struct MeasuringStep {
    /// Name of the command, and of its file.
    pub name: &'static str,
    /// Options of the command.
    pub options: &'static [&'static str],
    /// Whether the command writes its file by `--out`, and can resume it.
    pub resumes: bool,
}

/// The steps, fast ones first.
pub const STEPS: &[MeasuringStep] = &[
    MeasuringStep { name: "doctor", options: &[], resumes: false },
    MeasuringStep { name: "evaluate", options: &[], resumes: false },
    MeasuringStep { name: "marker", options: &[], resumes: false },
    MeasuringStep { name: "uarch", options: &[], resumes: true },
    MeasuringStep { name: "instr", options: &["--all"], resumes: true },
];

impl MeasuringStep {
    /// The name of its file.
    pub fn file_name(&self) -> String {
        format!("{}.jsonl", self.name)
    }
}
