//! The executors of an evaluation.

use crate::{MethodCandidate, TestedClock};
use cyclescope_core::error::{Error, RunError, Unavailable};
use cyclescope_core::machine::Machine;
use cyclescope_exec::{DEFAULT_OFFER, Executor, ExecutorOffer, LockState, OpenError, OpenOptions, OpenResult};
use cyclescope_measure::result::answers::MachineAnswers;

/// Opens the executor of this name on a machine's target CPU.
pub(crate) type OpenNamed = fn(&'static str, &Machine, &OpenOptions) -> OpenResult;

/// The source of live answers.
#[derive(Debug, Clone)]
pub(crate) struct ExecutorHost {
    /// The machine and its target CPU.
    pub machine: Machine,
    /// Options for opening executors.
    pub options: OpenOptions,
    /// Opens an executor by name.
    pub open: OpenNamed,
}

/// Opens one of the available executors.
pub(crate) fn open_offered(name: &'static str, machine: &Machine, options: &OpenOptions) -> OpenResult {
    let offer = ExecutorOffer::find_by_name(name).ok_or_else(|| Unavailable {
        what: format!("executor {name}"),
        why: "no executor has this name".to_string(),
        remedy: String::new(),
    })?;
    (offer.open)(machine, options)
}

impl ExecutorHost {
    fn open_executor(&self, asked: ExecutorRequest) -> OpenResult {
        let options = OpenOptions { counter: asked.counter, ..self.options };
        (self.open)(asked.name, &self.machine, &options)
    }

    /// Opens the default executor on another CPU.
    pub(super) fn open_on_cpu(&self, cpu: u32) -> Result<Box<dyn Executor>, RunError> {
        let machine = Machine::detect_on(cpu).map_err(RunError::Unavailable)?;
        (self.open)(DEFAULT_OFFER.name, &machine, &self.options).map_err(|error| match error {
            OpenError::Unavailable(error) => RunError::Unavailable(error),
            OpenError::Failed(error) => error,
        })
    }
}

/// An executor that the evaluation needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ExecutorRequest {
    name: &'static str,
    /// Whether programs read a performance counter.
    counter: bool,
}

/// The executors of an evaluation. The default one comes first; it measures the facts about the
/// machine.
pub(super) struct ExecutorSet<'a> {
    host: Option<&'a ExecutorHost>,
    answers: &'a MachineAnswers,
    opened: Vec<(ExecutorRequest, Box<dyn Executor>)>,
}

impl<'a> ExecutorSet<'a> {
    /// Opens the default executor and each other one that candidates name.
    pub(super) fn open(
        host: Option<&'a ExecutorHost>,
        answers: &'a MachineAnswers,
        candidates: &[MethodCandidate],
    ) -> Result<ExecutorSet<'a>, Error> {
        let mut executors = ExecutorSet { host, answers, opened: Vec::new() };
        for name in std::iter::once(DEFAULT_OFFER.name).chain(candidates.iter().map(|found| found.executor)) {
            executors.open_or_reuse(ExecutorRequest { name, counter: false })?;
        }
        Ok(executors)
    }

    /// Their names, the default executor's first.
    pub(super) fn names(&self) -> Vec<&'static str> {
        let plain = self.opened.iter().filter(|(asked, _)| !asked.counter);
        plain.map(|(asked, _)| asked.name).collect()
    }

    /// The default executor.
    pub(super) fn default_executor(&mut self) -> &mut dyn Executor {
        &mut *self.opened[0].1
    }

    /// The executor for a method. The default one reads performance counters only if opened for
    /// that.
    pub(super) fn for_clock(&mut self, tested: &TestedClock) -> Result<&mut dyn Executor, Error> {
        let name = tested.executor;
        let counter = name == DEFAULT_OFFER.name && tested.clock.reads_counter();
        self.open_or_reuse(ExecutorRequest { name, counter })
    }

    fn open_or_reuse(&mut self, asked: ExecutorRequest) -> Result<&mut dyn Executor, Error> {
        let position = self.opened.iter().position(|(opened, _)| *opened == asked);
        let index = position.unwrap_or(self.opened.len());
        if position.is_none() {
            let executor = self.answers.open_executor(|| Ok(self.require_host()?.open_executor(asked)?))?;
            self.opened.push((asked, executor));
        }
        Ok(&mut *self.opened[index].1)
    }

    /// The source of live answers, or an error in a replay.
    pub(super) fn require_host(&self) -> Result<&'a ExecutorHost, Error> {
        let how = "a replay has no machine to ask".to_string();
        self.host.ok_or_else(|| RunError::Replay { how }.into())
    }

    /// State of the CPU's lock: from the executor without exclusive use, otherwise from the default
    /// one.
    pub(super) fn lock_state(&self) -> Option<LockState> {
        let states = || self.opened.iter().filter_map(|(_, executor)| executor.lock_state());
        states().find(|state| **state != LockState::Taken).or_else(|| states().next()).cloned()
    }
}
