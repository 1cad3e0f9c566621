//! The session of a result file of a study without options of its own: what the options say, and what a file that is
//! resumed says.

use crate::args::Common;
use crate::output::failure::Failure;
use crate::session::result_file;
use crate::session::resume::{self, Settings};
use cyclescope::measure::Plan;
use cyclescope::study::Session;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The session of some options.
pub fn session(common: &Common, subjects: &[&str], plan: &Plan, cpu: u32) -> Session {
    Session {
        version: env!("CARGO_PKG_VERSION").to_string(),
        seed: plan.seed,
        quick: common.quick,
        clock: plan.clock.name.to_string(),
        executor: common.offer().name.to_string(),
        cpu,
        subjects: subjects.iter().map(|name| name.to_string()).collect(),
    }
}

/// Contents of a file to resume.
pub struct Resumed {
    path: PathBuf,
    command: &'static str,
    /// Its first line, with its session.
    head: Value,
    session: Session,
    /// The other lines.
    lines: Vec<Value>,
    /// How many bytes the file has up to the end of the first line, and of each other one.
    ends: Vec<u64>,
}

impl Resumed {
    /// Reads the whole lines of a file. Its first line has to be one of them.
    pub fn read(path: &Path, command: &'static str, content: &[u8]) -> Result<Resumed, Failure> {
        let foreign = || result_file::foreign(path, command);
        if content.is_empty() {
            let text = format!("{} has no complete first line", path.display());
            return Err(Failure::usage(text, Some("begin a new file with --out")));
        }
        let (mut lines, mut ends, mut end) = (Vec::new(), Vec::new(), 0);
        for line in content.split_inclusive(|byte| *byte == b'\n') {
            end += line.len() as u64;
            lines.push(serde_json::from_slice::<Value>(line).map_err(|_| foreign())?);
            ends.push(end);
        }
        let head = lines.remove(0);
        let session = serde_json::from_value(head["session"].clone()).map_err(|_| foreign())?;
        if lines.iter().any(|line| line["kind"] != command) {
            return Err(foreign());
        }
        Ok(Resumed { path: path.to_path_buf(), command, head, session, lines, ends })
    }

    /// The options with what was not given taken from the session, and what is to be measured.
    pub fn adopt(&self, common: &Common, subjects: &[String]) -> Result<(Common, Vec<String>), Failure> {
        let Session { seed, quick, cpu, clock, executor, subjects: kept, .. } = &self.session;
        let settings = Settings { executor, clock, seed: *seed, quick: *quick, cpu: *cpu };
        let subjects = if subjects.is_empty() { kept } else { subjects };
        Ok((settings.adopted(common, &self.path)?, subjects.to_vec()))
    }

    /// Fails where the session does not match the request and this machine.
    pub fn require(&self, now: &Session, machine: &Value) -> Result<(), Failure> {
        resume::require(&self.session.differences(now, &self.head, machine), self.command, &self.path)
    }

    /// The lines of what is complete, and how many bytes the file has up to their end.
    pub fn whole(mut self, whole: fn(&[Value]) -> usize) -> (Vec<Value>, u64) {
        self.lines.truncate(whole(&self.lines));
        let end = self.ends[self.lines.len()];
        (self.lines, end)
    }
}
