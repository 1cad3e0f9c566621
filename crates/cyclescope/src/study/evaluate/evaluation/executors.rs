//! Who runs the programs of an evaluation.

use crate::doctor::MakeExecutor;
use crate::error::RunError;
use crate::executor::{Executor, Mode};
use crate::study::evaluate::Subject;

/// The executors of an evaluation.
pub struct Executors<'a> {
    /// Runs code on the target CPU, in user mode.
    pub plain: &'a mut dyn Executor,
    /// Runs code there in ring 0. A plan that has candidates for that mode needs it.
    pub ring0: Option<&'a mut dyn Executor>,
    /// Makes another in user mode that keeps a performance counter, for the method that reads one.
    pub counting: &'a dyn Fn() -> Result<Box<dyn Executor>, RunError>,
    /// Makes executors in user mode on other CPUs.
    pub others: &'a MakeExecutor<'a>,
    /// What `counting` made.
    pub made: Option<Box<dyn Executor>>,
}

impl Executors<'_> {
    /// The one that a method needs where it is to run.
    ///
    /// # Panics
    ///
    /// Without one for ring 0 where that is asked for: figures of user mode would be taken for its own.
    pub(super) fn of(&mut self, subject: &Subject) -> Result<&mut dyn Executor, RunError> {
        match subject.mode {
            Mode::Kernel => Ok(&mut **self.ring0.as_mut().expect("the plan's modes have executors")),
            Mode::User if !subject.clock.reads_counter() => Ok(self.plain),
            Mode::User => {
                if self.made.is_none() {
                    self.made = Some((self.counting)()?);
                }
                Ok(&mut **self.made.as_mut().expect("it was just made"))
            }
        }
    }
}
