//! The survey of classes on planted cores.

use crate::class_findings::ClassFindings;
use crate::class_set::ClassSet;
use crate::class_survey::{CandidateForm, survey_classes};
use crate::classes_record::ClassesRecord;
use crate::deciding_mix::{DecidingMix, FormNames, MixEvidence};
use crate::forms_survey::{SurveyedForm, survey_forms};
use crate::planted_core::{Assignment, PlantedCore};
use crate::port_map::PortMap;
use crate::ports_row::{PortsVerdict, RowStart};
use crate::union_bounds::UnionStanding;
use cyclescope_core::random::Random;
use cyclescope_core::statistics::Interval;
use cyclescope_core::unit::Unit;
use cyclescope_instr::experiments::slot_judgement::SlotVerdict;
use cyclescope_instr::rows::dispatch_slots::DispatchSlots;
use cyclescope_measure::result::record::Quantity;

/// A planted map: the slots per cycle, and the ports of each class.
pub(crate) struct PlantedMap {
    pub(crate) name: &'static str,
    pub(crate) width: usize,
    pub(crate) classes: Vec<u32>,
}

/// Maps like those of real cores, from published descriptions: ports of the integer part in the low
/// bits, of the vector part above.
pub(crate) fn list_real_maps() -> Vec<PlantedMap> {
    let map = |name, width, classes: &[u32]| PlantedMap { name, width, classes: classes.to_vec() };
    vec![
        // Four ALUs; four vector pipes: multipliers 0 and 1, adders 2 and 3, shuffles 1 and 2.
        map("zen+", 5, &[0b1111, 0b0010, 0b1001, 0x30, 0xc0, 0x60, 0x70, 0x40, 0xb0]),
        map("zen 4", 6, &[0b1111, 0b0010, 0b0110, 0b1001, 0x30, 0xc0, 0x60, 0xf0, 0x90]),
        map("zen 5", 8, &[0x3f, 0x07, 0x38, 0x0c, 0x300, 0xc00, 0x600, 0xf00]),
        // Ports 0, 1, 5, 6 with vector units on 0, 1 and 5; loads on 2 and 3.
        map("skylake", 4, &[0b11, 0b10011, 0b100, 0b101, 0b1001, 0b0010, 0x60]),
        map("golden cove", 6, &[0b1_1111, 0b01_0011, 0b00_0010, 0b00_0011, 0b01_0001, 0b00_0111, 0x700, 0b00_0100]),
    ]
}

/// A random core: 3 to 12 ports, 5 to 20 classes, 4 to 8 slots per cycle.
fn draw_map(random: &mut Random) -> PlantedMap {
    let ports = 3 + random.below(10) as u32;
    let width = 4 + random.below(5);
    let mut classes: Vec<u32> = Vec::new();
    let count = 5 + random.below(16);
    for _ in 0..20 * count {
        let size = 1 + random.below((ports as usize).min(width - 1)) as u32;
        let start = random.below(ports as usize) as u32;
        // Units are often neighbours; some sets are arbitrary.
        let set: u32 = match random.happens(0.7) {
            true => (0..size).fold(0, |set, port| set | 1 << ((start + port) % ports)),
            false => (0..ports)
                .filter(|_| random.happens(f64::from(size) / f64::from(ports)))
                .fold(0, |set, port| set | 1 << port),
        };
        let fits = set != 0 && (set.count_ones() as usize) < width;
        if fits && !classes.contains(&set) && classes.len() < count {
            classes.push(set);
        }
    }
    PlantedMap { name: "random", width, classes }
}

/// How an estimate of many maps compares with the truth.
#[derive(Debug, Default, Clone, Copy)]
struct Score {
    classes: usize,
    exact: usize,
    exact_wrong: usize,
    pairs: usize,
    /// Pairs that time can tell.
    open_pairs: usize,
    right: usize,
    wrong: usize,
    bounds_wrong: usize,
}

impl Score {
    fn add(&mut self, map: &PlantedMap, findings: &ClassFindings) {
        let truth = |class: usize| map.classes[findings.classes[class].members[0] / 2];
        let count = findings.classes.len();
        let planted = PortMap::from_port_bits(&(0..count).map(truth).collect::<Vec<u32>>());
        for bounds in &findings.bounds {
            let union = planted.count_union(bounds.classes);
            self.bounds_wrong += usize::from(!(bounds.lower..=bounds.upper).contains(&union));
        }
        for one in 0..count {
            self.classes += 1;
            // Members of a class that do not share its ports.
            let is_pure = findings.classes[one].members.iter().all(|form| map.classes[form / 2] == truth(one));
            if findings.is_exact(one) {
                self.exact += 1;
                let component = findings.find_component(one).unwrap();
                let own = PortMap::from_port_bits(
                    &(0..count)
                        .map(|class| if component.classes.contains(class) { truth(class) } else { 0 })
                        .collect::<Vec<u32>>(),
                );
                let found = &component.solutions.maps[0];
                let is_right = is_pure && own.list_own_groups(one).eq(found.list_own_groups(one));
                self.exact_wrong += usize::from(!is_right);
            }
            for other in 0..one {
                let classes = ClassSet::from_iter([one, other]);
                let (a, b) = (truth(one), truth(other));
                let (union, sum) = ((a | b).count_ones(), a.count_ones() + b.count_ones());
                self.pairs += 1;
                let can_be_told = (union as usize) < map.width || union == sum && sum as usize <= map.width;
                if !can_be_told {
                    continue;
                }
                self.open_pairs += 1;
                let bounds = findings.find_bounds(classes).unwrap();
                let told = bounds.standing != UnionStanding::Hidden;
                let says_free = matches!(bounds.standing, UnionStanding::Free | UnionStanding::NoPort);
                let is_right = told && says_free == (union == sum);
                self.right += usize::from(is_right);
                self.wrong += usize::from(told && !is_right);
            }
        }
    }
}

fn survey(map: &PlantedMap, assignment: Assignment, noise: f64, seed: u64) -> ClassFindings {
    // Two forms of each class.
    let forms: Vec<Vec<u32>> = map.classes.iter().flat_map(|set| [vec![*set], vec![*set]]).collect();
    let candidates: Vec<CandidateForm> =
        forms.iter().enumerate().map(|(form, uops)| CandidateForm { form, ports: uops[0].count_ones() }).collect();
    let mut core = PlantedCore::new(map.width, forms, assignment, noise, seed);
    survey_classes(&mut core, &candidates, map.width as f64).unwrap()
}

#[test]
fn maps_of_real_cores_are_found_under_the_best_assignment() {
    for map in list_real_maps() {
        let findings = survey(&map, Assignment::Best, 0.004, 1);
        let mut score = Score::default();
        score.add(&map, &findings);
        assert_eq!((score.exact_wrong, score.wrong, score.bounds_wrong), (0, 0, 0), "{}: {score:?}", map.name);
        assert_eq!(score.exact, score.classes, "{}: {score:?}", map.name);
    }
}

/// Score of real and random maps under an assignment.
fn score_maps(maps: usize, assignment: Assignment, noise: f64) -> Score {
    let mut random = Random::new(7);
    let mut score = Score::default();
    let drawn: Vec<PlantedMap> = (0..maps).map(|_| draw_map(&mut random)).collect();
    for (index, map) in list_real_maps().into_iter().chain(drawn).enumerate() {
        let findings = survey(&map, assignment, noise, index as u64);
        score.add(&map, &findings);
    }
    score
}

/// A form of the planted core with this place and number of slots.
pub(crate) fn planted_form(place: usize, slots: usize, unit: char) -> SurveyedForm {
    let count = Quantity::new(Interval::with_margin(slots as f64, 0.01), Unit::Slots);
    let slots =
        DispatchSlots { count, verdict: SlotVerdict::Exact, whole: Some(slots), fillers: Vec::new(), why: None };
    SurveyedForm {
        name: format!("form {place}"),
        place: Ok(place),
        slots: Some(slots),
        unit,
        chains: Vec::new(),
        is_compound: false,
        reads_memory: false,
        is_reference: false,
        rthroughput: None,
    }
}

#[test]
fn forms_of_several_uops_are_written_as_in_tables() {
    // Four ALUs, one of which multiplies; four vector pipes; three load pipes.
    let [alu, multiply, add, other, shuffle, all, load] = [0xf, 0x2, 0x30, 0xc0, 0x60, 0xf0, 0x700];
    let classes = [alu, multiply, add, other, shuffle, all, load];
    let forms: Vec<Vec<u32>> = classes
        .iter()
        .map(|set| vec![*set])
        .chain([vec![alu, load], vec![multiply, alu], vec![shuffle, shuffle], vec![add, load]])
        .collect();
    let units = ['A', 'A', 'V', 'V', 'V', 'V', 'L', 'A', 'A', 'V', 'V'];
    let surveyed: Vec<SurveyedForm> =
        forms.iter().enumerate().map(|(place, uops)| planted_form(place, uops.len(), units[place])).collect();
    let names: Vec<String> = surveyed.iter().map(|form| form.name.clone()).collect();
    for assignment in [Assignment::Best, Assignment::LeastLoaded] {
        let mut core = PlantedCore::new(6, forms.clone(), assignment, 0.003, 5);
        let found = survey_forms(&mut core, &surveyed, 6.0).unwrap();
        let row = |form: usize| found.build_row(form, &surveyed[form], &names, RowStart::named(&names[form]));
        for (form, uops) in forms.iter().enumerate() {
            let row = row(form);
            let ports = row.ports.clone().unwrap_or_default();
            assert_eq!(row.verdict, PortsVerdict::Exact, "{assignment:?}, {}: {} {ports}", row.code, row.why);
            let shares = ports.split('+').map(|share| share.split_once('*').unwrap().0.parse::<usize>().unwrap());
            assert_eq!(shares.sum::<usize>(), uops.len(), "{ports}");
        }
        let ports = |form: usize| row(form).ports.unwrap();
        // The own names of both parts.
        let parts = |one: usize, other: usize| {
            let mut parts = [ports(one), ports(other)];
            parts.sort();
            parts.join("+")
        };
        let sorted = |form: usize| {
            let text = ports(form);
            let mut parts: Vec<&str> = text.split('+').collect();
            parts.sort_unstable();
            parts.join("+")
        };
        assert_eq!(sorted(7), parts(0, 6));
        assert_eq!(sorted(8), parts(0, 1));
        assert_eq!(sorted(9), ports(4).replace("1*", "2*"));
        assert_eq!(sorted(10), parts(2, 6));
    }
}

#[test]
fn an_answer_without_the_load_of_its_form_is_not_exact() {
    // Stores, arithmetic, loads; a form that loads and stores, and one that loads and adds.
    let forms = [vec![0b0011], vec![0b1100], vec![0b11_0000], vec![0b11_0000, 0b0011], vec![0b11_0000, 0b1100]];
    let units = ['S', 'A', 'L', 'S', 'L'];
    let verdicts = |known: usize| {
        let places: Vec<usize> = (0..known).chain(3..5).collect();
        let forms: Vec<Vec<u32>> = places.iter().map(|place| forms[*place].clone()).collect();
        let form = |(place, kind): (usize, &usize)| SurveyedForm {
            reads_memory: *kind > 1,
            is_compound: *kind == 4,
            ..planted_form(place, forms[place].len(), units[*kind])
        };
        let surveyed: Vec<SurveyedForm> = places.iter().enumerate().map(form).collect();
        let names: Vec<String> = surveyed.iter().map(|form| form.name.clone()).collect();
        let mut core = PlantedCore::new(6, forms.clone(), Assignment::Best, 0.003, 9);
        let found = survey_forms(&mut core, &surveyed, 6.0).unwrap();
        let row = |form: usize| found.build_row(form, &surveyed[form], &names, RowStart::named(&names[form]));
        [known, known + 1].map(|form| (row(form).verdict, row(form).why))
    };
    let all = verdicts(3);
    assert!(all.iter().all(|(verdict, _)| *verdict == PortsVerdict::Exact), "{all:?}");
    // No class shows the ports of loads.
    let without_loads = verdicts(2);
    let is_open = |(verdict, why): &(PortsVerdict, String)| *verdict == PortsVerdict::Several && why.ends_with("loads");
    assert!(without_loads.iter().all(is_open), "{without_loads:?}");
}

#[test]
fn rows_list_the_mixes_that_decided_them() {
    // Two of three ports, the other two, one apart; two µops; and a second form of the first class.
    let forms = vec![vec![0b011], vec![0b110], vec![0b1000], vec![0b011, 0b1000], vec![0b011]];
    let surveyed: Vec<SurveyedForm> =
        forms.iter().enumerate().map(|(place, uops)| planted_form(place, uops.len(), 'A')).collect();
    let name = |form: &SurveyedForm| FormNames {
        code: form.name.to_uppercase(),
        full: form.name.clone(),
        text: form.name.clone(),
    };
    let names: Vec<FormNames> = surveyed.iter().map(name).collect();
    let mut core = PlantedCore::new(6, forms, Assignment::Best, 0.003, 7);
    let found = survey_forms(&mut core, &surveyed, 6.0).unwrap();
    let mixes = |form: usize| found.list_row_mixes(form, form, &names);
    let beside = |form: usize, other: usize| {
        let is_pair =
            |mix: &DecidingMix| mix.parts.len() == 2 && mix.parts.iter().any(|part| part.form == names[other].text);
        mixes(form).into_iter().filter(is_pair).collect::<Vec<DecidingMix>>()
    };
    let evidence = |mixes: &[DecidingMix]| mixes.iter().map(|mix| mix.evidence).collect::<Vec<_>>();
    let shared = beside(0, 1);
    assert_eq!(evidence(&shared), [MixEvidence::Proves, MixEvidence::Suggests], "{shared:?}");
    assert!(shared[0].shows.contains("at least 3") && shared[1].shows.contains("at most 3"), "{shared:?}");
    assert!(shared[1].cycles.low.unwrap() > shared[1].alone.max(shared[1].slots), "{shared:?}");
    assert!(shared[1].repro.starts_with("cyclescope run --mix '") && shared[1].repro.contains(" --ratio "));
    let free = beside(0, 2);
    assert_eq!(evidence(&free), [MixEvidence::Proves], "{free:?}");
    // A member is compared with the first form of its class.
    assert!(mixes(4).iter().any(|mix| mix.parts.iter().any(|part| part.form == names[4].text)));
    // Other forms have their mixes beside classes, and the time that the answer allows.
    let fitted = mixes(3);
    assert!(fitted.iter().any(|mix| mix.evidence == MixEvidence::Suggests && mix.shows.contains(" allows ")));
    // The last line names the mix that decided each pair.
    let classes = ClassesRecord::new(&found, &names, 6.0);
    let pairs = classes.classes.len() * (classes.classes.len() - 1) / 2;
    assert_eq!(classes.shares.len() + classes.free.len(), pairs);
    assert!(classes.shares.iter().chain(&classes.free).all(|share| share.mix.is_some()), "{classes:?}");
}

/// Scores maps under each assignment with little and with much noise.
fn require_scores(maps: usize, noises: &[f64]) {
    for assignment in Assignment::ALL {
        for noise in noises.iter().copied() {
            let score = score_maps(maps, assignment, noise);
            let text = format!("{assignment:?}, noise {noise}: {score:?}");
            assert!(score.exact_wrong as f64 <= 0.002 * score.exact as f64, "{text}");
            assert!(score.right as f64 >= 0.97 * score.open_pairs as f64, "{text}");
            assert!(score.bounds_wrong as f64 <= 0.01 * score.pairs as f64, "{text}");
            // A core that spreads µops evenly shows only which classes have a port in common.
            let least = if assignment == Assignment::Even { 0.0 } else { 0.6 };
            assert!(score.exact as f64 >= least * score.classes as f64, "{text}");
            println!("{text}");
        }
    }
}

#[test]
fn exact_verdicts_hold_under_every_assignment() {
    require_scores(1, &[0.01]);
}

#[test]
#[ignore = "takes minutes"]
fn exact_verdicts_hold_on_many_maps() {
    require_scores(200, &[0.003, 0.015]);
}

/// The ports of forms of several µops on cores that assign badly: what is exact is right.
#[test]
fn forms_of_several_uops_are_right_on_cores_that_assign_badly() {
    let maps = list_real_maps();
    let map = maps.iter().find(|map| map.name == "golden cove").unwrap();
    // Multiplication, addition, shift and shuffle, each with a load.
    let several = [2, 0, 3, 7].map(|class| vec![map.classes[class], map.classes[6]]);
    for assignment in Assignment::ALL {
        let forms: Vec<Vec<u32>> = map.classes.iter().map(|set| vec![*set]).chain(several.clone()).collect();
        let surveyed: Vec<SurveyedForm> =
            forms.iter().enumerate().map(|(place, uops)| planted_form(place, uops.len(), 'A')).collect();
        let mut core = PlantedCore::new(map.width, forms.clone(), assignment, 0.004, 1);
        let found = survey_forms(&mut core, &surveyed, map.width as f64).unwrap();
        let findings = &found.findings;
        let ports = |place: usize| {
            let class = findings.classes.iter().position(|class| class.members.contains(&place))?;
            Some(found.labels.list_ports(class))
        };
        let mut exact = 0;
        for (place, uops) in forms.iter().enumerate().skip(map.classes.len()) {
            let Some(fit) = &found.fits[place] else { continue };
            let [solution] = &fit.solutions[..] else { continue };
            let class_of = |set: u32| map.classes.iter().position(|class| *class == set).unwrap();
            let mut truth: Vec<_> = uops.iter().filter_map(|set| ports(class_of(*set))).collect();
            let mut told = solution.clone();
            truth.sort_unstable();
            told.sort_unstable();
            assert_eq!(told, truth, "{assignment:?}: {uops:x?}, {fit:?}");
            exact += 1;
        }
        // An even spread leaves the ports of classes open.
        assert!(assignment == Assignment::Even || exact >= 3, "{assignment:?}: {exact}");
    }
}
