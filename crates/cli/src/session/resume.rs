//! Shared code to resume result files: missing options come from the file, and files of something
//! else are rejected.

use crate::args::CommonArgs;
use crate::output::Failure;
use crate::session::result_file::foreign_file;
use cyclescope::executor::ExecutorOffer;
use cyclescope::study::ResumableSession;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The common options that a file records.
#[derive(Debug, Clone, Copy)]
pub struct ResumedSettings<'a> {
    /// Name of the executor.
    pub executor: &'a str,
    /// Name of the timing method.
    pub clock: &'a str,
    /// Seed of the run.
    pub seed: u64,
    /// Whether --quick was given.
    pub quick: bool,
    /// The measured CPU.
    pub cpu: u32,
}

impl ResumedSettings<'_> {
    /// Fills options that weren't given with those of the file.
    ///
    /// # Errors
    ///
    /// Fails if the code ran in ring 0 and the options don't say so: a file alone must not move
    /// code there.
    pub fn adopt_options(&self, common: &CommonArgs, path: &Path) -> Result<CommonArgs, Failure> {
        let mut common = common.clone();
        let kept = ExecutorOffer::find_by_name(self.executor);
        if common.executor.is_none() && !kept.is_some_and(ExecutorOffer::is_default) {
            let text = format!("{} asks to run its code in `{}`", path.display(), self.executor);
            let remedy =
                format!("add --executor {} if you trust the file, or start a new one with --out", self.executor);
            let unknown = "start a new file with --out";
            return Err(Failure::usage(text, Some(if kept.is_some() { &remedy } else { unknown })));
        }
        common.seed = common.seed.or(Some(self.seed));
        common.quick |= self.quick;
        common.cpu = common.cpu.or(Some(self.cpu));
        if common.clock.is_empty() {
            common.clock = vec![self.clock.to_string()];
        }
        Ok(common)
    }
}

/// A result file to resume, parsed from its first line.
pub struct ResumedFile<S> {
    path: PathBuf,
    command: &'static str,
    /// The first line.
    pub head: Value,
    /// The recorded session.
    pub session: S,
}

impl<S: ResumableSession> ResumedFile<S> {
    /// Parses the first line of a file that a command of this name wrote.
    pub fn new(path: &Path, command: &'static str, head: Value) -> Result<ResumedFile<S>, Failure> {
        let session = serde_json::from_value(head[S::FIELD].clone()).map_err(|_| foreign_file(path, command))?;
        Ok(ResumedFile { path: path.to_path_buf(), command, head, session })
    }

    /// Fails if the session differs from the requested one, or its machine from this one. `place`
    /// says where it was measured.
    pub fn require_same_session(&self, now: &S, machine: &Value, place: &str) -> Result<(), Failure> {
        let differences = self.session.describe_differences(now, &self.head, machine);
        if differences.is_empty() {
            return Ok(());
        }
        let remedy = format!(
            "resume with only `cyclescope {} --resume FILE`, {place} and with the same version, or name a new file \
             with --out",
            self.command
        );
        let text = format!("{} can't be resumed: {}", self.path.display(), differences.join("; "));
        Err(Failure::usage(text, Some(&remedy)))
    }
}

/// A line, and the file's length up to the end of that line.
pub type LineWithEnd = (Value, u64);

/// Splits a file into its first line and the others; empty lines are skipped.
pub fn split_json_lines(
    path: &Path,
    command: &str,
    content: &[u8],
) -> Result<(LineWithEnd, Vec<LineWithEnd>), Failure> {
    let (mut lines, mut end) = (Vec::new(), 0);
    for line in content.split_inclusive(|byte| *byte == b'\n') {
        end += line.len() as u64;
        if line != b"\n" {
            let line = serde_json::from_slice::<Value>(line).map_err(|_| foreign_file(path, command))?;
            lines.push((line, end));
        }
    }
    match lines.is_empty() {
        true => Err(foreign_file(path, command)),
        false => Ok((lines.remove(0), lines)),
    }
}

/// Rejects --evidence with options that would make it incomplete. Each option comes with whether it
/// is given.
pub fn refuse_evidence(common: &CommonArgs, others: &[(&str, bool)], of: &str) -> Result<(), Failure> {
    match others.iter().find(|(_, given)| *given).filter(|_| common.evidence.is_some()) {
        Some((option, _)) => {
            let remedy = format!("leave out one of them: evidence must cover {of} from start to end");
            Err(Failure::usage(format!("--evidence can't be combined with {option}"), Some(&remedy)))
        }
        None => Ok(()),
    }
}
