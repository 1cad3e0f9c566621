//! A measurement over recorded answers is the one that was recorded, on simulated machines.

use cyclescope::caveat::Code;
use cyclescope::clock::Clock;
use cyclescope::error::RunError;
use cyclescope::evidence::{Replay, RunFacts, STUDY};
use cyclescope::executor::mock::{Scenario, Simulated};
use cyclescope::executor::{Batch, Capabilities, Executor, Sample};
use cyclescope::machine::Machine;
use cyclescope::machine::fact::Fact;
use cyclescope::measure::{Plan, Precision, measure};
use cyclescope::result::container::{Container, Evidence, Origin};
use cyclescope::result::recording::{ExecutorFacts, Recording};
use cyclescope::result::replaying::Replaying;
use cyclescope::run::{Facts, run};
use cyclescope::snippet::Snippet;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

const PRECISION: Precision = Precision { cycles: 0.0, share: 1e-9, cap: None };

fn plan(budget: Duration) -> Plan {
    Plan {
        clock: Clock::named("rdtscp-lfence").unwrap(),
        step: 1.0,
        imul_latency: None,
        adders: None,
        avx: false,
        unit: None,
        loop_count: None,
        cold: Default::default(),
        warm_up: None,
        rounds: 6,
        layouts: 4,
        layouts_most: 64,
        precision: PRECISION,
        confidence: 0.95,
        budget,
        seed: 3,
    }
}

/// Never executed: the simulated machine knows costs and no instructions.
fn snippet() -> Snippet {
    Snippet::new(vec![0x0f, 0x0b], Vec::new(), "simulated")
}

/// A simulated machine whose time passes by 7 ms from question to question, and whose third batch fails if asked to.
struct Timed {
    core: Simulated,
    asked: std::cell::Cell<u32>,
    batches: u32,
    fails: bool,
}

impl Timed {
    fn new(fails: bool) -> Timed {
        let core = Simulated::new(Scenario::default(), 11);
        Timed { core, asked: Default::default(), batches: 0, fails }
    }
}

impl Executor for Timed {
    fn capabilities(&self) -> &Capabilities {
        self.core.capabilities()
    }

    fn machine(&self) -> &Machine {
        self.core.machine()
    }

    fn stream(&mut self, batch: &Batch, take: &mut dyn FnMut(&[Sample])) -> Result<(), RunError> {
        self.batches += 1;
        self.core.stream(batch, take)?;
        match self.fails && self.batches == 3 {
            true => Err(RunError::Fault { signal: "SIGILL", address: 1 << 40, instruction: None }),
            false => Ok(()),
        }
    }

    fn exclusive(&self) -> Fact<bool> {
        Fact::Known(self.batches < 3)
    }

    fn changed(&self) -> Vec<&'static str> {
        vec!["CR8"]
    }

    fn now(&self) -> Duration {
        self.asked.set(self.asked.get() + 1);
        Duration::from_millis(7) * self.asked.get()
    }
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        Folder(std::env::temp_dir().join(format!("cyclescope-replay-{}-{name}", std::process::id())))
    }

    fn evidence(&self) -> Rc<Evidence> {
        let machine = serde_json::Value::Null;
        let origin = Origin { study: STUDY.to_string(), repro: "cyclescope run x".to_string(), machine };
        Rc::new(Evidence::create(&self.0, origin).unwrap())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_run_with_all_its_decisions_is_the_same_again() {
    let folder = Folder::new("same");
    let evidence = folder.evidence();
    // Time for some batches beyond the first.
    let (machine, snippet, plan) = (Machine::detect(), snippet(), plan(Duration::from_millis(60)));
    let mut executor = Recording::new(Box::new(Timed::new(false)), evidence.clone());
    let mut facts = RunFacts::new(&machine, ExecutorFacts::of(&executor), PRECISION);
    let run = run(&mut executor, &snippet, &plan, PRECISION).unwrap();
    facts.add(&snippet, &plan, &run);
    let mut record = run.record(&Facts {
        snippet: &snippet,
        clock: plan.clock,
        confidence: plan.confidence,
        loop_count: None,
        cold: plan.cold,
        seed: plan.seed,
        executor: "mock",
        cpu: machine.target.as_ref().map_or(0, |target| target.cpu),
        cpu_model: &machine.cpu.name(),
    });
    record.repro = "cyclescope run x".to_string();
    evidence.keep(|writer| {
        writer.set_facts(&facts)?;
        writer.record("run", &record)
    });
    evidence.finish().unwrap();
    let replay = Replay::open(&folder.0).unwrap();
    let again = replay.record().unwrap();
    assert_eq!(again, record);
    assert_eq!(replay.difference(&again), None);
    // It went on until the budget was spent.
    assert!(again.elapsed_s >= plan.budget.as_secs_f64(), "{} s", again.elapsed_s);
    // What the executor said of its surroundings is told again.
    assert!(
        again.caveats.iter().any(|caveat| caveat.code == Code::Noisy && caveat.text.contains("another run"))
    );
    assert_eq!(again.changed, ["CR8"]);
}

#[test]
fn an_error_comes_back_with_all_it_says() {
    let folder = Folder::new("error");
    let evidence = folder.evidence();
    let (snippet, plan) = (snippet(), plan(Duration::from_secs(1)));
    let mut executor = Recording::new(Box::new(Timed::new(true)), evidence.clone());
    let facts = ExecutorFacts::of(&executor);
    let error = measure(&mut executor, &snippet, &plan).unwrap_err();
    evidence.finish().unwrap();
    let container = Container::open(&folder.0).unwrap();
    let mut executor = Replaying::of(&container, facts).unwrap();
    assert_eq!(measure(&mut executor, &snippet, &plan).unwrap_err(), error);
    assert!(matches!(error, RunError::Fault { signal: "SIGILL", .. }) && executor.is_exhausted());
}

#[test]
fn another_course_is_an_error_and_no_number() {
    let folder = Folder::new("other");
    let evidence = folder.evidence();
    let (snippet, plan) = (snippet(), plan(Duration::from_millis(60)));
    let mut executor = Recording::new(Box::new(Timed::new(false)), evidence.clone());
    let facts = ExecutorFacts::of(&executor);
    measure(&mut executor, &snippet, &plan).unwrap();
    evidence.finish().unwrap();
    let container = Container::open(&folder.0).unwrap();
    let other = |plan: Plan| {
        let mut executor = Replaying::of(&container, facts.clone()).unwrap();
        measure(&mut executor, &snippet, &plan).unwrap_err()
    };
    for plan in [Plan { seed: 4, ..plan.clone() }, Plan { rounds: 7, ..plan.clone() }] {
        assert!(matches!(other(plan), RunError::Replay { how } if how.contains("another batch")));
    }
    // More than what was recorded.
    let mut executor = Replaying::of(&container, facts).unwrap();
    measure(&mut executor, &snippet, &plan).unwrap();
    let ends = measure(&mut executor, &snippet, &plan).unwrap_err();
    assert!(matches!(&ends, RunError::Replay { how } if how.contains("ends here")), "{ends}");
    // The facts of a run are not there.
    let error = Replay::open(&folder.0).unwrap_err();
    assert!(error.to_string().contains("facts"), "{error}");
}
