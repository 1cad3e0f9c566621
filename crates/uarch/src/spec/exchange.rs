//! Two CPUs that send each other messages through a line, as data.

/// A test of how long a line takes from one CPU to another.
#[derive(Debug)]
pub(crate) struct ExchangesSpec {
    /// Unlike programs. In the first one the first CPU of a pair asks, in the other one the second
    /// CPU.
    pub programs: [ExchangeProgram; 2],
}

/// The two sides of an exchange: a message, and its answer. R14 points to the line on both.
///
/// Neither side keeps state, and both end by themselves: the other side may not be running, as
/// between its batches.
#[derive(Debug)]
pub(crate) struct ExchangeProgram {
    /// The name that results show.
    pub name: &'static str,
    /// Runs once before on the side that asks, untimed.
    pub init: &'static str,
    /// A message, and the wait for its answer, which ends after a number of tries.
    pub ask: &'static str,
    /// The answer to a message, if there is one.
    pub answer: &'static str,
}
