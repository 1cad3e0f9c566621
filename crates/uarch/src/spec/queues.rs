//! Classes of instructions that may have to wait for their operands in the same queue, as data.

use super::chain::FirstChain;
use super::filler::FillerSpec;

/// A test of which classes share queues.
#[derive(Debug)]
pub(crate) struct QueuesSpec {
    /// The classes, of which each is measured beside each other one.
    pub classes: &'static [QueueClass],
    /// The chain before all.
    pub first_chain: FirstChain,
}

/// A class of instructions.
#[derive(Debug)]
pub(crate) struct QueueClass {
    /// Its name.
    pub name: &'static str,
    /// The test of how many of them can wait.
    pub size_test: &'static str,
    /// Unlike instructions that wait. The first ones are counted too.
    pub waiting: [&'static FillerSpec; 2],
    /// The first ones with operands that are ready: they occupy the same structures but wait for
    /// nothing.
    pub ready: &'static FillerSpec,
}
