//! A generic study, and the lines that it has reported.

use cyclescope::executor::LockState;
use cyclescope::result::answers::MachineAnswers;
use cyclescope::result::container::{ContainerError, EvidenceContainer};
use cyclescope::study::{ResultRecord, StopReason, Study, StudyFollower, StudyProgress};
use serde_json::Value;
use std::io;
use std::ops::ControlFlow;

/// A study and the lines of its result.
pub struct StudyWithLines {
    study: Box<dyn Study>,
    /// The lines.
    pub lines: Vec<Value>,
}

impl StudyWithLines {
    /// Wraps a study that has no lines yet.
    pub fn new(study: Box<dyn Study>) -> StudyWithLines {
        StudyWithLines { study, lines: Vec::new() }
    }
}

impl Study for StudyWithLines {
    fn name(&self) -> &'static str {
        self.study.name()
    }

    fn plan(&self) -> io::Result<Value> {
        self.study.plan()
    }

    fn restore(container: &EvidenceContainer) -> Result<StudyWithLines, ContainerError> {
        let name = &container.manifest.origin.study;
        let unknown = || ContainerError::damaged_fact("study", format!("unknown study {name}"));
        let info = cyclescope::study::find_study(name).ok_or_else(unknown)?;
        Ok(StudyWithLines { study: (info.restore)(container)?, lines: Vec::new() })
    }

    fn measure(&mut self, answers: &MachineAnswers, follow: &mut dyn StudyFollower) -> Result<(), StopReason> {
        self.study.measure(answers, &mut LineCollector { lines: &mut self.lines, follow })
    }

    fn lock_state(&self) -> Option<&LockState> {
        self.study.lock_state()
    }
}

/// Collects lines and passes them to the follower.
struct LineCollector<'a> {
    lines: &'a mut Vec<Value>,
    follow: &'a mut dyn StudyFollower,
}

impl StudyFollower for LineCollector<'_> {
    fn accept_record(&mut self, record: ResultRecord) -> ControlFlow<()> {
        self.lines.extend(serde_json::from_str::<Value>(&record.line));
        self.follow.accept_record(record)
    }

    fn report_progress(&mut self, progress: StudyProgress) -> ControlFlow<()> {
        self.follow.report_progress(progress)
    }

    fn save_part(&mut self, part: &dyn Fn() -> String) -> ControlFlow<()> {
        self.follow.save_part(part)
    }
}
