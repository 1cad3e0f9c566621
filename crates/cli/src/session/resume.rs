//! What all commands do that go on with a result file: options that were not given come from the file, and a file of
//! something else is refused.

use crate::args::CommonArgs;
use crate::output::Failure;
use crate::session::result_file::foreign_file;
use cyclescope::executor::ExecutorOffer;
use cyclescope::study::ResumableSession;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The options of every command that a file has.
#[derive(Debug, Clone, Copy)]
pub struct ResumedSettings<'a> {
    /// Where the code ran.
    pub executor: &'a str,
    /// The timing method.
    pub clock: &'a str,
    /// The seed.
    pub seed: u64,
    /// Whether --quick was given.
    pub quick: bool,
    /// The CPU that was measured on.
    pub cpu: u32,
}

impl ResumedSettings<'_> {
    /// The options with what was not given taken from here.
    ///
    /// # Errors
    ///
    /// Where the code ran in ring 0 and the options don't say so: a file alone must not take code there.
    pub fn adopt_options(&self, common: &CommonArgs, path: &Path) -> Result<CommonArgs, Failure> {
        let mut common = common.clone();
        let kept = ExecutorOffer::find_by_name(self.executor);
        if common.executor.is_none() && !kept.is_some_and(ExecutorOffer::is_default) {
            let text = format!("{} says that its code runs in `{}`", path.display(), self.executor);
            let remedy =
                format!("add --executor {} if you trust the file, or begin a new one with --out", self.executor);
            let unknown = "begin a new file with --out";
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

/// A result file to resume, by its first line.
pub struct ResumedFile<S> {
    path: PathBuf,
    command: &'static str,
    /// The first line.
    pub head: Value,
    /// The session in it.
    pub session: S,
}

impl<S: ResumableSession> ResumedFile<S> {
    /// The file with this first line, which a command of this name wrote.
    pub fn new(path: &Path, command: &'static str, head: Value) -> Result<ResumedFile<S>, Failure> {
        let session = serde_json::from_value(head[S::FIELD].clone()).map_err(|_| foreign_file(path, command))?;
        Ok(ResumedFile { path: path.to_path_buf(), command, head, session })
    }

    /// Fails where its session differs from what is asked for, and its machine from this one. `place`: where it was measured.
    pub fn require_same_session(&self, now: &S, machine: &Value, place: &str) -> Result<(), Failure> {
        let differences = self.session.describe_differences(now, &self.head, machine);
        if differences.is_empty() {
            return Ok(());
        }
        let remedy = format!(
            "resume with `cyclescope {} --resume FILE` alone, {place} and with the same version; or name a new file with --out",
            self.command
        );
        let text = format!("{} can't be resumed: {}", self.path.display(), differences.join("; "));
        Err(Failure::usage(text, Some(&remedy)))
    }
}

/// A line, and the number of bytes that the file has up to its end.
pub type LineWithEnd = (Value, u64);

/// The first line of a file, and the others; empty ones are passed over.
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

/// Fails where evidence would be of a part alone: these options, each with whether it is given, make it so.
pub fn refuse_evidence(common: &CommonArgs, others: &[(&str, bool)], of: &str) -> Result<(), Failure> {
    match others.iter().find(|(_, given)| *given).filter(|_| common.evidence.is_some()) {
        Some((option, _)) => {
            let remedy = format!("leave one of them out: evidence is of {of} from its beginning to its end");
            Err(Failure::usage(format!("--evidence does not go with {option}"), Some(&remedy)))
        }
        None => Ok(()),
    }
}
