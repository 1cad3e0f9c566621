//! The course of an evaluation: facts of the machine, then each method's neighbours and resolution, and last the
//! samples, which take whatever time is left.

mod executors;
#[cfg(test)]
mod tests;

pub use executors::Executors;

use crate::caveat::Caveat;
use crate::clock::Clock;
use crate::doctor::{Diagnosis, Known as Watched, Means, Watch, examine, watch};
use crate::error::{RunError, Unavailable};
use crate::executor::Sample;
use crate::machine::Machine;
use crate::machine::core_series::CoreSeries;
use crate::machine::fact::Fact;
use crate::machine::synchrony::{self, Synchrony};
use crate::program::Program;
use crate::random::Random;
use crate::ruler::Quiet;
use crate::study::evaluate::contamination::{self, Claim, Contamination, STAND_IN, claims, contamination};
use crate::study::evaluate::ensemble::Ensemble;
pub use crate::study::evaluate::evaluated::Evaluated;
use crate::study::evaluate::method::Method;
use crate::study::evaluate::plan::{Core, Known, NotRun, Plan, Waiting, share};
use crate::study::evaluate::reader::Shape;
use crate::study::evaluate::resolution::{Resolution, resolution};
use crate::study::evaluate::sampling::Sampling;
use crate::study::evaluate::trimmed;
use crate::study::evaluate::verdict::Verdict;
use crate::study::evaluate::{Candidate, Subject};
use std::ops::ControlFlow;
use std::time::Instant;

/// What happens during an evaluation, as it happens.
pub enum Event<'a> {
    /// What is being done now, and the share of the expected time that has passed.
    Doing {
        /// In a few words.
        what: &'static str,
        /// With which method, and where.
        candidate: Option<Candidate>,
        /// From 0 to 1.
        share: f64,
    },
    /// What was found about the TSC and the core clock.
    Facts(&'a Facts),
    /// What neighbouring code does to a method's readings.
    Contamination(Candidate, &'a [Contamination]),
    /// What a method tells apart.
    Resolution(Candidate, &'a Resolution),
    /// What the documents claim.
    Claims(&'a [Claim]),
    /// A method's samples begin.
    Sampling(&'a Subject<'static>, &'a Shape, &'a Program),
    /// An ensemble of a method, its number, and all readings, the ruler's included.
    Ensemble(Candidate, usize, &'a Ensemble, &'a [Sample]),
    /// A method's samples are complete.
    Method(&'a Method<'static>),
}

/// Whoever follows an evaluation may end it.
pub(crate) type Follow<'a> = dyn FnMut(Event) -> ControlFlow<()> + 'a;

/// What was found about the machine.
#[derive(Debug, Clone)]
pub struct Facts {
    /// As `doctor` has it.
    pub diagnosis: Diagnosis,
    /// The core clock against the TSC over time.
    pub series: Fact<CoreSeries>,
    /// The TSCs of other CPUs against the target's.
    pub synchrony: Fact<Synchrony>,
    /// Whether the machine is emulated, so that nothing can be said in core cycles.
    pub emulated: bool,
}

/// What was found.
pub struct Evaluation {
    /// About the machine.
    pub facts: Facts,
    /// About each method, in the order of the plan.
    pub methods: Vec<Evaluated>,
    /// What the documents claim.
    pub claims: Vec<Claim>,
    /// What follows from all of it, for each executor.
    pub verdicts: Vec<Verdict>,
}

/// Evaluates timing methods on the machine that the executors run on; of `not_run` the claims say why. `None` where
/// whoever follows has ended it.
pub fn evaluate(
    executors: Executors,
    plan: &Plan,
    not_run: &[NotRun],
    follow: &mut Follow,
) -> Result<Option<Evaluation>, RunError> {
    let machine = &executors.plain.machine().clone();
    let random = Random::new(plan.seed);
    let (started, expected) = (Instant::now(), plan.expected().as_secs_f64());
    let mut course = Course { machine, executors, plan, started, expected, random, follow };
    match course.run(not_run) {
        Ok(evaluation) => Ok(Some(evaluation)),
        Err(Stop::Asked) => Ok(None),
        Err(Stop::Error(error)) => Err(error),
    }
}

/// Why an evaluation ends early.
enum Stop {
    Asked,
    Error(RunError),
}

impl From<RunError> for Stop {
    fn from(error: RunError) -> Stop {
        Stop::Error(error)
    }
}

struct Course<'a, 'e, 'f> {
    machine: &'a Machine,
    executors: Executors<'e>,
    plan: &'a Plan,
    started: Instant,
    /// Seconds that all of it should take.
    expected: f64,
    random: Random,
    follow: &'a mut Follow<'f>,
}

impl Course<'_, '_, '_> {
    fn run(&mut self, not_run: &[NotRun]) -> Result<Evaluation, Stop> {
        let facts = self.facts()?;
        let subjects = self.subjects(&facts.diagnosis);
        let mut around = Vec::new();
        for subject in &subjects {
            around.push(self.surroundings(subject)?);
        }
        let claims = self.claims(&subjects, &around, not_run)?;
        let methods = self.samples(&subjects, facts.hertz())?;
        let mut evaluated = Vec::new();
        for ((subject, method), (contamination, resolution)) in subjects.iter().zip(methods).zip(around) {
            evaluated.push(Evaluated { candidate: subject.candidate(), method, contamination, resolution });
        }
        let measured =
            |executor: &&'static str| evaluated.iter().any(|found| found.candidate.executor == *executor);
        let verdict = |executor| match facts.emulated {
            true => Verdict::emulated(executor),
            false => Verdict::of(&evaluated, executor),
        };
        let verdicts = self.executors.names().into_iter().filter(measured).map(verdict).collect();
        Ok(Evaluation { facts, methods: evaluated, claims, verdicts })
    }

    fn is_emulated(&self) -> bool {
        self.executors.plain.capabilities().is_emulated()
    }

    fn default_clock(&self) -> Result<&'static Clock, Unavailable> {
        self.executors.plain.capabilities().default_clock(self.machine)
    }

    fn say(&mut self, event: Event) -> Result<(), Stop> {
        match (self.follow)(event) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Stop::Asked),
        }
    }

    fn tell(&mut self, what: &'static str, candidate: Option<Candidate>) -> Result<(), Stop> {
        let share = self.started.elapsed().as_secs_f64() / self.expected;
        self.say(Event::Doing { what, candidate, share: share.min(1.0) })
    }

    fn facts(&mut self) -> Result<Facts, Stop> {
        let times = self.plan.times;
        self.tell("looking at the machine", None)?;
        let capabilities = self.executors.plain.capabilities().clone();
        let means = Means {
            executor: Ok(&mut *self.executors.plain),
            capabilities: &capabilities,
            others: self.executors.others,
            clock: None,
            effort: times.facts,
            seed: self.random.bits(),
        };
        let diagnosis = examine(self.machine, means);
        self.tell("watching the core clock", None)?;
        let study = diagnosis.tsc.known();
        let series = match self.default_clock() {
            _ if self.is_emulated() => Fact::unknown(Caveat::emulated().text),
            Err(refused) => Fact::unknown(refused.why),
            Ok(clock) => {
                let known = Watched { tsc: &self.machine.tsc, study, core: diagnosis.core.known() };
                let how = Watch::new(clock, known, times.watch, self.random.bits());
                Fact::from(watch(self.executors.plain, &how))
            }
        };
        self.tell("comparing the TSCs of CPUs", None)?;
        let reading = synchrony::reading(self.machine);
        let step = reading.known().and_then(|reading| study?.step(*reading)).map(|step| step.ticks);
        let synchrony = synchrony::measure(self.machine, step, times.synchrony);
        let facts = Facts { diagnosis, series, synchrony, emulated: self.is_emulated() };
        self.say(Event::Facts(&facts))?;
        Ok(facts)
    }

    fn subjects(&self, diagnosis: &Diagnosis) -> Vec<Subject<'static>> {
        let core = Core::of(self.machine, diagnosis.core.known());
        let default = |clock| self.default_clock().unwrap_or(clock);
        let known = Known { core, tsc: &self.machine.tsc, study: diagnosis.tsc.known() };
        let subject = |of: &Candidate| Subject::of(*of, default(of.clock), known);
        self.plan.candidates.iter().map(subject).collect()
    }

    /// Contamination and resolution of a method.
    fn surroundings(&mut self, subject: &Subject<'static>) -> Result<(Vec<Contamination>, Resolution), Stop> {
        let candidate = subject.candidate();
        self.tell("provoking neighbours", Some(candidate))?;
        let rows = if subject.emulated {
            contamination::not_run(&subject.clock.promises, &Caveat::emulated().text)
        } else {
            let executor = self.executors.of(subject)?;
            contamination(executor, subject, self.plan.times.contamination, &mut self.random)?
        };
        self.say(Event::Contamination(candidate, &rows))?;
        self.tell("climbing the staircase", Some(candidate))?;
        let executor = self.executors.of(subject)?;
        let resolution = resolution(executor, subject, self.plan.times.resolution, &mut self.random)?;
        self.say(Event::Resolution(candidate, &resolution))?;
        Ok((rows, resolution))
    }

    /// The documents' claims, by what was measured.
    fn claims(
        &mut self,
        subjects: &[Subject<'static>],
        around: &[(Vec<Contamination>, Resolution)],
        not_run: &[NotRun],
    ) -> Result<Vec<Claim>, Stop> {
        if self.is_emulated() {
            let why = Caveat::emulated().text;
            let found: Vec<Claim> =
                claims(|_| None).into_iter().map(|claim| Claim { why: why.clone(), ..claim }).collect();
            self.say(Event::Claims(&found))?;
            return Ok(found);
        }
        let mut rows: Vec<(&str, Vec<Contamination>)> = Vec::new();
        for (subject, (contamination, _)) in subjects.iter().zip(around) {
            rows.push((subject.clock.name, contamination.clone()));
        }
        // Behind what was measured: a method that one executor does not run may have rows of another.
        for NotRun { candidate: Candidate { clock, .. }, why } in not_run {
            rows.push((clock.name, contamination::not_run(&clock.promises, &why.why)));
        }
        let needed = not_run.iter().any(|not| not.candidate.clock.needs_ring0())
            && !subjects.iter().any(|subject| subject.clock.needs_ring0());
        let stand_in = self.default_clock().ok().zip(subjects.first());
        let plain = self.executors.plain.capabilities();
        if let Some((default, subject)) = stand_in.filter(|_| needed)
            && plain.require(&STAND_IN, self.machine).is_ok()
        {
            let (executor, step) = (plain.executor, STAND_IN.step(&self.machine.tsc));
            let stand_in = Subject { clock: &STAND_IN, executor, ruler: default, step, ..*subject };
            self.tell("provoking neighbours", Some(stand_in.candidate()))?;
            let time = self.plan.times.contamination;
            let measured = contamination(self.executors.plain, &stand_in, time, &mut self.random)?;
            rows.push((STAND_IN.name, measured));
        }
        let found =
            claims(|name| rows.iter().find(|(clock, _)| *clock == name).map(|(_, rows)| rows.as_slice()));
        self.say(Event::Claims(&found))?;
        Ok(found)
    }

    /// The samples of all methods, in the time that is left. The TSC runs at so many hertz.
    fn samples(
        &mut self,
        subjects: &[Subject<'static>],
        hertz: f64,
    ) -> Result<Vec<Option<Method<'static>>>, Stop> {
        let until = self.started + self.plan.budget;
        let mut waiting = Vec::new();
        for subject in subjects {
            let executor = self.executors.of(subject)?;
            let cost = Sampling::new(subject).pilot(executor, &mut self.random)?;
            waiting.push(Waiting::new(subject.clock, cost, hertz));
        }
        let elapsed = self.started.elapsed().as_secs_f64();
        let wanted: f64 = waiting.iter().map(|method| method.wanted(self.plan)).sum();
        self.expected = (elapsed + wanted).min(self.plan.budget.as_secs_f64());
        let (mut methods, mut quiet) = (Vec::new(), Vec::new());
        for (at, subject) in subjects.iter().enumerate() {
            let left = until.saturating_duration_since(Instant::now()).as_secs_f64();
            let (size, seconds) = share(&waiting[at..], left, self.plan);
            // The core is as wide with all methods that have the same ruler, step and executor.
            let alike = |(other, _): &&(&Subject, Quiet)| {
                let same = other.ruler.name == subject.ruler.name && other.step == subject.step;
                same && other.executor == subject.executor
            };
            let earlier = quiet.iter().filter(alike).map(|(_, quiet)| *quiet);
            let earlier = earlier.fold(Quiet::default(), Quiet::or_earlier);
            let method = self.sample(subject, waiting[at].shape(subject, size), (seconds, earlier))?;
            quiet.extend(method.iter().map(|method| (subject, trimmed::quiet(&method.sampled.trimmed))));
            methods.push(method);
        }
        Ok(methods)
    }

    fn sample(
        &mut self,
        subject: &Subject<'static>,
        shape: Shape,
        (seconds, earlier): (f64, Quiet),
    ) -> Result<Option<Method<'static>>, Stop> {
        let candidate = subject.candidate();
        self.tell("taking samples", Some(candidate))?;
        let sampling = Sampling::new(subject);
        self.say(Event::Sampling(subject, &shape, sampling.program()))?;
        let (started, expected) = (self.started, self.expected);
        let until = Instant::now() + std::time::Duration::from_secs_f64(seconds);
        let (follow, mut stopped, mut number) = (&mut *self.follow, false, 0);
        let mut take = |ensemble: &Ensemble, readings: &[Sample]| {
            let share = (started.elapsed().as_secs_f64() / expected).min(1.0);
            let what = "taking samples";
            let mut result = follow(Event::Ensemble(candidate, number, ensemble, readings));
            if result.is_continue() {
                result = follow(Event::Doing { what, candidate: Some(candidate), share });
            }
            number += 1;
            stopped = result.is_break();
            result
        };
        let executor = self.executors.of(subject)?;
        let size = (self.plan.size, shape);
        let method = Method::measure(executor, subject, size, (until, earlier), &mut self.random, &mut take)?;
        if stopped {
            return Err(Stop::Asked);
        }
        if let Some(method) = &method {
            self.say(Event::Method(method))?;
        }
        Ok(method)
    }
}

impl Facts {
    /// The rate of the TSC, or one like that of most machines: it only says which methods count as quick.
    fn hertz(&self) -> f64 {
        self.diagnosis.tsc.known().map_or(2.5e9, |study| study.calibration.hertz.0)
    }
}
