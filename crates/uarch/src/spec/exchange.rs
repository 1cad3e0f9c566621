//! Two CPUs that send each other messages through a line, as data.

/// A test of how long a line takes from one CPU to another.
#[derive(Debug)]
pub(crate) struct ExchangesSpec {
    /// Unlike programs. The first is asked by the first CPU of a pair, the other one by the second.
    pub programs: [ExchangeProgram; 2],
}

/// The two sides of an exchange: a message, and its answer. R14 points to the line on both.
///
/// Neither side remembers anything, and both end by themselves: the other one may not run, as between its batches.
#[derive(Debug)]
pub(crate) struct ExchangeProgram {
    /// Its name.
    pub name: &'static str,
    /// What runs once before on the side that asks, untimed.
    pub init: &'static str,
    /// A message, and the wait for its answer: it is given up after some tries.
    pub ask: &'static str,
    /// The answer to a message, where there is one.
    pub answer: &'static str,
}
