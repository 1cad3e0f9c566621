//! Each mode's programs run by its own executor, on simulated machines that differ by their overhead.

use super::*;
use crate::clock::Clock;
use crate::executor::mock::{Scenario, Simulated};
use crate::executor::{Batch, Executor};
use crate::machine::cpu::Hypervisor;
use crate::study::evaluate::evidence::Kept;
use crate::study::evaluate::plan::{self, Times};
use crate::study::evaluate::reader::Size;
use crate::study::evaluate::record::{ContaminationRecord, EvaluateRecord, ResolutionRecord, Surroundings};
use crate::study::evaluate::resolution::Body;
use std::time::Duration;

const OVERHEADS: [f64; 2] = [60.0, 200.0];

/// A simulated machine under the name of a mode.
struct Named(Mode, Simulated);

impl Named {
    fn new(mode: Mode) -> Named {
        let overhead = OVERHEADS[usize::from(mode == Mode::Kernel)];
        Named(mode, Simulated::new(Scenario { overhead, ..Scenario::default() }, 3))
    }
}

impl Executor for Named {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn arena_len(&self) -> usize {
        self.1.arena_len()
    }

    fn stream(&mut self, batch: &Batch, take: &mut dyn FnMut(&[Sample])) -> Result<(), RunError> {
        self.1.stream(batch, take)
    }
}

fn candidate(name: &str, mode: Mode) -> Candidate {
    Candidate { clock: Clock::named(name).unwrap(), mode }
}

fn plan(candidates: Vec<Candidate>) -> Plan {
    let times = Times { contamination: Duration::from_millis(20), ..Times::QUICK };
    let size = Size { ensembles: 6, samples: 1000 };
    Plan { candidates, size, budget: Duration::from_secs(600), slow: None, times, seed: 1 }
}

/// A subject whose step is that of the simulated machines.
fn subject(Candidate { clock, mode }: Candidate) -> Subject<'static> {
    let ruler = Clock::named("lfence-rdtsc-lfence").unwrap();
    Subject { clock, mode, ruler, step: 1.0, imul_latency: 3.0, width: None, emulated: false }
}

/// What an evaluation says on its course, by mode and method.
fn told(event: &Event) -> Option<(&'static str, Mode, &'static str)> {
    match event {
        Event::Contamination(candidate, _) => Some(("contamination", candidate.mode, candidate.clock.name)),
        Event::Resolution(candidate, _) => Some(("resolution", candidate.mode, candidate.clock.name)),
        Event::Ensemble(candidate, 0, ..) => Some(("ensemble", candidate.mode, candidate.clock.name)),
        Event::Method(method) => Some(("method", method.subject.mode, method.subject.clock.name)),
        _ => None,
    }
}

#[test]
fn a_method_in_two_modes_is_measured_in_both() {
    let machine = Machine::detect();
    let (user, kernel) = (Mode::User, Mode::Kernel);
    let of = [("rdtscp-lfence", user), ("rdtscp-lfence", kernel), ("cpuid-rdtsc-cr0-rdtsc", kernel)];
    let plan = plan(of.map(|(name, mode)| candidate(name, mode)).to_vec());
    let subjects: Vec<_> = plan.candidates.iter().map(|candidate| subject(*candidate)).collect();
    let (mut plain, mut ring0) = (Named::new(user), Named::new(kernel));
    let executors = Executors {
        plain: &mut plain,
        ring0: Some(&mut ring0),
        counting: &|| Ok(Box::new(Named::new(user))),
        others: &|_| Ok(Box::new(Named::new(user))),
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
    for (method, mode) in methods.iter().zip([0, 1, 1]) {
        let overhead = method.as_ref().unwrap().trimmed.unwrap().overhead;
        assert!((overhead - OVERHEADS[mode]).abs() < 15.0, "{overhead}");
    }
    let named = |what: &str| -> Vec<_> {
        events.iter().filter(|(told, ..)| *told == what).map(|(_, mode, name)| (*name, *mode)).collect()
    };
    for what in ["contamination", "resolution", "ensemble", "method"] {
        assert_eq!(named(what), of, "{what}");
    }
}

#[test]
fn a_claim_goes_by_what_was_measured_in_any_mode() {
    let machine = Machine::detect();
    let cr0 = "cpuid-rdtsc-cr0-rdtsc";
    let plan = plan(vec![candidate(cr0, Mode::Kernel)]);
    let subjects = [subject(plan.candidates[0])];
    let (mut plain, mut ring0) = (Named::new(Mode::User), Named::new(Mode::Kernel));
    let executors = Executors {
        plain: &mut plain,
        ring0: Some(&mut ring0),
        counting: &|| Ok(Box::new(Named::new(Mode::User))),
        others: &|_| Ok(Box::new(Named::new(Mode::User))),
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
    let (_, not_run) = plan::candidates([subjects[0].clock], &machine, &[Mode::User]);
    assert_eq!(not_run.len(), 1);
    let Ok(claims) = course.claims(&subjects, &[around], &not_run) else { panic!("no fault is planted") };
    assert!(claims[1].stand_in.is_none() && !claims[1].why.contains("not run"), "{:?}", claims[1]);
}

#[test]
fn methods_are_planned_where_they_run() {
    let machine = Machine::detect();
    let clocks = || ["clock-gettime", "cpuid-rdtsc-cr0-rdtsc"].map(|name| Clock::named(name).unwrap());
    let modes =
        |found: &[Candidate]| found.iter().map(|found| (found.clock.name, found.mode)).collect::<Vec<_>>();
    let (run, not_run) = plan::candidates(clocks(), &machine, &[Mode::User, Mode::Kernel]);
    let refused: Vec<Candidate> = not_run.iter().map(|not| not.candidate).collect();
    assert!(modes(&run).contains(&("clock-gettime", Mode::User)));
    assert!(modes(&refused).contains(&("clock-gettime", Mode::Kernel)));
    assert!(modes(&refused).contains(&("cpuid-rdtsc-cr0-rdtsc", Mode::User)));
    assert!(!modes(&run).contains(&("cpuid-rdtsc-cr0-rdtsc", Mode::User)));
}

/// This machine under the name of QEMU's emulation.
fn emulation() -> Machine {
    let (signature, name) = ("TCGTCGTCGTCG".to_string(), "QEMU".to_string());
    Machine { hypervisor: Some(Hypervisor { signature, name }), ..Machine::detect() }
}

#[test]
fn an_emulated_machine_has_no_core_cycles() {
    let machine = emulation();
    let plan = plan(vec![candidate("rdtscp-lfence", Mode::User)]);
    let default = Clock::named("lfence-rdtsc-lfence").unwrap();
    let known = Subject::of(plan.candidates[0], default, (Core::of(&machine, None), None));
    let subjects = [Subject { step: 1.0, ..known }];
    let mut plain = Named::new(Mode::User);
    let executors = Executors {
        plain: &mut plain,
        ring0: None,
        counting: &|| Ok(Box::new(Named::new(Mode::User))),
        others: &|_| Ok(Box::new(Named::new(Mode::User))),
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
    let again = Kept::new(method, &[], &record);
    assert!(again.is_emulated());
}

/// Figures in raw units, and none in core cycles.
fn refused((contamination, resolution): &(Vec<Contamination>, Resolution)) {
    let candidate = candidate("rdtscp-lfence", Mode::User);
    for row in contamination {
        let record = ContaminationRecord::new(candidate, row);
        assert_eq!((record.cost.value, record.size, record.why), (None, None, Some(Caveat::emulated().text)));
    }
    assert_eq!(ResolutionRecord::new(Mode::User, resolution).cost.value, None);
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
