//! Scheduling modes: loops whose rate depends on where in a dispatch group they begin.
//!
//! A core dispatches groups of some instructions and chooses their ports by their places in the
//! group. A loop begins at a place that depends on the code in front of it. At few places it runs at
//! its best rate, and even there only in every second round of calls: what ran before decides about
//! the queues that the loop meets. Everywhere else it is slower, for ever.

use cyclescope_code::program::Program;
use cyclescope_core::random::mix_seeds;

/// Scheduling modes of all loops.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SimulatedDispatch {
    /// Places in a group.
    pub places: u64,
    /// Places at which a loop may run at its best rate.
    pub good_places: u64,
    /// Factor on the duration of other loops.
    pub slowdown: f64,
}

impl SimulatedDispatch {
    /// Whether a loop is at a good place on the machine with this seed.
    pub(super) fn is_at_good_place(&self, program: &Program, seed: u64) -> bool {
        let body = program.snippet().iter().fold(seed, |hash, byte| mix_seeds(hash, u64::from(*byte)));
        (body % self.places + program.lead() as u64) % self.places < self.good_places
    }

    /// The factor on the duration of a loop in a round.
    pub(super) fn factor_in_round(&self, at_good_place: bool, round: u32) -> f64 {
        if at_good_place && round % 2 == 1 { 1.0 } else { self.slowdown }
    }
}
