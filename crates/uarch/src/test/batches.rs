//! Events of which a core has so many on their way at once, as data.

use super::walk::{Beside, Walk};

/// A test of how many events are on their way at once.
#[derive(Debug)]
pub(crate) struct Batches {
    /// Unlike programs by the number of events of a batch, which waits for the one before. A number needs the first two to agree.
    pub walks: &'static [Walk],
    /// What one event takes, for a number of one.
    pub one: Walk,
    /// A program that has some on their way beforehand: the first program's end comes by so many earlier.
    pub beside: Beside,
    /// Events that the programs have beside those that are counted.
    pub more: usize,
    /// Up to which part of one event the last number of events with room may take longer.
    pub part: f64,
    /// The numbers that are tried: all of them up to one, in their order.
    pub counts: &'static [usize],
    /// Structures of other tests of which each event takes a part, which may be full first, and how much.
    pub takes: &'static [(&'static str, usize)],
    /// The test of what limits how fast events follow each other, where they may be fewer than there is room for.
    pub pace: &'static str,
}
