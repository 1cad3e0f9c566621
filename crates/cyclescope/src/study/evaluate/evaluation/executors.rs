//! Who runs the programs of an evaluation.

use crate::doctor::MakeExecutor;
use crate::error::RunError;
use crate::executor::Executor;
use crate::study::evaluate::Subject;

/// The executors of an evaluation.
pub struct Executors<'a> {
    /// Runs code on the target CPU. The facts about the machine are found with it.
    pub plain: &'a mut dyn Executor,
    /// Run code there, too: one for each further executor that a plan's candidates name.
    pub further: Vec<&'a mut dyn Executor>,
    /// Makes another like `plain` that keeps a performance counter, for the method that reads one.
    pub counting: &'a dyn Fn() -> Result<Box<dyn Executor>, RunError>,
    /// Makes executors like `plain` on other CPUs.
    pub others: &'a MakeExecutor<'a>,
    /// What `counting` made.
    pub made: Option<Box<dyn Executor>>,
}

impl Executors<'_> {
    /// Their names, that of `plain` first.
    pub(super) fn names(&self) -> Vec<&'static str> {
        let further = self.further.iter().map(|executor| executor.name());
        std::iter::once(self.plain.name()).chain(further).collect()
    }

    /// The one that a method needs.
    ///
    /// # Panics
    ///
    /// Without the one that is asked for: figures of another would be taken for its own.
    pub(super) fn of(&mut self, subject: &Subject) -> Result<&mut dyn Executor, RunError> {
        if subject.executor != self.plain.name() {
            let further = self.further.iter_mut().find(|executor| executor.name() == subject.executor);
            return Ok(&mut **further.expect("the plan's candidates have executors"));
        }
        if !subject.clock.reads_counter() {
            return Ok(self.plain);
        }
        if self.made.is_none() {
            self.made = Some((self.counting)()?);
        }
        Ok(&mut **self.made.as_mut().expect("it was just made"))
    }
}
