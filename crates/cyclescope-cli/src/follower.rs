//! Follows a study: keeps each line of its result, prints it, draws the bar.

use crate::failure::{Failure, warn};
use crate::file::ResultFile;
use crate::output::Output;
use crate::progress::Progress;
use crate::{evidence, interrupt};
use cyclescope::result::container::{Evidence, Writer};
use cyclescope::study::{Follow, Progress as Standing, Record, Role};
use serde_json::Value;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// How much evidence a study that is killed loses at most.
const CHECKPOINT: Duration = Duration::from_secs(5);

/// Whoever follows.
pub struct Follower<'a> {
    output: &'a mut Output,
    evidence: Option<Rc<Evidence>>,
    /// When the evidence was last made readable.
    checked: Option<Instant>,
    file: Option<ResultFile>,
    progress: Progress,
    begun: bool,
    /// Whether nobody reads standard output any more.
    closed: bool,
    /// What failed: it ends the study.
    failure: Option<Failure>,
}

impl<'a> Follower<'a> {
    /// Begins.
    pub fn new(
        output: &'a mut Output,
        evidence: Option<Rc<Evidence>>,
        file: Option<ResultFile>,
    ) -> Follower<'a> {
        let progress = Progress::new("");
        let (checked, failure) = (None, None);
        Follower { output, evidence, checked, file, progress, begun: false, closed: false, failure }
    }

    /// Ends it. Returns whether standard output was closed, and what failed.
    pub fn finish(self) -> (bool, Option<Failure>) {
        self.progress.finish();
        if let Some(file) = self.file.filter(|_| self.failure.is_none()) {
            file.finish();
        }
        (self.closed, self.failure)
    }

    fn flow(&mut self, result: Result<(), Failure>) -> ControlFlow<()> {
        match result {
            Ok(()) => ControlFlow::Continue(()),
            Err(failure) => {
                self.failure = Some(failure);
                ControlFlow::Break(())
            }
        }
    }

    fn take(&mut self, record: &Record) -> Result<(), Failure> {
        // First the files: what they have is not lost where standard output is closed.
        if let Some(file) = self.file.as_mut().filter(|_| record.role == Role::Part) {
            file.append(&record.line)?;
            interrupt::farewell(Some(format!("interrupted; resume with {}", file.resume_command())));
        }
        self.keep(&record.line);
        if !self.output.is_json() || self.closed {
            return Ok(());
        }
        match self.progress.aside(|| self.output.json(&record.line)) {
            // The files are wanted all the same.
            Err(Failure::ClosedPipe) if self.file.is_some() || self.evidence.is_some() => {
                self.closed = true;
                Ok(())
            }
            result => result,
        }
    }

    /// Adds a line to the evidence, which is readable up to here from time to time.
    fn keep(&mut self, line: &str) {
        let Some(evidence) = &self.evidence else { return };
        evidence.keep(|writer| writer.line_of_result(line));
        if self.checked.is_none_or(|checked| checked.elapsed() >= CHECKPOINT) {
            evidence.keep(Writer::checkpoint);
            self.checked = Some(Instant::now());
        }
        if evidence.has_failed() {
            self.progress.aside(|| warn(evidence::NO_LONGER));
            self.evidence = None;
        }
    }
}

impl Follow for Follower<'_> {
    fn record(&mut self, record: Record) -> ControlFlow<()> {
        let result = self.take(&record);
        self.flow(result)
    }

    fn progress(&mut self, standing: Standing) -> ControlFlow<()> {
        let Standing { done, total, message } = standing;
        if !std::mem::replace(&mut self.begun, true) {
            // Work that was done before takes no time now.
            self.progress.begin(done, total);
        }
        self.progress.tell(done, total, message);
        ControlFlow::Continue(())
    }

    fn part(&mut self, part: &Value) -> ControlFlow<()> {
        let result = self.file.as_mut().map_or(Ok(()), |file| file.keep(part));
        self.flow(result)
    }
}
