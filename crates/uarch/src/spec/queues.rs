//! Tests of queues in which instructions wait for their operands, as data.

use super::chain::FirstChain;
use super::filler::FillerSpec;

/// A test of which classes share queues.
#[derive(Debug)]
pub(crate) struct QueuesSpec {
    /// The classes. Each is measured with each other one.
    pub classes: &'static [QueueClass],
    /// The chain before all instructions.
    pub first_chain: FirstChain,
}

/// A class of instructions.
#[derive(Debug)]
pub(crate) struct QueueClass {
    /// The name in results.
    pub name: &'static str,
    /// The test of how many instructions of the class can wait.
    pub size_test: &'static str,
    /// Two different kinds of waiting instructions. The first is the counted one too.
    pub waiting: [&'static FillerSpec; 2],
    /// The first kind with ready operands: they occupy the same structures but do not wait.
    pub ready: &'static FillerSpec,
}
