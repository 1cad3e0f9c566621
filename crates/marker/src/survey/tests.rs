//! Surveys of a simulated machine whose markers have known costs.

use super::*;
use crate::bench::MarkerCase;
use crate::simulated_bench::{IMUL_LATENCY, SimulatedBench, stair_costs};
use crate::state::list_states;
use crate::visit_ledger::case_aim;
use cyclescope_core::statistics::{CoverageVerdict, judge_coverage, trials_needed};
use cyclescope_measure::study::ResultRecord;
use cyclescope_sim::Scenario;
use std::ops::ControlFlow;

fn plan(seed: u64) -> VisitPlan {
    VisitPlan { each: 32..=256, budget: Duration::from_secs(600), ..VisitPlan::new(IMUL_LATENCY, seed) }
}

#[test]
fn costs_and_steps_match_every_simulated_machine() {
    for (habit, core) in Scenario::machine_variants() {
        // The readings behind an interval grow with the square of the step in core cycles.
        let coarse = core.step as f64 * core.ratio / 40.0;
        let most = 256.0 * coarse.powi(2).max(1.0);
        let imul_latency = f64::from(core.imul_latency);
        let plan = VisitPlan { each: 32..=most as usize, imul_latency, ..plan(3) };
        let mut bench = SimulatedBench { core, interrupts: 0.005, ..SimulatedBench::new(stair_costs) };
        let findings = survey_cases(&mut bench, &plan, &mut Vec::<ResultRecord>::new()).unwrap();
        for finding in &findings {
            let MarkerCase { state, .. } = &finding.case;
            let describe = |what: String| format!("{habit}, {}: {what}", state.name);
            let [base, _] = stair_costs(&finding.case, 0);
            assert!((finding.add_link - 1.0).abs() < 0.01, "{}", describe(format!("{}", finding.add_link)));
            for (placement, found) in finding.placements.iter().enumerate() {
                let found = found.as_ref().unwrap();
                let [_, site] = stair_costs(&finding.case, placement);
                let off = found.cost.value - (site - base);
                // Of more than a thousand intervals, some miss the true value, but none by much.
                assert!(off.abs() <= 3.0 * found.cost.half_width(), "{}", describe(format!("{placement}: {off}")));
                let aim = case_aim(&finding.case, &found.cost);
                assert!(found.cost.half_width() <= aim, "{}", describe(format!("{placement}: {found:?}")));
            }
            let [_, site] = stair_costs(&finding.case, 0);
            let cost = finding.cost.unwrap();
            assert!((cost.value - (site - base)).abs() < 0.1, "{}", describe(format!("{cost:?}")));
            let names: Vec<&str> = list_states(finding.case.design).iter().map(|state| state.name).collect();
            let index = |name: &str| names.iter().position(|other| *other == name).unwrap() as f64;
            let over = state.over.map_or(0.0, index);
            let price = finding.step.unwrap();
            assert!((price.value - (index(state.name) - over)).abs() < 0.1, "{}", describe(format!("{price:?}")));
        }
    }
}

#[test]
fn intervals_of_placements_contain_the_cost_at_their_confidence() {
    // A fixed number of visits, or as many as necessary. Most placements then need a number between
    // the limits.
    for (each, spread) in [(64..=64, 0.3), (32..=1024, 0.5)] {
        for confidence in [0.5, 0.8, 0.95, 0.99] {
            let luck: fn(&mut Random) -> f64 = match spread {
                0.3 => |random| 2.0 + 0.3 * random.normal(),
                _ => |random| 2.0 + 0.5 * random.normal(),
            };
            let mut bench = SimulatedBench { luck, interrupts: 0.01, ..SimulatedBench::new(stair_costs) };
            let (mut held, mut all) = (0, 0);
            for seed in 0.. {
                let plan = VisitPlan { each: each.clone(), confidence, ..plan(seed) };
                for finding in survey_cases(&mut bench, &plan, &mut Vec::<ResultRecord>::new()).unwrap() {
                    for (placement, found) in finding.placements.iter().enumerate() {
                        let [base, site] = stair_costs(&finding.case, placement);
                        held += usize::from(found.as_ref().unwrap().cost.contains(site + 2.0 - base));
                        all += 1;
                    }
                }
                if all >= trials_needed(confidence) {
                    break;
                }
            }
            let judged = judge_coverage(confidence, held, all);
            assert_eq!(judged, CoverageVerdict::Right, "{held} of {all} for {confidence}, {each:?}");
        }
    }
}

#[test]
fn the_largest_mode_counts_and_the_others_are_reported() {
    let luck = |random: &mut Random| {
        let missed = if random.happens(0.25) { 14.0 } else { 0.0 };
        missed + 0.05 * random.normal()
    };
    let mut bench = SimulatedBench { luck, ..SimulatedBench::new(stair_costs) };
    let findings = survey_cases(&mut bench, &plan(5), &mut Vec::<ResultRecord>::new()).unwrap();
    let (mut moded, mut all) = (0, 0);
    for finding in &findings {
        for (placement, found) in finding.placements.iter().enumerate() {
            let found = found.as_ref().unwrap();
            let [base, site] = stair_costs(&finding.case, placement);
            assert!((found.cost.value - (site - base)).abs() < 0.2, "{found:?}");
            if let [small, large] = &found.modes[..] {
                assert!(small.share > 0.5 && large.cost.value > 13.0, "{found:?}");
                moded += 1;
            }
            all += 1;
        }
    }
    // Of 32 visits, at most two are in the smaller mode once in two hundred placements.
    assert!(moded > all * 9 / 10, "{moded} of {all}");
}

#[test]
fn hopeless_placements_get_only_the_fewest_visits() {
    // The target half width would take several thousand visits.
    let luck = |random: &mut Random| 6.0 * random.uniform();
    let mut bench = SimulatedBench { luck, ..SimulatedBench::new(stair_costs) };
    let findings = survey_cases(&mut bench, &plan(5), &mut Vec::<ResultRecord>::new()).unwrap();
    for found in findings[0].placements.iter().flatten() {
        assert_eq!(found.visits, 32, "{found:?}");
        assert!(found.cost.half_width() > 0.3, "{found:?}");
    }
}

#[test]
fn a_budget_ends_passes_but_every_placement_is_visited() {
    let luck = |random: &mut Random| 1.4 * random.uniform();
    let mut bench = SimulatedBench { luck, ..SimulatedBench::new(stair_costs) };
    let plan = VisitPlan { budget: Duration::ZERO, ..plan(5) };
    struct Last(Option<StudyProgress>);
    impl StudyFollower for Last {
        fn accept_record(&mut self, _: ResultRecord) -> ControlFlow<()> {
            unreachable!("a survey sends no records")
        }

        fn report_progress(&mut self, progress: StudyProgress) -> ControlFlow<()> {
            self.0 = Some(progress);
            ControlFlow::Continue(())
        }
    }
    let mut last = Last(None);
    let findings = survey_cases(&mut bench, &plan, &mut last).unwrap();
    assert!(last.0.is_some_and(|progress| progress.done == progress.total));
    assert!(findings.iter().all(|finding| finding.placements.iter().flatten().count() == 16));
    assert!(findings.iter().flat_map(|finding| finding.placements.iter().flatten()).all(|found| found.visits >= 32));
}

#[test]
fn calls_are_counted_in_every_state() {
    let counted = |broken: bool| {
        let findings =
            prove_calls(&mut SimulatedBench { broken, ..SimulatedBench::new(stair_costs) }, &plan(1)).unwrap();
        assert!(findings.iter().all(|finding| finding.cost.is_none() && finding.visits == 0));
        findings.iter().map(|finding| (finding.case.state.enabled, finding.hits)).collect::<Vec<_>>()
    };
    for (enabled, hits) in counted(false) {
        assert_eq!(hits, Some(if enabled { PROOF_LOOPS } else { 0 }));
    }
    assert!(counted(true).contains(&(false, Some(PROOF_LOOPS))));
}

#[test]
fn visits_with_a_busy_sibling_are_excluded() {
    fn reading(width: f64) -> VisitReading {
        let (add_link, width_error) = (1.0, 0.02);
        VisitReading { base: 1.0, site: 3.0, rate: 0.7, add_link, width, width_error, span: 300.0, step: 0.01 }
    }
    let mut bench = SimulatedBench::new(stair_costs);
    let plan = plan(1);
    let mut survey = CaseSurvey::new(&mut bench, &plan);
    for index in 0..20 {
        survey.ledger.note_visit(0, 0, Some(reading(if index < 5 { 2.0 } else { 4.0 })));
    }
    let findings = survey.ledger.into_findings(0.95);
    assert_eq!((findings[0].visits, findings[0].shared), (15, 5));
}
