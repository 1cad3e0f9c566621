//! Who runs the programs of an evaluation.

use crate::{Candidate, TestedClock};
use cyclescope_core::error::{Error, RunError, Unavailable};
use cyclescope_core::machine::Machine;
use cyclescope_exec::{DEFAULT, Executor, LockState, Offer, OpenError, OpenOptions, Opened};
use cyclescope_measure::result::answers::Answers;

/// Opens an executor of this name on a machine's target CPU.
pub(crate) type OpenNamed = fn(&'static str, &Machine, &OpenOptions) -> Opened;

/// What live answers come from.
#[derive(Debug, Clone)]
pub(crate) struct Host {
    /// The machine, with its target CPU.
    pub machine: Machine,
    /// How its executors are opened.
    pub options: OpenOptions,
    /// What opens them.
    pub open: OpenNamed,
}

/// Opens an executor that is on offer.
pub(crate) fn offered(name: &'static str, machine: &Machine, options: &OpenOptions) -> Opened {
    let offer = Offer::named(name).ok_or_else(|| Unavailable {
        what: format!("executor {name}"),
        why: "there is none of this name".to_string(),
        remedy: String::new(),
    })?;
    (offer.open)(machine, options)
}

impl Host {
    fn executor(&self, asked: Asked) -> Opened {
        let options = OpenOptions { counter: asked.counter, ..self.options };
        (self.open)(asked.name, &self.machine, &options)
    }

    /// The default executor on another CPU.
    pub(super) fn on_another(&self, cpu: u32) -> Result<Box<dyn Executor>, RunError> {
        let machine = Machine::detect_on(cpu).map_err(RunError::Unavailable)?;
        (self.open)(DEFAULT.name, &machine, &self.options).map_err(|error| match error {
            OpenError::Unavailable(error) => RunError::Unavailable(error),
            OpenError::Failed(error) => error,
        })
    }
}

/// An executor that the course needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Asked {
    name: &'static str,
    /// Whether programs read a performance counter.
    counter: bool,
}

/// The executors of an evaluation: the default one first, which the facts about the machine are found with.
pub(super) struct Executors<'a> {
    host: Option<&'a Host>,
    answers: &'a Answers,
    opened: Vec<(Asked, Box<dyn Executor>)>,
}

impl<'a> Executors<'a> {
    /// Opens the default one, and each further one that candidates name.
    pub(super) fn open(
        host: Option<&'a Host>,
        answers: &'a Answers,
        candidates: &[Candidate],
    ) -> Result<Executors<'a>, Error> {
        let mut executors = Executors { host, answers, opened: Vec::new() };
        for name in std::iter::once(DEFAULT.name).chain(candidates.iter().map(|found| found.executor)) {
            executors.get(Asked { name, counter: false })?;
        }
        Ok(executors)
    }

    /// Their names, that of the default one first.
    pub(super) fn names(&self) -> Vec<&'static str> {
        let plain = self.opened.iter().filter(|(asked, _)| !asked.counter);
        plain.map(|(asked, _)| asked.name).collect()
    }

    /// The default one.
    pub(super) fn plain(&mut self) -> &mut dyn Executor {
        &mut *self.opened[0].1
    }

    /// The one that a method needs. The default one reads performance counters only where that was asked for.
    pub(super) fn of(&mut self, tested: &TestedClock) -> Result<&mut dyn Executor, Error> {
        let name = tested.executor;
        let counter = name == DEFAULT.name && tested.clock.reads_counter();
        self.get(Asked { name, counter })
    }

    fn get(&mut self, asked: Asked) -> Result<&mut dyn Executor, Error> {
        let known = self.opened.iter().position(|(opened, _)| *opened == asked);
        let index = known.unwrap_or(self.opened.len());
        if known.is_none() {
            let executor = self.answers.executor(|| Ok(self.host()?.executor(asked)?))?;
            self.opened.push((asked, executor));
        }
        Ok(&mut *self.opened[index].1)
    }

    /// Where live answers come from.
    pub(super) fn host(&self) -> Result<&'a Host, Error> {
        let how = "a study of evidence has no machine to ask".to_string();
        self.host.ok_or_else(|| RunError::Replay { how }.into())
    }

    /// How the lock of the CPU was found: by whichever did not have it to itself, else by the default one.
    pub(super) fn lock_state(&self) -> Option<LockState> {
        let states = || self.opened.iter().filter_map(|(_, executor)| executor.lock_state());
        states().find(|state| **state != LockState::Taken).or_else(|| states().next()).cloned()
    }
}
