//! Tests of events in flight at once, as data.

use super::program::{ProgramFamily, WitnessProgram};

/// A test of how many events are in flight at once.
#[derive(Debug)]
pub(crate) struct BatchesSpec {
    /// Different programs, by the number of events per batch. Each batch waits for the one before.
    /// A number needs the first two programs to agree.
    pub programs: &'static [ProgramFamily],
    /// One event: its cost is the unit of all batches.
    pub single_event: &'static ProgramFamily,
    /// A program with events in flight beforehand: the first program's end comes earlier by their
    /// number.
    pub witness: &'static WitnessProgram,
    /// Events of the programs that are not counted.
    pub uncounted_events: usize,
    /// The last batch with room may take longer by this part of one event.
    pub last_event_slack: f64,
    /// Sizes of the batches, ascending.
    pub counts: &'static [usize],
    /// Structures of other tests that each event also occupies and that may be full first: the
    /// test, and how much.
    pub also_occupies: &'static [(&'static str, usize)],
    /// The test of what limits the pace of events, if the pace keeps batches smaller than the room
    /// for them.
    pub pacing_test: &'static str,
}
