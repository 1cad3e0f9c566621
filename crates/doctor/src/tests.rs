//! The experiments on simulated machines, whose truth is known, and an examination of this machine.

use super::core_clock::CONFIDENCE;
use super::*;
use cyclescope_core::error::RunError;
use cyclescope_core::machine::core_study::CoreSharing;
use cyclescope_core::machine::cpuid_leaves::CpuidLeaves;
use cyclescope_core::machine::fact::SystemFiles;
use cyclescope_core::machine::finding::FindingState;
use cyclescope_core::machine::processor::Processor;
use cyclescope_core::statistics::{CoverageVerdict, judge_coverage, trials_needed};
use cyclescope_core::unit::Hertz;
use cyclescope_measure::ruler::INSTRUMENT_CYCLES;
use cyclescope_sim::{Scenario, SimulatedExecutor};

fn clock() -> &'static Clock {
    Clock::find_named("lfence-rdtsc-lfence").unwrap()
}

fn unknown_cpu() -> Processor {
    Processor::detect(&CpuidLeaves::default(), &SystemFiles::rooted_at("/nonexistent"))
}

fn study(scenario: &Scenario, seed: u64) -> CoreStudy {
    let rounds = RulerRounds::new(clock(), scenario.step as f64);
    let mut machine = SimulatedExecutor::new(scenario.clone(), seed);
    let rate = Some([Hertz(scenario.hertz); 3]);
    let mut random = Random::new(seed);
    core_clock::measure_core_clock(&mut machine, &rounds, clock(), rate, &unknown_cpu(), 32, &mut random).unwrap()
}

#[test]
fn a_simulated_ratio_is_within_its_interval() {
    let names = ["clean", "coarse_step_26", "half_rate", "double_rate", "interrupts", "ruler_hits", "replayed"];
    let seeds = trials_needed(CONFIDENCE).div_ceil(names.len()) as u64;
    let mut held = Vec::new();
    for name in names {
        let scenario = Scenario::find_preset(name).unwrap();
        let hits = (0..seeds).filter(|&seed| {
            // The error that all layouts share, as large as the intervals allow for.
            let ruler_boundary = INSTRUMENT_CYCLES * Random::new(seed).normal();
            let scenario = Scenario { ruler_boundary, ..scenario.clone() };
            let found = study(&scenario, seed);
            assert_eq!((found.imul_known, found.imul_used), (None, Some(3)), "{name}: {found:?}");
            let simulated = scenario.hertz * scenario.ratio / 1e6;
            let megahertz = found.megahertz.unwrap();
            assert!(megahertz.half_width() < 0.01 * simulated, "{name}: {megahertz:?} for {simulated}");
            // The rate of the TSC is given, so one interval is the inverse of the other.
            assert_eq!(found.raw_per_cycle.contains(1.0 / scenario.ratio), megahertz.contains(simulated), "{name}");
            megahertz.contains(simulated)
        });
        held.push((name, hits.count()));
    }
    let (all, trials) = (held.iter().map(|(_, hits)| hits).sum(), names.len() * seeds as usize);
    assert_eq!(judge_coverage(CONFIDENCE, all, trials), CoverageVerdict::Right, "{held:?} of {seeds} each");
}

#[test]
fn the_chains_and_the_width_match_the_simulation() {
    let found = study(&Scenario::default(), 1);
    assert!(found.imul.contains(3.0) && found.imul.half_width() < 0.01, "{:?}", found.imul);
    assert!(found.add_link_cycles().unwrap().contains(1.0));
    // Five additions per cycle, minus the additions of the loop's counter.
    assert!((4.5..5.1).contains(&found.width[1]) && !found.shared, "{:?}", found.width);
}

/// Checks the step, the ratio of the clocks, the latency of the multiplier and the width.
#[test]
fn an_examination_finds_every_simulated_property() {
    let others =
        |_| -> Result<Box<dyn Executor>, RunError> { Ok(Box::new(SimulatedExecutor::new(Scenario::default(), 2))) };
    for (name, scenario) in Scenario::machine_variants() {
        let mut core = SimulatedExecutor::new(scenario.clone(), 1);
        let machine = core.machine().clone();
        let diagnosis = examine_with(&machine, Ok(&mut core), &others);
        let found = diagnosis.core.known().unwrap_or_else(|| panic!("{name}: {:?}", diagnosis.core));
        let simulated = scenario.hertz * scenario.ratio / 1e6;
        let megahertz = found.megahertz.unwrap();
        assert!((megahertz.value / simulated - 1.0).abs() < 0.002, "{name}: {megahertz:?} for {simulated}");
        let latency = scenario.imul_latency;
        assert_eq!((found.imul_used, found.matches_known_latency()), (Some(latency), Some(true)), "{name}");
        // Of nine intervals at 95 % one may miss the truth, but none by twice its half width.
        let off = (found.imul.value - f64::from(latency)).abs();
        let half = found.imul.half_width();
        assert!(half < 0.02 && off < 2.0 * half, "{name}: {:?}", found.imul);
        let width = found.width[1];
        assert!((0.85..1.05).contains(&(width / scenario.adds_per_cycle)) && !found.shared, "{name}: {width}");
        let ruler = diagnosis.findings.iter().find(|finding| finding.name == "ruler").unwrap();
        assert_eq!(ruler.state, FindingState::Ok, "{name}: {ruler:?}");
    }
}

#[test]
fn a_multiplier_that_contradicts_the_data_is_reported() {
    let found = CoreStudy { imul_known: Some(4), ..study(&Scenario::default(), 1) };
    assert_eq!(found.matches_known_latency(), Some(false));
    assert_eq!(CoreStudy { imul_known: Some(3), ..found }.matches_known_latency(), Some(true));
}

fn phases_of(scenario: &Scenario) -> StepPhases {
    let mut machine = SimulatedExecutor::new(scenario.clone(), 3);
    let (step, cycle) = (scenario.step as f64, 1.0 / scenario.ratio);
    phases::measure_phases(&mut machine, clock(), step, cycle, 512, &mut Random::new(3)).unwrap()
}

#[test]
fn programs_locked_to_the_step_are_detected() {
    let free = phases_of(&Scenario::find_preset("coarse_step_38").unwrap());
    assert!(free.uniform, "{free:?}");
    // With these figures a round of all chains takes 99 steps to the tick, so each chain always
    // meets the same phase.
    let locked = Scenario { step: 40, ratio: 1.0, delay: 0.0, overhead: 14.0, boundary: 14.0, ..Scenario::default() };
    let locked = phases_of(&locked);
    assert!(!locked.uniform && locked.off_line > 0.2, "{locked:?}");
    let fine = phases::measure_phases(
        &mut SimulatedExecutor::new(Scenario::default(), 3),
        clock(),
        1.0,
        0.7,
        64,
        &mut Random::new(3),
    );
    assert!(fine.unwrap_err().contains("too small"));
}

fn examine_with(machine: &Machine, executor: Result<&mut dyn Executor, String>, others: &MakeExecutor) -> Diagnosis {
    let capabilities = match &executor {
        Ok(executor) => executor.capabilities().clone(),
        Err(_) => cyclescope_exec::user::user_capabilities(machine),
    };
    let (capabilities, effort) = (&capabilities, ExaminationEffort::QUICK);
    let executor = executor.map(|executor| executor as &mut dyn Executor);
    examine(machine, ExaminationInputs { executor, capabilities, others, clock: None, effort, seed: 5 })
}

#[test]
fn an_examination_without_an_executor_completes() {
    let machine = Machine::detect();
    let none = |_| Err(RunError::WorkerLost { how: "there is none".to_string() });
    let diagnosis = examine_with(&machine, Err("nothing runs here".to_string()), &none);
    assert!(diagnosis.core.why().is_some() && diagnosis.siblings.why().is_some());
    let ruler = diagnosis.findings.iter().find(|finding| finding.name == "ruler").unwrap();
    assert_eq!(ruler.state, FindingState::Problem);
}

/// `prctl` acts on the thread alone, so a thread imitates a process started with this setting.
#[test]
fn a_forbidden_tsc_is_diagnosed_without_a_signal() {
    let worked = std::thread::spawn(|| {
        // SAFETY: PR_SET_TSC takes a number and no pointer.
        if unsafe { libc::prctl(libc::PR_SET_TSC, libc::PR_TSC_SIGSEGV) } != 0 {
            return false;
        }
        let machine = Machine::detect();
        let none = |_| Err(RunError::WorkerLost { how: "there is none".to_string() });
        let diagnosis = examine_with(&machine, Err("the TSC is forbidden".to_string()), &none);
        assert!(diagnosis.tsc.why().is_some() && diagnosis.clock.why().is_some());
        assert_eq!(diagnosis.findings[0].state, FindingState::Problem);
        true
    });
    if !worked.join().unwrap() {
        cyclescope_skipped::report_skipped("the system can't forbid the instruction");
    }
}

#[test]
fn an_examination_of_a_simulated_core_gives_one_json_line() {
    let mut core = SimulatedExecutor::new(Scenario::default(), 1);
    let mut machine = core.machine().clone();
    machine.topology.allowed = Fact::Known(vec![0, 1]);
    // Two simulated machines share nothing, and their clocks are not in step.
    let others =
        |_| -> Result<Box<dyn Executor>, RunError> { Ok(Box::new(SimulatedExecutor::new(Scenario::default(), 2))) };
    let diagnosis = examine_with(&machine, Ok(&mut core), &others);
    assert!(diagnosis.core.known().is_some() && diagnosis.exclusive.why().is_some());
    let found = diagnosis.core.known().and_then(|core| core.megahertz).unwrap().value;
    let truth = Scenario::default().hertz * Scenario::default().ratio / 1e6;
    assert!((found / truth - 1.0).abs() < 0.001, "{found} MHz, by the simulated TSC {truth}");
    let study = diagnosis.siblings.known().unwrap();
    assert_eq!(study.proofs.len(), 1);
    assert!(study.proofs.iter().all(|proof| proof.sharing != CoreSharing::Shared), "{study:?}");
    let record = DoctorRecord::new(&machine, &diagnosis, "simulated", 5, String::new());
    let text = serde_json::to_string(&record).unwrap();
    assert!(!text.contains('\n') && !text.contains("NaN"));
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["core"]["value"]["core_clock"]["unit"], "MHz");
    let executors = value["executors"].as_array().unwrap();
    assert_eq!(executors.len(), cyclescope_exec::EXECUTOR_OFFERS.len());
    for offered in executors {
        assert_eq!(offered["available"].as_bool().unwrap(), offered["why_not"].is_null(), "{offered}");
    }
    assert_eq!(value["findings"].as_array().unwrap().len(), diagnosis.findings.len());
}
