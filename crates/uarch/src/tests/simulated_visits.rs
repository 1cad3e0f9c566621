//! A simulated core with structures that programs visit at random.

use crate::cost::CostPoint;
use crate::spec::{ProgramFamily, RandomVisitsSpec};
use cyclescope_core::random::Random;

/// The core.
#[derive(Debug)]
pub(super) struct SimulatedVisits {
    spec: &'static RandomVisitsSpec,
    /// How many items the structure holds in the first program.
    pub size: f64,
    /// Whether it holds as many in the second program.
    pub agrees: bool,
    /// The size in each program.
    sizes: [f64; 2],
    /// Core cycles of a visit, and those that a miss adds.
    costs: [f64; 2],
    /// Another structure: its size in each program, and the extra cost of a miss.
    other: ([f64; 2], f64),
    noise: f64,
    random: Random,
}

impl SimulatedVisits {
    pub(super) fn from_seed(spec: &'static RandomVisitsSpec, seed: u64) -> SimulatedVisits {
        let mut random = Random::new(seed);
        let mut draw = |from: f64, to: f64| from + (to - from) * random.uniform();
        let [least, most] = spec.count_range.map(|count| count as f64);
        let size = 2.0 * least * (0.4 * most / (2.0 * least)).powf(draw(0.0, 1.0));
        let agrees = draw(0.0, 1.0) < 0.85;
        let sizes = [size, if agrees { size } else { size * draw(0.5, 0.8) }];
        let miss = spec.min_miss_cost * draw(1.3, 4.0);
        let costs = [draw(20.0, 50.0), miss];
        // A cache of decoded instructions.
        let first = size * draw(0.2, 0.8);
        let other = ([first, first * draw(0.6, 0.85)], miss * draw(0.0, 0.5));
        let noise = draw(0.001, 0.006) * costs[0];
        SimulatedVisits { spec, size, agrees, sizes, costs, other, noise, random }
    }

    /// Whether the size can be told.
    pub(super) fn is_visible(&self) -> bool {
        self.agrees
    }

    /// The cost of a visit.
    pub(super) fn cost(&mut self, family: &ProgramFamily, n: usize) -> CostPoint {
        let program = usize::from(family.name == self.spec.programs[1].name);
        let misses = |size: f64| (1.0 - size / n as f64).max(0.0);
        let clean =
            self.costs[0] + self.costs[1] * misses(self.sizes[program]) + self.other.1 * misses(self.other.0[program]);
        let burst = if self.random.happens(0.02) { 1.0 + self.random.uniform() } else { 1.0 };
        let cost = clean * burst + self.noise * self.random.normal();
        CostPoint { n, cost, low: 0.99 * cost, high: 1.01 * cost }
    }
}
