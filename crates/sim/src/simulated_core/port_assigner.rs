//! Assigns µops to ports when they are dispatched.

use super::port_map::{PortAssignment, assign_best};
use super::port_mask::{PORTS_MOST, PortMask};

/// The choice of ports while a program runs.
#[derive(Debug)]
pub(super) struct PortAssigner {
    assignment: PortAssignment,
    /// The sets in use, each with what it got so far.
    sets: Vec<AssignedSet>,
    /// When each port has done all that it was given, and the same at the end of the last cycle: the
    /// choice knows no more.
    free_at: [u32; PORTS_MOST],
    seen: [u32; PORTS_MOST],
    /// The cycle in which µops are dispatched, and how many so far.
    cycle: u32,
    slot: u32,
}

/// A set of ports, and what its µops got.
#[derive(Debug)]
struct AssignedSet {
    mask: PortMask,
    /// The part of its work that each port does under the best assignment.
    shares: Vec<f64>,
    given: [u32; PORTS_MOST],
    total: u32,
}

impl PortAssigner {
    /// An assigner of a program whose iteration does this work.
    pub(super) fn new(assignment: PortAssignment, work: impl Iterator<Item = (PortMask, u8)>) -> PortAssigner {
        let mut all: Vec<(PortMask, f64)> = Vec::new();
        for (mask, cycles) in work {
            match all.iter_mut().find(|(known, _)| *known == mask) {
                Some((_, sum)) => *sum += f64::from(cycles),
                None => all.push((mask, f64::from(cycles))),
            }
        }
        let flow = assign_best(&all);
        let set = |((mask, cycles), parts): (&(PortMask, f64), Vec<f64>)| AssignedSet {
            mask: *mask,
            shares: parts.iter().map(|part| part / cycles).collect(),
            given: [0; PORTS_MOST],
            total: 0,
        };
        let sets = all.iter().zip(flow).map(set).collect();
        let none = [0; PORTS_MOST];
        PortAssigner { assignment, sets, free_at: none, seen: none, cycle: 0, slot: 0 }
    }

    /// Notes that a slot issues in this cycle.
    pub(super) fn begin_slot(&mut self, cycle: u32) {
        if cycle != self.cycle {
            (self.cycle, self.slot, self.seen) = (cycle, 0, self.free_at);
        } else {
            self.slot += 1;
        }
    }

    /// The port of a µop of this set.
    pub(super) fn choose_port(&mut self, mask: PortMask) -> u32 {
        let (slot, seen) = (self.slot, self.seen);
        let set = self.sets.iter_mut().find(|set| set.mask == mask).expect("the program's work is known");
        let ports = || (0..PortMask::BITS).filter(move |port| mask >> port & 1 == 1);
        let nth = |number: u32| ports().nth((number % mask.count_ones()) as usize).expect("a set has ports");
        let port = match self.assignment {
            PortAssignment::Uniform => nth(set.total),
            PortAssignment::BySlot => nth(slot),
            PortAssignment::LeastLoaded => ports().min_by_key(|port| seen[*port as usize]).expect("a set has ports"),
            PortAssignment::Best => {
                let next = f64::from(set.total + 1);
                let lacks = |port: &u32| set.shares[*port as usize] * next - f64::from(set.given[*port as usize]);
                ports().max_by(|one, other| lacks(one).total_cmp(&lacks(other))).expect("a set has ports")
            }
        };
        set.given[port as usize] += 1;
        set.total += 1;
        port
    }

    /// Notes when a port has done what it was given.
    pub(super) fn note_end(&mut self, port: u32, end: u32) {
        let free = &mut self.free_at[port as usize];
        *free = end.max(*free);
    }
}
