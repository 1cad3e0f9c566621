//! The session of a result file of a study without options of its own: what the options say, and what a file that is
//! resumed says.

use crate::args::CommonArgs;
use crate::output::Failure;
use crate::session::result_file::foreign_file;
use crate::session::resume::{LineWithEnd, ResumedFile, ResumedSettings, split_json_lines};
use cyclescope::measure::Plan;
use cyclescope::study::GenericSession;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The session of some options.
pub fn build_session(common: &CommonArgs, subjects: &[&str], plan: &Plan, cpu: u32) -> GenericSession {
    GenericSession {
        version: env!("CARGO_PKG_VERSION").to_string(),
        seed: plan.seed,
        quick: common.quick,
        clock: plan.clock.name.to_string(),
        executor: common.offer().name.to_string(),
        cpu,
        subjects: subjects.iter().map(|name| name.to_string()).collect(),
    }
}

/// A file to resume, and the lines behind its first, each with how many bytes the file has up to its end.
pub struct ResumedLines {
    resumed: ResumedFile<GenericSession>,
    path: PathBuf,
    lines: Vec<LineWithEnd>,
    /// How many bytes the file has up to the end of its first line.
    first: u64,
}

impl ResumedLines {
    /// Reads the whole lines of a file. Its first line has to be one of them.
    pub fn from_content(path: &Path, command: &'static str, content: &[u8]) -> Result<ResumedLines, Failure> {
        if content.is_empty() {
            let text = format!("{} has no complete first line", path.display());
            return Err(Failure::usage(text, Some("begin a new file with --out")));
        }
        let ((head, first), lines) = split_json_lines(path, command, content)?;
        let resumed = ResumedFile::new(path, command, head)?;
        if lines.iter().any(|(line, _)| line["kind"] != command) {
            return Err(foreign_file(path, command));
        }
        Ok(ResumedLines { resumed, path: path.to_path_buf(), lines, first })
    }

    /// The options with what was not given taken from the session, and what is to be measured.
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

    /// The lines of what is complete, and how many bytes the file has up to their end; fails where the session does not match
    /// the request and this machine.
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
