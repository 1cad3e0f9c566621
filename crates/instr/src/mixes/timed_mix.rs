//! A mix while it is timed: the order that is chosen, and the layouts of that order.

use super::mix_body::MixBody;
use crate::experiments::modes::{find_lowest_mode, mode_width};
use crate::experiments::program_reading::ProgramReading;
use cyclescope_code::program::{EntryState, VectorSetup};
use cyclescope_code::snippet::Snippet;

/// Layouts that have to agree where a sibling may be busy unseen.
const AGREEING_LAYOUTS: usize = 2;

/// A mix, and the bodies to time.
pub(super) struct TimedMix {
    /// Index among the mixes.
    pub(super) mix: usize,
    /// All orders, or the chosen one.
    pub(super) bodies: Vec<TimedBody>,
    /// Core cycles of an iteration in each order, by the fastest of all tries.
    pub(super) costs: Vec<Option<f64>>,
    /// What the first pass says.
    pub(super) chosen: Option<ChosenOrder>,
    /// Core cycles of an iteration in the chosen order, in each layout of all tries.
    pub(super) cycles: Vec<f64>,
    /// Tries of the chosen order.
    pub(super) tries: u32,
    /// Whether the last try had rounds with a busy sibling.
    pub(super) shared: bool,
    /// Tries that had none, and no reading or no two layouts that agree.
    pub(super) vain_tries: u32,
}

/// A body and what its code needs. Both are kept: to decode the code takes longer than to time it.
#[derive(Clone)]
pub(super) struct TimedBody {
    pub(super) body: MixBody,
    pub(super) world: EntryState,
    pub(super) touches_memory: bool,
}

/// The order that the first pass chose.
#[derive(Clone, Copy)]
pub(super) struct ChosenOrder {
    /// Core cycles of one iteration of its body.
    pub(super) cycles: f64,
    /// Core cycles of the slowest order.
    pub(super) slowest: f64,
    /// Number of orders that were timed.
    pub(super) orders: usize,
}

impl TimedBody {
    fn new(body: MixBody) -> TimedBody {
        let outline = Snippet::new(body.code.clone(), body.init.clone(), "").outline(true);
        TimedBody { body, world: outline.world, touches_memory: outline.touches_memory }
    }
}

impl TimedMix {
    pub(super) fn new(mix: usize, bodies: Vec<MixBody>) -> TimedMix {
        let bodies: Vec<TimedBody> = bodies.into_iter().map(TimedBody::new).collect();
        let costs = vec![None; bodies.len()];
        TimedMix { mix, bodies, costs, chosen: None, cycles: Vec::new(), tries: 0, shared: false, vain_tries: 0 }
    }

    /// Notes a try that does not suffice.
    pub(super) fn note_try(&mut self, readings: &[ProgramReading]) {
        self.shared = readings.iter().any(|reading| !reading.shared.is_empty());
        self.vain_tries += u32::from(!self.shared);
    }

    /// Adds a try of all orders, and chooses the fastest if each has a time. A sibling that is busy may hide some;
    /// what has no time for another reason is left out.
    pub(super) fn choose_order(&mut self, readings: &[ProgramReading]) {
        for (known, reading) in self.costs.iter_mut().zip(readings) {
            let cost = find_lowest_mode(&reading.cycles).map(|mode| mode.value);
            *known = known.iter().copied().chain(cost).min_by(f64::total_cmp);
        }
        let hidden = |(cost, reading): (&Option<f64>, &ProgramReading)| cost.is_none() && !reading.shared.is_empty();
        if self.costs.iter().zip(readings).any(hidden) {
            return;
        }
        let known = self.costs.iter().enumerate().filter_map(|(at, cost)| Some((at, (*cost)?)));
        let Some((fastest, cycles)) = known.min_by(|one, other| one.1.total_cmp(&other.1)) else { return };
        let slowest = self.costs.iter().flatten().copied().fold(cycles, f64::max);
        self.chosen = Some(ChosenOrder { cycles, slowest, orders: self.bodies.len() });
        self.bodies = vec![self.bodies.swap_remove(fastest)];
    }

    /// Adds a try of the chosen order; returns whether that suffices. A sibling may be busy unseen, for a part of a
    /// call or with few slots: so the fastest layouts have to agree. If no sibling is seen to be busy, that is tried
    /// `most` times.
    pub(super) fn add_try(&mut self, reading: &ProgramReading, most: u32) -> bool {
        self.cycles.extend(&reading.cycles);
        self.tries += 1;
        let least = self.cycles.iter().copied().fold(f64::INFINITY, f64::min);
        let alike = self.cycles.iter().filter(|cycles| **cycles - least <= mode_width(least)).count();
        let is_tried = reading.shared.is_empty() && self.tries >= most;
        alike >= if is_tried { 1 } else { AGREEING_LAYOUTS }
    }

    /// The vector registers that it needs.
    pub(super) fn vectors(&self) -> VectorSetup {
        self.bodies[0].world.vectors
    }
}
