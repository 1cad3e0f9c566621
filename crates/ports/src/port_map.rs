//! A port map: the ports of each class, as the atoms of the Venn diagram of their sets.
//!
//! Time shows nothing of a port but the classes that use it. So ports with the same users are one
//! group, and a map is a list of groups.

use crate::class_set::ClassSet;

/// Ports with the same users.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortGroup {
    /// The classes that use these ports.
    pub users: ClassSet,
    /// Number of ports.
    pub ports: u32,
}

/// The ports of each class.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct PortMap {
    groups: Vec<PortGroup>,
}

impl PortMap {
    /// The map with these groups. Those with the same users become one.
    pub fn from_groups(groups: impl IntoIterator<Item = PortGroup>) -> PortMap {
        let mut merged: Vec<PortGroup> = Vec::new();
        for group in groups.into_iter().filter(|group| group.ports > 0) {
            match merged.iter_mut().find(|known| known.users == group.users) {
                Some(known) => known.ports += group.ports,
                None => merged.push(group),
            }
        }
        merged.sort();
        PortMap { groups: merged }
    }

    /// The map of classes that use these ports: one bit of a number is one port.
    pub fn from_port_bits(classes: &[u32]) -> PortMap {
        let users = |port: u32| (0..classes.len()).filter(move |class| classes[*class] >> port & 1 == 1).collect();
        let groups = (0..u32::BITS).map(|port| PortGroup { users: users(port), ports: 1 });
        PortMap::from_groups(groups.filter(|group| group.users != ClassSet::default()))
    }

    /// The same map of these classes alone.
    pub fn restrict(&self, classes: ClassSet) -> PortMap {
        let groups = self.groups.iter().map(|group| PortGroup { users: group.users.common(classes), ..*group });
        PortMap::from_groups(groups.filter(|group| group.users != ClassSet::default()))
    }

    /// The groups, sorted.
    pub fn groups(&self) -> &[PortGroup] {
        &self.groups
    }

    /// Number of all ports.
    pub fn count_ports(&self) -> u32 {
        self.groups.iter().map(|group| group.ports).sum()
    }

    /// Number of ports that any of these classes uses.
    pub fn count_union(&self, classes: ClassSet) -> u32 {
        self.groups.iter().filter(|group| group.users.intersects(classes)).map(|group| group.ports).sum()
    }

    /// The groups of one class.
    pub fn list_own_groups(&self, class: usize) -> impl Iterator<Item = PortGroup> {
        self.groups.iter().copied().filter(move |group| group.users.contains(class))
    }

    /// Core cycles that the best assignment needs for this many µops of each class: the maximum over
    /// all unions of µops that can only use the union, divided by its ports.
    pub fn best_cycles(&self, counts: &[(usize, f64)]) -> f64 {
        let subsets = (1..1_u64 << counts.len()).map(|bits| {
            let chosen = || (0..counts.len()).filter(|index| bits >> index & 1 == 1);
            let uops: f64 = chosen().map(|index| counts[index].1).sum();
            uops / f64::from(self.count_union(chosen().map(|index| counts[index].0).collect()))
        });
        subsets.fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_assignment_is_bound_by_the_fullest_union() {
        // Two adders, two multipliers, and a shuffle that uses one of each.
        let map = PortMap::from_port_bits(&[0b1100, 0b0011, 0b0110]);
        assert_eq!((map.count_ports(), map.groups().len()), (4, 4));
        let cycles = |counts: &[(usize, f64)]| map.best_cycles(counts);
        assert_eq!(cycles(&[(0, 4.0)]), 2.0);
        assert_eq!(cycles(&[(0, 4.0), (1, 4.0)]), 2.0, "disjoint");
        assert!((cycles(&[(0, 4.0), (2, 4.0)]) - 8.0 / 3.0).abs() < 1e-9, "three ports");
        assert_eq!(cycles(&[(0, 4.0), (1, 4.0), (2, 4.0)]), 3.0);
        assert_eq!(map.list_own_groups(2).map(|group| group.ports).sum::<u32>(), 2);
    }

    #[test]
    fn ports_with_the_same_users_are_one_group() {
        let map = PortMap::from_port_bits(&[0b1111, 0b0011]);
        let groups: Vec<(usize, u32)> =
            map.groups().iter().map(|group| (group.users.count_classes(), group.ports)).collect();
        assert_eq!(groups, [(1, 2), (2, 2)]);
        assert_eq!(map.count_union(ClassSet::single(1)), 2);
    }

    #[test]
    fn a_restricted_map_has_the_ports_of_its_classes_alone() {
        let map = PortMap::from_port_bits(&[0b1100, 0b0011, 0b0110]);
        let pair = ClassSet::from_iter([0, 2]);
        assert_eq!(map.restrict(pair), PortMap::from_port_bits(&[0b1100, 0, 0b0110]));
    }
}
