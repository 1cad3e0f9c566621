//! Tests of messages between two CPUs through a line, as data.

/// A test of how long a line takes from one CPU to another.
#[derive(Debug)]
pub(crate) struct ExchangesSpec {
    /// Different programs. In the first one the first CPU of a pair asks, in the other one the
    /// second.
    pub programs: [ExchangeProgram; 2],
}

/// The two sides of an exchange: a message and its answer. On both, R14 points to the line.
///
/// Neither side keeps state, and both end by themselves: the other side may not be running, as
/// between its batches.
#[derive(Debug)]
pub(crate) struct ExchangeProgram {
    /// The name in results.
    pub name: &'static str,
    /// Untimed setup of the asking side.
    pub init: &'static str,
    /// A message, and the wait for its answer, which ends after a number of tries.
    pub ask: &'static str,
    /// The answer to a message, if there is one.
    pub answer: &'static str,
}
