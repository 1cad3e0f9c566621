//! Classes of instructions that may have to wait for their operands in the same queue, as data.

use super::chain::Head;
use super::filler::Filler;

/// A test of which classes share queues.
#[derive(Debug)]
pub(crate) struct Queues {
    /// The classes, of which each is measured beside each other one.
    pub classes: &'static [Class],
    /// The chain before all.
    pub head: Head,
}

/// A class of instructions.
#[derive(Debug)]
pub(crate) struct Class {
    /// Its name.
    pub name: &'static str,
    /// The test that tells how many of them can wait.
    pub test: &'static str,
    /// Unlike instructions of it that wait; the first ones are counted too.
    pub waiting: [&'static Filler; 2],
    /// The same as the first ones with operands that are there: they take all that those take, but wait for nothing.
    pub ready: &'static Filler,
}
