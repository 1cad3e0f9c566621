//! Surveys of planted cores with resources that are no ports, and with a busy sibling.
//!
//! Time can't tell such a resource from a port. So the tests don't compare ports with the planted ones:
//! they require that pairs of `exact` forms take as long as their ports say.

use crate::classes_record::ClassesRecord;
use crate::forms_survey::{SurveyedForm, survey_forms};
use crate::mix_ports::MixedForm;
use crate::planted_core::{Assignment, PlantedCore, PlantedResource};
use crate::ports_comparison::PortsTable;
use crate::ports_row::{PortsRow, PortsVerdict, RowStart};
use crate::survey_tests::planted_form;
use cyclescope_measure::result::mix_record::MixPartRecord;
use cyclescope_measure::result::record::Quantity;

const WIDTH: usize = 6;
/// Ports of classes: four ALUs of which one multiplies, two shift and two others compare; two adders and
/// two multipliers of vectors, a shuffle on one of each, and loads.
const CLASSES: [u32; 9] = [0xf, 0x2, 0x6, 0x9, 0x30, 0xc0, 0x60, 0x10, 0x700];
/// What the forms of each class, and those of several µops, are for.
const UNITS: [char; 11] = ['A', 'A', 'A', 'A', 'V', 'V', 'V', 'V', 'L', 'A', 'V'];
/// A pair is wrong if its ports explain its time worse than this, as a share.
const WRONG_SHARE: f64 = 0.1;

/// What is said about a core.
#[derive(Debug, Default)]
struct PairScore {
    forms: usize,
    exact: usize,
    wrong: Vec<String>,
}

/// A core of two forms of each class, and some of several µops.
fn plant_core(assignment: Assignment, noise: f64) -> PlantedCore {
    let several = [vec![0xf, 0x700], vec![0x2, 0xf], vec![0x60, 0x60], vec![0x30, 0x700]];
    let forms = CLASSES.iter().flat_map(|set| [vec![*set], vec![*set]]).chain(several).collect();
    PlantedCore::new(WIDTH, forms, assignment, noise, 3)
}

/// A resource of which each form of these classes needs one, and so many are there in a core cycle.
fn plant_resource(core: &PlantedCore, classes: &[usize], needs: f64, per_cycle: f64) -> PlantedResource {
    let need = |form: usize| if form < 2 * CLASSES.len() && classes.contains(&(form / 2)) { needs } else { 0.0 };
    PlantedResource { needs: (0..core.forms.len()).map(need).collect(), per_cycle }
}

/// The rows of a core's forms, and their names.
fn survey_rows(core: &mut PlantedCore) -> (Vec<PortsRow>, Vec<String>) {
    let slots = |form: &Vec<u32>| form.len();
    let surveyed: Vec<SurveyedForm> =
        core.forms.iter().enumerate().map(|(place, form)| planted_form(place, slots(form), UNITS[place / 2])).collect();
    let names: Vec<String> = surveyed.iter().map(|form| form.name.clone()).collect();
    let found = survey_forms(core, &surveyed, WIDTH as f64).unwrap();
    let row = |form: usize| {
        let start = RowStart { slots: surveyed[form].slots.clone(), ..RowStart::named(&names[form]) };
        found.build_row(form, &surveyed[form], &names, start)
    };
    ((0..surveyed.len()).map(row).collect(), names)
}

/// Surveys a core, and judges the pairs of exact forms by times without noise under the best assignment.
fn score_pairs(mut core: PlantedCore) -> PairScore {
    let (rows, names) = survey_rows(&mut core);
    let exact: Vec<usize> = (0..rows.len()).filter(|form| rows[*form].verdict == PortsVerdict::Exact).collect();
    let table =
        PortsTable::from_records(rows.clone(), ClassesRecord { width: WIDTH as f64, ..ClassesRecord::default() });
    core.assignment = Assignment::Best;
    let mut score = PairScore { forms: rows.len(), exact: exact.len(), ..PairScore::default() };
    for (at, one) in exact.iter().enumerate() {
        for other in &exact[..at] {
            let count = |form: usize| (4.0 / core.run_mix(&[form; 12]) * 12.0).round().max(1.0) as usize;
            let counts = [(*one, count(*one)), (*other, count(*other))];
            let places: Vec<usize> = counts.iter().flat_map(|(form, count)| vec![*form; *count]).collect();
            let truth = core.run_mix(&places);
            let part = |(form, count): (usize, usize)| MixPartRecord {
                code: names[form].clone(),
                form: names[form].clone(),
                count,
            };
            let parts = counts.map(part);
            let forms: Vec<MixedForm> = parts.iter().map(|part| MixedForm { part, operands: "" }).collect();
            let told = table.limit_mix(&forms).ports.cycles.expect("both have ports");
            if (told / truth - 1.0).abs() > WRONG_SHARE {
                let ports = |form: usize| rows[form].ports.clone().unwrap_or_default();
                score.wrong.push(format!(
                    "{} ({:x?}, {}) and {} ({:x?}, {}): {told:.2}, not {truth:.2}",
                    names[*one],
                    core.forms[*one],
                    ports(*one),
                    names[*other],
                    core.forms[*other],
                    ports(*other)
                ));
            }
        }
    }
    score
}

/// Requires that no pair is wrong, and that so many forms are exact.
fn require_right(name: &str, core: PlantedCore, exact_least: usize) {
    let assignment = core.assignment;
    let score = score_pairs(core);
    assert!(score.wrong.is_empty(), "{assignment:?}, {name}: {:#?}", score.wrong);
    assert!(score.exact >= exact_least, "{assignment:?}, {name}: {} of {} exact", score.exact, score.forms);
}

const STEERED: [Assignment; 3] = [Assignment::Best, Assignment::LeastLoaded, Assignment::BySlot];

#[test]
fn resources_that_are_no_ports_make_no_exact_verdict_wrong() {
    // Needs of a copy, and how much there is in a core cycle.
    let cases: [(&str, &[usize], f64, f64, usize); 6] = [
        ("none", &[], 1.0, 1.0, 22),
        ("write port of multiplier and shuffle", &[1, 6], 1.0, 2.0, 12),
        ("write port of adders and multipliers", &[4, 5], 1.0, 3.0, 12),
        ("write port of shifts and compares", &[2, 3], 1.0, 3.0, 12),
        ("reads of vectors", &[4, 5, 6, 7], 2.0, 6.0, 12),
        ("divider of the multiplier", &[1], 4.0, 1.0, 12),
    ];
    for assignment in STEERED {
        for (name, classes, needs, per_cycle, exact) in cases {
            let mut core = plant_core(assignment, 0.004);
            core.resources = vec![plant_resource(&core, classes, needs, per_cycle)];
            require_right(name, core, exact);
        }
    }
}

/// Additions of bytes on Zen 3: they run on all four ALUs, but no more than three a cycle.
#[test]
fn a_form_whose_rate_is_not_that_of_its_ports_leaves_the_others_theirs() {
    for assignment in STEERED {
        let mut core = plant_core(assignment, 0.004);
        let several = core.forms.len() - UNITS.len() + CLASSES.len();
        // In place of a form of several µops.
        core.forms[several] = vec![CLASSES[0]];
        let mut resource = plant_resource(&core, &[], 1.0, 3.0);
        resource.needs[several] = 1.0;
        core.resources = vec![resource];
        let (rows, _) = survey_rows(&mut core);
        let is_exact = |form: usize| rows[form].verdict == PortsVerdict::Exact;
        assert!(!is_exact(several), "{assignment:?}: {:?}", rows[several]);
        let exact = (0..2 * CLASSES.len()).filter(|form| is_exact(*form)).count();
        assert_eq!(exact, 2 * CLASSES.len(), "{assignment:?}");
    }
}

#[test]
fn busy_siblings_and_slow_modes_make_no_exact_verdict_wrong() {
    for assignment in Assignment::ALL {
        for share in [0.02, 0.1, 0.3] {
            let mut core = plant_core(assignment, 0.004);
            core.busy_sibling = (share, 1.5);
            require_right(&format!("sibling {share}"), core, 0);
            // An even spread of µops looks like slow modes of this size.
            if assignment == Assignment::Even && share > 0.05 {
                continue;
            }
            let mut core = plant_core(assignment, 0.004);
            core.slow_mode = (share, 1.3);
            require_right(&format!("slow mode {share}"), core, 0);
        }
    }
}

#[test]
fn port_cycles_have_the_planted_number_of_uops_in_their_interval() {
    // The planted µops of a form on each of its sets, by the number of ports.
    let planted = |form: &[u32], ports: u32| -> f64 {
        let set = *form.iter().find(|set| set.count_ones() == ports).expect("it has such ports");
        form.iter().filter(|own| **own & !set == 0).count() as f64
    };
    let (mut intervals, mut missed) = (0, Vec::new());
    for assignment in STEERED {
        for noise in [0.003, 0.015] {
            let mut core = plant_core(assignment, noise);
            let (rows, _) = survey_rows(&mut core);
            for (form, row) in rows.iter().enumerate().skip(2 * CLASSES.len()) {
                for resource in row.resources.iter().filter(|_| row.verdict == PortsVerdict::Exact) {
                    let truth = planted(&core.forms[form], resource.ports);
                    let Quantity { low: Some(low), high: Some(high), .. } = resource.cycles else { continue };
                    intervals += 1;
                    // The next number of µops is outside.
                    if !(low..=high).contains(&truth) || (low..=high).contains(&(truth + 1.0)) {
                        missed.push(format!("{assignment:?}, {noise}: {resource:?} for {truth}"));
                    }
                }
            }
        }
    }
    assert!(intervals >= 24 && missed.is_empty(), "of {intervals}: {missed:#?}");
}
