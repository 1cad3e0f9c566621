//! Compares APERF with the ruler, on simulated machines with right or wrong counters.

use cyclescope::caveat::CaveatKind;
use cyclescope::clock::Clock;
use cyclescope::error::RunError;
use cyclescope::executor::{Batch, Capabilities, CounterProgress, Executor, Sample};
use cyclescope::machine::Machine;
use cyclescope::measure::{Plan, Precision};
use cyclescope::result::answers::MachineAnswers;
use cyclescope::result::container::{EvidenceContainer, EvidenceOrigin, EvidenceRecorder};
use cyclescope::run::{RunFacts, RunOutcome, run_snippet};
use cyclescope::snippet::Snippet;
use cyclescope::study::Study;
use cyclescope::study::run::{NAME, RunStudy};
use cyclescope_core::machine::integer_adders::IntegerAdders;
use cyclescope_sim::{Scenario, SimulatedExecutor, SimulatedFrequency};
use std::rc::Rc;
use std::time::Duration;

const PRECISION: Precision = Precision { cycles: 0.01, share: 0.005, cap: None };
const TICKS: u64 = 1_000_000_000;

/// A simulated core whose APERF counts `factor` times the cycles of the nominal core clock.
struct Counted {
    core: SimulatedExecutor,
    cycles_per_tick: f64,
    progress: CounterProgress,
}

impl Executor for Counted {
    fn capabilities(&self) -> &Capabilities {
        self.core.capabilities()
    }

    fn machine(&self) -> &Machine {
        self.core.machine()
    }

    fn stream(&mut self, batch: &Batch, take: &mut dyn FnMut(&[Sample])) -> Result<(), RunError> {
        let aperf = (self.cycles_per_tick * TICKS as f64) as u64;
        self.progress = self.progress.combine(CounterProgress { tsc: TICKS, aperf, mperf: TICKS });
        self.core.stream(batch, take)
    }

    fn counter_progress(&self) -> Option<CounterProgress> {
        Some(self.progress)
    }

    fn restored_state(&self) -> Vec<&'static str> {
        vec!["CR8"]
    }

    fn now(&self) -> Duration {
        self.core.now()
    }

    fn pause(&mut self, time: Duration) {
        self.core.pause(time);
    }
}

fn plan(clock: &str) -> Plan {
    Plan {
        clock: Clock::find_named(clock).unwrap(),
        imul_latency: Some(3.0),
        adders: Some(IntegerAdders::with_usual_share(5)),
        rounds: 12,
        rounds_least: 12,
        layouts: 16,
        layouts_most: 64,
        precision: PRECISION,
        budget: Duration::from_secs(60),
        seed: 1,
        ..Plan::simulated()
    }
}

/// Never executed: the simulated machine has costs but no instructions.
fn snippet() -> Snippet {
    Snippet::new(vec![0x0f, 0x0b], Vec::new(), "simulated")
}

fn counted(scenario: Scenario, factor: f64) -> Counted {
    let cycles_per_tick = factor * scenario.ratio;
    Counted { core: SimulatedExecutor::new(scenario, 7), cycles_per_tick, progress: CounterProgress::default() }
}

/// Runs a snippet on a core whose APERF counts `factor` times the cycles of the nominal core clock.
fn run_with_aperf(scenario: Scenario, factor: f64, clock: &str) -> RunOutcome {
    let mut core = counted(scenario, factor);
    run_snippet(&mut core, &snippet(), &plan(clock), PRECISION).unwrap()
}

fn disagree(run: &RunOutcome) -> Option<&str> {
    let found = run.caveats.iter().find(|caveat| caveat.code == CaveatKind::RulersDisagree);
    found.map(|caveat| caveat.text.as_str())
}

fn facts<'a>(snippet: &'a Snippet, plan: &'a Plan) -> RunFacts<'a> {
    RunFacts { snippet, plan, executor: "simulated", cpu: 0, cpu_model: "simulated" }
}

#[test]
fn an_agreeing_counter_is_reported_without_caveat() {
    for factor in [0.993, 1.0, 1.007] {
        let run = run_with_aperf(Scenario::default(), factor, "rdtscp-lfence");
        assert_eq!(disagree(&run), None, "{factor}");
        let record = run.to_record(&facts(&snippet(), &plan("rdtscp-lfence")));
        let aperf = record.aperf.unwrap();
        assert!((aperf.cycles_per_tick / (factor * Scenario::default().ratio) - 1.0).abs() < 1e-6);
        assert!((aperf.ruler_cycles_per_tick.unwrap() / Scenario::default().ratio - 1.0).abs() < 0.003);
        // This machine may have no TSC to compute megahertz from.
        assert_eq!(aperf.core_mhz.is_some(), run.tsc.is_some());
        assert_eq!(record.changed, ["CR8"]);
    }
}

#[test]
fn a_disagreeing_counter_gives_a_caveat_and_counts_as_noisy() {
    for (factor, words) in [(0.97, "-3.0 %"), (1.05, "+5.0 %")] {
        let run = run_with_aperf(Scenario::default(), factor, "rdtscp-lfence");
        let text = disagree(&run).unwrap();
        assert!(text.contains("APERF counted") && text.contains(words), "{text}");
        assert!(run.falls_short());
    }
}

#[test]
fn a_changing_clock_explains_values_within_its_range() {
    let frequency = SimulatedFrequency { jump_rate: 5e-6, ..SimulatedFrequency::default() };
    let moving = || Scenario { frequency, ..Scenario::default() };
    let [low, mean, high] = run_with_aperf(moving(), 1.0, "rdtscp-lfence").estimate().unwrap().rate;
    assert!(high / low > 1.05, "{low} to {high}");
    // Further from the mean than possible with a constant clock.
    let inside = (low + mean) / 2.0;
    assert!(mean / inside > 1.02);
    let factor = 1.0 / inside / Scenario::default().ratio;
    assert_eq!(disagree(&run_with_aperf(moving(), factor, "rdtscp-lfence")), None);
    let factor = 1.02 / low / Scenario::default().ratio;
    assert!(disagree(&run_with_aperf(moving(), factor, "rdtscp-lfence")).is_some());
}

#[test]
fn a_clock_without_ticks_allows_no_comparison() {
    let run = run_with_aperf(Scenario::default(), 2.0, "clock-gettime");
    assert_eq!(disagree(&run), None);
    let aperf = run.to_record(&facts(&snippet(), &plan("clock-gettime"))).aperf.unwrap();
    assert_eq!((aperf.ruler_cycles_per_tick, aperf.core_mhz), (None, None));
}

#[test]
fn a_counter_that_does_not_advance_is_ignored() {
    let run = run_with_aperf(Scenario::default(), 0.0, "rdtscp-lfence");
    assert!(disagree(&run).is_none() && run.to_record(&facts(&snippet(), &plan("rdtscp-lfence"))).aperf.is_none());
}

#[test]
fn evidence_contains_the_counter() {
    let directory = std::env::temp_dir().join(format!("cyclescope-aperf-{}", std::process::id()));
    let (machine, snippet, plan) = (Machine::detect(), snippet(), plan("rdtscp-lfence"));
    let origin = EvidenceOrigin { study: NAME.to_string(), repro: String::new(), machine: serde_json::Value::Null };
    let kept = Rc::new(EvidenceRecorder::create(&directory, origin).unwrap());
    let open = Box::new(|| Ok(Box::new(counted(Scenario::default(), 1.05)) as Box<dyn Executor>));
    let mut study = RunStudy::new(&snippet.clone().into(), plan, PRECISION, &machine, String::new(), open);
    kept.write_with(|writer| writer.set_facts(&study.plan()?));
    study.measure(&MachineAnswers::recording_to(kept.clone()), &mut Vec::new()).unwrap();
    kept.finish().unwrap();
    let container = EvidenceContainer::open(&directory).unwrap();
    let mut again = RunStudy::restore(&container).unwrap();
    again.measure(&MachineAnswers::from_container(&container).unwrap(), &mut Vec::new()).unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
    let record = study.record.unwrap();
    assert!(record.aperf.is_some() && record.changed == ["CR8"]);
    assert_eq!(again.record, Some(record));
}
