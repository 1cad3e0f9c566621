//! A study without a front of its own, and the lines that it has told.

use cyclescope::executor::LockState;
use cyclescope::result::answers::Answers;
use cyclescope::result::container::{Container, ContainerError};
use cyclescope::study::{Follow, Progress, Record, Stop, Study};
use serde_json::Value;
use std::io;
use std::ops::ControlFlow;

/// A study and the lines of its result.
pub struct Told {
    study: Box<dyn Study>,
    /// The lines.
    pub lines: Vec<Value>,
}

impl Told {
    /// A study that has no lines yet.
    pub fn new(study: Box<dyn Study>) -> Told {
        Told { study, lines: Vec::new() }
    }
}

impl Study for Told {
    fn name(&self) -> &'static str {
        self.study.name()
    }

    fn plan(&self) -> io::Result<Value> {
        self.study.plan()
    }

    fn restore(container: &Container) -> Result<Told, ContainerError> {
        let name = &container.manifest.origin.study;
        let unknown = || ContainerError::fact("study", format!("there is no study {name}"));
        let info = cyclescope::study::named(name).ok_or_else(unknown)?;
        Ok(Told { study: (info.restore)(container)?, lines: Vec::new() })
    }

    fn measure(&mut self, answers: &Answers, follow: &mut dyn Follow) -> Result<(), Stop> {
        self.study.measure(answers, &mut Collecting { lines: &mut self.lines, follow })
    }

    fn lock_state(&self) -> Option<&LockState> {
        self.study.lock_state()
    }
}

/// Collects lines and passes them on to the follower.
struct Collecting<'a> {
    lines: &'a mut Vec<Value>,
    follow: &'a mut dyn Follow,
}

impl Follow for Collecting<'_> {
    fn record(&mut self, record: Record) -> ControlFlow<()> {
        self.lines.extend(serde_json::from_str::<Value>(&record.line));
        self.follow.record(record)
    }

    fn progress(&mut self, progress: Progress) -> ControlFlow<()> {
        self.follow.progress(progress)
    }

    fn part(&mut self, part: &dyn Fn() -> String) -> ControlFlow<()> {
        self.follow.part(part)
    }
}
