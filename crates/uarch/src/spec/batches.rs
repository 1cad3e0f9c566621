//! Events of which a core has so many on their way at once, as data.

use super::program::{ProgramFamily, WitnessProgram};

/// A test of how many events are on their way at once.
#[derive(Debug)]
pub(crate) struct BatchesSpec {
    /// Unlike programs by the number of events of a batch, which waits for the one before. A number needs the first two to agree.
    pub programs: &'static [ProgramFamily],
    /// What one event takes, for a number of one.
    pub single_event: &'static ProgramFamily,
    /// A program that has some on their way beforehand: the first program's end comes by so many earlier.
    pub witness: &'static WitnessProgram,
    /// Events that the programs have beside those that are counted.
    pub uncounted_events: usize,
    /// Up to which part of one event the last number of events with room may take longer.
    pub last_event_slack: f64,
    /// The numbers that are tried: all of them up to one, in their order.
    pub counts: &'static [usize],
    /// Structures of other tests of which each event takes a part, which may be full first, and how much.
    pub also_occupies: &'static [(&'static str, usize)],
    /// The test of what limits how fast events follow each other, where they may be fewer than there is room for.
    pub pacing_test: &'static str,
}
