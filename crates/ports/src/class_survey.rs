//! Sorts forms of one µop into classes with the same ports, and bounds the unions of classes.
//!
//! 1. A form whose rate alone is a whole number, and that takes one slot, is a candidate.
//! 2. A mix of two candidates with the same rate that runs faster than one resource of both allows
//!    proves that their ports differ. Other forms join the class of the first such form.
//! 3. Mixes of all pairs of classes at several ratios bound the ports of each pair.
//! 4. Mixes of three classes that share ports bound the ports of these.
//! 5. The maps that agree with all bounds are the answer. Each part of the map whose classes share
//!    no ports with others has its own.

use crate::class_findings::{ClassFindings, ClassMix, ComparedForm, PortClass, SharingComponent};
use crate::class_set::ClassSet;
use crate::map_search::{MapSolutions, find_maps};
use crate::mix_source::{MixSource, list_times};
use crate::port_map::PortMap;
use crate::union_bounds::{MixReading, MixScale, SLOT_SHARE, SLOW_SHARE, UnionBounds, find_usual_error};
use cyclescope_instr::mixes::mix::Mix;
use cyclescope_instr::mixes::mix_timer::{MixOutcome, MixTime};
use cyclescope_measure::study::StopReason;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

/// The core cycles that each of two candidates would take alone, in mixes that compare them.
const EQUAL_CYCLES: [[usize; 2]; 3] = [[4, 4], [4, 2], [2, 4]];
/// The same for pairs of classes.
const PAIR_CYCLES: [[usize; 2]; 7] = [[4, 1], [1, 4], [4, 2], [2, 4], [4, 3], [3, 4], [4, 4]];
/// The same for pairs that seem to share a port: other numbers of copies, so other programs.
const AGAIN_CYCLES: [[usize; 2]; 4] = [[5, 5], [6, 6], [6, 3], [3, 6]];
/// The same for three classes.
const TRIPLE_CYCLES: [[usize; 3]; 4] = [[4, 4, 4], [4, 4, 2], [4, 2, 4], [2, 4, 4]];
/// Upper limit of triples.
const TRIPLES_MOST: usize = 600;
/// Most repeats of the mixes of classes without a single map, and of slow mixes that no ports explain.
const REPEATS: usize = 2;
/// Upper limit of upper bounds that the maps of one part contradict.
const CONTRADICTIONS_MOST: usize = 2;
/// Fewest pairs that share no port from which [`ClassSurvey::find_slow_share`] reads how slow these may be.
const FREE_LEAST: usize = 10;
/// Upper limit of that: a pair that shares one of four ports takes a third longer.
const SLOW_SHARE_MOST: f64 = 0.25;
/// A rate is a whole number if it is as near to one as this share.
const WHOLE_SHARE: f64 = 0.025;

/// A form that takes one slot.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CandidateForm {
    /// Its index in the list of forms.
    pub form: usize,
    /// Its copies in a core cycle, alone: the number of its ports.
    pub ports: u32,
}

/// Reads the number of ports of a form of one µop from its rate alone. `None` if the rate is no whole
/// number, or is limited by the slots.
pub fn read_ports(cycles: f64, width: f64) -> Option<u32> {
    let rate = 1.0 / cycles;
    let ports = rate.round();
    (ports >= 1.0 && ports <= width - 0.5 && (rate / ports - 1.0).abs() <= WHOLE_SHARE).then_some(ports as u32)
}

/// Measures and bounds the classes of these candidates on a core with this many slots per cycle.
///
/// # Errors
///
/// Those of the source.
pub fn survey_classes(
    source: &mut dyn MixSource,
    candidates: &[CandidateForm],
    width: f64,
) -> Result<ClassFindings, StopReason> {
    let mut survey = ClassSurvey {
        source,
        width,
        ports: Vec::new(),
        findings: ClassFindings::default(),
        usual_error: 0.0,
        slow_share: SLOW_SHARE,
    };
    survey.sort_classes(candidates)?;
    survey.ports = survey.findings.classes.iter().map(|class| class.ports).collect();
    survey.time_pairs()?;
    survey.findings.bounds = survey.bound_pairs();
    survey.time_triples(&survey.list_triples())?;
    survey.solve();
    // A mix that something disturbed can leave many classes without a map, or with several. The fastest try counts.
    for _ in 0..REPEATS {
        let open = survey.list_open_mixes();
        if open.is_empty() {
            break;
        }
        survey.repeat_mixes(open)?;
        survey.solve();
    }
    Ok(survey.findings)
}

struct ClassSurvey<'a> {
    source: &'a mut dyn MixSource,
    width: f64,
    ports: Vec<u32>,
    findings: ClassFindings,
    /// The usual error of a time, as a share.
    usual_error: f64,
    /// See [`MixScale::slow_share`].
    slow_share: f64,
}

impl ClassSurvey<'_> {
    /// Sorts the candidates. In each turn, the first form left of each number of ports makes a class,
    /// and the others are compared with it.
    fn sort_classes(&mut self, candidates: &[CandidateForm]) -> Result<(), StopReason> {
        let mut left = candidates.to_vec();
        while !left.is_empty() && self.findings.classes.len() < ClassSet::MOST {
            let mut firsts: BTreeMap<u32, usize> = BTreeMap::new();
            left.retain(|candidate| {
                let is_first = !firsts.contains_key(&candidate.ports);
                firsts.entry(candidate.ports).or_insert(candidate.form);
                !is_first
            });
            let begun = self.findings.classes.len();
            let classes = firsts.iter().map(|(ports, form)| PortClass { ports: *ports, members: vec![*form] });
            self.findings.classes.extend(classes.take(ClassSet::MOST - begun));
            let mixes: Vec<Mix> = left
                .iter()
                .flat_map(|own| EQUAL_CYCLES.map(|cycles| (own, cycles)))
                .map(|(own, [one, other])| {
                    build_mix([(firsts[&own.ports], own.ports, one), (own.form, own.ports, other)])
                })
                .collect();
            let outcomes = self.source.time_mixes(&mixes)?;
            let usual_error = find_usual_error(&list_times(&outcomes));
            let mut others = Vec::new();
            let compared = mixes.chunks(EQUAL_CYCLES.len()).zip(outcomes.chunks(EQUAL_CYCLES.len()));
            for (candidate, (mixes, outcomes)) in left.into_iter().zip(compared) {
                let own = self.findings.classes[begun..].iter_mut().find(|class| class.ports == candidate.ports);
                let readings: Vec<MixReading> = EQUAL_CYCLES
                    .iter()
                    .zip(outcomes)
                    .filter_map(|(cycles, outcome)| read_equal_mix(candidate.ports, *cycles, outcome, usual_error))
                    .collect();
                // A form that does not run beside others has no class.
                let Some(class) = own.filter(|_| !readings.is_empty()) else { continue };
                let ports = [candidate.ports; 2];
                let scale = MixScale { ports: &ports, width: self.width, slow_share: self.slow_share };
                let limits = (candidate.ports, 2 * candidate.ports);
                let both = [0, 1].into_iter().collect();
                match UnionBounds::judge(both, &readings, scale, limits).lower > candidate.ports {
                    true => others.push(candidate),
                    false => {
                        class.members.push(candidate.form);
                        let form = candidate.form;
                        self.findings.comparisons.extend(mixes.iter().zip(outcomes).filter_map(|(mix, outcome)| {
                            let MixOutcome::Timed(time) = outcome else { return None };
                            Some(ComparedForm { form, mix: mix.clone(), time: *time })
                        }));
                    }
                }
            }
            left = others;
        }
        Ok(())
    }

    /// Times mixes of these classes, each for as many core cycles as it would take alone.
    fn time_classes(&mut self, mixes: &[Vec<(usize, usize)>]) -> Result<(), StopReason> {
        let classes = &self.findings.classes;
        let built: Vec<Mix> = mixes
            .iter()
            .map(|parts| {
                build_mix(
                    parts.iter().map(|(class, cycles)| (classes[*class].members[0], classes[*class].ports, *cycles)),
                )
            })
            .collect();
        for ((mix, outcome), parts) in built.iter().zip(self.source.time_mixes(&built)?).zip(mixes) {
            let MixOutcome::Timed(time) = outcome else { continue };
            let classes = parts.iter().map(|(class, _)| *class).collect();
            let counts = parts.iter().map(|(class, cycles)| (*class, (*cycles as u32 * self.ports[*class]).into()));
            self.findings.mixes.push(ClassMix { classes, mix: mix.clone(), counts: counts.collect(), time });
        }
        Ok(())
    }

    /// The share of slots that the core leaves empty in the fullest mix that slots limit.
    fn find_slot_loss(&self) -> f64 {
        let loss = |mix: &ClassMix| {
            let reading = mix.reading(self.usual_error);
            let (alone, all) =
                (reading.free_cycles(&self.ports, f64::INFINITY), reading.free_cycles(&self.ports, self.width));
            (all > alone * (1.0 + SLOW_SHARE)).then_some(mix.time.cycles / all - 1.0)
        };
        let mut losses: Vec<f64> = self.findings.mixes.iter().filter_map(loss).collect();
        losses.sort_by(f64::total_cmp);
        // Others may share ports as well.
        losses.first().map_or(0.0, |loss| loss.clamp(0.0, SLOT_SHARE))
    }

    /// Times the mixes of all pairs of classes.
    fn time_pairs(&mut self) -> Result<(), StopReason> {
        let pairs = self.list_pairs();
        let mixes: Vec<Vec<(usize, usize)>> =
            pairs.iter().flat_map(|[one, other]| PAIR_CYCLES.map(|[a, b]| vec![(*one, a), (*other, b)])).collect();
        self.time_classes(&mixes)?;
        let times: Vec<MixTime> = self.findings.mixes.iter().map(|mix| mix.time).collect();
        self.usual_error = find_usual_error(&times);
        self.width /= 1.0 + self.find_slot_loss();
        // A slow mix may be fast at another place: those that seem to share a port get more mixes.
        let again: Vec<Vec<(usize, usize)>> = pairs
            .iter()
            .filter(|pair| self.judge_pair(pair).is_shared())
            .flat_map(|[one, other]| AGAIN_CYCLES.map(|[a, b]| vec![(*one, a), (*other, b)]))
            .collect();
        self.time_classes(&again)
    }

    fn list_pairs(&self) -> Vec<[usize; 2]> {
        (0..self.ports.len()).flat_map(|other| (0..other).map(move |one| [one, other])).collect()
    }

    fn bound_pairs(&self) -> Vec<UnionBounds> {
        self.list_pairs().iter().map(|pair| self.judge_pair(pair)).collect()
    }

    fn judge_pair(&self, pair: &[usize; 2]) -> UnionBounds {
        let [one, other] = pair.map(|class| self.ports[class]);
        self.judge(pair.iter().copied().collect(), (one.max(other), one + other))
    }

    /// The triples of classes of which at least two pairs share ports.
    fn list_triples(&self) -> Vec<[usize; 3]> {
        let count = self.ports.len();
        let all = (0..count).flat_map(|c| (0..c).flat_map(move |b| (0..b).map(move |a| [a, b, c])));
        let links = |triple: &[usize; 3]| {
            let pairs =
                [[0, 1], [0, 2], [1, 2]].map(|pair| pair.map(|at| triple[at]).into_iter().collect::<ClassSet>());
            self.findings.bounds.iter().filter(|bounds| pairs.contains(&bounds.classes) && bounds.is_shared()).count()
        };
        all.filter(|triple| links(triple) >= 2).take(TRIPLES_MOST).collect()
    }

    fn time_triples(&mut self, triples: &[[usize; 3]]) -> Result<(), StopReason> {
        let mixes: Vec<Vec<(usize, usize)>> = triples
            .iter()
            .flat_map(|triple| TRIPLE_CYCLES.map(|cycles| triple.iter().copied().zip(cycles).collect()))
            .collect();
        self.time_classes(&mixes)
    }

    fn bound_triples(&self, triples: &[[usize; 3]]) -> Vec<UnionBounds> {
        triples
            .iter()
            .map(|triple| {
                let classes: ClassSet = triple.iter().copied().collect();
                let own = self.findings.bounds.iter().filter(|bounds| classes.contains_all(bounds.classes));
                let third = |bounds: &UnionBounds| {
                    let other = triple.iter().find(|class| !bounds.classes.contains(**class));
                    bounds.upper + other.map_or(0, |other| self.ports[*other])
                };
                let (mut least, mut most) = (0, u32::MAX);
                own.for_each(|bounds| (least, most) = (least.max(bounds.lower), most.min(third(bounds))));
                self.judge(classes, (least, most))
            })
            .collect()
    }

    /// The mixes of classes without a map or with several, and the slow ones that no ports explain.
    fn list_open_mixes(&self) -> Vec<ClassMix> {
        let is_open = |component: &SharingComponent, class: usize| {
            component.odd.contains(class) || component.steered && component.list_own_sets(class).len() > 1
        };
        let open: ClassSet = self
            .findings
            .components
            .iter()
            .flat_map(|component| component.classes.list_classes().filter(|class| is_open(component, *class)))
            .collect();
        let unexplained = self.findings.bounds.iter().filter(|bounds| bounds.is_unexplained());
        let unexplained: HashSet<ClassSet> = unexplained.map(|bounds| bounds.classes).collect();
        let mut known: HashSet<&Mix> = HashSet::new();
        let is_asked = |mix: &&ClassMix| mix.classes.intersects(open) || unexplained.contains(&mix.classes);
        let asked = self.findings.mixes.iter().filter(is_asked);
        asked.filter(|mix| known.insert(&mix.mix)).cloned().collect()
    }

    /// Times these mixes again.
    fn repeat_mixes(&mut self, open: Vec<ClassMix>) -> Result<(), StopReason> {
        let mixes: Vec<Mix> = open.iter().map(|mix| mix.mix.clone()).collect();
        for (mix, outcome) in open.into_iter().zip(self.source.time_again(&mixes)?) {
            let MixOutcome::Timed(time) = outcome else { continue };
            self.findings.mixes.push(ClassMix { time, ..mix });
        }
        Ok(())
    }

    fn judge(&self, classes: ClassSet, limits: (u32, u32)) -> UnionBounds {
        let readings: Vec<MixReading> = self.list_readings(classes).collect();
        let scale = MixScale { ports: &self.ports, width: self.width, slow_share: self.slow_share };
        let known: Vec<&UnionBounds> =
            self.findings.bounds.iter().filter(|bounds| classes.contains_all(bounds.classes)).collect();
        UnionBounds::judge_beyond(classes, &readings, scale, limits, &known)
    }

    fn list_readings(&self, classes: ClassSet) -> impl Iterator<Item = MixReading> {
        self.findings.mixes.iter().filter(move |mix| mix.classes == classes).map(|mix| mix.reading(self.usual_error))
    }

    /// What slow mixes have to exceed: nine of ten pairs that share no port, as fast mixes prove, are faster. Beside a
    /// sibling that takes a few slots, some take a quarter longer than ports and slots explain.
    fn find_slow_share(&self) -> f64 {
        let excess = |pair: &[usize; 2]| {
            let bounds = self.judge_pair(pair);
            let sum = pair.iter().map(|class| self.ports[*class]).sum::<u32>();
            let readings: Vec<MixReading> = self.list_readings(bounds.classes).collect();
            MixReading::find_excess(&readings, &self.ports, self.width).filter(|_| bounds.lower == sum)
        };
        let mut free: Vec<f64> = self.list_pairs().iter().filter_map(excess).collect();
        free.sort_by(f64::total_cmp);
        let most = free.get(free.len() * 9 / 10).filter(|_| free.len() >= FREE_LEAST);
        most.map_or(SLOW_SHARE, |excess| excess.clamp(SLOW_SHARE, SLOW_SHARE_MOST))
    }

    /// Bounds all unions, and finds the parts of the map, and the maps of each.
    fn solve(&mut self) {
        self.findings.bounds.clear();
        self.slow_share = self.find_slow_share();
        self.findings.bounds = self.bound_pairs();
        // Pairs that seemed to share a port may not, so that fewer triples count.
        self.findings.bounds.extend(self.bound_triples(&self.list_triples()));
        // A mix that a busy sibling slows, or that something else limits, may look steered: so most pairs count.
        let shows_steering = |classes: ClassSet| {
            let inside = self.findings.bounds.iter().filter(|bounds| classes.contains_all(bounds.classes));
            let slow: Vec<&UnionBounds> =
                inside.filter(|bounds| bounds.classes.count_classes() == 2 && bounds.is_shared()).collect();
            let is_steered = |bounds: &&&UnionBounds| {
                self.list_readings(bounds.classes).any(|reading| reading.shows_steering(&self.ports, self.width))
            };
            let steered = slow.iter().filter(is_steered).count();
            steered > 0 && 2 * steered >= slow.len()
        };
        let everything: ClassSet = (0..self.ports.len()).collect();
        let is_core_steered = shows_steering(everything);
        // A single pair says too little.
        let is_steered =
            |classes: ClassSet| if classes.count_classes() > 2 { shows_steering(classes) } else { is_core_steered };
        let mut solved = Vec::new();
        for classes in self.split_components(everything) {
            let steered = is_steered(classes);
            let parts = self.solve_most(classes, steered);
            let mapped: ClassSet = parts.iter().flat_map(|part| part.classes.list_classes()).collect();
            // A class is assigned badly, or shares something else, or its rate is not that of its ports.
            for odd in classes.without(mapped).list_classes().map(ClassSet::single) {
                let solutions = MapSolutions { complete: true, ..MapSolutions::default() };
                solved.push(SharingComponent { classes: odd, steered, solutions, odd });
            }
            // Without the odd classes, a part may be steered otherwise.
            for part in parts {
                let own = is_steered(part.classes);
                solved.push(match own == steered {
                    true => part,
                    false => self
                        .solve_component(part.classes, own, part.solutions.contradicted)
                        .unwrap_or(SharingComponent { steered: false, ..part }),
                });
            }
        }
        // If µops are spread evenly, a mix of two forms that share some of their ports looks like one of forms that
        // share all.
        for component in solved.iter_mut().filter(|component| !component.steered) {
            let may_differ = |class: &PortClass| class.ports > 1 && class.members.len() > 1;
            let classes = &self.findings.classes;
            if component.classes.list_classes().any(|class| may_differ(&classes[class])) {
                component.solutions.complete = false;
            }
        }
        solved.sort_by_key(|component| component.classes);
        self.findings.components = solved;
    }

    /// Finds maps for as many of these classes as have maps together. Returns the parts of the map.
    ///
    /// Classes with many forms are added first, then those with few unexplained unions. A class that contradicts a
    /// bound is added last, if the maps of the others stay the same.
    fn solve_most(&self, classes: ClassSet, steered: bool) -> Vec<SharingComponent> {
        let mut order: Vec<usize> = classes.list_classes().collect();
        let forms = |class: usize| self.findings.classes[class].members.len();
        order.sort_by_key(|class| (Reverse(forms(*class)), self.count_unexplained(*class, classes)));
        if let Some(parts) = self.solve_parts(classes, steered, 0) {
            return parts;
        }
        let (mut kept, mut parts) = (ClassSet::default(), Vec::new());
        for class in &order {
            let more = self.solve_parts(kept.with_class(*class), steered, 0);
            if let Some(more) = more.filter(|parts| parts.iter().all(|part| !part.solutions.maps.is_empty())) {
                (kept, parts) = (kept.with_class(*class), more);
            }
        }
        let left: Vec<usize> = order.into_iter().filter(|class| !kept.contains(*class)).collect();
        for class in left {
            let Some(more) = self.solve_parts(kept.with_class(class), steered, CONTRADICTIONS_MOST) else { continue };
            if count_contradicted(&more) <= count_contradicted(&parts) + 1 && keeps_maps(&parts, &more) {
                (kept, parts) = (kept.with_class(class), more);
            }
        }
        parts
    }

    /// Finds the maps of all parts of these classes. A map contradicts at most `contradicted` bounds. `None` if a part
    /// has no map.
    fn solve_parts(&self, classes: ClassSet, steered: bool, contradicted: usize) -> Option<Vec<SharingComponent>> {
        let parts = self.split_components(classes).into_iter();
        parts.map(|part| self.solve_component(part, steered, contradicted)).collect()
    }

    /// How many of a class's unions with others of these no ports explain.
    fn count_unexplained(&self, class: usize, classes: ClassSet) -> usize {
        let is_own = |bounds: &&UnionBounds| {
            bounds.classes.contains(class)
                && classes.contains_all(bounds.classes)
                && bounds.classes.count_classes() == 2
        };
        self.findings.bounds.iter().filter(is_own).filter(|bounds| bounds.is_unexplained()).count()
    }

    /// The parts of these classes that are connected by shared ports.
    fn split_components(&self, classes: ClassSet) -> Vec<ClassSet> {
        let mut components: Vec<ClassSet> = classes.list_classes().map(ClassSet::single).collect();
        let inside = self.findings.bounds.iter().filter(|bounds| classes.contains_all(bounds.classes));
        for bounds in inside.filter(|bounds| bounds.is_shared()) {
            let (joined, others): (Vec<_>, Vec<_>) =
                components.into_iter().partition(|component| component.intersects(bounds.classes));
            components = others;
            components.push(joined.into_iter().flat_map(ClassSet::list_classes).collect());
        }
        components
    }

    /// Finds the maps of classes that share ports. A map contradicts at most `contradicted` bounds. `None` without maps.
    fn solve_component(&self, classes: ClassSet, steered: bool, contradicted: usize) -> Option<SharingComponent> {
        let own = self.findings.bounds.iter().filter(|bounds| classes.contains_all(bounds.classes));
        let sum = |set: ClassSet| set.list_classes().map(|class| self.ports[class]).sum::<u32>();
        let bounds: Vec<UnionBounds> = own
            .filter(|bounds| steered || bounds.classes.count_classes() == 2)
            .map(|bounds| if steered { bounds.clone() } else { bounds.clone().without_fit(sum(bounds.classes)) })
            .collect();
        let solutions = find_maps(classes, &self.ports, &bounds, contradicted);
        let is_open = !solutions.maps.is_empty() || !solutions.complete;
        is_open.then(|| SharingComponent { classes, steered, solutions, odd: ClassSet::default() })
    }
}

/// Number of bounds that the maps of these parts contradict.
fn count_contradicted(parts: &[SharingComponent]) -> usize {
    parts.iter().map(|part| part.solutions.contradicted).sum()
}

/// Whether the maps of these parts are the same after more classes were added.
fn keeps_maps(before: &[SharingComponent], after: &[SharingComponent]) -> bool {
    before.iter().all(|part| {
        let Some(whole) = after.iter().find(|whole| whole.classes.contains_all(part.classes)) else { return false };
        let maps: HashSet<PortMap> = whole.solutions.maps.iter().map(|map| map.restrict(part.classes)).collect();
        whole.solutions.complete && maps == part.solutions.maps.iter().cloned().collect()
    })
}

/// The mix of these forms, each with its number of ports and the core cycles that it would take alone.
fn build_mix(parts: impl IntoIterator<Item = (usize, u32, usize)>) -> Mix {
    Mix::new(parts.into_iter().map(|(form, ports, cycles)| (form, cycles * ports as usize)))
}

/// The reading of a mix of two forms with as many ports, of which each would take so many core cycles.
fn read_equal_mix(ports: u32, cycles: [usize; 2], outcome: &MixOutcome, usual_error: f64) -> Option<MixReading> {
    let MixOutcome::Timed(time) = outcome else { return None };
    let count = |part: usize| (part, f64::from(ports) * cycles[part] as f64);
    Some(MixReading::new(vec![count(0), count(1)], time, usual_error))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A part of the map of these classes, which has these ports or those.
    fn part(classes: &[usize], maps: &[&[u32]]) -> SharingComponent {
        let maps = maps.iter().map(|ports| PortMap::from_port_bits(ports)).collect();
        let solutions = MapSolutions { maps, complete: true, ..MapSolutions::default() };
        let classes = classes.iter().copied().collect();
        SharingComponent { classes, steered: true, solutions, odd: ClassSet::default() }
    }

    #[test]
    fn a_class_that_is_added_keeps_all_maps_of_the_others_or_does_not() {
        let (shared, apart): (&[u32], &[u32]) = (&[0b11, 0b01], &[0b011, 0b100]);
        let keeps =
            |before: &[&[u32]], after: &[&[u32]]| keeps_maps(&[part(&[0, 1], before)], &[part(&[0, 1, 2], after)]);
        assert!(keeps(&[shared], &[&[0b11, 0b01, 0b10], &[0b11, 0b01, 0b100]]), "the new class alone is open");
        assert!(!keeps(&[shared], &[&[0b011, 0b100, 0b010]]), "others");
        assert!(!keeps(&[shared, apart], &[&[0b11, 0b01, 0b10]]), "fewer");
        assert!(!keeps(&[shared], &[&[0b11, 0b01, 0b10], &[0b011, 0b100, 0b010]]), "more");
        assert!(!keeps(&[shared], &[]), "none");
    }
}
