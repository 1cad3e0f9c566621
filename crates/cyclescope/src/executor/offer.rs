//! An executor on offer: what the command line calls it, and what is known of it before it is opened.

use super::{ALL, Capabilities, Executor};
use crate::error::{RunError, Unavailable};
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

impl Offer {
    /// Finds one by its name.
    pub fn named(name: &str) -> Option<&'static Offer> {
        ALL.iter().find(|offer| offer.name == name)
    }

    /// Whether it is the one that is used unless another is asked for.
    pub fn is_default(&self) -> bool {
        self.name == super::DEFAULT.name
    }
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

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Unavailable(error) => error.fmt(f),
            OpenError::Failed(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for OpenError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::executor::DEFAULT;

    #[test]
    fn offers_are_found_by_names_that_differ() {
        for (index, offer) in ALL.iter().enumerate() {
            assert!(ALL[..index].iter().all(|other| other.name != offer.name), "{}", offer.name);
            assert_eq!(Offer::named(offer.name).map(|found| found.about), Some(offer.about));
            assert_eq!((offer.capabilities)(&Machine::detect()).executor, offer.name);
        }
        assert!(Offer::named("nowhere").is_none() && DEFAULT.is_default());
        assert_eq!(ALL.iter().filter(|offer| offer.is_default()).count(), 1);
    }

    #[test]
    fn what_the_default_opens_says_what_was_said_before() {
        let machine = Machine::detect();
        if let Err(refused) = (DEFAULT.check)(&machine) {
            return eprintln!("skipped: {refused}");
        }
        let opened = (DEFAULT.open)(&machine, &OpenOptions::default()).expect("a worker");
        assert_eq!(opened.capabilities(), &(DEFAULT.capabilities)(&machine));
        assert_eq!((opened.machine(), opened.name()), (&machine, DEFAULT.name));
    }
}
