//! Each feature of the simulated machine shows its effect, and the clean machine shows none.

use super::*;
use cyclescope_code::asm::CodeMode;
use cyclescope_code::clock;
use cyclescope_code::context::FloatElement;
use cyclescope_code::program::chains;
use cyclescope_code::program::memory::ProgramMemory;
use cyclescope_code::program::{EntryState, LoopPlan, Program, ProgramRecipe};
use cyclescope_exec::{DEFAULT_DELAY, PlacedProgram, ProgramCall};
use cyclescope_measure::ruler;
use std::time::{Duration, Instant};

/// `nop`: a snippet that is not a ruler.
const SNIPPET: &[u8] = &[0x90];

/// The programs of [`batch`], by index.
const EMPTY: usize = 0;
const SHORT: usize = 1;
const LONG: usize = 2;
const IMUL: usize = 3;
const IMUL_LONG: usize = 4;
const ADD: usize = 5;
const ADD_LONG: usize = 6;
const SENTINEL: usize = 7;
const PROGRAMS: usize = 8;

const ITERATIONS: u64 = 20;

fn program(snippet: &[u8], copies: usize, looped: bool) -> Program {
    let looped = looped.then_some(LoopPlan::PLAIN);
    let (clock, world) = (&clock::ALL_CLOCKS[0], EntryState::default());
    ProgramRecipe { world, snippet, copies, looped, ..ProgramRecipe::empty(clock) }.build()
}

fn layout(number: u32) -> Layout {
    let place = |program: usize| PlacedProgram { program, offset: program as u32 * 0x1_0000 + 64 * number };
    let code = (0..PROGRAMS).map(place).collect();
    let round = (0..PROGRAMS).map(|place| ProgramCall { place, loop_count: ITERATIONS }).collect();
    Layout { code, round, data: vec![0; 5], seed: u64::from(number) }
}

/// The empty pair, 30 and 60 copies of the snippet, and the ruler.
fn batch(snippet: &[u8], rounds: u32, layouts: u32) -> Batch {
    let looped = |snippet, copies| program(snippet, copies, true);
    let programs = vec![
        program(&[], 0, false),
        looped(snippet, 30),
        looped(snippet, 60),
        looped(chains::IMUL, chains::IMUL_LINKS[0]),
        looped(chains::IMUL, chains::IMUL_LINKS[1]),
        looped(chains::ADD, ruler::ADD_LINKS[0]),
        looped(chains::ADD, ruler::ADD_LINKS[1]),
        looped(chains::SENTINEL, 1),
    ];
    let layouts = (0..layouts).map(layout).collect();
    let deadline = Duration::from_secs(3600);
    Batch {
        programs,
        warm_up: 0,
        rounds,
        layouts,
        memory: ProgramMemory::standard(FloatElement::F64, true),
        delay: DEFAULT_DELAY,
        events: Vec::new(),
        deadline,
    }
}

/// Elapsed ticks of each program's calls.
fn elapsed(samples: &[Sample], program: usize) -> Vec<f64> {
    samples.iter().skip(program).step_by(PROGRAMS).map(|s| (s.end - s.start) as f64).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn deviation(values: &[f64]) -> f64 {
    let centre = mean(values);
    mean(&values.iter().map(|x| (x - centre).powi(2)).collect::<Vec<_>>()).sqrt()
}

/// Ticks by which the second program takes longer, on average.
fn slope(samples: &[Sample], short: usize, long: usize) -> f64 {
    mean(&elapsed(samples, long)) - mean(&elapsed(samples, short))
}

/// Core cycles of one copy of the snippet, by the `imul` ruler.
fn cost(samples: &[Sample]) -> f64 {
    let links = 3.0 * (chains::IMUL_LINKS[1] - chains::IMUL_LINKS[0]) as f64;
    slope(samples, SHORT, LONG) / 30.0 / (slope(samples, IMUL, IMUL_LONG) / links)
}

fn run(scenario: &Scenario, seed: u64, rounds: u32, layouts: u32) -> Vec<Sample> {
    let batch = batch(SNIPPET, rounds, layouts);
    SimulatedExecutor::new(scenario.clone(), seed).run(&batch).expect("the scenario has no fault")
}

fn with(change: impl FnOnce(&mut Scenario)) -> Scenario {
    let mut scenario = Scenario::default();
    change(&mut scenario);
    scenario
}

#[test]
fn slopes_of_noise_free_sums_are_the_true_costs() {
    let scenario = with(|s| s.costs = vec![(vec![0xcc], 7.25)]);
    let cycles = |snippet: &[u8], copies| scenario.call_cycles(&program(snippet, copies, true), 100);
    for (snippet, cost) in [(SNIPPET, 3.07), (&[0xcc], 7.25), (chains::ADD, 1.0), (chains::IMUL, 3.0)] {
        let slope = (cycles(snippet, 24) - cycles(snippet, 8)) / 1600.0;
        assert!((slope - cost).abs() < 1e-12, "{slope} for {cost}");
        assert_eq!(scenario.cost_of(snippet), cost);
        assert_eq!(scenario.mean_cost_of(snippet), cost);
    }
    let sentinel = cycles(chains::SENTINEL, 1) - scenario.call_cycles(&program(chains::SENTINEL, 1, true), 0);
    assert!((sentinel / 100.0 - (chains::SENTINEL_ADDS as f64 / 5.0 + 0.4)).abs() < 1e-12);
    assert!((scenario.call_cycles(&program(&[], 0, false), 1) - 105.3 - 14.6).abs() < 1e-12);
}

#[test]
fn the_instrument_error_is_the_same_in_every_layout() {
    let ticks = |ruler_boundary| {
        let scenario = with(|s| s.ruler_boundary = ruler_boundary);
        let samples = run(&scenario, 1, 2000, 4);
        mean(&elapsed(&samples, IMUL_LONG)) * scenario.ratio
    };
    assert!((ticks(5.0) - ticks(0.0) - 5.0).abs() < 0.5);
}

#[test]
fn the_clean_machine_reads_the_true_cost() {
    let samples = run(&Scenario::default(), 1, 2000, 4);
    assert!((cost(&samples) - 3.07).abs() < 0.002, "{}", cost(&samples));
    let ticks = slope(&samples, ADD, ADD_LONG) * 1.425_031;
    assert!((ticks - 16.0 * ITERATIONS as f64).abs() < 0.1, "{ticks}");
    assert!(deviation(&elapsed(&samples, EMPTY)) < 0.51);
}

#[test]
fn readings_are_multiples_of_the_step_and_means_are_finer() {
    for step in [1, 2, 26, 38, 100] {
        let samples = run(&with(|s| s.step = step), 2, 4000, 4);
        assert!(samples.iter().all(|s| s.start % step == 0 && s.end % step == 0));
        let phases = samples.iter().map(|s| s.start / step % 2).sum::<u64>();
        assert!(phases > 0, "not all multiples of a coarser step");
        assert!((cost(&samples) - 3.07).abs() < 0.01, "{}", cost(&samples));
        assert!(samples.windows(2).all(|pair| pair[0].end <= pair[1].start));
    }
}

#[test]
fn samples_depend_on_the_seed_alone() {
    for (name, scenario) in Scenario::presets() {
        let first = run(&scenario, 3, 20, 3);
        assert_eq!(first, run(&scenario, 3, 20, 3), "{name}");
        assert_ne!(first, run(&scenario, 4, 20, 3), "{name}");
    }
}

#[test]
fn time_passes_only_in_batches_and_pauses() {
    let (mut machine, begun) = (SimulatedExecutor::new(Scenario::default(), 1), Instant::now());
    let start = machine.now();
    while begun.elapsed() < Duration::from_millis(2) {}
    assert_eq!(machine.now(), start);
    let samples = machine.run(&batch(SNIPPET, 4, 1)).unwrap();
    let [first, last] = [samples[0].start, samples[samples.len() - 1].end];
    let [batch, readings] = [machine.now() - start, Duration::from_secs_f64((last - first) as f64 / 2.596e9)];
    assert!(batch >= readings && batch < readings + Duration::from_micros(1), "{batch:?}, {readings:?}");
    let before = machine.now();
    machine.pause(Duration::from_millis(10));
    assert!((machine.now() - before).abs_diff(Duration::from_millis(10)) < Duration::from_nanos(10));
}

#[test]
fn time_never_goes_backwards() {
    for (name, scenario) in Scenario::presets() {
        let samples = run(&scenario, 5, 300, 2);
        assert!(samples.iter().all(|s| s.start <= s.end), "{name}");
        assert!(samples.windows(2).all(|pair| pair[0].end <= pair[1].start), "{name}");
    }
}

#[test]
fn jitter_spreads_readings_and_leaves_the_mean() {
    let samples = run(&with(|s| s.jitter = 20.0), 6, 4000, 2);
    // The difference of two uniform delays of 20 ticks.
    let expected = 20.0 / 6f64.sqrt();
    assert!((deviation(&elapsed(&samples, EMPTY)) / expected - 1.0).abs() < 0.05);
    assert!((cost(&samples) - 3.07).abs() < 0.01);
}

#[test]
fn rates_scale_ticks_but_not_cycles() {
    for (preset, rate) in [("half_rate", 0.503_717), ("double_rate", 1.987_131)] {
        let samples = run(&Scenario::find_preset(preset).expect("a preset"), 7, 2000, 2);
        let ticks = slope(&samples, SHORT, LONG);
        assert!((ticks * rate / (3.07 * 30.0 * ITERATIONS as f64) - 1.0).abs() < 1e-3);
        assert!((cost(&samples) - 3.07).abs() < 0.005);
    }
}

/// The snippet's cost in each of some layouts.
fn by_layout(samples: &[Sample], layouts: usize) -> Vec<f64> {
    samples.chunks(samples.len() / layouts).map(cost).collect()
}

#[test]
fn costs_differ_between_layouts_and_each_layout_keeps_its_cost() {
    let scenario = with(|s| s.layout = SimulatedLayoutEffects { relative: 0.02, absolute: 0.08, mode: None });
    let costs = by_layout(&run(&scenario, 8, 200, 60), 60);
    let expected = (0.02f64 * 3.07).hypot(0.08);
    assert!((deviation(&costs) / expected - 1.0).abs() < 0.3, "{}", deviation(&costs));
    assert!((mean(&costs) - 3.07).abs() < 4.0 * expected / 60f64.sqrt());

    let mut machine = SimulatedExecutor::new(scenario, 8);
    let mut again = batch(SNIPPET, 200, 60);
    again.layouts.reverse();
    let mut reversed = by_layout(&machine.run(&again).expect("no fault"), 60);
    reversed.reverse();
    assert!(costs.iter().zip(&reversed).all(|(a, b)| (a - b).abs() < 0.01));
    let clean = by_layout(&run(&Scenario::default(), 8, 200, 60), 60);
    assert!(deviation(&clean) < 0.01);
}

#[test]
fn modes_have_their_share_of_layouts() {
    let mode = |by_program| {
        let mode = Some(SimulatedMode { probability: 0.3, factor: 1.5, by_program });
        with(|s| s.layout = SimulatedLayoutEffects { mode, ..SimulatedLayoutEffects::default() })
    };
    let costs = by_layout(&run(&mode(false), 9, 50, 200), 200);
    let slow = costs.iter().filter(|cost| (**cost - 1.5 * 3.07).abs() < 0.02).count();
    let fast = costs.iter().filter(|cost| (**cost - 3.07).abs() < 0.02).count();
    assert!(slow + fast == 200 && (40..80).contains(&slow), "{slow} slow, {fast} fast");
    let truth = mode(false).mean_cost_of(SNIPPET);
    assert!((truth - 3.07 * 1.15).abs() < 1e-12 && (mean(&costs) - truth).abs() < 0.2);
    // If the lengths choose independently, differences appear that are not the cost of any mode.
    let costs = by_layout(&run(&mode(true), 9, 50, 200), 200);
    assert!(costs.iter().any(|cost| *cost < 2.0) && costs.iter().any(|cost| *cost > 5.0));
}

#[test]
fn boundaries_differ_by_program_and_average_out() {
    let costs = by_layout(&run(&with(|s| s.boundary_spread = 10.0), 10, 100, 200), 200);
    let expected = 10.0 * (2.0f64 / 3.0).sqrt() / (30.0 * ITERATIONS as f64);
    assert!((deviation(&costs) / expected - 1.0).abs() < 0.3, "{} {expected}", deviation(&costs));
    assert!((mean(&costs) - 3.07).abs() < 0.005);
}

/// How many samples of a program are more than `ticks` above the shortest.
fn outliers(samples: &[Sample], program: usize, ticks: f64) -> usize {
    let elapsed = elapsed(samples, program);
    let least = elapsed.iter().copied().fold(f64::INFINITY, f64::min);
    elapsed.iter().filter(|x| **x > least + ticks).count()
}

#[test]
fn gaps_hit_calls_in_proportion_to_their_length() {
    for (preset, ticks) in [("interrupts", 3900.0), ("steal", 2.4e6)] {
        let mut scenario = Scenario::find_preset(preset).expect("a preset");
        let gaps = if preset == "steal" { &mut scenario.steal } else { &mut scenario.interrupts };
        gaps.rate = 2e-5;
        let samples = run(&scenario, 11, 8000, 1);
        let expected = 2e-5 * 8000.0 * mean(&elapsed(&run(&Scenario::default(), 11, 8, 1), LONG));
        let hits = outliers(&samples, LONG, ticks) as f64;
        assert!((hits / expected - 1.0).abs() < 0.3, "{preset}: {hits} of {expected}");
        assert!(outliers(&samples, IMUL_LONG, ticks) > 0, "rulers are hit too");
        let none = run(&Scenario::default(), 11, 500, 1);
        assert_eq!(outliers(&none, LONG, 10.0), 0);
    }
}

#[test]
fn only_rulers_take_ruler_hits() {
    let samples = run(&Scenario::find_preset("ruler_hits").expect("a preset"), 12, 5000, 1);
    for program in [IMUL, IMUL_LONG, ADD, ADD_LONG, SENTINEL] {
        assert!((60..140).contains(&outliers(&samples, program, 140.0)));
    }
    assert_eq!(outliers(&samples, LONG, 10.0) + outliers(&samples, EMPTY, 10.0), 0);
}

/// Relative changes between consecutive stretches of samples, in the ticks of one program.
fn changes(samples: &[Sample], program: usize, stretch: usize) -> Vec<f64> {
    let means: Vec<f64> = elapsed(samples, program).chunks(stretch).map(mean).collect();
    means.windows(2).map(|pair| pair[1] / pair[0] - 1.0).collect()
}

#[test]
fn frequency_drifts_slowly_and_jumps_far() {
    let largest = |changes: Vec<f64>| changes.into_iter().fold(0.0, |most: f64, x| most.max(x.abs()));
    let clean = changes(&run(&Scenario::default(), 13, 4000, 1), LONG, 20);
    assert!(largest(clean) < 2e-3);

    let samples = run(&Scenario::find_preset("drift").expect("a preset"), 13, 4000, 1);
    let drift = changes(&samples, LONG, 20);
    assert!(deviation(&drift) > 3e-4 && largest(drift) < 0.01);
    assert!(deviation(&elapsed(&samples, LONG)) / mean(&elapsed(&samples, LONG)) > 0.002);

    let samples = run(&Scenario::find_preset("jumps").expect("a preset"), 13, 4000, 1);
    assert!(largest(changes(&samples, LONG, 20)) > 0.05);
    assert!((cost(&samples) - 3.07).abs() < 0.05, "the ruler jumps with the snippet");
}

#[test]
fn a_busy_sibling_slows_each_kind_of_work_by_its_own_share() {
    let run_with_sibling = |busy| {
        let sibling = Some(SimulatedSibling { busy, idle: 1e-9, snippet: 0.3 });
        run(&with(|s| s.sibling = sibling), 14, 2000, 1)
    };
    let (alone, busy) = (run(&Scenario::default(), 14, 2000, 1), run_with_sibling(1e30));
    let ratio = |short, long| slope(&busy, short, long) / slope(&alone, short, long);
    assert!((ratio(ADD, ADD_LONG) - 1.01).abs() < 5e-4);
    assert!((ratio(IMUL, IMUL_LONG) - 1.004).abs() < 5e-4);
    assert!((ratio(SHORT, LONG) - 1.3).abs() < 1e-3);
    assert!((ratio(EMPTY, SENTINEL) - 1.5).abs() < 5e-3);
    let pair = mean(&elapsed(&busy, EMPTY)) - mean(&elapsed(&alone, EMPTY));
    assert!(pair.abs() < 0.1, "the pair's own cost is not slowed");

    let spells = run(&Scenario::find_preset("sibling_spells").expect("a preset"), 14, 4000, 1);
    let slow = outliers(&spells, LONG, 0.15 * mean(&elapsed(&alone, LONG))) as f64 / 4000.0;
    assert!((0.1..0.6).contains(&slow), "{slow} of the calls with a busy sibling");
}

#[test]
fn a_buffer_takes_the_first_copies_at_a_lower_cost() {
    let scenario = Scenario::find_preset("buffers").expect("a preset");
    let cycles = |copies| scenario.call_cycles(&program(SNIPPET, copies, false), 1);
    assert!((cycles(40) - cycles(20) - 20.0 * 1.87).abs() < 1e-9);
    assert!((cycles(80) - cycles(40) - 40.0 * 41.8).abs() < 1e-9);
    let looped = program(SNIPPET, 30, true);
    let looped = scenario.call_cycles(&looped, 2) - scenario.call_cycles(&looped, 0);
    assert!((looped - 40.0 * 1.87 - 20.0 * 41.8).abs() < 1e-9, "all iterations share the buffer");
    let imul = |copies| scenario.call_cycles(&program(chains::IMUL, copies, false), 1);
    assert!((imul(20) - imul(10) - 30.0).abs() < 1e-9, "rulers need no buffer");
}

#[test]
fn slack_hides_short_bodies() {
    let scenario = Scenario::find_preset("slack").expect("a preset");
    let cycles = |copies| scenario.call_cycles(&program(SNIPPET, copies, false), 1);
    assert_eq!(cycles(9), cycles(0));
    assert!((cycles(20) - cycles(0) - (20.0 * 3.07 - 30.0)).abs() < 1e-9);
    assert!((cycles(40) - cycles(20) - 20.0 * 3.07).abs() < 1e-9);
    let looped = |copies| scenario.call_cycles(&program(SNIPPET, copies, true), 100);
    assert_eq!(looped(1), looped(2), "two copies hide in the loop's own time");
    assert!((looped(6) - looped(3) - 300.0 * 3.07).abs() < 1e-9);
}

#[test]
fn first_calls_of_each_layout_are_slower() {
    let samples = run(&Scenario::find_preset("training").expect("a preset"), 15, 50, 3);
    for layout in samples.chunks(samples.len() / 3) {
        for program in [EMPTY, LONG, IMUL] {
            let elapsed = elapsed(layout, program);
            let trained = mean(&elapsed[6..]);
            assert!(elapsed[6..].iter().all(|x| (x - trained).abs() < 1.01));
            for (call, ticks) in elapsed[..6].iter().enumerate() {
                let extra = 900.0 * (6 - call) as f64 / 6.0 / 1.425_031;
                assert!((ticks - trained - extra).abs() < 2.0, "call {call}: {ticks} for {trained}");
            }
        }
    }
}

#[test]
fn warm_up_rounds_train_and_are_not_kept() {
    let mut batch = batch(SNIPPET, 10, 2);
    batch.warm_up = 6;
    let training = Scenario::find_preset("training").expect("a preset");
    let samples = SimulatedExecutor::new(training, 16).run(&batch).expect("no fault");
    assert_eq!(samples.len(), 2 * 10 * PROGRAMS);
    assert!(deviation(&elapsed(&samples, LONG)) < 1.0);
}

#[test]
fn log_normal_noise_has_a_heavy_tail() {
    let samples = run(&Scenario::find_preset("heavy_tail").expect("a preset"), 17, 10_000, 1);
    let above_median = outliers(&samples, EMPTY, 120.0);
    assert!((400..600).contains(&above_median), "{above_median} of 500");
    // e^(1.5 · 2.326) times the median, for one of a hundred.
    assert!((2..=25).contains(&outliers(&samples, EMPTY, 120.0 * 32.8)));
}

#[test]
fn residuals_are_replayed_in_their_order() {
    let residuals: Vec<f64> = (0..97).map(|k| f64::from(k * k % 97) * 5.0 - 20.0).collect();
    let samples = run(&with(|s| s.noise = SimulatedNoise::Replayed(residuals.clone())), 18, 40, 1);
    let base = run(&Scenario::default(), 18, 40, 1);
    let added: Vec<f64> = samples
        .iter()
        .zip(&base)
        .map(|(noisy, quiet)| (noisy.end - noisy.start) as f64 - (quiet.end - quiet.start) as f64)
        .collect();
    let fits = |start: usize| {
        let replayed = residuals.iter().cycle().skip(start);
        added.iter().zip(replayed).all(|(got, expected)| (got - expected).abs() < 2.01)
    };
    assert_eq!((0..residuals.len()).filter(|start| fits(*start)).count(), 1);
    let empty = run(&with(|s| s.noise = SimulatedNoise::Replayed(Vec::new())), 18, 40, 1);
    assert_eq!(empty, base);
}

#[test]
fn simulated_faults_come_after_their_batch() {
    let error = RunError::Fault {
        signal: "SIGILL",
        address: 0x1000,
        instruction: None,
        cause: cyclescope_core::error::FaultCause::Other,
    };
    let fault = Some(SimulatedFault { after: 2, beyond_repeats: 0.0, error: error.clone() });
    let mut machine = SimulatedExecutor::new(with(|s| s.fault = fault), 19);
    let batch = batch(SNIPPET, 1, 1);
    assert!(machine.run(&batch).is_ok() && machine.run(&batch).is_ok());
    assert_eq!(machine.run(&batch), Err(error.clone()));
    assert_eq!(machine.run(&batch), Err(error));
}

#[test]
fn a_batch_ends_at_its_deadline() {
    let mut batch = batch(SNIPPET, 1000, 1);
    batch.deadline = Duration::from_millis(1);
    let hung = SimulatedExecutor::new(Scenario::default(), 20).run(&batch);
    assert_eq!(hung, Err(RunError::Hung { deadline_ms: 1 }));
}

#[test]
#[should_panic(expected = "overlap")]
fn overlapping_programs_are_refused() {
    let mut batch = batch(SNIPPET, 1, 1);
    batch.layouts[0].code[1].offset = batch.layouts[0].code[0].offset;
    let _ = SimulatedExecutor::new(Scenario::default(), 21).run(&batch);
}

#[test]
fn a_simulated_machine_runs_every_method() {
    let simulated = SimulatedExecutor::new(Scenario::default(), 1);
    let (capabilities, machine) = (simulated.capabilities().clone(), simulated.machine().clone());
    for (clock, works) in capabilities.check_clocks(CodeMode::default(), &machine) {
        assert_eq!(works, Ok(()), "{}", clock.name);
    }
    assert_eq!(capabilities.default_clock(&machine).unwrap().name, "lfence-rdtsc-lfence");
}
