//! Contaminations on a miniature core, where all five faults can be provoked.
//! `tests/contamination.rs` tests the same on this machine.

mod core;

use super::*;
use core::{Core, Habits};
use cyclescope_code::asm::{ALL_MODES, CodeMode};
use cyclescope_code::clock::{Clock, ClockStep};
use cyclescope_sim::{Scenario, SimulatedExecutor};

/// A side of a method and the index of one of its steps.
type Fence = (fn(&mut Clock) -> &mut &'static [ClockStep], usize);

fn start(clock: &mut Clock) -> &mut &'static [ClockStep] {
    &mut clock.start
}

fn end(clock: &mut Clock) -> &mut &'static [ClockStep] {
    &mut clock.end
}

/// The method without one of its fences, which is then missing from the emitted bytes.
fn without(name: &str, (side, step): Fence) -> Clock {
    let mut clock = *Clock::find_named(name).unwrap();
    let side = side(&mut clock);
    let mut steps = side.to_vec();
    let removed = steps.remove(step);
    assert!(
        matches!(removed, ClockStep::Lfence | ClockStep::Mfence | ClockStep::Serialize),
        "not a fence: {removed:?}"
    );
    *side = Vec::leak(steps);
    clock
}

fn tested(clock: &Clock) -> TestedClock<'_> {
    TestedClock {
        clock,
        executor: "user",
        mode: CodeMode::default(),
        ruler: clock,
        step: 1.0,
        imul_latency: 3.0,
        width: None,
        emulated: false,
    }
}

fn measure_tested(executor: &mut dyn Executor, tested: &TestedClock, seed: u64) -> Vec<Contamination> {
    measure_contamination(executor, tested, Duration::from_millis(300), &mut Random::new(seed)).unwrap()
}

fn measure(executor: &mut dyn Executor, clock: &Clock, seed: u64) -> Vec<Contamination> {
    measure_tested(executor, &tested(clock), seed)
}

fn measure_in_steps(executor: &mut dyn Executor, clock: &Clock, step: f64, seed: u64) -> Vec<Contamination> {
    measure_tested(executor, &TestedClock { step, ..tested(clock) }, seed)
}

fn happening(rows: &[Contamination]) -> Vec<ContaminationFault> {
    rows.iter().filter(|row| row.verdict.fault_happens() == Some(true)).map(|row| row.fault).collect()
}

const LEADING: ContaminationFault = ContaminationFault::LeadingUnfinished;
const EARLY: ContaminationFault = ContaminationFault::BodyStartedEarly;
const UNFINISHED: ContaminationFault = ContaminationFault::BodyUnfinished;
const FOLLOWING: ContaminationFault = ContaminationFault::FollowingInTheWay;
const STORES: ContaminationFault = ContaminationFault::StoresNotDrained;

#[test]
fn every_method_keeps_its_promises_on_the_miniature_core() {
    let mut core = Core::new(Habits::default());
    for clock in cyclescope_code::clock::ALL_CLOCKS {
        if clock.calls_system() || clock.needs_ring0() || clock.reads_counter() || clock.name == "rdpru" {
            continue;
        }
        for mode in ALL_MODES {
            for row in measure_tested(&mut core, &TestedClock { mode, ..tested(clock) }, 1) {
                let expected = if row.promised { PromiseVerdict::Kept } else { PromiseVerdict::Visible };
                assert_eq!(row.verdict, expected, "{} in {mode:?}: {row:?}", clock.name);
            }
        }
    }
}

#[test]
fn each_fence_excludes_its_faults_on_the_miniature_core() {
    let fences: &[(&str, Fence, &[ContaminationFault])] = &[
        ("lfence-rdtsc-lfence", (start, 0), &[LEADING, STORES]),
        ("lfence-rdtsc-lfence", (start, 2), &[EARLY, STORES]),
        ("lfence-rdtsc-lfence", (end, 0), &[UNFINISHED, STORES]),
        ("lfence-rdtsc-lfence", (end, 2), &[FOLLOWING, STORES]),
        ("rdtscp-lfence", (start, 1), &[EARLY, STORES]),
        ("rdtscp-lfence", (end, 1), &[FOLLOWING, STORES]),
        ("serialize-rdtsc", (start, 0), &[LEADING]),
        ("serialize-rdtsc", (start, 2), &[EARLY]),
        ("serialize-rdtsc", (end, 0), &[UNFINISHED, STORES]),
        ("serialize-rdtsc", (end, 2), &[FOLLOWING]),
        ("mfence-lfence-rdtsc", (start, 0), &[]),
        ("mfence-lfence-rdtsc", (start, 1), &[LEADING]),
        ("mfence-lfence-rdtsc", (start, 3), &[EARLY]),
        ("mfence-lfence-rdtsc", (end, 0), &[STORES]),
        // Nor does RDTSC wait for MFENCE.
        ("mfence-lfence-rdtsc", (end, 1), &[UNFINISHED, STORES]),
        ("mfence-lfence-rdtsc", (end, 3), &[FOLLOWING]),
    ];
    let mut core = Core::new(Habits::default());
    for (name, fence, expected) in fences {
        let clock = without(name, *fence);
        for mode in ALL_MODES {
            let rows = measure_tested(&mut core, &TestedClock { mode, ..tested(&clock) }, 2);
            assert_eq!(happening(&rows), *expected, "{name} without step {} in {mode:?}: {rows:#?}", fence.1);
        }
    }
}

#[test]
fn without_a_waiting_lfence_verdicts_are_unclear() {
    let rows = measure(
        &mut Core::new(Habits { lfence_waits: false, ..Habits::default() }),
        Clock::find_named("lfence-rdtsc-lfence").unwrap(),
        3,
    );
    for row in rows.iter().filter(|row| [LEADING, EARLY, UNFINISHED].contains(&row.fault)) {
        assert!(row.verdict == PromiseVerdict::Unclear && row.cost.why().unwrap().contains("LFENCE"), "{row:?}");
    }
}

#[test]
fn a_simulated_machine_has_a_row_for_every_fault() {
    for clock in [Clock::find_named("lfence-rdtsc-lfence").unwrap(), &STAND_IN] {
        let rows = measure(&mut SimulatedExecutor::new(Scenario::default(), 5), clock, 5);
        assert_eq!(rows.iter().map(|row| row.fault).collect::<Vec<_>>(), FAULTS);
    }
}

#[test]
fn verdicts_follow_the_interval() {
    let verdict = |fault, promised, value, margin| {
        let conditions = TrialConditions { size: 200.0, overlap: 0.0, alone: true };
        PromiseVerdict::from_observation(
            promised,
            is_fault_seen(fault, &Interval::with_margin(value, margin), &conditions),
        )
    };
    assert_eq!(verdict(LEADING, true, 0.4, 0.7), PromiseVerdict::Kept);
    assert_eq!(verdict(LEADING, false, 0.4, 0.7), PromiseVerdict::NotVisible);
    assert_eq!(verdict(LEADING, true, 2.0, 0.7), PromiseVerdict::Broken);
    assert_eq!(verdict(LEADING, false, 2.0, 0.7), PromiseVerdict::Visible);
    // Too wide, between the bounds, or on the side that the fault cannot cause.
    assert_eq!(verdict(LEADING, true, 0.0, 3.0), PromiseVerdict::Unclear);
    assert_eq!(verdict(LEADING, true, 1.5, 0.7), PromiseVerdict::Unclear);
    assert_eq!(verdict(LEADING, true, -50.0, 0.7), PromiseVerdict::Unclear);
    assert_eq!(verdict(UNFINISHED, true, -50.0, 0.7), PromiseVerdict::Broken);
    assert_eq!(verdict(STORES, true, -5.0, 1.0), PromiseVerdict::Kept);
    assert_eq!(verdict(STORES, true, -15.0, 1.0), PromiseVerdict::Broken);
    let with_sibling = TrialConditions { size: 200.0, overlap: 0.0, alone: false };
    let shared = |value| {
        PromiseVerdict::from_observation(
            false,
            is_fault_seen(LEADING, &Interval::with_margin(value, 1.0), &with_sibling),
        )
    };
    assert_eq!(
        [0.0, 5.0, 50.0].map(shared),
        [PromiseVerdict::Unclear, PromiseVerdict::Unclear, PromiseVerdict::Visible]
    );
}

#[test]
fn hidden_time_of_the_end_is_not_counted_as_missed() {
    let conditions = TrialConditions { size: 200.0, overlap: 20.0, alone: true };
    let verdict = |value| {
        PromiseVerdict::from_observation(
            true,
            is_fault_seen(UNFINISHED, &Interval::with_margin(value, 0.7), &conditions),
        )
    };
    let expected = [
        PromiseVerdict::Kept,
        PromiseVerdict::Unclear,
        PromiseVerdict::Unclear,
        PromiseVerdict::Broken,
        PromiseVerdict::Broken,
    ];
    assert_eq!([0.0, -5.0, -20.0, -23.0, -200.0].map(verdict), expected);
}

/// Cycles of MFENCE overlapping other code (Zen 5, family 26, model 2).
const MFENCE: u64 = 57;

#[test]
fn a_fence_that_overlaps_with_the_tail_of_the_body_keeps_its_promise() {
    let mut core = Core::new(Habits { mfence: MFENCE, ..Habits::default() });
    let clock = Clock::find_named("mfence-lfence-rdtsc").unwrap();
    for row in measure(&mut core, clock, 7) {
        assert_eq!(row.verdict, PromiseVerdict::Kept, "{row:?}");
    }
    // An unfinished body is still visible: RDTSC does not wait for MFENCE.
    let broken = measure(&mut core, &without(clock.name, (end, 1)), 8);
    assert_eq!(happening(&broken), [UNFINISHED, STORES], "{broken:#?}");
}

#[test]
fn one_kind_of_neighbour_alone_breaks_no_promise() {
    // RDTSCP ignores two of eighteen square roots, and no multiplication.
    let mut core = Core::new(Habits { rdtscp_roots: 16, ..Habits::default() });
    let rows = measure(&mut core, Clock::find_named("rdtscp-lfence").unwrap(), 11);
    let unfinished = rows.iter().find(|row| row.fault == UNFINISHED).unwrap();
    let second = unfinished.second.expect("the first neighbour indicates a breach");
    assert!(unfinished.verdict == PromiseVerdict::Unclear && !second.confirms, "{unfinished:?}");
    assert!(unfinished.cost.known().unwrap().high < -TOLERANCE_CYCLES, "{unfinished:?}");
    assert!(second.cost.unwrap().low > -TOLERANCE_CYCLES, "{unfinished:?}");
}

#[test]
fn a_breach_is_confirmed_by_another_kind_of_neighbour() {
    let rows = measure(&mut Core::new(Habits::default()), &without("lfence-rdtsc-lfence", (end, 0)), 12);
    let unfinished = rows.iter().find(|row| row.fault == UNFINISHED).unwrap();
    let second = unfinished.second.expect("the first neighbour indicates a breach");
    assert!(unfinished.verdict == PromiseVerdict::Broken && second.confirms, "{unfinished:?}");
    assert_ne!(second.neighbour, unfinished.neighbour);
    assert!(rows.iter().filter(|row| row.fault != UNFINISHED).all(|row| row.second.is_none()), "{rows:#?}");
}

/// Recorded by `evaluate --quick` on Zen 5 (family 26, model 2), in trials without an initial store
/// drain.
#[test]
fn a_recorded_mfence_trial_breaks_no_promise() {
    let beyond = Interval { value: -11.0, low: -21.0, high: -1.04 };
    // An empty pair takes 66 core cycles, and six square roots of 20 precede the body. The end
    // hides none of its own time.
    let conditions = TrialConditions { size: 240.0, overlap: 0.0, alone: true };
    assert_eq!(is_fault_seen(UNFINISHED, &beyond, &conditions), Some(true));
    // A second neighbour must show a breach at two lengths, and a larger one at the longer length.
    let growth = Interval { value: 0.0, low: -14.0, high: 14.0 };
    assert_eq!(is_fault_seen(UNFINISHED, &growth, &conditions), None);
}

#[test]
fn a_coarse_step_changes_no_verdict() {
    for step in [26, 42] {
        let mut core = Core::new(Habits { step, mfence: MFENCE, ..Habits::default() });
        let mut decided = 0;
        for name in ["lfence-rdtsc-lfence", "mfence-lfence-rdtsc", "mfence-rdtscp-lfence", "rdtscp"] {
            let clock = Clock::find_named(name).unwrap();
            for row in measure_in_steps(&mut core, clock, step as f64, 13) {
                // Steps widen intervals, and small faults may stay undecided.
                let wrong = if row.promised { PromiseVerdict::Broken } else { PromiseVerdict::NotVisible };
                assert_ne!(row.verdict, wrong, "{step} {name}: {row:?}");
                decided += usize::from(row.verdict.fault_happens().is_some());
            }
        }
        assert!(decided >= 2, "{step}: {decided} of 20");
        let broken = without("lfence-rdtsc-lfence", (end, 0));
        let rows = measure_in_steps(&mut core, &broken, step as f64, 14);
        assert!(happening(&rows).contains(&UNFINISHED), "{step}: {rows:#?}");
    }
}

#[test]
fn a_fence_longer_than_the_code_before_it_is_not_called_broken() {
    // Six square roots of thirteen cycles take 78.
    let mut core = Core::new(Habits { mfence: 100, ..Habits::default() });
    let rows = measure(&mut core, Clock::find_named("mfence-lfence-rdtsc").unwrap(), 9);
    let unfinished = rows.iter().find(|row| row.fault == UNFINISHED).unwrap();
    let cost = unfinished.cost.known().unwrap();
    assert!(cost.high < -TOLERANCE_CYCLES && unfinished.verdict == PromiseVerdict::Unclear, "{unfinished:?}");
}

#[test]
fn stores_left_by_the_caller_are_not_counted_as_body() {
    // A line that missed the caches delayed MFENCE by about 500 cycles (Zen 5, family 26, model 2).
    let mut core = Core::new(Habits { mfence: MFENCE, left_by_caller: 500, ..Habits::default() });
    for row in measure(&mut core, Clock::find_named("mfence-lfence-rdtsc").unwrap(), 10) {
        assert_eq!(row.verdict, PromiseVerdict::Kept, "{row:?}");
    }
}
