//! The course of an evaluation: facts of the machine, then each method's neighbours and resolution, and last the
//! samples, which take whatever time is left.

mod executors;
mod found;

pub(crate) use executors::{Host, offered};

use crate::beside;
use crate::claims::{self, Claim, Seen};
use crate::contamination::{self, Contamination, contamination};
pub use crate::evaluated::Evaluated;
use crate::facts::Facts;
use crate::method::{Method, Samples};
use crate::parts::{Parts, parts};
use crate::plan::{EvaluatePlan, Waiting, share};
use crate::record::{
    ContaminationRecord, EnsembleRecord, EvaluateRecord, FactsRecord, PartsRecord, ResolutionRecord,
    Surroundings,
};
use crate::resolution::{Climbed, Effort, Resolution, resolution};
use crate::sampling::{Sampling, Span, Taken};
use crate::trimmed;
use crate::verdict::Verdict;
use crate::{Candidate, TestedClock};
use cyclescope_core::error::Error;
use cyclescope_core::random::Random;
use cyclescope_exec::LockState;
use cyclescope_measure::result::answers::Answers;
use cyclescope_measure::result::caveat::Caveat;
use cyclescope_measure::ruler::Quiet;
use cyclescope_measure::sibling::SiblingPolicy;
use cyclescope_measure::study::{Follow, Progress, Record, Stop, going};
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

/// A row that a claim rests on is measured again while its interval leaves the claim open: a spell of other work makes it wide.
const BESIDE_OTHERS: SiblingPolicy = SiblingPolicy { retries: 3, ..SiblingPolicy::USUAL };

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
    parts: Option<Parts>,
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
            examined.push(self.examine(tested, &found.facts)?);
        }
        let stand_in = self.stand_in(&found)?;
        self.not_run()?;
        self.samples(&tested_clocks, examined, complete)?;
        self.published(&complete.methods)?;
        complete.claims = self.claims(complete, stand_in.as_deref())?;
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
    fn examine(&mut self, tested: &TestedClock<'static>, facts: &Facts) -> Result<Examined, Stop> {
        let candidate = tested.candidate();
        let contamination = match tested.emulated {
            true => contamination::not_run(&tested.clock.promises, &Caveat::emulated().text),
            false => {
                let rows = self.contamination(tested)?;
                self.again_for_claims(tested, facts, rows)?
            }
        };
        self.contaminated(candidate, &contamination)?;
        let resolution = self.resolution(tested)?;
        self.record("evaluate.resolution", &ResolutionRecord::new(candidate.executor, &resolution))?;
        let parts = match tested.emulated {
            true => None,
            false => self.parts(tested)?,
        };
        Ok(Examined { contamination, resolution, parts })
    }

    fn contamination(&mut self, tested: &TestedClock<'static>) -> Result<Vec<Contamination>, Stop> {
        self.tell(&format!("provoking neighbours: {}", tested.candidate()))?;
        let executor = self.executors.of(tested)?;
        let time = self.asked.plan.times.contamination;
        Ok(contamination(executor, tested, time, &mut self.random)?)
    }

    /// Measures those rows again, in more time, that a claim rests on and whose interval leaves it open. The new
    /// interval replaces the one before, which was chosen for its width. A spell of other work on the CPU makes an interval
    /// wide, so that there are several attempts; one wrong verdict in two thousand attempts stays one in several hundred
    /// rows.
    fn again_for_claims(
        &mut self,
        tested: &TestedClock<'static>,
        facts: &Facts,
        rows: Vec<Contamination>,
    ) -> Result<Vec<Contamination>, Stop> {
        let time = self.asked.plan.times.contamination;
        let bound = claims::bound(tested.step, facts);
        let again = |course: &mut Self, mut row: Contamination| {
            let mut retries = BESIDE_OTHERS.start();
            while claims::leaves_open(tested.clock.name, &row, bound) && retries.retry() {
                course.tell(&format!("provoking neighbours again: {}", tested.candidate()))?;
                let (executor, random) = (course.executors.of(tested)?, &mut course.random);
                row = contamination::contamination_by(executor, tested, row.fault, time, random)?;
            }
            Ok(row)
        };
        rows.into_iter().map(|row| again(self, row)).collect()
    }

    fn contaminated(&mut self, candidate: Candidate, rows: &[Contamination]) -> Result<(), Stop> {
        let mut rows = rows.iter();
        rows.try_for_each(|row| {
            self.record("evaluate.contamination", &ContaminationRecord::new(candidate, row))
        })
    }

    /// Measures what a method tells apart. A number of readings that was asked for may take minutes, so that it says how
    /// long.
    fn resolution(&mut self, tested: &TestedClock<'static>) -> Result<Resolution, Stop> {
        let plan = self.asked.plan;
        let message = format!("climbing the staircase: {}", tested.candidate());
        self.tell(&message)?;
        let (pace, follow) = (self.pace, &mut *self.follow);
        let effort = Effort { time: plan.times.resolution, readings: plan.resolution_samples };
        let readings = plan.resolution_samples.unwrap_or_default();
        let mut tell = |climbed: &Climbed| {
            let left = climbed.left.as_secs_f64();
            let message = format!("{message}, {readings} readings of each length, {left:.0} s left");
            going(follow.progress(pace.progress(climbed.now, &message)))
        };
        resolution(self.executors.of(tested)?, tested, effort, &mut self.random, &mut tell)
    }

    /// Takes the pair of a method apart.
    fn parts(&mut self, tested: &TestedClock<'static>) -> Result<Option<Parts>, Stop> {
        let candidate = tested.candidate();
        self.tell(&format!("taking the pair apart: {candidate}"))?;
        let parts = parts(self.executors.of(tested)?, tested, &mut self.random)?;
        self.record("evaluate.parts", &PartsRecord::new(candidate, parts.as_ref()))?;
        Ok(parts)
    }

    /// The rows of a method that replaces one which can't run here.
    fn stand_in(&mut self, found: &Found) -> Result<Option<Vec<Contamination>>, Stop> {
        let default = self.executors.plain().name();
        match found.stand_in(default).filter(|_| !found.facts.emulated) {
            Some(stand_in) => Ok(Some(self.contamination(&stand_in)?)),
            None => Ok(None),
        }
    }

    /// The rows of methods that were not run.
    fn not_run(&mut self) -> Result<(), Stop> {
        let plan = self.asked.plan;
        plan.not_run.iter().try_for_each(|not| {
            let rows = contamination::not_run(&not.candidate.clock.promises, &not.why.why);
            self.contaminated(not.candidate, &rows)
        })
    }

    /// What others published, with ours beside it.
    fn published(&mut self, methods: &[Evaluated]) -> Result<(), Stop> {
        let (pairs, stairs) = (beside::pairs(methods), beside::stairs(methods));
        pairs.iter().try_for_each(|row| self.record("evaluate.published", row))?;
        stairs.iter().try_for_each(|row| self.record("evaluate.published_stairs", row))
    }

    /// The documents' claims, by all that was measured.
    fn claims(&mut self, found: &Evaluation, stand_in: Option<&[Contamination]>) -> Result<Vec<Claim>, Stop> {
        let Evaluation { facts, methods, .. } = found;
        let claims = match facts.emulated {
            true => claims::untold(&Caveat::emulated().text),
            false => claims::claims(&Seen { methods, not_run: &self.asked.plan.not_run, stand_in, facts }),
        };
        claims.iter().try_for_each(|claim| self.record("evaluate.claim", claim))?;
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
            let Examined { contamination, resolution, parts } = examined;
            complete.methods.push(Evaluated { candidate, method, contamination, resolution, parts });
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
