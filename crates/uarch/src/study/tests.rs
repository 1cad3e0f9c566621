//! The whole study on simulated machines: what it adds to the results of a test.

use super::*;
use crate::spec::ProgramFamily;
use cyclescope_code::program::memory::{AreaFill, RingOrder};
use cyclescope_core::machine::Machine;
use cyclescope_core::machine::integer_adders::IntegerAdders;
use cyclescope_exec::{Batch, Capabilities, Executor, Sample};
use cyclescope_sim::{AlteredMachine, Scenario, SimulatedExecutor};
use serde_json::json;
use std::collections::BTreeMap;

/// Units of the simulated core that execute additions.
const ADDERS: u32 = 5;

/// The lines of a study of one test on this machine.
fn measured(
    test: &'static str,
    kept: Vec<Value>,
    numbers: &[(&str, u64)],
    machine: impl Fn() -> Box<dyn Executor> + 'static,
) -> Vec<Value> {
    let mut surroundings = ReportedMachine::from_machine(machine().machine());
    surroundings.numbers = numbers.iter().map(|(key, number)| (key.to_string(), *number)).collect();
    let mut study = UarchStudy {
        plan: Plan { adders: Some(IntegerAdders::with_usual_share(ADDERS)), ..Plan::simulated() },
        selected_tests: TESTS.iter().copied().filter(|other| other.name == test).collect(),
        features: Vec::new(),
        memory: u64::MAX,
        surroundings,
        counters: None,
        resumed_lines: kept,
        open: Box::new(move || Ok(machine())),
        lock: None,
    };
    let mut records: Vec<ResultRecord> = Vec::new();
    study.measure(&MachineAnswers::live(), &mut records).expect("all is simulated");
    let lines = records.iter().map(|record| serde_json::from_str::<Value>(&record.line).expect("it is JSON"));
    lines.filter(|line| line["test"] == test).collect()
}

/// The line of a `found` number.
fn found(test: &str, what: &str, number: f64) -> Value {
    let value = json!({ "value": number, "low": number, "high": number, "unit": "count" });
    json!({ "test": test, "records": 1, "what": what, "verdict": "found", "value": value, "why": "" })
}

/// Core cycles of the programs of page walks, if this many run at once.
fn walk_costs(room: usize) -> Vec<(Vec<u8>, f64)> {
    let test = TESTS.iter().find(|test| test.name == "walks_in_flight").expect("it is in the list");
    let Experiment::Batches(batches) = &test.experiment else { panic!("it is one of batches") };
    let mut costs = BTreeMap::new();
    let mut plant = |family: &ProgramFamily, n: usize, before: usize| {
        let over = (n + before).saturating_sub(room);
        let more = if over > 0 { 80.0 + 20.0 * over as f64 } else { 0.0 };
        costs.insert(family.program(n).body, 150.0 + more);
        costs.insert(family.control(n).expect("it subtracts").body, 50.0);
    };
    for n in batches.counts {
        batches.programs.iter().for_each(|family| plant(family, *n, 0));
        plant(&batches.witness.family, *n, batches.witness.occupied);
    }
    costs.into_iter().collect()
}

fn machine(costs: Vec<(Vec<u8>, f64)>, adds_per_cycle: f64) -> SimulatedExecutor {
    SimulatedExecutor::new(Scenario { costs, adds_per_cycle, ..Scenario::default() }, 5)
}

/// The line of a test of page walks: six run at once, and this many misses.
fn six_walks(misses: f64, open: impl Fn() -> Box<dyn Executor> + 'static) -> Value {
    let kept = vec![found("misses_in_flight", "misses_in_flight", misses)];
    let mut lines = measured("walks_in_flight", kept, &[], open);
    assert_eq!(lines.len(), 1, "{lines:?}");
    lines.remove(0)
}

fn alone() -> Box<dyn Executor> {
    Box::new(machine(walk_costs(6), f64::from(ADDERS)))
}

#[test]
fn a_number_is_limited_by_another_structure_that_is_full_there() {
    let own = six_walks(20.0, alone);
    assert_eq!((&own["verdict"], &own["value"]["value"]), (&json!("found"), &json!(6.0)), "{own}");
    let limited = six_walks(6.0, alone);
    assert_eq!((&limited["verdict"], &limited["value"]["value"]), (&json!("limited"), &Value::Null));
    assert_eq!(limited["limited_by"], "misses_in_flight");
}

#[test]
fn rates_are_reported_as_a_share_of_another_tests_largest() {
    let widths = [("8_bytes", 2.0), ("16_bytes", 2.0), ("32_bytes", 1.5), ("64_bytes", 0.75)];
    let kept = widths.map(|(row, rate)| found("copy_rate", &format!("copy_rate.{row}"), rate));
    let open = || -> Box<dyn Executor> {
        Box::new(SimulatedExecutor::new(Scenario { cost: 2000.0, ..Scenario::default() }, 5))
    };
    let lines = measured("copy_methods", kept.to_vec(), &[], open);
    let told = lines.iter().filter_map(|line| line["told"].as_str()).collect::<Vec<_>>();
    assert!(!told.is_empty() && told.iter().all(|told| told.ends_with("of the most in copy_rate")), "{told:?}");
    let number = json!(lines.len());
    assert!(lines.iter().all(|line| line["records"] == number), "each says how many there are");
}

#[test]
fn a_test_with_background_load_has_a_caveat() {
    let caveats = |line: Value| line["caveats"].as_array().map_or(0, Vec::len);
    assert_eq!(caveats(six_walks(20.0, alone)), 0);
    let with_load = six_walks(20.0, || Box::new(machine(walk_costs(6), f64::from(ADDERS) / 2.0)));
    assert_eq!(with_load["caveats"][0]["code"], "sibling_busy");
    assert_eq!(caveats(with_load), 1);
}

/// A machine whose sibling is busy up to this layout.
struct Ends {
    machines: [SimulatedExecutor; 2],
    left: usize,
}

impl Executor for Ends {
    fn capabilities(&self) -> &Capabilities {
        self.machines[0].capabilities()
    }

    fn machine(&self) -> &Machine {
        self.machines[0].machine()
    }

    fn stream(&mut self, batch: &Batch, take: &mut dyn FnMut(&[Sample])) -> Result<(), RunError> {
        let busy = self.left > 0;
        self.left = self.left.saturating_sub(batch.layouts.len());
        self.machines[usize::from(busy)].stream(batch, take)
    }

    /// Time passes on either machine.
    fn now(&self) -> Duration {
        self.machines.iter().map(Executor::now).sum()
    }

    fn pause(&mut self, time: Duration) {
        self.machines[0].pause(time);
    }
}

/// About a fifth of the layouts of a test of batches.
const SPELL: usize = 240;

#[test]
fn a_test_is_measured_again_if_the_load_ends() {
    let open = || -> Box<dyn Executor> {
        let machines = [1.0, 2.0].map(|part| machine(walk_costs(6), f64::from(ADDERS) / part));
        Box::new(Ends { machines, left: SPELL })
    };
    let line = six_walks(20.0, open);
    assert_eq!((&line["verdict"], &line["caveats"]), (&json!("found"), &json!([])));
}

#[test]
fn a_test_does_not_wait_for_its_own_background_load() {
    let mut part = 0;
    for test in TESTS {
        let is_part = matches!(test.experiment, Experiment::Sharing(_));
        assert_eq!(sibling_retries(test).is_last(), is_part, "{}", test.name);
        part += usize::from(is_part);
    }
    assert!(part > 0);
}

/// A machine on which the cost of loads in a ring depends on its bytes and its stride.
fn open_rings(cost: fn(usize, u32) -> f64) -> impl Executor {
    AlteredMachine::new(SimulatedExecutor::new(Scenario::default(), 5), move |machine, batch, take| {
        let area = &batch.memory.areas[0];
        let AreaFill::Ring(ring) = &area.fill else { panic!("its memory is a ring") };
        assert!(matches!(ring.order, RingOrder::RandomByPage));
        let cost = LOADS * cost(area.bytes as usize + ring.stride as usize, ring.stride);
        let mut ring = SimulatedExecutor::new(Scenario { cost, ..Scenario::default() }, ring.seed);
        let began = ring.now();
        let result = ring.stream(batch, take);
        machine.pause(ring.now() - began);
        result
    })
}

/// Loads of an iteration.
const LOADS: f64 = 32.0;

fn levels(bytes: usize) -> f64 {
    match bytes {
        ..=33_000 => 5.0,
        33_001..=1_100_000 => 16.0,
        _ => 90.0,
    }
}

#[test]
fn cpuid_is_not_shown_for_a_level_of_unknown_number() {
    let numbers = [("data_caches_by_page.1.size", 32 << 10), ("data_caches_by_page.2.size", 1 << 20)];
    let cpuid_figures = |cost: fn(usize, u32) -> f64| {
        let open = move || -> Box<dyn Executor> { Box::new(open_rings(cost)) };
        let lines = measured("data_caches_by_page", Vec::new(), &numbers, open);
        let key_and_cpuid =
            |line: &Value| (line["what"].as_str().expect("it has a key").to_string(), line["cpuid"].clone());
        lines.iter().map(key_and_cpuid).collect::<Vec<_>>()
    };
    let known = cpuid_figures(|bytes, _| levels(bytes));
    let both = numbers.map(|(key, number)| (key.to_string(), json!(number)));
    assert!(both.iter().all(|each| known.contains(each)), "{known:?}");
    // In one program only, the second level is split into two.
    let doubt = cpuid_figures(|bytes, stride| match bytes {
        300_000..=1_100_000 if stride == 64 => 36.0,
        _ => levels(bytes),
    });
    assert!(doubt.iter().any(|(what, _)| what.ends_with(".more.size")), "{doubt:?}");
    assert!(doubt.iter().all(|(_, cpuid)| cpuid.is_null()), "{doubt:?}");
}

#[test]
fn a_test_that_repeats_its_counts_runs_once() {
    let retries = |name: &str| test_retries(TESTS.iter().find(|test| test.name == name).expect("it is in the list"));
    assert_eq!([retries("data_caches"), retries("data_caches_huge")], [Retries::NONE; 2]);
    assert_ne!(retries("l1d_ways"), Retries::NONE);
}
