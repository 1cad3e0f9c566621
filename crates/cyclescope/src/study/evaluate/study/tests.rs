//! Each executor's programs run by itself, on simulated machines that differ by their overhead.

use super::*;
use crate::clock::Clock;
use crate::executor::mock::{Scenario, Simulated};
use crate::executor::{Batch, Capabilities, Executor, Timing, kernel, user};
use crate::machine::cpu::Hypervisor;
use crate::study::evaluate::evidence::Kept;
use crate::study::evaluate::plan::{self, Times};
use crate::study::evaluate::reader::Size;
use crate::study::evaluate::record::{ContaminationRecord, EvaluateRecord, ResolutionRecord, Surroundings};
use crate::study::evaluate::resolution::Body;
use std::time::Duration;

const USER: &str = "user";
const KERNEL: &str = "kernel";
const OVERHEADS: [f64; 2] = [60.0, 200.0];

/// A simulated machine under the name of an executor.
struct Named(Capabilities, Simulated);

impl Named {
    fn new(executor: &'static str) -> Named {
        let overhead = OVERHEADS[usize::from(executor == KERNEL)];
        let simulated = Simulated::new(Scenario { overhead, ..Scenario::default() }, 3);
        Named(Capabilities { executor, ..simulated.capabilities().clone() }, simulated)
    }

    /// The same, as far as can be known, where QEMU emulates the processor.
    fn emulated() -> Named {
        let Named(capabilities, simulated) = Named::new(USER);
        Named(Capabilities { timing: Timing::Emulated, ..capabilities }, simulated)
    }
}

impl Executor for Named {
    fn capabilities(&self) -> &Capabilities {
        &self.0
    }

    fn machine(&self) -> &Machine {
        self.1.machine()
    }

    fn stream(&mut self, batch: &Batch, take: &mut dyn FnMut(&[Sample])) -> Result<(), RunError> {
        self.1.stream(batch, take)
    }
}

fn candidate(name: &str, executor: &'static str) -> Candidate {
    Candidate { clock: Clock::named(name).unwrap(), executor }
}

fn plan(candidates: Vec<Candidate>) -> Plan {
    let times = Times { contamination: Duration::from_millis(20), ..Times::QUICK };
    let size = Size { ensembles: 6, samples: 1000 };
    Plan { candidates, size, budget: Duration::from_secs(600), slow: None, times, seed: 1 }
}

/// A subject whose step is that of the simulated machines.
fn subject(Candidate { clock, executor }: Candidate) -> Subject<'static> {
    let ruler = Clock::named("lfence-rdtsc-lfence").unwrap();
    Subject { clock, executor, ruler, step: 1.0, imul_latency: 3.0, width: None, emulated: false }
}

/// What an evaluation says on its course, by executor and method.
fn told(event: &Event) -> Option<(&'static str, &'static str, &'static str)> {
    match event {
        Event::Contamination(candidate, _) => {
            Some(("contamination", candidate.executor, candidate.clock.name))
        }
        Event::Resolution(candidate, _) => Some(("resolution", candidate.executor, candidate.clock.name)),
        Event::Ensemble(candidate, 0, ..) => Some(("ensemble", candidate.executor, candidate.clock.name)),
        Event::Method(method) => Some(("method", method.subject.executor, method.subject.clock.name)),
        _ => None,
    }
}

#[test]
fn a_method_of_two_executors_is_measured_with_both() {
    let machine = Named::new(USER).machine().clone();
    let of = [("rdtscp-lfence", USER), ("rdtscp-lfence", KERNEL), ("cpuid-rdtsc-cr0-rdtsc", KERNEL)];
    let plan = plan(of.map(|(name, executor)| candidate(name, executor)).to_vec());
    let subjects: Vec<_> = plan.candidates.iter().map(|candidate| subject(*candidate)).collect();
    let (mut plain, mut ring0) = (Named::new(USER), Named::new(KERNEL));
    let executors = Executors {
        plain: &mut plain,
        further: vec![&mut ring0],
        counting: &|| Ok(Box::new(Named::new(USER))),
        others: &|_| Ok(Box::new(Named::new(USER))),
        made: None,
    };
    let mut events = Vec::new();
    let mut follow = |event: Event| {
        events.extend(told(&event));
        ControlFlow::Continue(())
    };
    let (random, started) = (Random::new(1), Instant::now());
    let mut course = Course {
        machine: &machine,
        executors,
        plan: &plan,
        started,
        expected: 1.0,
        random,
        follow: &mut follow,
    };
    for subject in &subjects {
        assert!(course.surroundings(subject).is_ok());
    }
    let Ok(methods) = course.samples(&subjects, 2.5e9) else { panic!("no fault is planted") };
    for (method, executor) in methods.iter().zip([0, 1, 1]) {
        let overhead = method.as_ref().unwrap().trimmed.unwrap().overhead;
        assert!((overhead - OVERHEADS[executor]).abs() < 15.0, "{overhead}");
    }
    let named = |what: &str| -> Vec<_> {
        events
            .iter()
            .filter(|(told, ..)| *told == what)
            .map(|(_, executor, name)| (*name, *executor))
            .collect()
    };
    for what in ["contamination", "resolution", "ensemble", "method"] {
        assert_eq!(named(what), of, "{what}");
    }
}

#[test]
fn a_claim_goes_by_what_any_executor_measured() {
    let machine = Named::new(USER).machine().clone();
    let cr0 = "cpuid-rdtsc-cr0-rdtsc";
    let plan = plan(vec![candidate(cr0, KERNEL)]);
    let subjects = [subject(plan.candidates[0])];
    let (mut plain, mut ring0) = (Named::new(USER), Named::new(KERNEL));
    let executors = Executors {
        plain: &mut plain,
        further: vec![&mut ring0],
        counting: &|| Ok(Box::new(Named::new(USER))),
        others: &|_| Ok(Box::new(Named::new(USER))),
        made: None,
    };
    let mut follow = |_: Event| ControlFlow::Continue(());
    let (random, started) = (Random::new(1), Instant::now());
    let mut course = Course {
        machine: &machine,
        executors,
        plan: &plan,
        started,
        expected: 1.0,
        random,
        follow: &mut follow,
    };
    let Ok(around) = course.surroundings(&subjects[0]) else { panic!("no fault is planted") };
    let (_, not_run) = plan::candidates([subjects[0].clock], &machine, &[user::capabilities(&machine)]);
    assert_eq!(not_run.len(), 1);
    let Ok(claims) = course.claims(&subjects, &[around], &not_run) else { panic!("no fault is planted") };
    assert!(claims[1].stand_in.is_none() && !claims[1].why.contains("not run"), "{:?}", claims[1]);
}

#[test]
fn methods_are_planned_where_they_run() {
    let machine = Machine::detect();
    let clocks = || ["clock-gettime", "cpuid-rdtsc-cr0-rdtsc"].map(|name| Clock::named(name).unwrap());
    let named = |found: &[Candidate]| {
        found.iter().map(|found| (found.clock.name, found.executor)).collect::<Vec<_>>()
    };
    let executors = [user::capabilities(&machine), kernel::capabilities(&machine)];
    let (run, not_run) = plan::candidates(clocks(), &machine, &executors);
    let refused: Vec<Candidate> = not_run.iter().map(|not| not.candidate).collect();
    assert!(named(&run).contains(&("clock-gettime", USER)));
    assert!(named(&refused).contains(&("clock-gettime", KERNEL)));
    assert!(named(&refused).contains(&("cpuid-rdtsc-cr0-rdtsc", USER)));
    assert!(!named(&run).contains(&("cpuid-rdtsc-cr0-rdtsc", USER)));
}

/// A simulated machine under the name of QEMU's emulation.
fn emulation() -> Machine {
    let (signature, name) = ("TCGTCGTCGTCG".to_string(), "QEMU".to_string());
    Machine { hypervisor: Some(Hypervisor { signature, name }), ..Named::new(USER).machine().clone() }
}

#[test]
fn an_emulated_machine_has_no_core_cycles() {
    let machine = emulation();
    let plan = plan(vec![candidate("rdtscp-lfence", USER)]);
    let default = Clock::named("lfence-rdtsc-lfence").unwrap();
    let known = Known { core: Core::of(&machine, None), tsc: &machine.tsc, study: None };
    let subjects = [Subject::of(plan.candidates[0], default, known)];
    assert_eq!(subjects[0].step, 1.0);
    let mut plain = Named::emulated();
    let executors = Executors {
        plain: &mut plain,
        further: Vec::new(),
        counting: &|| Ok(Box::new(Named::new(USER))),
        others: &|_| Ok(Box::new(Named::new(USER))),
        made: None,
    };
    let mut follow = |_: Event| ControlFlow::Continue(());
    let (random, started) = (Random::new(1), Instant::now());
    let mut course = Course {
        machine: &machine,
        executors,
        plan: &plan,
        started,
        expected: 1.0,
        random,
        follow: &mut follow,
    };
    let Ok(around) = course.surroundings(&subjects[0]) else { panic!("no fault is planted") };
    refused(&around);
    let Ok(claims) = course.claims(&subjects, &[around], &[]) else { panic!("no fault is planted") };
    let why = Caveat::emulated().text;
    assert!(claims.iter().all(|claim| claim.holds.is_none() && claim.why == why), "{claims:?}");
    let Ok(methods) = course.samples(&subjects, 2.5e9) else { panic!("no fault is planted") };
    let method = methods[0].as_ref().unwrap();
    let record = EvaluateRecord::new(method, &Surroundings::new(&machine, 1, String::new()));
    assert!(record.totals.overhead_min > 0 && record.mean > 0.0 && record.p50 > 0);
    assert_eq!((record.overhead.value, record.overhead_spread, record.rates), (None, None, None));
    assert_eq!((record.ergodic_trimmed, &record.ergodic_trimmed_why), (None, &why));
    assert_eq!((record.reading_deviation, record.shortest_once), (None, None));
    assert_eq!(record.caveats, [Caveat::emulated()]);
    let again = Kept::new(method, (1, 0), &record).unwrap();
    assert!(again.is_emulated());
}

/// Figures in raw units, and none in core cycles.
fn refused((contamination, resolution): &(Vec<Contamination>, Resolution)) {
    let candidate = candidate("rdtscp-lfence", USER);
    for row in contamination {
        let record = ContaminationRecord::new(candidate, row);
        assert_eq!((record.cost.value, record.size, record.why), (None, None, Some(Caveat::emulated().text)));
    }
    assert_eq!(ResolutionRecord::new(USER, resolution).cost.value, None);
    assert_eq!(resolution.caveats, [Caveat::emulated()]);
    assert!(resolution.by_samples.is_empty());
    let stairs = resolution.staircase(Body::Adds).unwrap();
    assert!(
        stairs.totals.smallest_change.is_some() && stairs.points.iter().any(|point| point.raw.minimum > 0)
    );
    assert!(stairs.points.iter().all(|point| point.mean_cycles.or(point.minimum_cycles).is_none()));
    assert!(stairs.slope.is_none() && stairs.slopes.is_empty());
    assert!(
        stairs.hidden.is_none() && stairs.neighbours.is_none() && stairs.spurious_minima_cycles.is_none()
    );
}
