//! The course of an evaluation: facts of the machine, then each method's neighbours and resolution, and last the
//! samples, which take whatever time is left.

mod executors;
mod found;

pub(crate) use executors::{Host, offered};

use crate::caveat::Caveat;
use crate::error::Error;
use crate::executor::LockState;
use crate::random::Random;
use crate::result::answers::Answers;
use crate::ruler::Quiet;
use crate::study::contract::{Follow, Progress, Record, Stop, going};
use crate::study::evaluate::contamination::{self, Claim, Contamination, claims, contamination};
pub use crate::study::evaluate::evaluated::Evaluated;
use crate::study::evaluate::facts::Facts;
use crate::study::evaluate::method::{Method, Samples};
use crate::study::evaluate::plan::{EvaluatePlan, NotRun, Waiting, share};
use crate::study::evaluate::record::{
    ContaminationRecord, EnsembleRecord, EvaluateRecord, FactsRecord, ResolutionRecord, Surroundings,
};
use crate::study::evaluate::resolution::{Resolution, resolution};
use crate::study::evaluate::sampling::{Sampling, Span, Taken};
use crate::study::evaluate::trimmed;
use crate::study::evaluate::verdict::Verdict;
use crate::study::evaluate::{Candidate, TestedClock};
use executors::Executors;
use found::{Found, Seeds};
use serde::Serialize;
use serde_json::Value;
use std::time::Duration;

/// What was found. Of an evaluation that ended early it is what was complete.
pub struct Evaluation {
    /// About the machine.
    pub facts: Facts,
    /// About each method whose samples are complete, in the order of the plan.
    pub methods: Vec<Evaluated>,
    /// What the documents claim.
    pub claims: Vec<Claim>,
    /// What follows from all of it, for each executor.
    pub verdicts: Vec<Verdict>,
    /// Whether it came to its end.
    pub complete: bool,
}

/// How far the course has come, by the default executor's time.
#[derive(Clone, Copy)]
struct Pace {
    started: Duration,
    /// Seconds that all of it should take.
    expected: f64,
}

impl Pace {
    fn seconds(&self, now: Duration) -> f64 {
        now.saturating_sub(self.started).as_secs_f64()
    }

    fn progress(&self, now: Duration, message: &str) -> Progress {
        Progress::share(self.seconds(now) / self.expected, message)
    }
}

/// What an evaluation is about.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) plan: &'a EvaluatePlan,
    pub(super) around: &'a Surroundings,
    /// The machine's record.
    pub(super) machine: &'a Value,
}

/// What is measured of a method before its samples.
struct Examined {
    contamination: Vec<Contamination>,
    resolution: Resolution,
}

/// An evaluation under way.
pub(super) struct Course<'a> {
    asked: Asked<'a>,
    executors: Executors<'a>,
    answers: &'a Answers,
    pace: Pace,
    random: Random,
    follow: &'a mut dyn Follow,
}

impl<'a> Course<'a> {
    /// Opens its executors.
    pub(super) fn begin(
        asked: Asked<'a>,
        host: Option<&'a Host>,
        answers: &'a Answers,
        follow: &'a mut dyn Follow,
    ) -> Result<Course<'a>, Error> {
        let plan = asked.plan;
        let mut executors = Executors::open(host, answers, &plan.candidates)?;
        let pace = Pace { started: executors.plain().now(), expected: plan.expected().as_secs_f64() };
        Ok(Course { asked, executors, answers, pace, random: Random::new(plan.seed), follow })
    }

    /// How the lock of the CPU was found.
    pub(super) fn lock_state(&self) -> Option<LockState> {
        self.executors.lock_state()
    }

    /// Takes it to its end. What is complete is there however it ends.
    pub(super) fn run(&mut self, complete: &mut Option<Evaluation>) -> Result<(), Stop> {
        let found = self.facts()?;
        let facts = found.facts.clone();
        let empty = Evaluation {
            facts,
            methods: Vec::new(),
            claims: Vec::new(),
            verdicts: Vec::new(),
            complete: false,
        };
        let complete = complete.insert(empty);
        let tested_clocks = found.tested_clocks(self.asked.plan);
        let mut examined = Vec::new();
        for tested in &tested_clocks {
            examined.push(self.examine(tested)?);
        }
        complete.claims = self.claims(&found, &tested_clocks, &examined)?;
        self.samples(&tested_clocks, examined, complete)?;
        complete.verdicts = self.verdicts(complete)?;
        complete.complete = true;
        Ok(())
    }

    fn record<T: Serialize>(&mut self, kind: &'static str, content: &T) -> Result<(), Stop> {
        going(self.follow.record(Record::new(kind, content)))
    }

    fn tell(&mut self, message: &str) -> Result<(), Stop> {
        let now = self.executors.plain().now();
        going(self.follow.progress(self.pace.progress(now, message)))
    }

    fn facts(&mut self) -> Result<Found, Stop> {
        self.tell("looking at the machine")?;
        let plan = self.asked.plan;
        let seeds = Seeds { examination: self.random.bits(), watch: self.random.bits() };
        let found = self.answers.get(|| {
            let host = self.executors.host()?;
            Ok::<_, Error>(Found::find(host, self.executors.plain(), plan, seeds))
        })?;
        if !found.is_sound(plan) {
            return Err(self.answers.damaged("what was found about the machine is out of its range").into());
        }
        self.record("machine", self.asked.machine)?;
        self.record("evaluate.tsc", &FactsRecord::new(&found.facts))?;
        Ok(found)
    }

    /// Provokes neighbours of a method and measures its resolution.
    fn examine(&mut self, tested: &TestedClock<'static>) -> Result<Examined, Stop> {
        let candidate = tested.candidate();
        let contamination = match tested.emulated {
            true => contamination::not_run(&tested.clock.promises, &Caveat::emulated().text),
            false => self.contamination(tested)?,
        };
        self.contaminated(candidate, &contamination)?;
        self.tell(&format!("climbing the staircase: {candidate}"))?;
        let executor = self.executors.of(tested)?;
        let resolution = resolution(executor, tested, self.asked.plan.times.resolution, &mut self.random)?;
        self.record("evaluate.resolution", &ResolutionRecord::new(candidate.executor, &resolution))?;
        Ok(Examined { contamination, resolution })
    }

    fn contamination(&mut self, tested: &TestedClock<'static>) -> Result<Vec<Contamination>, Stop> {
        self.tell(&format!("provoking neighbours: {}", tested.candidate()))?;
        let executor = self.executors.of(tested)?;
        let time = self.asked.plan.times.contamination;
        Ok(contamination(executor, tested, time, &mut self.random)?)
    }

    fn contaminated(&mut self, candidate: Candidate, rows: &[Contamination]) -> Result<(), Stop> {
        let mut rows = rows.iter();
        rows.try_for_each(|row| {
            self.record("evaluate.contamination", &ContaminationRecord::new(candidate, row))
        })
    }

    /// The documents' claims, by what was measured, and the rows of what was not run.
    fn claims(
        &mut self,
        found: &Found,
        tested_clocks: &[TestedClock<'static>],
        examined: &[Examined],
    ) -> Result<Vec<Claim>, Stop> {
        let mut rows: Vec<(&str, Vec<Contamination>)> = Vec::new();
        for (tested, examined) in tested_clocks.iter().zip(examined) {
            rows.push((tested.clock.name, examined.contamination.clone()));
        }
        // Behind what was measured: a method that one executor does not run may have rows of another.
        let not_run: Vec<_> = self.asked.plan.not_run.iter().map(|not| (not, rows_of(not))).collect();
        rows.extend(not_run.iter().map(|(not, rows)| (not.candidate.clock.name, rows.clone())));
        let default = self.executors.plain().name();
        let claims = if found.facts.emulated {
            let why = Caveat::emulated().text;
            claims(|_| None).into_iter().map(|claim| Claim { why: why.clone(), ..claim }).collect()
        } else {
            if let Some(stand_in) = found.stand_in(default) {
                rows.push((stand_in.clock.name, self.contamination(&stand_in)?));
            }
            claims(|name| rows.iter().find(|(clock, _)| *clock == name).map(|(_, rows)| rows.as_slice()))
        };
        claims.iter().try_for_each(|claim| self.record("evaluate.claim", claim))?;
        not_run.iter().try_for_each(|(not, rows)| self.contaminated(not.candidate, rows))?;
        Ok(claims)
    }

    /// The samples of all methods, in the time that is left.
    fn samples(
        &mut self,
        tested_clocks: &[TestedClock<'static>],
        examined: Vec<Examined>,
        complete: &mut Evaluation,
    ) -> Result<(), Stop> {
        let plan = self.asked.plan;
        let mut waiting = Vec::new();
        for tested in tested_clocks {
            let executor = self.executors.of(tested)?;
            let cost = Sampling::new(tested).pilot(executor, &mut self.random)?;
            waiting.push(Waiting::new(tested.clock, cost, complete.facts.hertz()));
        }
        let budget = plan.budget.as_secs_f64();
        let wanted: f64 = waiting.iter().map(|method| method.wanted(plan)).sum();
        self.pace.expected = (self.pace.seconds(self.executors.plain().now()) + wanted).min(budget);
        let mut quiet = Vec::new();
        for (at, (tested, examined)) in tested_clocks.iter().zip(examined).enumerate() {
            let from = self.executors.of(tested)?.now();
            let left = (budget - self.pace.seconds(from)).max(0.0);
            let (size, seconds) = share(&waiting[at..], left, plan);
            // The core is as wide with all methods that have the same ruler, step and executor.
            let alike = |(other, _): &&(&TestedClock, Quiet)| {
                let same = other.ruler.name == tested.ruler.name && other.step == tested.step;
                same && other.executor == tested.executor
            };
            let earlier = quiet.iter().filter(alike).map(|(_, quiet)| *quiet);
            let earlier = earlier.fold(Quiet::default(), Quiet::or_earlier);
            let time = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
            let span = Span { from, until: from.saturating_add(time) };
            let shape = waiting[at].shape(tested, size);
            let method = self.sample(tested, &Samples { asked: plan.size, shape, span, earlier })?;
            quiet.extend(method.iter().map(|method| (tested, trimmed::quiet(&method.sampled.trimmed))));
            let candidate = tested.candidate();
            let Examined { contamination, resolution } = examined;
            complete.methods.push(Evaluated { candidate, method, contamination, resolution });
        }
        Ok(())
    }

    fn sample(
        &mut self,
        tested: &TestedClock<'static>,
        samples: &Samples,
    ) -> Result<Option<Method<'static>>, Stop> {
        let candidate = tested.candidate();
        let message = format!("taking samples: {candidate}");
        let (pace, series, follow) = (self.pace, self.asked.plan.series, &mut *self.follow);
        going(follow.progress(pace.progress(samples.span.from, &message)))?;
        let mut take = |taken: &Taken| {
            if series {
                let record = EnsembleRecord::new(candidate, taken.number, &taken.ensemble);
                going(follow.record(Record::new("evaluate.ensemble", &record)))?;
            }
            going(follow.progress(pace.progress(taken.now, &message)))
        };
        let executor = self.executors.of(tested)?;
        let method = Method::measure(executor, tested, samples, &mut self.random, &mut take)?;
        if let Some(method) = &method {
            self.record("evaluate", &EvaluateRecord::new(method, self.asked.around))?;
        }
        Ok(method)
    }

    /// What follows for each executor that ran a method.
    fn verdicts(&mut self, found: &Evaluation) -> Result<Vec<Verdict>, Stop> {
        let Evaluation { facts, methods, .. } = found;
        let measured =
            |executor: &&'static str| methods.iter().any(|found| found.candidate.executor == *executor);
        let verdict = |executor| match facts.emulated {
            true => Verdict::emulated(executor),
            false => Verdict::of(methods, executor),
        };
        let verdicts: Vec<Verdict> =
            self.executors.names().into_iter().filter(measured).map(verdict).collect();
        verdicts.iter().try_for_each(|verdict| self.record("evaluate.verdict", verdict))?;
        Ok(verdicts)
    }
}

fn rows_of(not: &NotRun) -> Vec<Contamination> {
    contamination::not_run(&not.candidate.clock.promises, &not.why.why)
}
