//! A core with a planted port map, for tests: times of mixes under four assignments.

use crate::mix_source::MixSource;
use cyclescope_core::random::Random;
use cyclescope_instr::mixes::mix::Mix;
use cyclescope_instr::mixes::mix_order::MixOrder;
use cyclescope_instr::mixes::mix_timer::{MixOutcome, MixTime};
use cyclescope_measure::study::StopReason;

/// How a core assigns µops to ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Assignment {
    /// The best one.
    Best,
    /// Each port of a µop gets the same share.
    Even,
    /// At dispatch, the port with the fewest waiting µops.
    LeastLoaded,
    /// At dispatch, the least or the second least loaded port, in turn by slot.
    BySlot,
}

impl Assignment {
    pub(crate) const ALL: [Assignment; 4] =
        [Assignment::Best, Assignment::Even, Assignment::LeastLoaded, Assignment::BySlot];
}

/// A core.
#[derive(Debug, Clone)]
pub(crate) struct PlantedCore {
    /// Slots per cycle.
    pub(crate) width: usize,
    /// The ports of each µop of each form, one bit each.
    pub(crate) forms: Vec<Vec<u32>>,
    pub(crate) assignment: Assignment,
    /// Standard deviation of a time, as a share.
    pub(crate) noise: f64,
    /// The share of layouts that are slower, and by how much.
    pub(crate) slow_mode: (f64, f64),
    /// The share of mixes during which a sibling is busy, and by how much it slows them.
    pub(crate) busy_sibling: (f64, f64),
    /// Resources that are no ports.
    pub(crate) resources: Vec<PlantedResource>,
    pub(crate) random: Random,
}

/// What µops share besides execution ports: a write port, a divider, read ports of a register file.
#[derive(Debug, Clone)]
pub(crate) struct PlantedResource {
    /// How much of it a copy of each form needs.
    pub(crate) needs: Vec<f64>,
    /// How much of it there is in a core cycle.
    pub(crate) per_cycle: f64,
}

impl PlantedResource {
    /// Core cycles that these forms need.
    fn find_cycles(&self, places: &[usize]) -> f64 {
        places.iter().map(|form| self.needs[*form]).sum::<f64>() / self.per_cycle
    }
}

/// Layouts that a time is a mean of.
const LAYOUTS: usize = 4;
/// µops that wait for ports at most.
const WINDOW: u32 = 32;
/// µops that a simulation dispatches at least, and how many of them only fill the window.
const SIMULATED_UOPS: usize = 2700;
const FIRST_UOPS: usize = 1500;

impl PlantedCore {
    pub(crate) fn new(
        width: usize,
        forms: Vec<Vec<u32>>,
        assignment: Assignment,
        noise: f64,
        seed: u64,
    ) -> PlantedCore {
        let (slow_mode, busy_sibling, resources) = ((0.0, 1.0), (0.0, 1.0), Vec::new());
        let random = Random::new(seed);
        PlantedCore { width, forms, assignment, noise, slow_mode, busy_sibling, resources, random }
    }

    /// Core cycles of a mix in an order of its forms.
    pub(crate) fn run_mix(&self, places: &[usize]) -> f64 {
        let resources = self.resources.iter().map(|resource| resource.find_cycles(places));
        resources.fold(self.assign_mix(places), f64::max)
    }

    /// The same by ports and slots.
    fn assign_mix(&self, places: &[usize]) -> f64 {
        let uops: Vec<u32> = places.iter().flat_map(|form| self.forms[*form].iter().copied()).collect();
        let slots = uops.len() as f64 / self.width as f64;
        match self.assignment {
            Assignment::Best => slots.max(best_cycles(&uops)),
            Assignment::Even => {
                let load = |port: u32| {
                    let users = uops.iter().filter(|ports| *ports >> port & 1 == 1);
                    users.map(|ports| 1.0 / f64::from(ports.count_ones())).sum::<f64>()
                };
                (0..u32::BITS).map(load).fold(slots, f64::max)
            }
            Assignment::LeastLoaded | Assignment::BySlot => self.simulate_dispatch(&uops),
        }
    }

    /// Cycles of one repetition, by a simulation of queues in front of ports.
    fn simulate_dispatch(&self, uops: &[u32]) -> f64 {
        let mut queues = [0_u32; u32::BITS as usize];
        let (mut waiting, mut cycle, mut begun, mut dispatched) = (0, 0_u64, (0, 0), 0_usize);
        let repeats = SIMULATED_UOPS.div_ceil(uops.len());
        let first = FIRST_UOPS.div_ceil(uops.len()) * uops.len();
        let mut slot = 0;
        while dispatched < repeats * uops.len() {
            if slot < self.width && waiting < WINDOW {
                let ports = uops[dispatched % uops.len()];
                // The rule that uiCA's authors found on Intel's cores.
                let [least, second] = find_least_loaded(ports, &queues);
                let is_second =
                    self.assignment == Assignment::BySlot && slot % 2 == 1 && queues[second] < queues[least] + 3;
                queues[if is_second { second } else { least }] += 1;
                (waiting, slot, dispatched) = (waiting + 1, slot + 1, dispatched + 1);
                if dispatched == first {
                    begun = (cycle, dispatched);
                }
            } else {
                for queue in queues.iter_mut().filter(|queue| **queue > 0) {
                    *queue -= 1;
                    waiting -= 1;
                }
                (cycle, slot) = (cycle + 1, 0);
            }
        }
        (cycle - begun.0) as f64 * uops.len() as f64 / (dispatched - begun.1) as f64
    }

    fn time_mix(&mut self, mix: &Mix) -> MixTime {
        let counts = mix.counts();
        let orders = match self.assignment {
            Assignment::Best | Assignment::Even => vec![MixOrder::Blocks],
            Assignment::LeastLoaded | Assignment::BySlot => {
                [MixOrder::Blocks].into_iter().chain((1..4).map(MixOrder::Random)).collect()
            }
        };
        let run = |order: MixOrder| {
            let places: Vec<usize> = arrange(&counts, order).into_iter().map(|part| mix.parts[part].form).collect();
            (self.run_mix(&places), order)
        };
        let times: Vec<(f64, MixOrder)> = orders.iter().copied().map(run).collect();
        let (fastest, order) = times.iter().copied().min_by(|one, other| one.0.total_cmp(&other.0)).expect("an order");
        let fastest = if self.random.happens(self.busy_sibling.0) { fastest * self.busy_sibling.1 } else { fastest };
        let layouts: Vec<f64> = (0..LAYOUTS)
            .map(|_| {
                let mode = if self.random.happens(self.slow_mode.0) { self.slow_mode.1 } else { 1.0 };
                fastest * mode * (1.0 + self.noise * self.random.normal())
            })
            .collect();
        let mode = cyclescope_core::statistics::mean(&layouts);
        let spread = (layouts.iter().map(|time| (time - mode).powi(2)).sum::<f64>() / (LAYOUTS - 1) as f64).sqrt();
        // The t-quantile of three degrees of freedom.
        let margin = 3.18 * spread / (LAYOUTS as f64).sqrt();
        let worst = times.iter().map(|time| time.0).fold(mode, f64::max);
        MixTime { cycles: mode, low: mode - margin, high: mode + margin, worst, order, orders: orders.len() }
    }
}

impl MixSource for PlantedCore {
    fn time_mixes(&mut self, mixes: &[Mix]) -> Result<Vec<MixOutcome>, StopReason> {
        Ok(mixes.iter().map(|mix| MixOutcome::Timed(self.time_mix(mix))).collect())
    }
}

/// The least and the second least loaded of these ports; the same if there is one.
fn find_least_loaded(ports: u32, queues: &[u32]) -> [usize; 2] {
    let (mut least, mut second) = (usize::MAX, usize::MAX);
    let mut rest = ports;
    while rest != 0 {
        let port = rest.trailing_zeros() as usize;
        rest &= rest - 1;
        if least == usize::MAX || queues[port] < queues[least] {
            (least, second) = (port, least);
        } else if second == usize::MAX || queues[port] < queues[second] {
            second = port;
        }
    }
    [least, if second == usize::MAX { least } else { second }]
}

/// The form at each place of a loop: in blocks, or shuffled.
fn arrange(counts: &[usize], order: MixOrder) -> Vec<usize> {
    let copies = counts.iter().enumerate().flat_map(|(form, count)| std::iter::repeat_n(form, *count));
    let mut places: Vec<usize> = copies.collect();
    if let MixOrder::Random(seed) = order {
        Random::new(seed).shuffle(&mut places);
    }
    places
}

/// Core cycles of µops with these ports under the best assignment.
pub(crate) fn best_cycles(uops: &[u32]) -> f64 {
    let mut sets: Vec<u32> = uops.to_vec();
    sets.sort_unstable();
    sets.dedup();
    let mut unions: Vec<u32> = vec![0];
    for set in sets {
        let more: Vec<u32> = unions.iter().map(|union| union | set).collect();
        unions.extend(more);
        unions.sort_unstable();
        unions.dedup();
    }
    let cycles = |union: &u32| {
        let confined = uops.iter().filter(|ports| *ports & !union == 0).count();
        confined as f64 / f64::from(union.count_ones())
    };
    unions.iter().skip(1).map(cycles).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_assignment_beats_the_best() {
        let forms = vec![vec![0b1111], vec![0b0001], vec![0b0110], vec![0b1100]];
        let mixes = [[8, 2, 0, 0], [4, 0, 4, 4], [8, 2, 4, 4], [1, 7, 3, 5]];
        for counts in mixes {
            let places: Vec<usize> = arrange(&counts, MixOrder::Random(3));
            let run = |assignment| PlantedCore::new(8, forms.clone(), assignment, 0.0, 1).run_mix(&places);
            let best = run(Assignment::Best);
            for other in Assignment::ALL {
                assert!(run(other) >= best * 0.995, "{counts:?} {other:?}: {} < {best}", run(other));
            }
        }
    }
}
