//! An executor on offer: what the command line calls it, and what is known of it before it is opened.

use super::capabilities::Capabilities;
use super::contract::Executor;
use crate::error::{Error, RunError, Unavailable};
use crate::machine::Machine;
use crate::snippet::Snippet;
use std::fmt;
use std::time::Duration;

/// An executor that can be asked for.
#[derive(Debug, Clone, Copy)]
pub struct Offer {
    /// Its name in records and on the command line.
    pub name: &'static str,
    /// What it is, for help.
    pub about: &'static str,
    /// Where its code runs, such as `ring 0`.
    pub place: &'static str,
    /// Whether [`OpenOptions::force`] means something to it.
    pub takes_force: bool,
    /// What it can do on a machine, as far as that is known before it is opened.
    pub capabilities: fn(&Machine) -> Capabilities,
    /// Whether it can be used on this machine, and why not.
    pub check: fn(&Machine) -> Result<(), Unavailable>,
    /// Whether it would survive a snippet, on whichever machine; the flag says whether it is looped.
    pub judge: fn(&Snippet, bool) -> Result<(), RunError>,
    /// Opens it for the target CPU of a machine.
    pub open: fn(&Machine, &OpenOptions) -> Opened,
}

/// How to open an executor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenOptions {
    /// Whether programs read the core-cycles counter with RDPMC.
    pub counter: bool,
    /// How long batches wait for another run on the CPU before they run beside it.
    pub patience: Duration,
    /// Runs code that may not end although no second CPU could end it.
    pub force: bool,
}

impl Default for OpenOptions {
    fn default() -> OpenOptions {
        OpenOptions { counter: false, patience: Duration::from_secs(30), force: false }
    }
}

/// An executor, or why it was not opened.
pub type Opened = Result<Box<dyn Executor>, OpenError>;

/// Opens an executor when it is called.
pub type Open = Box<dyn Fn() -> Result<Box<dyn Executor>, Error>>;

/// Opens none: of a study whose answers are recorded.
pub(crate) fn closed() -> Open {
    Box::new(|| Err(RunError::Replay { how: "no executor is opened".to_string() }.into()))
}

impl Offer {
    /// Opens it when it is called.
    pub fn opening(&'static self, machine: &Machine, options: OpenOptions) -> Open {
        let machine = machine.clone();
        Box::new(move || Ok((self.open)(&machine, &options)?))
    }
}

/// Why an executor was not opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenError {
    /// The machine does not have what it takes.
    Unavailable(Unavailable),
    /// It has, and something failed.
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
