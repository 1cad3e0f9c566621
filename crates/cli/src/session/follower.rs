//! Follows a study: saves and prints each line of its result, and draws the progress bar.

use crate::output::exporter::Exporter;
use crate::output::{Failure, Output, print_warning};
use crate::process::interrupt;
use crate::session::evidence;
use crate::session::evidence::EvidenceDirectory;
use crate::session::progress::ProgressDisplay;
use crate::session::result_file::ResultFile;
use cyclescope::result::answers::MachineAnswers;
use cyclescope::result::container::{ContainerWriter, EvidenceRecorder};
use cyclescope::study::{RecordRole, ResultRecord, StudyFollower, StudyProgress as Standing};
use serde_json::Value;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// About how many seconds of evidence a killed study loses.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(5);

/// Receives a study's records, prints them, and writes evidence and the result file.
pub struct Follower<'a> {
    output: &'a mut Output,
    answers: &'a MachineAnswers,
    printed: &'a dyn Exporter,
    kept: StudyFiles<'a>,
    /// When the evidence was last made readable.
    checked: Instant,
    /// Whether other files need the lines.
    collects: bool,
    /// Whether any file is written. If so, the study continues even when nothing can be printed.
    files: bool,
    progress: Option<ProgressDisplay>,
    ended: FollowResult,
}

/// The files that a study writes while it is measured.
#[derive(Default)]
pub struct StudyFiles<'a> {
    /// The evidence.
    pub evidence: Option<Rc<EvidenceRecorder>>,
    /// The directory of the evidence.
    pub place: Option<&'a EvidenceDirectory<'a>>,
    /// The result file.
    pub file: Option<ResultFile>,
}

/// How a followed study ended.
#[derive(Default)]
pub struct FollowResult {
    /// Why nothing could be printed, if so.
    pub unprinted: Option<Failure>,
    /// The failure that ended the study.
    pub failure: Option<Failure>,
    /// The lines, if other files need them.
    pub lines: Vec<Value>,
}

impl<'a> Follower<'a> {
    /// Starts to follow a study. `collects`: whether files other than evidence and the result file
    /// are requested.
    pub fn new(
        output: &'a mut Output,
        answers: &'a MachineAnswers,
        printed: &'a dyn Exporter,
        kept: StudyFiles<'a>,
        collects: bool,
    ) -> Follower<'a> {
        let files = collects || kept.evidence.is_some() || kept.file.is_some();
        let (checked, ended) = (Instant::now(), FollowResult::default());
        Follower { output, answers, printed, kept, checked, collects, files, progress: None, ended }
    }

    /// Ends the study's files. A complete study leaves nothing to resume.
    pub fn finish(mut self, complete: bool) -> FollowResult {
        self.progress = None;
        match (self.kept.file, &self.kept.evidence) {
            (Some(file), _) if complete => {
                if let Err(failure) = file.remove_journal() {
                    print_warning(failure.text());
                }
            }
            (_, Some(evidence)) if !complete => {
                evidence.write_with(ContainerWriter::checkpoint);
            }
            _ => {}
        }
        self.ended
    }

    fn stop_on_failure(&mut self, result: Result<(), Failure>) -> ControlFlow<()> {
        match result {
            Ok(()) => ControlFlow::Continue(()),
            Err(failure) => {
                self.ended.failure = Some(failure);
                ControlFlow::Break(())
            }
        }
    }

    /// Runs `act` while no bar is drawn.
    fn run_without_bar<T>(progress: Option<&ProgressDisplay>, act: impl FnOnce() -> T) -> T {
        match progress {
            Some(progress) => progress.suspend_bar(act),
            None => act(),
        }
    }

    fn keep_record(&mut self, record: &ResultRecord) -> Result<(), Failure> {
        // Files come first, so that they are complete even if printing fails.
        if let Some(file) = &mut self.kept.file {
            if record.role == RecordRole::Part {
                file.append_line(&record.line)?;
            }
            if !file.is_announced() {
                interrupt::set_interrupt_text(file.announce_resume());
            }
        }
        if let Some(evidence) = &self.kept.evidence {
            evidence.write_with(|writer| writer.add_result_line(&record.line));
        }
        self.checkpoint();
        if self.collects {
            self.ended.lines.extend(serde_json::from_str::<Value>(&record.line));
        }
        if !self.printed.prints_lines() || self.ended.unprinted.is_some() {
            return Ok(());
        }
        let print = || self.printed.print_line(&record.line, self.output);
        let printed = Follower::run_without_bar(self.progress.as_ref(), print);
        match printed {
            Err(failure) if self.files => {
                self.ended.unprinted = Some(failure);
                Ok(())
            }
            printed => printed,
        }
    }

    /// Makes the evidence so far readable, every few seconds.
    fn checkpoint(&mut self) {
        let Some(evidence) = &self.kept.evidence else { return };
        if self.checked.elapsed() >= CHECKPOINT_INTERVAL {
            evidence.write_with(ContainerWriter::checkpoint);
            if let Some(Err(reason)) = self.kept.place.map(EvidenceDirectory::require_space) {
                evidence.stop_writing(reason);
            }
            self.checked = Instant::now();
        }
        if evidence.has_failed() {
            Follower::run_without_bar(self.progress.as_ref(), || print_warning(evidence::EVIDENCE_STOPPED));
            self.kept.evidence = None;
        }
    }
}

impl StudyFollower for Follower<'_> {
    fn accept_record(&mut self, record: ResultRecord) -> ControlFlow<()> {
        let result = self.keep_record(&record.with_caveat_of(self.answers));
        self.stop_on_failure(result)
    }

    fn report_progress(&mut self, standing: Standing) -> ControlFlow<()> {
        let Standing { done, total, message } = standing;
        // Work done before the first report counts as done at the start.
        let progress = self.progress.get_or_insert_with(|| ProgressDisplay::new(done, total));
        progress.show(done, total, message);
        self.checkpoint();
        ControlFlow::Continue(())
    }

    fn save_part(&mut self, part: &dyn Fn() -> String) -> ControlFlow<()> {
        let result = self.kept.file.as_mut().map_or(Ok(()), |file| file.append_part(&part()));
        self.stop_on_failure(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::TEXT_EXPORTER;

    #[test]
    fn complete_study_leaves_nothing_to_resume() {
        for complete in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let file = ResultFile::create(&folder.path().join("a"), "instr", true).unwrap();
            let mut output = Output::new(false);
            let kept = StudyFiles { file: Some(file), ..StudyFiles::default() };
            let answers = MachineAnswers::live();
            let mut follower = Follower::new(&mut output, &answers, &TEXT_EXPORTER, kept, false);
            assert!(follower.accept_record(ResultRecord::new("machine", &serde_json::json!({"cpu": 1}))).is_continue());
            assert!(follower.save_part(&|| "1".to_string()).is_continue());
            follower.finish(complete);
            assert_eq!(folder.path().join("a.journal").exists(), !complete);
        }
    }
}
