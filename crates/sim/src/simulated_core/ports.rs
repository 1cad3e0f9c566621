//! Ports, the sets that work may use, and when they are free.
//!
//! Work takes the earliest cycle in which a port of its set is free. It is placed in program order.
//! This gives the same result as letting the oldest ready work go first in each cycle, but needs
//! only one pass.

use super::port_map::SimulatedPortMap;
use super::port_mask::{MAX_WORK_CYCLES, PORTS_MOST, PortMask};

/// Number of ports of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PortCounts {
    pub(super) integer: u32,
    pub(super) vector: u32,
    pub(super) load: u32,
    pub(super) store: u32,
}

/// All sets of ports. A set is named by its index.
#[derive(Debug, Clone)]
pub(super) struct PortSets {
    masks: Vec<PortMask>,
    /// Sets for integer work; the first one has all its ports.
    pub(super) integer: Vec<u8>,
    /// The same for vectors.
    pub(super) vector: Vec<u8>,
    pub(super) load: u8,
    pub(super) store: u8,
    pub(super) branch: u8,
    /// Units that stay occupied in addition to a port.
    pub(super) integer_divider: u8,
    pub(super) vector_divider: u8,
}

impl PortSets {
    pub(super) fn new(counts: PortCounts) -> PortSets {
        let mut masks = Vec::new();
        let mut first = 0;
        let mut add = |mask: PortMask| {
            masks.push(mask);
            (masks.len() - 1) as u8
        };
        let mut ports = |count: u32| {
            let mask = ((1 << count) - 1) << first;
            first += count;
            mask
        };
        let integer = list_port_subsets(ports(counts.integer)).into_iter().map(&mut add).collect();
        let vector = list_port_subsets(ports(counts.vector)).into_iter().map(&mut add).collect();
        let [load, store] = [counts.load, counts.store].map(|count| add(ports(count)));
        let [branch, integer_divider, vector_divider] = [1; 3].map(|count| add(ports(count)));
        PortSets { masks, integer, vector, load, store, branch, integer_divider, vector_divider }
    }

    /// The sets of a port map. Units that stay occupied have numbers above its ports.
    pub(super) fn from_map(map: &SimulatedPortMap) -> PortSets {
        let mut masks = Vec::new();
        let mut add = |mask: PortMask| {
            let known = masks.iter().position(|known| *known == mask);
            known.unwrap_or_else(|| {
                masks.push(mask);
                masks.len() - 1
            }) as u8
        };
        let (integer, vector) = (vec![add(map.adders), add(map.multipliers)], vec![add(map.vector_logic)]);
        let [load, store, branch] = [map.loads, map.stores, map.branches].map(&mut add);
        let [integer_divider, vector_divider] = [0, 1].map(|unit| add(1 << (map.ports + unit)));
        map.classes.iter().flat_map(|class| &class.uops).for_each(|(mask, _)| {
            add(*mask);
        });
        PortSets { masks, integer, vector, load, store, branch, integer_divider, vector_divider }
    }

    /// The set of these ports, which is among the sets.
    pub(super) fn find_set(&self, mask: PortMask) -> u8 {
        self.masks.iter().position(|known| *known == mask).expect("a set of the map") as u8
    }

    /// The ports of a set, by number.
    pub(super) fn list_ports(&self, set: u8) -> Vec<u32> {
        (0..PortMask::BITS).filter(|port| self.port_mask(set) >> port & 1 != 0).collect()
    }

    /// Number of ports and units.
    pub(super) fn port_count(&self) -> u32 {
        PortMask::BITS - self.masks.iter().fold(0, |union, mask| union | mask).leading_zeros()
    }

    pub(super) fn port_mask(&self, set: u8) -> PortMask {
        self.masks[usize::from(set)]
    }

    /// The shortest time in which the ports can repeat some work. No set of ports does more per
    /// cycle than it has ports, and by Hall's theorem nothing else limits them.
    pub(super) fn throughput_bound(&self, work: &[PortWork]) -> f64 {
        let mut kinds: Vec<PortMask> = work.iter().map(|work| self.port_mask(work.set)).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let unions = (1u32..1 << kinds.len()).map(|chosen| {
            let chosen = kinds.iter().enumerate().filter(|(bit, _)| chosen >> bit & 1 != 0);
            chosen.fold(0, |union, (_, mask)| union | mask)
        });
        let demand = |union: PortMask| {
            let inside = work.iter().filter(|work| self.port_mask(work.set) & !union == 0);
            inside.map(|work| f64::from(work.cycles)).sum::<f64>() / f64::from(union.count_ones())
        };
        unions.map(demand).fold(0.0, f64::max)
    }
}

/// All ports, halves, and single ones.
fn list_port_subsets(all: PortMask) -> Vec<PortMask> {
    let ports: Vec<PortMask> = (0..PortMask::BITS).map(|bit| 1 << bit).filter(|port| all & port != 0).collect();
    let (low, high) = ports.split_at(ports.len() / 2);
    let union = |ports: &[PortMask]| ports.iter().fold(0, |union, port| union | port);
    let mut subsets = vec![all];
    for subset in [union(low), union(high)].into_iter().chain(ports.iter().copied()) {
        if !subsets.contains(&subset) {
            subsets.push(subset);
        }
    }
    subsets
}

/// The port requirement of one µop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PortWork {
    /// A set of [`PortSets`].
    pub(super) set: u8,
    /// Number of cycles that it keeps its port.
    pub(super) cycles: u8,
}

/// The busy ports by cycle.
#[derive(Debug, Default)]
pub(super) struct PortSchedule {
    /// Ports busy in each cycle.
    busy: Vec<PortMask>,
    /// The sets, with ports renumbered so that the least used comes first.
    masks: Vec<PortMask>,
    /// Before this cycle no work of a length fits into a set.
    full: Vec<[u32; MAX_WORK_CYCLES]>,
    /// The port of each new number.
    order: Vec<usize>,
    /// How much work each port took, by its new number.
    used: [u64; PORTS_MOST],
    /// Ports that finish a µop in each cycle.
    finishing: Vec<PortMask>,
    /// Before this cycle a port is always busy, by its number.
    busy_until: [usize; PORTS_MOST],
}

impl PortSchedule {
    /// Frees all ports, for a program that does this work.
    pub(super) fn free_all(&mut self, sets: &PortSets, work: impl Iterator<Item = PortWork>) {
        let mut demand = [0.0; PortMask::BITS as usize];
        for work in work {
            let mask = sets.port_mask(work.set);
            let share = f64::from(work.cycles) / f64::from(mask.count_ones());
            let ports = demand.iter_mut().enumerate().filter(|(port, _)| mask >> port & 1 != 0);
            ports.for_each(|(_, demand)| *demand += share);
        }
        let mut order: Vec<usize> = (0..demand.len()).collect();
        order.sort_by(|a, b| demand[*a].total_cmp(&demand[*b]));
        let renumbered = |mask: &PortMask| {
            let places = order.iter().enumerate().filter(|(_, port)| mask >> **port & 1 != 0);
            places.fold(0, |new, (place, _)| new | 1 << place)
        };
        self.masks.clear();
        self.masks.extend(sets.masks.iter().map(renumbered));
        self.full.clear();
        self.full.resize(self.masks.len(), [0; MAX_WORK_CYCLES]);
        self.busy.clear();
        self.finishing.clear();
        self.busy_until = [0; PORTS_MOST];
        self.order = order;
        self.used = [0; PORTS_MOST];
    }

    /// How much work each port took since all were freed.
    pub(super) fn port_uses(&self) -> [u64; PORTS_MOST] {
        let mut uses = [0; PORTS_MOST];
        self.order.iter().zip(self.used).for_each(|(port, used)| uses[*port] = used);
        uses
    }

    /// Takes one of the machine's ports for some work from `ready` on. Returns its start. With
    /// `finishes`, the port must finish no other work this many cycles after the start.
    pub(super) fn take_one_port(&mut self, port: u32, cycles: u8, ready: u32, finishes: Option<u8>) -> u32 {
        let (number, length) = (port as usize, usize::from(cycles));
        let place = self.order.iter().position(|old| *old == number).expect("each port has a place");
        let mask = 1 << place;
        let mut start = self.busy_until[number].max(ready as usize);
        loop {
            let end = finishes.map(|latency| start + usize::from(latency));
            let last = end.unwrap_or(0).max(start + length);
            if self.busy.len() <= last {
                self.busy.resize(last * 2 + 256, 0);
            }
            if self.finishing.len() <= last {
                self.finishing.resize(last * 2 + 256, 0);
            }
            let window = &mut self.busy[start..start + length];
            let is_free = window.iter().all(|cycle| cycle & mask == 0);
            if is_free && end.is_none_or(|end| self.finishing[end] & mask == 0) {
                window.iter_mut().for_each(|cycle| *cycle |= mask);
                if let Some(end) = end {
                    self.finishing[end] |= mask;
                }
                break;
            }
            start += 1;
        }
        while self.busy.get(self.busy_until[number]).is_some_and(|cycle| cycle & mask != 0) {
            self.busy_until[number] += 1;
        }
        self.used[place] += 1;
        start as u32
    }

    /// Takes a port for some work from `ready` on. Returns its start.
    pub(super) fn take_port(&mut self, work: PortWork, ready: u32) -> u32 {
        let set = usize::from(work.set);
        let (mask, length) = (self.masks[set], usize::from(work.cycles));
        let full = &mut self.full[set][length - 1];
        let known = ready <= *full;
        let mut start = ready.max(*full) as usize;
        loop {
            if self.busy.len() < start + length {
                self.busy.resize((start + length) * 2 + 256, 0);
            }
            let window = &mut self.busy[start..start + length];
            let free = mask & !window.iter().fold(0, |busy, cycle| busy | cycle);
            if free != 0 {
                let port = free & free.wrapping_neg();
                self.used[port.trailing_zeros() as usize] += 1;
                window.iter_mut().for_each(|cycle| *cycle |= port);
                break;
            }
            start += 1;
        }
        if known {
            *full = start as u32;
        }
        start as u32
    }
}
