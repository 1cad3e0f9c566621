//! The best assignment of µops to ports: what limits it, and how busy it keeps each port.
//!
//! Some assignments are equally fast. This one is the most even: no port can have less to do without
//! another one that has as much or more getting even more. Its ports fall into groups that are equally
//! busy. The busiest group is the union of ports with the most confined µops per port. Without it and
//! its µops, the next group is found in the same way.

use crate::port_labels::PortBits;
use std::collections::BTreeSet;

/// Upper limit of unions of sets that overlap.
const UNIONS_MOST: usize = 1 << 14;

/// Ports, and the µops that can only use them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortLimit {
    /// The ports.
    pub ports: PortBits,
    /// The µops.
    pub uops: u64,
}

/// The best assignment of some µops.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PortAssignment {
    /// Of each part of the ports that no µop connects with others, the ports that limit it: the fullest
    /// part first.
    pub limits: Vec<PortLimit>,
    /// Each port that a µop may use, and its µops.
    pub loads: Vec<(usize, f64)>,
}

impl PortLimit {
    /// Core cycles that the µops need: a port takes one in each.
    pub fn cycles(self) -> f64 {
        self.uops as f64 / f64::from(self.ports.count_ones())
    }

    /// Compares the µops per port, without rounding.
    fn compare(self, other: PortLimit) -> std::cmp::Ordering {
        let scaled = |uops: u64, ports: PortBits| u128::from(uops) * u128::from(ports.count_ones());
        scaled(self.uops, other.ports).cmp(&scaled(other.uops, self.ports))
    }
}

impl PortAssignment {
    /// Assigns µops, each group with its ports and their number. `None` if there are too many different
    /// sets of ports.
    pub fn find(uops: &[(PortBits, u64)]) -> Option<PortAssignment> {
        let mut found = PortAssignment::default();
        for mut open in split_parts(uops) {
            let mut first = None;
            while !open.is_empty() {
                let limit = find_fullest(&open)?;
                first = first.or(Some(limit));
                let ports = (0..PortBits::BITS as usize).filter(|port| limit.ports >> port & 1 == 1);
                found.loads.extend(ports.map(|port| (port, limit.cycles())));
                open.retain(|(ports, _)| ports & !limit.ports != 0);
                open.iter_mut().for_each(|(ports, _)| *ports &= !limit.ports);
            }
            found.limits.extend(first);
        }
        found.limits.sort_by(|one, other| other.compare(*one));
        found.loads.sort_by_key(|(port, _)| *port);
        Some(found)
    }

    /// Core cycles of the assignment.
    pub fn cycles(&self) -> f64 {
        self.limits.first().map_or(0.0, |limit| limit.cycles())
    }
}

/// The groups of µops whose ports are connected.
fn split_parts(uops: &[(PortBits, u64)]) -> Vec<Vec<(PortBits, u64)>> {
    let mut parts: Vec<(PortBits, Vec<(PortBits, u64)>)> = Vec::new();
    for group in uops.iter().filter(|(ports, count)| *ports != 0 && *count > 0) {
        let (joined, others): (Vec<_>, Vec<_>) = parts.into_iter().partition(|(ports, _)| ports & group.0 != 0);
        let mut own = (group.0, vec![*group]);
        for (ports, groups) in joined {
            own.0 |= ports;
            own.1.extend(groups);
        }
        parts = others;
        parts.push(own);
    }
    parts.into_iter().map(|(_, groups)| groups).collect()
}

/// The largest union of sets with the most µops per port that can only use it.
fn find_fullest(uops: &[(PortBits, u64)]) -> Option<PortLimit> {
    let sets: BTreeSet<PortBits> = uops.iter().map(|(ports, _)| *ports).collect();
    let mut unions: BTreeSet<PortBits> = BTreeSet::new();
    for set in sets {
        let more: Vec<PortBits> = unions.iter().map(|union| union | set).chain([set]).collect();
        unions.extend(more);
        if unions.len() > UNIONS_MOST {
            return None;
        }
    }
    let limit = |ports: PortBits| {
        let confined = uops.iter().filter(|(own, _)| own & !ports == 0);
        PortLimit { ports, uops: confined.fold(0, |all, (_, count)| u64::saturating_add(all, *count)) }
    };
    // Unions of ports that are equally full are as full, so the largest one is unique.
    unions
        .into_iter()
        .map(limit)
        .max_by(|one, other| one.compare(*other).then(one.ports.count_ones().cmp(&other.ports.count_ones())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port_labels::best_cycles;
    use cyclescope_core::random::Random;

    #[test]
    fn the_fullest_ports_limit_each_part() {
        // Four ALUs of which the second multiplies, and two load ports.
        let found = PortAssignment::find(&[(0b1111, 4), (0b0010, 2), (0b11_0000, 3)]).unwrap();
        let limits: Vec<(PortBits, f64)> = found.limits.iter().map(|limit| (limit.ports, limit.cycles())).collect();
        assert_eq!(limits, [(0b0010, 2.0), (0b11_0000, 1.5)]);
        assert_eq!(found.cycles(), 2.0);
        let thirds = 4.0 / 3.0;
        assert_eq!(found.loads, [(0, thirds), (1, 2.0), (2, thirds), (3, thirds), (4, 1.5), (5, 1.5)]);
        // As full as its neighbours: all of them limit.
        let even = PortAssignment::find(&[(0b1111, 6), (0b0010, 2)]).unwrap();
        assert_eq!(even.limits, [PortLimit { ports: 0b1111, uops: 8 }]);
        assert_eq!(PortAssignment::find(&[]), Some(PortAssignment::default()));
    }

    #[test]
    fn random_assignments_are_complete_and_the_best() {
        let mut random = Random::new(5);
        for _ in 0..200 {
            let groups = 1 + random.below(7);
            let draw = |random: &mut Random| (1 + random.below(255) as PortBits, 1 + random.below(9) as u64);
            let uops: Vec<(PortBits, u64)> = (0..groups).map(|_| draw(&mut random)).collect();
            let found = PortAssignment::find(&uops).unwrap();
            let counts: Vec<(PortBits, f64)> = uops.iter().map(|(ports, count)| (*ports, *count as f64)).collect();
            assert!((found.cycles() - best_cycles(&counts)).abs() < 1e-9, "{uops:?}: {found:?}");
            let all: f64 = found.loads.iter().map(|(_, load)| load).sum();
            assert!((all - counts.iter().map(|(_, count)| count).sum::<f64>()).abs() < 1e-9, "{uops:?}: {found:?}");
            // Ports with more to do hold µops that have no less busy port.
            let load = |port: usize| found.loads.iter().find(|(own, _)| *own == port).map_or(0.0, |(_, load)| *load);
            let least = |ports: PortBits| {
                let own = (0..8).filter(|port| ports >> port & 1 == 1).map(load);
                own.fold(f64::INFINITY, f64::min)
            };
            let weighed: f64 = counts.iter().map(|(ports, count)| count * least(*ports)).sum();
            let squares: f64 = found.loads.iter().map(|(_, load)| load * load).sum();
            assert!((weighed - squares).abs() < 1e-6, "each µop is on its least busy ports: {uops:?}: {found:?}");
        }
    }

    #[test]
    fn too_many_sets_have_no_answer() {
        let pairs: Vec<(PortBits, u64)> = (0..40).map(|port| (0b11 << port, 1)).collect();
        assert_eq!(PortAssignment::find(&pairs), None);
    }
}
