//! The session of a generic study's result file: its options, from the command line or a resumed
//! file.

use crate::args::CommonArgs;
use crate::output::Failure;
use crate::session::result_file::foreign_file;
use crate::session::resume::{LineWithEnd, ResumedFile, ResumedSettings, split_json_lines};
use cyclescope::events::CounterRequest;
use cyclescope::measure::Plan;
use cyclescope::study::GenericSession;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Builds the session of these options.
pub fn build_session(
    common: &CommonArgs,
    subjects: &[&str],
    plan: &Plan,
    cpu: u32,
    counters: Option<CounterRequest>,
) -> GenericSession {
    GenericSession {
        version: env!("CARGO_PKG_VERSION").to_string(),
        seed: plan.seed,
        quick: common.quick,
        clock: plan.clock.name.to_string(),
        executor: common.offer().name.to_string(),
        cpu,
        subjects: subjects.iter().map(|name| name.to_string()).collect(),
        counters,
    }
}

/// The lines of a file to resume, each with the file's length up to its end.
pub struct ResumedLines {
    resumed: ResumedFile<GenericSession>,
    path: PathBuf,
    lines: Vec<LineWithEnd>,
    /// The file's length up to the end of its first line.
    first: u64,
}

impl ResumedLines {
    /// Reads the complete lines of a file. The first line must be complete.
    pub fn from_content(path: &Path, command: &'static str, content: &[u8]) -> Result<ResumedLines, Failure> {
        if content.is_empty() {
            let text = format!("{} has no complete first line", path.display());
            return Err(Failure::usage(text, Some("start a new file with --out")));
        }
        let ((head, first), lines) = split_json_lines(path, command, content)?;
        let resumed = ResumedFile::new(path, command, head)?;
        if lines.iter().any(|(line, _)| line["kind"] != command) {
            return Err(foreign_file(path, command));
        }
        Ok(ResumedLines { resumed, path: path.to_path_buf(), lines, first })
    }

    /// The events that the file's lines have.
    pub fn counters(&self) -> Option<CounterRequest> {
        self.resumed.session.counters.clone().filter(CounterRequest::is_sound)
    }

    /// Fills options that weren't given with those of the session, and returns the subjects to
    /// measure.
    pub fn adopt_options(
        &self,
        common: &CommonArgs,
        subjects: &[String],
    ) -> Result<(CommonArgs, Vec<String>), Failure> {
        let GenericSession { seed, quick, cpu, clock, executor, subjects: kept, .. } = &self.resumed.session;
        let settings = ResumedSettings { executor, clock, seed: *seed, quick: *quick, cpu: *cpu };
        let subjects = if subjects.is_empty() { kept } else { subjects };
        Ok((settings.adopt_options(common, &self.path)?, subjects.to_vec()))
    }

    /// The lines of completed subjects, and the file's length up to their end. Fails if the session
    /// doesn't match the request and this machine.
    pub fn take_complete(
        self,
        now: &GenericSession,
        machine: &Value,
        whole: fn(&[Value]) -> usize,
    ) -> Result<(Vec<Value>, u64), Failure> {
        self.resumed.require_same_session(now, machine, "on the same machine")?;
        let (mut lines, ends): (Vec<Value>, Vec<u64>) = self.lines.into_iter().unzip();
        lines.truncate(whole(&lines));
        let end = lines.len().checked_sub(1).map_or(self.first, |last| ends[last]);
        Ok((lines, end))
    }
}
