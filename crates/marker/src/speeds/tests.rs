//! Loops with one and with several speeds, on a simulated machine.

use super::*;
use crate::record::MarkerRecord;
use crate::simulated_bench::{IMUL_LATENCY, SimulatedBench, stair_costs};
use crate::source::design;
use crate::state::list_states;
use crate::survey::VisitPlan;
use crate::tested_conclusions::test_conclusions;
use cyclescope_core::random::Random;
use cyclescope_measure::result::caveat::CaveatKind;

type Loops = fn(&MarkerCase, usize) -> [f64; 2];
use crate::bench::MarkerCase;

const SLOW: f64 = 150.5;
const FAST: f64 = 138.6;

/// The records of a quick survey of a machine with these loops. Its markers are `flag` in all
/// states, `immediate` and two controls.
fn surveyed(loops: Loops, seed: u64) -> Vec<MarkerRecord> {
    let mut bench = SimulatedBench { luck: |random: &mut Random| 0.3 * random.normal(), ..SimulatedBench::new(loops) };
    for name in ["immediate", "function-entry", "stores-4", "stores-8"] {
        let design = design::ALL.iter().find(|design| design.name == name).unwrap();
        for context in ["empty", "memcpy"] {
            bench.cases.push(MarkerCase { design, state: list_states(design)[0], context: context.to_string() });
        }
    }
    bench.random = Random::new(seed);
    bench.measure_all(&VisitPlan::quick(IMUL_LATENCY, seed))
}

fn find<'a>(records: &'a [MarkerRecord], design: &str, state: &str) -> &'a MarkerRecord {
    let matches = |record: &&MarkerRecord| {
        (record.design, record.state.as_str(), record.context.as_str()) == (design, state, "memcpy")
    };
    records.iter().find(matches).unwrap()
}

fn other_speed_text(record: &MarkerRecord) -> Option<&str> {
    let other = record.caveats.iter().find(|caveat| caveat.code == CaveatKind::OtherSpeed);
    other.map(|caveat| caveat.text.as_str())
}

/// Each state costs a cycle. In memcpy one enabled state and one control switch the loop to its
/// other speed.
fn flipped(case: &MarkerCase, _: usize) -> [f64; 2] {
    if case.context == "empty" {
        return [1.0, 3.0];
    }
    match (case.design.name, case.state.name) {
        ("flag", "varargs") => [SLOW, FAST + 1.0],
        ("stores-8", _) => [SLOW, FAST],
        ("flag", "dormant") | ("immediate" | "function-entry", _) => [SLOW, SLOW],
        _ => [SLOW, SLOW + 2.0],
    }
}

#[test]
fn a_marker_that_changes_the_loops_speed_reports_both_speeds() {
    let all = surveyed(flipped, 3);
    for record in &all {
        let flips = record.context == "memcpy" && ["varargs", "control"].contains(&record.state.as_str());
        let expected = flips && record.design != "stores-4";
        assert_eq!(record.other_speed.is_some(), expected, "{} {}", record.design, record.state);
    }
    let varargs = find(&all, "flag", "varargs");
    let other = varargs.other_speed.as_ref().unwrap();
    assert!((other.without - SLOW).abs() < 0.2 && (other.with - FAST - 1.0).abs() < 0.2, "{other:?}");
    assert_eq!((other.placements, other.certain, other.controls.as_slice()), (16, true, &["stores-8"][..]));
    let text = other_speed_text(varargs).unwrap();
    assert!(text.contains("139.") && text.contains("150.") && text.contains("stores-8"), "{text}");
    // No step is derived from it, or from the state above it.
    let format = find(&all, "flag", "format");
    assert_eq!((varargs.step.cost.value, format.step.cost.value), (None, None));
    assert!(format.other_speed.is_none() && other_speed_text(format).unwrap().contains("varargs"));
    // The conclusions concern other markers.
    let memcpy = test_conclusions(&all).into_iter().find(|one| one.name == "generic-slower-in-memcpy").unwrap();
    assert_eq!((memcpy.other_speeds.len(), memcpy.difference.value.is_some()), (0, true));
}

#[test]
fn a_loop_with_a_changed_speed_decides_no_conclusion() {
    let loops: Loops = |case, placement| match (case.context.as_str(), case.design.name, case.state.name) {
        ("memcpy", "immediate", _) => [SLOW, FAST],
        _ => flipped(case, placement),
    };
    for conclusion in test_conclusions(&surveyed(loops, 4)) {
        if conclusion.name == "generic-slower-in-memcpy" {
            // The figures alone would clearly confirm it.
            assert!(conclusion.difference.low > conclusion.margin, "{conclusion:?}");
            assert_eq!(
                (conclusion.holds, conclusion.other_speeds.as_slice()),
                (None, &["immediate/dormant in memcpy".to_string()][..])
            );
        }
    }
}

/// At half of the placements the loop alone is slow, and with a marker it is slow at all of them.
#[test]
fn a_cost_that_reaches_another_speed_is_uncertain() {
    let loops: Loops = |case, placement| match case.context.as_str() {
        "empty" => [1.0, 1.0],
        _ if placement % 2 == 0 => [SLOW, SLOW],
        _ => [FAST, if case.state.name == "empty" { SLOW } else { FAST }],
    };
    let all = surveyed(loops, 5);
    for record in &all {
        let expected = record.context == "memcpy" && record.state == "empty";
        assert_eq!(record.other_speed.is_some(), expected, "{} {}", record.design, record.state);
    }
    let other = find(&all, "flag", "empty").other_speed.clone().unwrap();
    assert_eq!((other.certain, other.placements), (false, 8));
}

/// If a design has another base loop, that loop's time is not a speed of this loop.
#[test]
fn a_different_loop_is_not_another_speed() {
    let loops: Loops = |case, _| match (case.design.name, case.state.name) {
        ("function-entry", _) => [4.0, 4.0],
        (_, "dormant") => [1.0, 1.0],
        _ => [1.0, 4.0],
    };
    assert!(surveyed(loops, 6).iter().all(|record| record.other_speed.is_none()));
}

#[test]
fn a_loop_with_one_speed_has_no_other_speed() {
    for seed in 0..6 {
        for loops in
            [stair_costs as Loops, |_, _| [SLOW, SLOW], |_, placement| [SLOW + placement as f64 / 16.0, SLOW + 1.0]]
        {
            for record in surveyed(loops, seed) {
                assert_eq!(record.other_speed, None, "{} {} {seed}", record.design, record.state);
                assert_eq!(other_speed_text(&record), None);
                assert!(record.step.cost.value.is_some());
            }
        }
    }
}

#[test]
fn chance_reaches_the_limit_in_one_row_of_ten_thousand() {
    // Binomial distributions of 16 trials at 0.025: P(X >= 4) = 5.3e-4, P(X >= 5) = 3.2e-5.
    assert_eq!((least_placements(16, 0.025), least_placements(1, 0.025), least_placements(0, 0.025)), (5, 2, 1));
}
