//! The cost of a snippet less that of its setup, on simulated machines with known costs.

use cyclescope_code::snippet::{Snippet, SnippetSetup};
use cyclescope_core::machine::Machine;
use cyclescope_exec::Executor;
use cyclescope_measure::result::answers::MachineAnswers;
use cyclescope_measure::result::record::{Quantity, RunRecord};
use cyclescope_measure::study::{ResultRecord, Study};
use cyclescope_measure::{CostQuestion, Plan, Precision, measure_question};
use cyclescope_run::study::{RunStudy, RunSubject};
use cyclescope_sim::{Scenario, SimulatedExecutor};

const PRECISION: Precision = Precision { cycles: 0.01, share: 0.02, cap: None };
/// `cpuid`, `pause` and `int3`: they never execute.
const SETUP: [u8; 2] = [0x0f, 0xa2];
const SNIPPET: [u8; 2] = [0xf3, 0x90];
const OTHER: [u8; 1] = [0xcc];

fn scenario() -> Scenario {
    let join = |code: &[u8]| [&SETUP, code].concat();
    let costs = vec![(SETUP.to_vec(), 12.0), (join(&SNIPPET), 40.0), (join(&OTHER), 50.0), (SNIPPET.to_vec(), 30.0)];
    Scenario { costs: costs.into_iter().collect(), ..Scenario::default() }
}

fn prepared(code: &[u8]) -> Snippet {
    let setup = SnippetSetup { code: SETUP.to_vec(), text: "setup".to_string() };
    Snippet::new(code.to_vec(), Vec::new(), "snippet").with_setup(Some(setup))
}

fn run(snippet: Snippet, other: Option<Snippet>) -> RunRecord {
    let open = Box::new(move || Ok(Box::new(SimulatedExecutor::new(scenario(), 7)) as Box<dyn Executor>));
    let subject = RunSubject::from(snippet);
    let study = RunStudy::new(&subject, Plan::simulated(), PRECISION, &Machine::detect(), String::new(), open);
    let mut study = study.with_other_variants(&other.map(RunSubject::from).into_iter().collect::<Vec<_>>());
    study.measure(&MachineAnswers::live(), &mut Vec::<ResultRecord>::new()).unwrap();
    study.record.unwrap()
}

fn assert_near(quantity: Quantity, expected: f64) {
    let value = quantity.value.unwrap();
    assert!((value - expected).abs() < 0.01 * expected, "{quantity:?}, expected {expected}");
}

#[test]
fn the_cost_of_the_setup_is_subtracted_and_reported() {
    let record = run(prepared(&SNIPPET), None);
    assert_near(record.cost, 28.0);
    assert_near(record.setup_cost.unwrap(), 12.0);
    assert_eq!((record.setup.as_deref(), record.bytes.as_str()), (Some("setup"), "f3 90"));
    assert_eq!(record.empty_call, None);
}

#[test]
fn both_variants_have_the_setup() {
    let record = run(prepared(&SNIPPET), Some(prepared(&OTHER)));
    assert_near(record.cost, 28.0);
    assert_near(record.versus.unwrap().cost, 38.0);
}

#[test]
fn without_a_setup_nothing_is_subtracted() {
    let record = run(Snippet::new(SNIPPET.to_vec(), Vec::new(), "snippet"), None);
    assert_near(record.cost, 30.0);
    assert_eq!((record.setup, record.setup_cost), (None, None));
}

#[test]
fn a_question_about_one_snippet_subtracts_its_setup() {
    let question = CostQuestion::from_snippet(prepared(&SNIPPET));
    let mut executor = SimulatedExecutor::new(scenario(), 3);
    let found = measure_question(&mut executor, &question, &Plan::simulated()).unwrap().remove(0);
    let cost = found.estimate.unwrap().cost.value;
    assert!((cost - 28.0).abs() < 0.28, "{cost}");
}
