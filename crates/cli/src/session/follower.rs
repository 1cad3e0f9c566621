//! Follows a study: keeps each line of its result, prints it, draws the bar.

use crate::output::exporter::Exporter;
use crate::output::{Failure, Output, warn};
use crate::process::interrupt;
use crate::session::evidence;
use crate::session::evidence::Place;
use crate::session::progress::Progress;
use crate::session::result_file::ResultFile;
use cyclescope::result::container::{Evidence, Writer};
use cyclescope::study::{Follow, Progress as Standing, Record, Role};
use serde_json::Value;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Seconds of evidence that a study loses that is killed, about.
const CHECKPOINT: Duration = Duration::from_secs(5);

/// Receives the records of a study: prints them, and writes evidence and result file.
pub struct Follower<'a> {
    output: &'a mut Output,
    printed: &'a dyn Exporter,
    kept: Kept<'a>,
    /// When the evidence was last made readable.
    checked: Instant,
    /// Whether the lines are wanted in other files.
    collects: bool,
    /// Whether any files are wanted, so that the study goes on where nothing can be printed.
    files: bool,
    progress: Option<Progress>,
    ended: Ended,
}

/// Where a study is kept while it is measured.
#[derive(Default)]
pub struct Kept<'a> {
    /// Its evidence.
    pub evidence: Option<Rc<Evidence>>,
    /// Where that goes.
    pub place: Option<&'a Place<'a>>,
    /// The result file.
    pub file: Option<ResultFile>,
}

/// How a study that was followed ended.
#[derive(Default)]
pub struct Ended {
    /// Why nothing can be printed any more.
    pub unprinted: Option<Failure>,
    /// What ended the study.
    pub failure: Option<Failure>,
    /// Its lines, where other files want them.
    pub lines: Vec<Value>,
}

impl<'a> Follower<'a> {
    /// Begins. `collects`: whether files beside evidence and result file are wanted.
    pub fn new(
        output: &'a mut Output,
        printed: &'a dyn Exporter,
        kept: Kept<'a>,
        collects: bool,
    ) -> Follower<'a> {
        let files = collects || kept.evidence.is_some() || kept.file.is_some();
        let (checked, ended) = (Instant::now(), Ended::default());
        Follower { output, printed, kept, checked, collects, files, progress: None, ended }
    }

    /// Ends it. Of a study that is complete nothing is left to resume.
    pub fn finish(mut self, complete: bool) -> Ended {
        self.progress = None;
        match (self.kept.file, &self.kept.evidence) {
            (Some(file), _) if complete => file.finish(),
            (_, Some(evidence)) if !complete => {
                evidence.keep(Writer::checkpoint);
            }
            _ => {}
        }
        self.ended
    }

    fn flow(&mut self, result: Result<(), Failure>) -> ControlFlow<()> {
        match result {
            Ok(()) => ControlFlow::Continue(()),
            Err(failure) => {
                self.ended.failure = Some(failure);
                ControlFlow::Break(())
            }
        }
    }

    /// Does something while no bar is drawn.
    fn aside<T>(progress: Option<&Progress>, act: impl FnOnce() -> T) -> T {
        match progress {
            Some(progress) => progress.aside(act),
            None => act(),
        }
    }

    fn take(&mut self, record: &Record) -> Result<(), Failure> {
        // First the files: what they have is not lost where nothing can be printed.
        if let Some(file) = &mut self.kept.file {
            if record.role == Role::Part {
                file.append(&record.line)?;
            }
            if !file.is_announced() {
                interrupt::farewell(file.announce());
            }
        }
        if let Some(evidence) = &self.kept.evidence {
            evidence.keep(|writer| writer.line_of_result(&record.line));
        }
        self.checkpoint();
        if self.collects {
            self.ended.lines.extend(serde_json::from_str::<Value>(&record.line));
        }
        if !self.printed.prints_lines() || self.ended.unprinted.is_some() {
            return Ok(());
        }
        let print = || self.printed.line(&record.line, self.output);
        let printed = Follower::aside(self.progress.as_ref(), print);
        match printed {
            Err(failure) if self.files => {
                self.ended.unprinted = Some(failure);
                Ok(())
            }
            printed => printed,
        }
    }

    /// Makes the evidence readable up to here, from time to time.
    fn checkpoint(&mut self) {
        let Some(evidence) = &self.kept.evidence else { return };
        if self.checked.elapsed() >= CHECKPOINT {
            evidence.keep(Writer::checkpoint);
            if let Some(Err(reason)) = self.kept.place.map(Place::require_space) {
                evidence.give_up(reason);
            }
            self.checked = Instant::now();
        }
        if evidence.has_failed() {
            Follower::aside(self.progress.as_ref(), || warn(evidence::NO_LONGER));
            self.kept.evidence = None;
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
        // Work that was done before the first word of it takes no time now.
        let progress = self.progress.get_or_insert_with(|| Progress::new(done, total));
        progress.tell(done, total, message);
        self.checkpoint();
        ControlFlow::Continue(())
    }

    fn part(&mut self, part: &dyn Fn() -> String) -> ControlFlow<()> {
        let result = self.kept.file.as_mut().map_or(Ok(()), |file| file.keep(&part()));
        self.flow(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::TEXT;

    #[test]
    fn what_lets_a_study_be_resumed_goes_when_it_is_complete() {
        for complete in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let file = ResultFile::create(&folder.path().join("a"), "instr", true).unwrap();
            let mut output = Output::new(false);
            let kept = Kept { file: Some(file), ..Kept::default() };
            let mut follower = Follower::new(&mut output, &TEXT, kept, false);
            assert!(follower.record(Record::new("machine", &serde_json::json!({"cpu": 1}))).is_continue());
            assert!(follower.part(&|| "1".to_string()).is_continue());
            follower.finish(complete);
            assert_eq!(folder.path().join("a.journal").exists(), !complete);
        }
    }
}
