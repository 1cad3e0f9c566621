//! Finds the port maps that agree with the bounds of unions.
//!
//! Classes join the map one by one. A class takes some ports of each group that exists, and new
//! ones for the rest. Ports with the same users are alike, so that each map is found once. Bounds
//! of pairs and larger sets cut the search as soon as their last class has joined.
//!
//! Lower bounds are proved, so each map agrees with them. A slow mix may be slow for another reason
//! than ports. So a map may contradict a few upper bounds, if none agrees with all.

use crate::class_set::ClassSet;
use crate::port_map::{PortGroup, PortMap};
use crate::union_bounds::UnionBounds;

/// Steps after which a search gives up.
const STEPS_MOST: usize = 300_000;
/// Maps after which a search gives up.
const MAPS_MOST: usize = 64;

/// The maps that contradict the fewest upper bounds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MapSolutions {
    /// The maps, those with the fewest ports first.
    pub maps: Vec<PortMap>,
    /// Whether the search was complete.
    pub complete: bool,
    /// Number of upper bounds that each map contradicts.
    pub contradicted: usize,
    /// Classes of these bounds, of all maps.
    pub contradictions: Vec<ClassSet>,
}

/// A search for maps of some classes.
struct MapSearch<'a> {
    ports: &'a [u32],
    bounds: &'a [UnionBounds],
    order: Vec<usize>,
    groups: Vec<PortGroup>,
    /// The upper bounds that the groups contradict, and how many may be.
    contradicted: Vec<ClassSet>,
    most: usize,
    maps: Vec<PortMap>,
    contradictions: Vec<ClassSet>,
    steps: usize,
}

/// Finds the maps of these classes that contradict the fewest upper bounds. A map contradicts at most `contradicted`
/// of them. `ports` has the number of ports of each class. Bounds of pairs come before those of more classes.
pub fn find_maps(classes: ClassSet, ports: &[u32], bounds: &[UnionBounds], contradicted: usize) -> MapSolutions {
    let own: Vec<UnionBounds> = bounds.iter().filter(|bounds| classes.contains_all(bounds.classes)).cloned().collect();
    let search = |most| search_maps(classes, ports, &own, most);
    let is_enough = |found: &MapSolutions| !found.maps.is_empty() || !found.complete;
    (0..contradicted).map(search).find(is_enough).unwrap_or_else(|| search(contradicted))
}

/// Finds the maps that contradict at most `most` upper bounds.
fn search_maps(classes: ClassSet, ports: &[u32], bounds: &[UnionBounds], most: usize) -> MapSolutions {
    let mut search = MapSearch {
        ports,
        bounds,
        order: order_classes(classes, bounds),
        groups: Vec::new(),
        contradicted: Vec::new(),
        most,
        maps: Vec::new(),
        contradictions: Vec::new(),
        steps: 0,
    };
    search.add_class(0);
    let MapSearch { mut maps, mut contradictions, steps, .. } = search;
    let complete = steps < STEPS_MOST && maps.len() < MAPS_MOST;
    maps.sort_by_key(|map| (map.count_ports(), map.clone()));
    maps.dedup();
    // Each map is checked by substitution.
    maps.retain(|map| {
        bounds.iter().all(|bounds| map.count_union(bounds.classes) >= bounds.lower)
            && list_contradicted(bounds, |classes| map.count_union(classes)).len() <= most
            && classes.list_classes().all(|class| map.count_union(ClassSet::single(class)) == ports[class])
    });
    contradictions.sort_unstable();
    contradictions.dedup();
    MapSolutions { maps, complete, contradicted: most, contradictions }
}

/// The sets of classes whose upper bound is less than this union. A bound of a larger set follows from
/// those of its pairs: it says nothing if one of them is wrong.
fn list_contradicted(bounds: &[UnionBounds], union: impl Fn(ClassSet) -> u32) -> Vec<ClassSet> {
    let mut contradicted: Vec<ClassSet> = Vec::new();
    for bounds in bounds.iter().filter(|bounds| bounds.is_shared()) {
        let follows = contradicted.iter().any(|classes| bounds.classes.contains_all(*classes));
        if !follows && union(bounds.classes) > bounds.upper {
            contradicted.push(bounds.classes);
        }
    }
    contradicted
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

impl MapSearch<'_> {
    /// Adds the class at this place of the order, and all after it.
    fn add_class(&mut self, place: usize) {
        if self.is_over() {
            return;
        }
        match self.order.get(place) {
            None => {
                self.maps.push(PortMap::from_groups(self.groups.iter().copied()));
                self.contradictions.extend(&self.contradicted);
            }
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
            let known = self.contradicted.len();
            if self.agrees_so_far(place) {
                self.add_class(place + 1);
            }
            self.contradicted.truncate(known);
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

    /// Whether the map agrees with the proved bounds whose last class is at this place, and contradicts few others.
    /// Adds these to the contradicted ones.
    fn agrees_so_far(&mut self, place: usize) -> bool {
        let known: ClassSet = self.order[..=place].iter().copied().collect();
        let class = self.order[place];
        let groups = &self.groups;
        let union = |classes: ClassSet| -> u32 {
            groups.iter().filter(|group| group.users.intersects(classes)).map(|group| group.ports).sum()
        };
        let is_due = |bounds: &&UnionBounds| bounds.classes.contains(class) && known.contains_all(bounds.classes);
        for bounds in self.bounds.iter().filter(is_due) {
            let ports = union(bounds.classes);
            let follows = || self.contradicted.iter().any(|classes| bounds.classes.contains_all(*classes));
            if ports < bounds.lower {
                return false;
            }
            if bounds.is_shared() && ports > bounds.upper && !follows() {
                self.contradicted.push(bounds.classes);
                if self.contradicted.len() > self.most {
                    return false;
                }
            }
        }
        true
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
        find_maps((0..sets.len()).collect(), &ports, &exact_bounds(&map, sets.len(), triples), 0)
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
    fn an_upper_bound_that_contradicts_others_does_not_count_and_a_proved_one_does() {
        let mut bounds = exact_bounds(&PortMap::from_port_bits(&[0b11, 0b11, 0b11]), 3, false);
        let [first, second, last] = [0, 1, 2].map(|at: usize| bounds[at].classes);
        (bounds[2].lower, bounds[2].upper) = (4, 4);
        // Either of the first two is wrong.
        let found = find_maps((0..3).collect(), &[2, 2, 2], &bounds, 2);
        assert_eq!((found.contradicted, found.contradictions), (1, vec![first, second]));
        assert!(found.maps.len() == 2 && found.maps.iter().all(|map| map.count_union(last) == 4));
        bounds[2].lower = 5;
        assert!(
            find_maps((0..3).collect(), &[2, 2, 2], &bounds, 2).maps.is_empty(),
            "no map has five ports for two pairs"
        );
    }

    #[test]
    fn a_bound_of_three_says_nothing_if_that_of_two_of_them_is_wrong() {
        let mut bounds = exact_bounds(&PortMap::from_port_bits(&[0b01, 0b01, 0b10]), 3, true);
        bounds[0].lower = 2;
        // The first two share no port, as is proved, so that the pair and the triple are wrong for one reason.
        let found = find_maps((0..3).collect(), &[1, 1, 1], &bounds, 2);
        assert_eq!((found.contradicted, found.contradictions), (1, vec![bounds[0].classes]));
    }
}
