//! Costs in a loop and without one, on simulated machines whose decoders deliver less than the core
//! executes.

use cyclescope_code::snippet::Snippet;
use cyclescope_core::error::RunError;
use cyclescope_core::machine::Machine;
use cyclescope_exec::Executor;
use cyclescope_measure::result::answers::MachineAnswers;
use cyclescope_measure::result::caveat::CaveatKind;
use cyclescope_measure::result::record::{Quantity, RunRecord};
use cyclescope_measure::study::{ResultRecord, Study};
use cyclescope_measure::{LengthenBy, Plan, Precision, measure_cost};
use cyclescope_run::study::{RunStudy, RunSubject};
use cyclescope_sim::{AlteredMachine, Scenario, SimulatedExecutor, SimulatedFault, SimulatedLayoutEffects};

const PRECISION: Precision = Precision { cycles: 0.01, share: 0.02, cap: None };

/// Thirty zeroing idioms on a core that renames six a cycle and decodes four (Zen 4).
const RENAMED: f64 = 5.0;
const DECODED: f64 = 7.5;

fn decoding() -> Scenario {
    let layout = SimulatedLayoutEffects { relative: 0.002, ..SimulatedLayoutEffects::default() };
    Scenario { cost: RENAMED, decoding: DECODED - RENAMED, layout, jitter: 2.0, ..Scenario::default() }
}

fn plan(lengthen: LengthenBy) -> Plan {
    Plan { lengthen, layouts: 16, layouts_most: 16, precision: PRECISION, ..Plan::simulated() }
}

fn snippet(text: &str) -> Snippet {
    Snippet::parse(text).unwrap()
}

fn zeroing() -> Snippet {
    snippet(&["vpxor xmm1, xmm1, xmm1"; 30].join("; "))
}

/// The record of `run` for a snippet.
fn run(scenario: Scenario, plan: Plan, code: &Snippet) -> RunRecord {
    let machine = Machine::detect();
    let open = Box::new(move || Ok(Box::new(SimulatedExecutor::new(scenario.clone(), 7)) as Box<dyn Executor>));
    let study = RunStudy::new(&RunSubject::from(code.clone()), plan, PRECISION, &machine, String::new(), open);
    let mut study = study.with_both_figures(true);
    study.measure(&MachineAnswers::live(), &mut Vec::<ResultRecord>::new()).unwrap();
    study.record.unwrap()
}

fn codes(record: &RunRecord) -> Vec<CaveatKind> {
    record.caveats.iter().map(|caveat| caveat.code).collect()
}

fn assert_near(quantity: Option<Quantity>, expected: f64) {
    let quantity = quantity.unwrap();
    let [value, low, high] = [quantity.value, quantity.low, quantity.high].map(Option::unwrap);
    assert!((value - expected).abs() < 0.005 * expected, "{quantity:?}, expected {expected}");
    assert!(low <= expected + 0.02 && expected - 0.02 <= high, "{quantity:?}, expected {expected}");
}

#[test]
fn a_loop_shows_what_a_block_costs_beyond_the_decoders() {
    let record = run(decoding(), plan(LengthenBy::LoopedCopies), &zeroing());
    assert_eq!(record.looped, Some(record.cost));
    assert_near(record.unrolled, DECODED);
    assert!(record.loop_count.is_some() && !codes(&record).contains(&CaveatKind::FrontEnd));
}

#[test]
fn raw_readings_say_how_often_the_loop_runs_the_copies() {
    let counted = |lengthen| {
        let machine = Machine::detect();
        let open = Box::new(|| Ok(Box::new(SimulatedExecutor::new(decoding(), 7)) as Box<dyn Executor>));
        let code = RunSubject::from(zeroing());
        let study = RunStudy::new(&code, plan(lengthen), PRECISION, &machine, String::new(), open);
        let mut study = study.with_raw_readings(true);
        study.measure(&MachineAnswers::live(), &mut Vec::<ResultRecord>::new()).unwrap();
        let record = study.record.unwrap();
        (record.loop_count, record.counts.unwrap().loop_count)
    };
    let (of_record, of_readings) = counted(LengthenBy::LoopedCopies);
    assert!(of_record > Some(1) && of_readings == of_record, "{of_record:?} and {of_readings:?}");
    assert_eq!(counted(LengthenBy::Copies), (None, None));
}

#[test]
fn the_first_iteration_is_a_small_part_of_the_cost() {
    let exact = Scenario { layout: SimulatedLayoutEffects::default(), jitter: 0.0, ..decoding() };
    let cost = run(exact, plan(LengthenBy::LoopedCopies), &zeroing()).cost.value.unwrap();
    // Of 400 iterations the first one costs half as much again.
    assert!((cost / RENAMED - 1.0).abs() < 0.0018, "{cost}");
}

#[test]
fn copies_that_the_decoders_limit_have_a_caveat() {
    let record = run(decoding(), plan(LengthenBy::Copies), &zeroing());
    assert_near(Some(record.cost), DECODED);
    assert_near(record.looped, RENAMED);
    assert!(codes(&record).contains(&CaveatKind::FrontEnd));
    let even = Scenario { decoding: 0.0, ..decoding() };
    let record = run(even, plan(LengthenBy::Copies), &zeroing());
    assert!(!codes(&record).contains(&CaveatKind::FrontEnd));
}

#[test]
fn a_snippet_without_a_loop_says_why_and_whether_decoders_may_limit_it() {
    let carried = |more: &str| snippet(&format!("cmovz rax, rbx; test rcx, rdx{more}"));
    let costly = run(decoding(), plan(LengthenBy::LoopedCopies), &carried(""));
    assert!(costly.loop_obstacle.is_some() && costly.looped.is_none() && costly.loop_count.is_none());
    assert!(!codes(&costly).contains(&CaveatKind::FrontEnd), "two instructions in 7.5 cycles");
    let dense = run(decoding(), plan(LengthenBy::LoopedCopies), &carried(&"; xor r8d, r8d".repeat(30)));
    assert!(codes(&dense).contains(&CaveatKind::FrontEnd));
}

#[test]
fn a_given_loop_that_a_snippet_cannot_have_is_an_error() {
    let fixed = Plan { loop_count: Some(10), ..plan(LengthenBy::LoopedCopies) };
    let mut executor = SimulatedExecutor::new(decoding(), 7);
    let carried = snippet("cmovz rax, rbx; test rcx, rdx");
    let error = measure_cost(&mut executor, &carried, &fixed).unwrap_err();
    assert!(matches!(error, RunError::Unavailable(_)), "{error}");
    assert!(measure_cost(&mut executor, &zeroing(), &fixed).is_ok());
}

#[test]
fn what_the_branch_of_a_loop_hides_is_no_cost() {
    // An iteration takes a cycle, and four NOPs take half of one.
    let hiding = |cost: f64| Scenario { cost, loop_floor: 1.0, ..Scenario::default() };
    let looped = |unit: usize| Plan { unit: Some(unit), loop_count: Some(1000), ..plan(LengthenBy::LoopedCopies) };
    let hidden = run(hiding(0.125), looped(1), &snippet("nop"));
    assert!(hidden.cost.value.is_none() && codes(&hidden).contains(&CaveatKind::UpperBound) && hidden.falls_short());
    let bound = hidden.caveats.iter().find(|caveat| caveat.code == CaveatKind::UpperBound).unwrap();
    assert!(bound.text.contains("at most 0.2"), "{}", bound.text);
    let long = run(hiding(0.125), looped(100), &snippet("nop"));
    assert_near(Some(long.cost), 0.125);
    let costly = run(hiding(3.0), looped(1), &snippet("imul rax, rax"));
    assert_near(Some(costly.cost), 3.0);
}

#[test]
fn a_snippet_that_fails_only_in_a_loop_is_measured_without_one() {
    let error = RunError::DirtyCanary { fence: "data" };
    let fault = SimulatedFault { after: 0, beyond_repeats: 2000.0, error };
    let failing = Scenario { fault: Some(fault), ..decoding() };
    let record = run(failing, plan(LengthenBy::LoopedCopies), &zeroing());
    assert_near(Some(record.cost), DECODED);
    assert!(record.loop_obstacle.is_some_and(|text| text.contains("fails")));
}

#[test]
fn an_address_that_moves_has_no_loop_unless_its_iterations_are_given() {
    let moving = snippet("mov rax, [rdi]; add rdi, 8");
    let record = run(decoding(), plan(LengthenBy::LoopedCopies), &moving);
    assert_near(Some(record.cost), DECODED);
    assert!(record.loop_obstacle.is_some_and(|text| text.contains("RDI")) && record.loop_count.is_none());
    let fixed = Plan { loop_count: Some(1000), ..plan(LengthenBy::LoopedCopies) };
    assert_near(Some(run(decoding(), fixed, &moving).cost), RENAMED);
}

#[test]
fn the_layouts_of_a_measurement_cover_a_cache_line_evenly() {
    // Where the first body of each layout begins in its cache line.
    let mut alignments = Vec::new();
    let mut watch = AlteredMachine::new(SimulatedExecutor::new(decoding(), 7), |machine, batch, take| {
        for layout in &batch.layouts {
            let last = layout.code.last().expect("a layout has programs");
            let body = batch.programs[last.program].body_range().start;
            alignments.push((last.offset as usize + body) % 64);
        }
        machine.stream(batch, take)
    });
    let plan = Plan { layouts: 64, layouts_most: 64, ..plan(LengthenBy::LoopedCopies) };
    measure_cost(&mut watch, &zeroing(), &plan).unwrap();
    // The pilots come first.
    let mut last = alignments.split_off(alignments.len() - 64);
    last.sort_unstable();
    assert_eq!(last, (0..64).collect::<Vec<usize>>());
}

#[test]
fn the_pilot_knows_a_short_cost_despite_a_coarse_clock() {
    let coarse = Scenario { cost: 1.0, step: 40, ..Scenario::default() };
    let plan = Plan { step: 40.0, ..plan(LengthenBy::LoopedCopies) };
    let found = measure_cost(&mut SimulatedExecutor::new(coarse, 7), &snippet("bswap rax"), &plan).unwrap();
    let iteration = found.acquisition.units[0];
    assert!((45..90).contains(&iteration), "the shortest iteration takes {iteration} cycles, not about 64");
}

#[test]
fn a_copy_of_many_cycles_needs_no_loop() {
    let slow = Scenario { cost: 3e5, ..Scenario::default() };
    let record = run(slow, plan(LengthenBy::LoopedCopies), &snippet("bswap rax"));
    assert_near(Some(record.cost), 3e5);
    assert!(record.loop_obstacle.is_some_and(|text| text.contains("long")));
}

#[test]
fn bodies_outgrow_what_the_branch_of_a_chosen_loop_hides() {
    // An iteration takes eight cycles at least.
    let scenario = Scenario { cost: 0.5, loop_floor: 8.0, ..Scenario::default() };
    let record = run(scenario, plan(LengthenBy::LoopedCopies), &snippet("jmp 1f; 1:"));
    assert_near(Some(record.cost), 0.5);
}
