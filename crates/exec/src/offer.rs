//! Offers: the name of an executor on the command line, and the facts known before it is opened.

use super::capabilities::Capabilities;
use super::executor::Executor;
use cyclescope_code::program::LoopPlan;
use cyclescope_code::snippet::Snippet;
use cyclescope_core::error::{Error, RunError, Unavailable};
use cyclescope_core::machine::Machine;
use std::fmt;
use std::time::Duration;

/// An executor that can be opened by its name.
#[derive(Debug, Clone, Copy)]
pub struct ExecutorOffer {
    /// Name in records and on the command line.
    pub name: &'static str,
    /// Description for help.
    pub about: &'static str,
    /// Where its code runs, such as `ring 0`.
    pub place: &'static str,
    /// Whether [`OpenOptions::force`] has an effect.
    pub takes_force: bool,
    /// Capabilities on a machine that are known before the executor is opened.
    pub capabilities: fn(&Machine) -> Capabilities,
    /// Checks whether the executor works on this machine; the error gives the reason.
    pub check: fn(&Machine) -> Result<(), Unavailable>,
    /// Checks whether the executor accepts a snippet on any machine, in a loop if there is one.
    pub judge: fn(&Snippet, Option<LoopPlan>) -> Result<(), RunError>,
    /// Opens the executor for the target CPU of a machine.
    pub open: fn(&Machine, &OpenOptions) -> OpenResult,
}

/// Options for opening an executor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenOptions {
    /// Whether programs read the core-cycles counter with RDPMC.
    pub counter: bool,
    /// Time that batches wait for another run on the CPU. After it, both run at the same time.
    pub patience: Duration,
    /// Whether code that may not end runs even without a second CPU to end it.
    pub force: bool,
    /// Whether code calls functions of this process. It then runs in a copy of the process, if the
    /// executor uses one.
    pub functions: bool,
    /// Whether all code comes from this program itself: no snippet and no function of the user's.
    pub own_code: bool,
    /// Whether the code of one subject may change what its other code finds. The caller then
    /// announces each subject: see [`Executor::begin_subject`].
    pub announced: bool,
    /// Bytes of memory that called functions may get from the system; `None` refuses them any.
    pub heap: Option<u64>,
}

impl Default for OpenOptions {
    fn default() -> OpenOptions {
        OpenOptions {
            counter: false,
            patience: Duration::from_secs(30),
            force: false,
            functions: false,
            own_code: false,
            announced: false,
            heap: None,
        }
    }
}

/// An executor, or why it was not opened.
pub type OpenResult = Result<Box<dyn Executor>, OpenError>;

/// A function that opens an executor.
pub type ExecutorOpener = Box<dyn Fn() -> Result<Box<dyn Executor>, Error>>;

/// Opens no executor: for a study with recorded answers.
pub fn failing_opener() -> ExecutorOpener {
    Box::new(|| Err(RunError::Replay { how: "no executor is opened".to_string() }.into()))
}

impl ExecutorOffer {
    /// A function that opens the executor.
    pub fn make_opener(&'static self, machine: &Machine, options: OpenOptions) -> ExecutorOpener {
        let machine = machine.clone();
        Box::new(move || Ok((self.open)(&machine, &options)?))
    }
}

/// Why an executor was not opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenError {
    /// The machine lacks a requirement.
    Unavailable(Unavailable),
    /// The machine meets all requirements, but opening failed.
    Failed(RunError),
}

impl From<Unavailable> for OpenError {
    fn from(error: Unavailable) -> OpenError {
        OpenError::Unavailable(error)
    }
}

impl From<RunError> for OpenError {
    fn from(error: RunError) -> OpenError {
        OpenError::Failed(error)
    }
}

impl From<OpenError> for Error {
    fn from(error: OpenError) -> Error {
        match error {
            OpenError::Unavailable(error) => error.into(),
            OpenError::Failed(error) => error.into(),
        }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Unavailable(error) => error.fmt(f),
            OpenError::Failed(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for OpenError {}
