//! Finds the port maps that agree with all bounds of unions.
//!
//! Classes join the map one by one. A class takes some ports of each group that exists, and new
//! ones for the rest. Ports with the same users are alike, so that each map is found once. Bounds
//! of pairs and larger sets cut the search as soon as their last class has joined.
//!
//! If no map agrees with all bounds, `relax_bounds` leaves out one or two of them.

use crate::class_set::ClassSet;
use crate::port_map::{PortGroup, PortMap};
use crate::union_bounds::UnionBounds;

/// Steps after which a search gives up.
const STEPS_MOST: usize = 300_000;
/// Maps after which a search gives up.
const MAPS_MOST: usize = 64;
/// Upper limit of pairs of bounds that are left out.
const RELAXED_MOST: usize = 500;

/// The maps that agree with all bounds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MapSolutions {
    /// The maps, those with the fewest ports first.
    pub maps: Vec<PortMap>,
    /// Whether the search was complete.
    pub complete: bool,
}

/// A search for maps of some classes.
struct MapSearch<'a> {
    ports: &'a [u32],
    bounds: &'a [UnionBounds],
    order: Vec<usize>,
    groups: Vec<PortGroup>,
    maps: Vec<PortMap>,
    steps: usize,
}

/// Finds the maps of these classes. `ports` has the number of ports of each class.
pub fn find_maps(classes: ClassSet, ports: &[u32], bounds: &[UnionBounds]) -> MapSolutions {
    let own: Vec<UnionBounds> = bounds.iter().filter(|bounds| classes.contains_all(bounds.classes)).cloned().collect();
    let mut search = MapSearch {
        ports,
        bounds: &own,
        order: order_classes(classes, &own),
        groups: Vec::new(),
        maps: Vec::new(),
        steps: 0,
    };
    search.add_class(0);
    let MapSearch { mut maps, steps, .. } = search;
    let complete = steps < STEPS_MOST && maps.len() < MAPS_MOST;
    maps.sort_by_key(PortMap::count_ports);
    // Each map is checked by substitution.
    maps.retain(|map| {
        own.iter().all(|bounds| agrees(map, bounds))
            && classes.list_classes().all(|class| map.count_union(ClassSet::single(class)) == ports[class])
    });
    MapSolutions { maps, complete }
}

/// Whether a map agrees with the bounds of a union.
pub fn agrees(map: &PortMap, bounds: &UnionBounds) -> bool {
    (bounds.lower..=bounds.upper).contains(&map.count_union(bounds.classes))
}

/// Classes in an order in which each has many bounds with those before it.
fn order_classes(classes: ClassSet, bounds: &[UnionBounds]) -> Vec<usize> {
    let mut order: Vec<usize> = Vec::new();
    while order.len() < classes.count_classes() {
        let before: ClassSet = order.iter().copied().collect();
        let tightness = |class: &usize| {
            let own = bounds.iter().filter(|bounds| bounds.classes.contains(*class));
            let near = own.filter(|bounds| before.with_class(*class).contains_all(bounds.classes));
            near.filter(|bounds| bounds.is_shared()).count()
        };
        let left = classes.list_classes().filter(|class| !before.contains(*class));
        order.extend(left.max_by_key(|class| (tightness(class), usize::MAX - class)));
    }
    order
}

/// The maps that agree with all bounds but one, or but two, if there is no such map. A slow mix may
/// be slow for another reason than ports, so that its upper bound does not count. If several choices
/// leave a map, all of their maps are possible.
pub(crate) fn relax_bounds(
    classes: ClassSet,
    ports: &[u32],
    bounds: &[UnionBounds],
) -> Option<(MapSolutions, Vec<ClassSet>)> {
    let sum = |set: ClassSet| set.list_classes().map(|class| ports[class]).sum::<u32>();
    let open: Vec<usize> = (0..bounds.len()).filter(|at| bounds[*at].is_shared()).collect();
    let single = open.iter().map(|at| vec![*at]).collect();
    let pairs =
        open.iter().flat_map(|one| open.iter().filter(move |other| *other < one).map(move |other| vec![*one, *other]));
    for choices in [single, pairs.take(RELAXED_MOST).collect()] {
        let mut found = MapSolutions { maps: Vec::new(), complete: true };
        let mut contradictions = Vec::new();
        let choices: Vec<Vec<usize>> = choices;
        for choice in choices {
            let mut relaxed = bounds.to_vec();
            choice.iter().for_each(|at| relaxed[*at].upper = sum(relaxed[*at].classes));
            let MapSolutions { maps, complete } = find_maps(classes, ports, &relaxed);
            if !maps.is_empty() {
                contradictions.extend(choice.iter().map(|at| bounds[*at].classes));
                found.maps.extend(maps);
                found.complete &= complete;
            }
        }
        if !found.maps.is_empty() {
            found.maps.sort_by_key(|map| (map.count_ports(), map.clone()));
            found.maps.dedup();
            contradictions.sort();
            contradictions.dedup();
            return Some((found, contradictions));
        }
    }
    None
}

impl MapSearch<'_> {
    /// Adds the class at this place of the order, and all after it.
    fn add_class(&mut self, place: usize) {
        if self.is_over() {
            return;
        }
        match self.order.get(place) {
            None => self.maps.push(PortMap::from_groups(self.groups.iter().copied())),
            Some(&class) => self.share_groups(place, 0, self.groups.len(), self.ports[class]),
        }
    }

    fn is_over(&self) -> bool {
        self.steps >= STEPS_MOST || self.maps.len() >= MAPS_MOST
    }

    /// Takes ports of the groups from `group` to `end` for the class at `place`, which still needs
    /// `left` ports. The groups that it takes a part of are split: the part is appended.
    fn share_groups(&mut self, place: usize, group: usize, end: usize, left: u32) {
        self.steps += 1;
        if self.is_over() {
            return;
        }
        let class = self.order[place];
        if group == end {
            let own = PortGroup { users: ClassSet::single(class), ports: left };
            self.groups.extend((left > 0).then_some(own));
            if self.agrees_so_far(place) {
                self.add_class(place + 1);
            }
            self.groups.truncate(self.groups.len() - usize::from(left > 0));
            return;
        }
        let PortGroup { users, ports } = self.groups[group];
        self.share_groups(place, group + 1, end, left);
        for taken in 1..=self.limit_share(class, users, end).min(ports).min(left) {
            self.groups[group].ports = ports - taken;
            self.groups.push(PortGroup { users: users.with_class(class), ports: taken });
            self.share_groups(place, group + 1, end, left - taken);
            self.groups.pop();
        }
        self.groups[group].ports = ports;
    }

    /// Upper limit of ports that the class may take from a group with these users, by the bounds of
    /// pairs. Groups from `end` on are what it has taken already.
    fn limit_share(&self, class: usize, users: ClassSet, end: usize) -> u32 {
        let pairs = self.bounds.iter().filter(|bounds| bounds.classes.count_classes() == 2);
        let limit = |bounds: &UnionBounds| {
            let other = bounds.classes.list_classes().find(|other| *other != class && users.contains(*other))?;
            if !bounds.classes.contains(class) {
                return None;
            }
            let taken: u32 =
                self.groups[end..].iter().filter(|group| group.users.contains(other)).map(|group| group.ports).sum();
            Some((self.ports[class] + self.ports[other]).saturating_sub(bounds.lower).saturating_sub(taken))
        };
        pairs.filter_map(limit).min().unwrap_or(u32::MAX)
    }

    /// Whether the map agrees with all bounds whose last class is at this place.
    fn agrees_so_far(&self, place: usize) -> bool {
        let known: ClassSet = self.order[..=place].iter().copied().collect();
        let class = self.order[place];
        let due = |bounds: &&UnionBounds| bounds.classes.contains(class) && known.contains_all(bounds.classes);
        let union = |classes: ClassSet| -> u32 {
            self.groups.iter().filter(|group| group.users.intersects(classes)).map(|group| group.ports).sum()
        };
        self.bounds.iter().filter(due).all(|bounds| (bounds.lower..=bounds.upper).contains(&union(bounds.classes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::union_bounds::UnionStanding;

    /// The exact bounds of all unions of two and, if requested, three classes.
    fn exact_bounds(map: &PortMap, classes: usize, triples: bool) -> Vec<UnionBounds> {
        let sets = (1..1_u64 << classes).map(|bits| (0..classes).filter(move |class| bits >> class & 1 == 1).collect());
        let wanted = |set: &ClassSet| set.count_classes() == 2 || triples && set.count_classes() == 3;
        let bounds = |classes| {
            let union = map.count_union(classes);
            UnionBounds { classes, lower: union, upper: union, standing: UnionStanding::Fits }
        };
        sets.filter(wanted).map(bounds).collect()
    }

    fn find(sets: &[u32], triples: bool) -> MapSolutions {
        let map = PortMap::from_port_bits(sets);
        let ports: Vec<u32> = sets.iter().map(|set| set.count_ones()).collect();
        find_maps((0..sets.len()).collect(), &ports, &exact_bounds(&map, sets.len(), triples))
    }

    #[test]
    fn a_map_follows_from_its_unions() {
        let quadrant = [0b1100, 0b0011, 0b0110, 0b1111];
        let found = find(&quadrant, false);
        assert_eq!((found.maps, found.complete), (vec![PortMap::from_port_bits(&quadrant)], true));
        let scalar = [0b111111, 0b000111, 0b111000, 0b000001, 0b001100];
        assert_eq!(find(&scalar, true).maps, [PortMap::from_port_bits(&scalar)]);
    }

    #[test]
    fn pairs_alone_may_leave_two_maps_that_triples_decide() {
        // Three sets of two ports, each pair with one in common: a triangle, or a star.
        let (triangle, star) = ([0b011, 0b110, 0b101], [0b0011, 0b0101, 0b1001]);
        let pairs = find(&triangle, false);
        assert_eq!(pairs.maps, [triangle, star].map(|sets| PortMap::from_port_bits(&sets)));
        assert_eq!(find(&triangle, true).maps, [PortMap::from_port_bits(&triangle)]);
        assert_eq!(find(&star, true).maps, [PortMap::from_port_bits(&star)]);
    }

    #[test]
    fn bounds_that_contradict_each_other_leave_no_map() {
        let mut bounds = exact_bounds(&PortMap::from_port_bits(&[0b11, 0b11, 0b11]), 3, false);
        bounds[2].lower = 4;
        bounds[2].upper = 4;
        assert!(find_maps((0..3).collect(), &[2, 2, 2], &bounds).maps.is_empty());
    }
}
