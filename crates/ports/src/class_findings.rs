//! What the mixes say about all classes: their members, the bounds of their unions, and their maps.

use crate::class_set::ClassSet;
use crate::map_search::MapSolutions;
use crate::port_map::PortGroup;
use crate::union_bounds::{MixReading, UnionBounds, UnionStanding};
use cyclescope_instr::mixes::mix::Mix;
use cyclescope_instr::mixes::mix_timer::MixTime;

/// Forms of one µop with the same ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortClass {
    /// Number of ports.
    pub ports: u32,
    /// The forms. The first one is in the mixes of the class.
    pub members: Vec<usize>,
}

/// A timed mix of classes.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassMix {
    /// The classes.
    pub classes: ClassSet,
    /// The mix.
    pub mix: Mix,
    /// Each class and its number of µops.
    pub counts: Vec<(usize, f64)>,
    /// The time.
    pub time: MixTime,
}

/// A timed mix of a form with the first one of its class.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedForm {
    /// The form.
    pub form: usize,
    /// The mix.
    pub mix: Mix,
    /// The time.
    pub time: MixTime,
}

impl ClassMix {
    pub(crate) fn reading(&self, usual_error: f64) -> MixReading {
        MixReading::new(self.counts.clone(), &self.time, usual_error)
    }
}

/// Classes that share ports with each other and with no others.
#[derive(Debug, Clone, PartialEq)]
pub struct SharingComponent {
    /// The classes.
    pub classes: ClassSet,
    /// Whether the core steers µops to ports with less work. Otherwise slow mixes only show which
    /// classes have a port in common.
    pub steered: bool,
    /// The maps.
    pub solutions: MapSolutions,
    /// Classes without a map.
    pub odd: ClassSet,
}

impl SharingComponent {
    /// The different sets of port groups that the maps give a class.
    pub fn list_own_sets(&self, class: usize) -> Vec<Vec<PortGroup>> {
        let mut sets: Vec<Vec<PortGroup>> =
            self.solutions.maps.iter().map(|map| map.list_own_groups(class).collect()).collect();
        sets.sort();
        sets.dedup();
        sets
    }

    /// Whether all maps agree about a class.
    pub fn is_certain(&self, class: usize) -> bool {
        let is_alone = self.classes.count_classes() == 1;
        let is_odd = self.odd.contains(class);
        self.solutions.complete && (self.steered || is_alone) && !is_odd && self.list_own_sets(class).len() == 1
    }
}

/// What the mixes say about all classes.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ClassFindings {
    /// The classes.
    pub classes: Vec<PortClass>,
    /// The timed mixes of several classes.
    pub mixes: Vec<ClassMix>,
    /// The mixes by which forms joined their class.
    pub comparisons: Vec<ComparedForm>,
    /// Bounds of unions.
    pub bounds: Vec<UnionBounds>,
    /// The parts of the map.
    pub components: Vec<SharingComponent>,
}

impl ClassFindings {
    /// The bounds of a pair of classes.
    pub fn find_bounds(&self, classes: ClassSet) -> Option<&UnionBounds> {
        self.bounds.iter().find(|bounds| bounds.classes == classes)
    }

    /// The fastest mix of these classes at each ratio: slower tries of it say nothing.
    pub(crate) fn list_fastest_mixes(&self, classes: ClassSet) -> impl Iterator<Item = &ClassMix> {
        let own = || self.mixes.iter().filter(move |mix| mix.classes == classes);
        let readings: Vec<MixReading> = own().map(|mix| mix.reading(0.0)).collect();
        own().filter(move |mix| mix.reading(0.0).is_fastest(&readings))
    }

    /// The part of the map that a class is in.
    pub fn find_component(&self, class: usize) -> Option<&SharingComponent> {
        self.components.iter().find(|component| component.classes.contains(class))
    }

    /// Whether one set of ports only fits a class.
    pub fn is_exact(&self, class: usize) -> bool {
        let Some(component) = self.find_component(class) else { return false };
        component.is_certain(class) && !self.is_contradicted(class) && !self.has_standing(class, UnionStanding::Unclear)
    }

    /// Whether slow mixes of a class contradict the maps.
    pub fn is_contradicted(&self, class: usize) -> bool {
        let component = self.find_component(class);
        component.is_some_and(|component| {
            component.solutions.contradictions.iter().any(|classes| self.has_fewest_forms(class, *classes))
        })
    }

    /// Whether a union of a class and larger ones, or ones as large, has this standing.
    pub fn has_standing(&self, class: usize, standing: UnionStanding) -> bool {
        let own = self.bounds.iter().filter(|bounds| bounds.standing == standing);
        own.into_iter().any(|bounds| self.has_fewest_forms(class, bounds.classes))
    }

    /// Whether a class has the fewest forms of some classes. What these share besides ports is a fact about it: the
    /// others have more forms, so more mixes that show their ports.
    fn has_fewest_forms(&self, class: usize, classes: ClassSet) -> bool {
        let forms = |class: usize| self.classes[class].members.len();
        classes.contains(class) && classes.list_classes().all(|other| forms(class) <= forms(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port_map::PortMap;

    /// Two classes of one port each, of so many forms, whose union has this standing.
    fn pair(forms: [usize; 2], standing: UnionStanding) -> ClassFindings {
        let class = |count: usize| PortClass { ports: 1, members: (0..count).collect() };
        let alone = |class: usize| {
            let map = PortMap::from_port_bits(&(0..=class).map(|own| u32::from(own == class)).collect::<Vec<u32>>());
            let solutions = MapSolutions { maps: vec![map], complete: true, ..MapSolutions::default() };
            SharingComponent { classes: ClassSet::single(class), steered: true, solutions, odd: ClassSet::default() }
        };
        let bounds = UnionBounds { classes: ClassSet::from_iter([0, 1]), lower: 2, upper: 2, standing };
        ClassFindings {
            classes: forms.map(class).to_vec(),
            bounds: vec![bounds],
            components: [0, 1].map(alone).to_vec(),
            ..ClassFindings::default()
        }
    }

    #[test]
    fn what_a_pair_shares_is_said_of_the_smaller_class() {
        let standings =
            |forms| [0, 1].map(|class| pair(forms, UnionStanding::NoPort).has_standing(class, UnionStanding::NoPort));
        assert_eq!([standings([5, 2]), standings([2, 2])], [[false, true], [true, true]]);
    }

    #[test]
    fn the_smaller_class_of_an_unclear_pair_is_not_exact() {
        let exact = |standing| [0, 1].map(|class| pair([5, 2], standing).is_exact(class));
        assert_eq!([exact(UnionStanding::Unclear), exact(UnionStanding::Free)], [[true, false], [true, true]]);
    }

    #[test]
    fn contradicted_mixes_are_held_against_the_smaller_class() {
        let mut findings = pair([5, 2], UnionStanding::Misassigned);
        let contradictions = vec![ClassSet::from_iter([0, 1])];
        findings.components.iter_mut().for_each(|part| part.solutions.contradictions.clone_from(&contradictions));
        assert_eq!([0, 1].map(|class| findings.is_contradicted(class)), [false, true]);
    }
}
