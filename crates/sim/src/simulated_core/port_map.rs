//! A simulated port map: the ports of each class of instructions, and how the core assigns µops to
//! them.
//!
//! Each form belongs to a class, drawn by the machine's seed, except those that programs are built
//! from: additions and logic use all ports of their kind, `imul r64, r64` those that multiply.
//!
//! Ports are numbered from 0. A resource that is no port, such as a register file's write port, is one
//! more number that classes occupy beside their ports.

use super::port_mask::{MAX_WORK_CYCLES, PortMask};
use cyclescope_core::random::Random;

/// The ports of a core, and what uses them.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulatedPortMap {
    /// Slots that issue per cycle.
    pub width: u32,
    /// Number of ports, and of resources that are no ports.
    pub ports: u32,
    /// Ports of additions and simple logic in general registers.
    pub adders: PortMask,
    /// Ports of `imul r64, r64`.
    pub multipliers: PortMask,
    /// Ports of simple logic in vectors.
    pub vector_logic: PortMask,
    /// Ports of loads, stores and branches.
    pub loads: PortMask,
    /// Ports of stores.
    pub stores: PortMask,
    /// Ports of branches.
    pub branches: PortMask,
    /// Classes of all other forms.
    pub classes: Vec<SimulatedPortClass>,
    /// How µops get their ports.
    pub assignment: PortAssignment,
    /// Whether a port finishes only one µop a cycle, whatever their latencies.
    pub has_result_buses: bool,
}

/// Forms that use the same ports.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulatedPortClass {
    /// Whether its forms use vector, mask or x87 registers.
    pub is_vector: bool,
    /// The µops, each with its ports and the cycles that it keeps one. Results come from the first.
    pub uops: Vec<(PortMask, u8)>,
    /// Slots of an issue group. Occupied resources that are no ports take none.
    pub slots: u32,
}

/// How a core assigns µops to ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortAssignment {
    /// So that the busiest port has as little work as possible. No real core does this always.
    Best,
    /// When a µop is dispatched, each of its ports in turn.
    Uniform,
    /// When a µop is dispatched, the port with the fewest waiting µops at the last cycle's end.
    LeastLoaded,
    /// By the µop's slot in its dispatch group.
    BySlot,
}

impl PortAssignment {
    /// All of them.
    pub const ALL: [PortAssignment; 4] =
        [PortAssignment::Best, PortAssignment::Uniform, PortAssignment::LeastLoaded, PortAssignment::BySlot];
}

impl SimulatedPortClass {
    /// A class of one µop and one slot.
    pub fn with_ports(is_vector: bool, ports: PortMask) -> SimulatedPortClass {
        SimulatedPortClass { is_vector, uops: vec![(ports, 1)], slots: 1 }
    }

    /// A class of this many µops, each with the same ports, and as many slots.
    fn with_uops(is_vector: bool, ports: PortMask, count: usize) -> SimulatedPortClass {
        SimulatedPortClass { is_vector, uops: vec![(ports, 1); count], slots: count as u32 }
    }
}

/// A set of ports: those of these numbers.
const fn ports<const N: usize>(numbers: [u32; N]) -> PortMask {
    let (mut mask, mut at) = (0, 0);
    while at < N {
        mask |= 1 << numbers[at];
        at += 1;
    }
    mask
}

/// Integer and vector classes of one µop with these ports.
fn list_classes(integer: &[PortMask], vector: &[PortMask]) -> Vec<SimulatedPortClass> {
    let of_kind = |is_vector: bool| move |ports: &PortMask| SimulatedPortClass::with_ports(is_vector, *ports);
    integer.iter().map(of_kind(false)).chain(vector.iter().map(of_kind(true))).collect()
}

impl SimulatedPortMap {
    /// A core like Zen+: four vector pipes (0 to 3), two for addresses (4, 5), four ALUs (6 to 9), as in
    /// Agner Fog's tables and in the inferred map of F. Ritter and S. Hack, "Explainable Port Mapping
    /// Inference with Sparse Performance Counters for AMD's Zen Architectures" (2024), with classes of up
    /// to 78 µops.
    pub fn zen_plus(assignment: PortAssignment) -> SimulatedPortMap {
        let alus = ports([6, 7, 8, 9]);
        let vector = [
            ports([0, 1, 2, 3]),
            ports([0, 1, 3]),
            ports([0, 1]),
            ports([2, 3]),
            ports([1, 2]),
            ports([0, 3]),
            ports([0]),
            ports([2]),
            ports([3]),
        ];
        let mut classes = list_classes(&[alus, ports([7]), ports([6, 9])], &vector);
        classes.push(SimulatedPortClass::with_uops(true, ports([1, 2]), 2));
        classes.push(SimulatedPortClass::with_uops(true, ports([0, 1, 2, 3]), 8));
        classes.push(SimulatedPortClass::with_uops(false, alus, 18));
        classes.push(SimulatedPortClass::with_uops(false, alus, 78));
        SimulatedPortMap {
            width: 5,
            ports: 10,
            adders: alus,
            multipliers: ports([7]),
            vector_logic: ports([0, 1, 2, 3]),
            loads: ports([4, 5]),
            stores: ports([4, 5]),
            branches: ports([6, 9]),
            classes,
            assignment,
            has_result_buses: false,
        }
    }

    /// A core like Zen 4: four ALUs (0 to 3), three address units (4 to 6), four vector pipes (7 to 10)
    /// and two that store or move vectors (11, 12).
    pub fn zen_4(assignment: PortAssignment) -> SimulatedPortMap {
        let alus = ports([0, 1, 2, 3]);
        let all = ports([7, 8, 9, 10]);
        let integer = [alus, ports([1, 2]), ports([0, 3]), ports([1]), ports([0])];
        let vector = [all, ports([7, 8]), ports([9, 10]), ports([8, 9]), ports([8]), ports([7, 10]), ports([11, 12])];
        let mut classes = list_classes(&integer, &vector);
        classes.push(SimulatedPortClass::with_uops(true, ports([8, 9]), 2));
        SimulatedPortMap {
            width: 6,
            ports: 13,
            adders: alus,
            multipliers: ports([1]),
            vector_logic: all,
            loads: ports([4, 5, 6]),
            stores: ports([5, 6]),
            branches: ports([0, 3]),
            classes,
            assignment,
            has_result_buses: false,
        }
    }

    /// A core like Zen 5: six ALUs (0 to 5), of which three multiply and three shift, with one in common;
    /// four address units (6 to 9), four vector pipes (10 to 13), two store pipes (14, 15). Measured by
    /// mixes on one.
    pub fn zen_5(assignment: PortAssignment) -> SimulatedPortMap {
        let alus = ports([0, 1, 2, 3, 4, 5]);
        let all = ports([10, 11, 12, 13]);
        let integer = [alus, ports([0, 1, 2]), ports([2, 3, 4]), ports([2, 5]), ports([1])];
        let vector = [all, ports([10, 11]), ports([12, 13]), ports([11, 12]), ports([14, 15]), ports([2, 5])];
        let mut classes = list_classes(&integer, &vector);
        classes.push(SimulatedPortClass::with_uops(false, ports([2, 3, 4]), 2));
        SimulatedPortMap {
            width: 8,
            ports: 16,
            adders: alus,
            multipliers: ports([0, 1, 2]),
            vector_logic: all,
            loads: ports([6, 7, 8, 9]),
            stores: ports([8, 9]),
            branches: ports([3, 4, 5]),
            classes,
            assignment,
            has_result_buses: false,
        }
    }

    /// A core like Golden Cove: ports 0, 1, 5, 6 and 10 compute, 2, 3 and 11 load, 4 and 9 store data.
    /// Ports: uops.info.
    pub fn golden_cove(assignment: PortAssignment) -> SimulatedPortMap {
        let alus = ports([0, 1, 5, 6, 10]);
        let all = ports([0, 1, 5]);
        let integer = [alus, ports([0, 6]), ports([1]), ports([1, 5]), ports([0])];
        let vector = [all, ports([0, 1]), ports([1, 5]), ports([5]), ports([0]), ports([0, 5])];
        let mut classes = list_classes(&integer, &vector);
        classes.push(SimulatedPortClass { is_vector: true, uops: vec![(all, 1), (ports([5]), 1)], slots: 2 });
        SimulatedPortMap {
            width: 6,
            ports: 12,
            adders: alus,
            multipliers: ports([1]),
            vector_logic: all,
            loads: ports([2, 3, 11]),
            stores: ports([4, 9]),
            branches: ports([0, 6]),
            classes,
            assignment,
            has_result_buses: false,
        }
    }

    /// A core like Skylake: ports 0, 1, 5 and 6 compute, 2 and 3 load, 4 stores. Ports: uops.info.
    pub fn skylake(assignment: PortAssignment) -> SimulatedPortMap {
        let alus = ports([0, 1, 5, 6]);
        let all = ports([0, 1, 5]);
        let integer = [alus, ports([0, 6]), ports([1]), ports([1, 5]), ports([0])];
        let vector = [all, ports([0, 1]), ports([5]), ports([0]), ports([0, 5])];
        let mut classes = list_classes(&integer, &vector);
        classes.push(SimulatedPortClass { is_vector: true, uops: vec![(ports([0, 1]), 1), (ports([5]), 1)], slots: 2 });
        SimulatedPortMap {
            width: 4,
            ports: 8,
            adders: alus,
            multipliers: ports([1]),
            vector_logic: all,
            loads: ports([2, 3]),
            stores: ports([4]),
            branches: ports([0, 6]),
            classes,
            assignment,
            has_result_buses: false,
        }
    }

    /// All maps like real cores, by name.
    pub fn presets(assignment: PortAssignment) -> Vec<(&'static str, SimulatedPortMap)> {
        vec![
            ("zen_plus", SimulatedPortMap::zen_plus(assignment)),
            ("zen_4", SimulatedPortMap::zen_4(assignment)),
            ("zen_5", SimulatedPortMap::zen_5(assignment)),
            ("golden_cove", SimulatedPortMap::golden_cove(assignment)),
            ("skylake", SimulatedPortMap::skylake(assignment)),
        ]
    }

    /// A random map: 3 to 12 ports that compute, 5 to 20 classes, four to eight slots a cycle. A third of
    /// the maps have a resource that is no port, which some classes occupy.
    pub fn from_seed(seed: u64, assignment: PortAssignment) -> SimulatedPortMap {
        let mut random = Random::new(seed);
        let computing = 3 + random.below(10) as u32;
        let width = 4 + random.below(5) as u32;
        let all: PortMask = (1 << computing) - 1;
        let any = |random: &mut Random| {
            let count = 1 + random.below(computing.min(4) as usize);
            let mut numbers: Vec<u32> = (0..computing).collect();
            random.shuffle(&mut numbers);
            numbers[..count].iter().fold(0, |set: PortMask, port| set | 1 << port)
        };
        let resource = random.happens(1.0 / 3.0).then_some(computing + 3);
        let count = 5 + random.below(16);
        let mut classes = Vec::new();
        for number in 0..count {
            let uops = [1, 1, 1, 1, 1, 1, 2, 2, 3, 4][random.below(10)];
            let mut class = SimulatedPortClass {
                // Both kinds occur.
                is_vector: if number < 2 { number == 1 } else { random.happens(0.5) },
                uops: (0..uops).map(|_| (any(&mut random), 1)).collect(),
                slots: uops as u32,
            };
            if let Some(resource) = resource.filter(|_| random.happens(0.3)) {
                class.uops.push((1 << resource, 1));
            }
            classes.push(class);
        }
        let multipliers = any(&mut random);
        SimulatedPortMap {
            width,
            ports: computing + 3 + u32::from(resource.is_some()),
            adders: all,
            multipliers,
            vector_logic: all,
            loads: 0b11 << computing,
            stores: 0b1 << (computing + 2),
            branches: all,
            classes,
            assignment,
            has_result_buses: false,
        }
    }

    /// The classes of a kind.
    pub(super) fn classes_of_kind(&self, is_vector: bool) -> Vec<&SimulatedPortClass> {
        self.classes.iter().filter(|class| class.is_vector == is_vector).collect()
    }

    /// The shortest time in which work on these sets of ports can be done, in slots and by ports: the
    /// best assignment.
    pub fn best_cycles(&self, slots: f64, work: &[(PortMask, f64)]) -> f64 {
        find_least_load(work).max(slots / f64::from(self.width))
    }

    /// Whether the map can be simulated.
    pub fn is_possible(&self) -> bool {
        let all: PortMask = PortMask::MAX >> (PortMask::BITS - self.ports);
        let is_set = |set: PortMask| set != 0 && set & !all == 0;
        let sets = [self.adders, self.multipliers, self.vector_logic, self.loads, self.stores, self.branches];
        let uops = self.classes.iter().flat_map(|class| &class.uops);
        let has_kinds = [false, true].into_iter().all(|kind| !self.classes_of_kind(kind).is_empty());
        self.ports + 2 <= PortMask::BITS
            && has_kinds
            && sets.into_iter().all(is_set)
            && uops.clone().all(|(set, cycles)| is_set(*set) && (1..=MAX_WORK_CYCLES as u8).contains(cycles))
    }
}

/// The least work of the busiest port: the most that any set of ports must do, per port. Sets that are
/// unions of those in use suffice (Hall's theorem).
fn find_least_load(work: &[(PortMask, f64)]) -> f64 {
    let mut unions: Vec<PortMask> = vec![0];
    for (set, _) in work {
        for at in 0..unions.len() {
            let union = unions[at] | set;
            if !unions.contains(&union) {
                unions.push(union);
            }
        }
    }
    let load = |union: &PortMask| {
        let inside: f64 = work.iter().filter(|(set, _)| set & !union == 0).map(|(_, cycles)| cycles).sum();
        inside / f64::from(union.count_ones())
    };
    unions[1..].iter().map(load).fold(0.0, f64::max)
}

/// The part of each set's work that each of its ports does, if the busiest port has as little as
/// possible. A flow: each set's work goes to ports that take no more than the least load.
pub(super) fn assign_best(work: &[(PortMask, f64)]) -> Vec<Vec<f64>> {
    let most = find_least_load(work);
    let ports = PortMask::BITS as usize;
    let mut flow = vec![vec![0.0; ports]; work.len()];
    let mut load = vec![0.0; ports];
    for start in 0..work.len() {
        let mut left = work[start].1;
        while left > NO_WORK {
            let Some(path) = find_path(work, &flow, &load, most, start) else { break };
            // A path alternates: a set gives to a port, of which another set's work moves on.
            let last = path.last().expect("a path has a port").1;
            let moved =
                path.windows(2).map(|pair| flow[pair[1].0][pair[0].1]).fold(left.min(most - load[last]), f64::min);
            for (step, (set, port)) in path.iter().enumerate() {
                flow[*set][*port] += moved;
                if let Some((next, _)) = path.get(step + 1) {
                    flow[*next][*port] -= moved;
                }
            }
            load[last] += moved;
            left -= moved;
        }
    }
    flow
}

/// Work below this is rounding.
const NO_WORK: f64 = 1e-9;

/// A shortest path from a set to a port with room, as steps of a set and a port that it gives to.
fn find_path(
    work: &[(PortMask, f64)],
    flow: &[Vec<f64>],
    load: &[f64],
    most: f64,
    start: usize,
) -> Option<Vec<(usize, usize)>> {
    let mut reached: Vec<Option<Vec<(usize, usize)>>> = vec![None; load.len()];
    let mut waiting = std::collections::VecDeque::from([(start, Vec::new())]);
    let mut sets = vec![false; work.len()];
    sets[start] = true;
    while let Some((set, path)) = waiting.pop_front() {
        for port in (0..load.len()).filter(|port| work[set].0 >> port & 1 == 1) {
            if reached[port].is_some() {
                continue;
            }
            let mut further = path.clone();
            further.push((set, port));
            if load[port] < most - NO_WORK {
                return Some(further);
            }
            for other in 0..work.len() {
                if !sets[other] && flow[other][port] > NO_WORK {
                    sets[other] = true;
                    waiting.push_back((other, further.clone()));
                }
            }
            reached[port] = Some(further);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_map_can_be_simulated() {
        for (name, map) in SimulatedPortMap::presets(PortAssignment::Best) {
            assert!(map.is_possible(), "{name}");
        }
        for seed in 0..200 {
            let map = SimulatedPortMap::from_seed(seed, PortAssignment::Best);
            assert!(
                map.is_possible() && (4..=8).contains(&map.width) && (5..=20).contains(&map.classes.len()),
                "{map:?}"
            );
        }
        let uops = SimulatedPortMap::zen_plus(PortAssignment::Best).classes.iter().map(|class| class.uops.len()).max();
        assert_eq!(uops, Some(78));
    }

    #[test]
    fn the_best_assignment_reaches_the_bound() {
        for seed in 0..100 {
            let mut random = Random::new(seed);
            let map = SimulatedPortMap::from_seed(seed, PortAssignment::Best);
            let uops: Vec<PortMask> = map.classes.iter().flat_map(|class| &class.uops).map(|(set, _)| *set).collect();
            let work: Vec<(PortMask, f64)> =
                (0..4).map(|_| (uops[random.below(uops.len())], 1.0 + random.below(9) as f64)).collect();
            let flow = assign_best(&work);
            for ((set, cycles), parts) in work.iter().zip(&flow) {
                assert!((parts.iter().sum::<f64>() - cycles).abs() < 1e-6, "{seed}: all work is assigned");
                let outside = parts.iter().enumerate().filter(|(port, _)| set >> port & 1 == 0);
                assert!(outside.map(|(_, part)| part.abs()).sum::<f64>() < 1e-9);
            }
            let busiest = (0..32).map(|port| flow.iter().map(|parts| parts[port]).sum::<f64>()).fold(0.0, f64::max);
            assert!((busiest - find_least_load(&work)).abs() < 1e-6, "{seed}: {busiest}");
        }
        let shared = [(0b011, 8.0), (0b110, 8.0), (0b001, 4.0)];
        assert!((find_least_load(&shared) - 20.0 / 3.0).abs() < 1e-12);
        assert!((find_least_load(&[(0b011, 2.0), (0b001, 4.0)]) - 4.0).abs() < 1e-12);
    }
}
