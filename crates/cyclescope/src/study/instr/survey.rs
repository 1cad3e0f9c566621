//! A survey: all forms that were asked for, measured in passes of shuffled order.
//!
//! Each form is measured by itself, so that what was measured can be kept at once. A second pass in another order comes
//! after the first, some time later; a row is made when a form's last pass is done.

use super::analysis::{Analysis, BOUND_SHARE, Reading};
use super::experiment::{Meaning, Plan};
use super::gauge::Gauge;
use super::operands::Anatomy;
use super::row::{Row, Status};
use super::skip::{Skip, skip};
use super::timing::{Stopwatch, Timed, Timing};
use crate::asm::forms::Form;
use crate::clock::Clock;
use crate::error::RunError;
use crate::executor::Executor;
use crate::machine::features::Features;
use crate::random::{Random, mix};
use crate::run::hex;
use crate::statistics::{mean, median};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::ops::ControlFlow;

/// How much to measure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Effort {
    /// Passes over all forms.
    pub passes: u32,
    /// Layouts of each program in a pass.
    pub layouts: usize,
    /// Timed rounds in each layout.
    pub rounds: u32,
    /// Core cycles of a program's longest call, about.
    pub cycles: f64,
    /// Whether the rate from the decoders is measured too.
    pub decoders: bool,
}

impl Effort {
    /// The usual.
    pub const FULL: Effort = Effort { passes: 2, layouts: 4, rounds: 3, cycles: 10_000.0, decoders: true };
    /// Quick.
    pub const QUICK: Effort = Effort { passes: 1, layouts: 3, rounds: 2, cycles: 6_000.0, decoders: false };
}

/// A form, and what to find out about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The form.
    pub form: Form,
    /// Whether its latencies are wanted.
    pub latency: bool,
    /// Whether its reciprocal throughput is wanted. It is measured in any case, for a latency is judged by it.
    pub throughput: bool,
    /// Machine code that runs before each program's own.
    pub init: Vec<u8>,
}

impl From<Form> for Subject {
    fn from(form: Form) -> Subject {
        Subject { form, latency: true, throughput: true, init: Vec::new() }
    }
}

/// What a survey is about.
pub struct Survey<'a> {
    /// The timing method, its step, and the ruler's latency.
    pub watch: Stopwatch<'a>,
    /// What links cost.
    pub gauge: Gauge,
    /// What the CPU has.
    pub features: &'a Features,
    /// The forms.
    pub subjects: Vec<Subject>,
    /// How much to measure.
    pub effort: Effort,
    /// Seed of orders and layouts.
    pub seed: u64,
    /// Level of the intervals.
    pub confidence: f64,
}

/// How a form's measurement in one pass ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The readings of each experiment.
    Measured(Vec<Reading>),
    /// It was not tried.
    Skipped(String),
    /// It faulted, hung or gave no number.
    Failed(String),
}

impl Outcome {
    /// Whether some of it was never measured on a core of its own, or none of it at all.
    fn is_disturbed(&self) -> bool {
        let Outcome::Measured(readings) = self else { return false };
        let nothing = |reading: &Reading| reading.cycles.is_empty();
        let shared = |reading: &Reading| nothing(reading) && !reading.shared.is_empty();
        readings.iter().any(shared) || readings.iter().all(nothing)
    }
}

/// One form in one pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Done {
    /// Which of the survey's subjects.
    pub form: usize,
    /// The pass, from 0.
    pub pass: u32,
    /// What came of it.
    pub outcome: Outcome,
}

/// What a survey tells while it runs.
pub enum Event<'a> {
    /// A form was measured in a pass; keep it to be able to go on after an interruption.
    Done(&'a Done),
    /// A form's last pass is over.
    Row(Box<Row>),
}

/// Where the survey stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Forms measured, each counted once a pass.
    pub done: usize,
    /// All of that.
    pub total: usize,
}

/// Warm-up rounds.
const WARM_UP: u32 = 1;
/// Iterations with which a program's cost is found.
const SCOUT_LOOPS: u64 = 2;
const SCOUT_ROUNDS: u32 = 2;
const LOOPS_LEAST: u64 = 3;
const LOOPS_MOST: u64 = 400;
/// An instance that takes so many core cycles is slow: short bodies do, and one throughput program.
const SLOW: f64 = 400.0;
/// Chains are made longer by so many links at most.
const PADDING_MOST: usize = 40;
/// Slower instructions than this never wait for decoders.
const DECODED_BELOW: f64 = 1.5;
/// How often layouts are tried again that gave nothing.
const TRIES: usize = 3;
/// How often a form is put off for others that was disturbed throughout.
const POSTPONED_MOST: u32 = 3;
/// From the short to the long half, the cost of an instance may differ by so much.
const BEND_CYCLES: f64 = 0.03;
const BEND_SHARE: f64 = 0.05;
/// No instance takes less: sixteen in a cycle.
const NOTHING: f64 = 0.06;
/// Rounds of one layout within this share of their median are averaged.
const ROUND_SHARE: f64 = 0.02;

impl<'a> Survey<'a> {
    /// Measures the links, and is ready to run.
    pub fn new(
        (clock, step, imul_latency): (&'a Clock, f64, f64),
        executor: &mut dyn Executor,
        features: &'a Features,
        subjects: Vec<Subject>,
        (effort, seed, confidence): (Effort, u64, f64),
    ) -> Result<Survey<'a>, RunError> {
        let watch = Stopwatch::new(clock, step, imul_latency);
        let gauge = Gauge::measure(&watch, executor, features, &mut Random::new(mix(seed, 1)))?;
        Ok(Survey { watch, gauge, features, subjects, effort, seed, confidence })
    }

    /// Runs all passes but for what is done already, and tells what it finds. `Break` ends it.
    pub fn run(
        &self,
        executor: &mut dyn Executor,
        known: Vec<Done>,
        take: &mut dyn FnMut(Event, Progress) -> ControlFlow<()>,
    ) -> Result<(), RunError> {
        let passes = self.effort.passes;
        let total = self.subjects.len() * passes as usize;
        let mut done: Vec<Vec<Option<Outcome>>> = vec![vec![None; passes as usize]; self.subjects.len()];
        for known in known {
            if let Some(place) = done.get_mut(known.form).and_then(|form| form.get_mut(known.pass as usize)) {
                *place = Some(known.outcome);
            }
        }
        let mut count = done.iter().flatten().filter(|outcome| outcome.is_some()).count();
        for pass in 0..passes {
            let mut order: Vec<usize> = (0..self.subjects.len()).collect();
            Random::new(mix(self.seed, 2 + u64::from(pass))).shuffle(&mut order);
            let mut order = VecDeque::from(order);
            let mut postponed = vec![0; self.subjects.len()];
            while let Some(form) = order.pop_front() {
                if done[form][pass as usize].is_some() {
                    continue;
                }
                let outcome = self.measure(executor, form, pass)?;
                // A neighbour may be gone when all others are done.
                if outcome.is_disturbed() && postponed[form] < POSTPONED_MOST && !order.is_empty() {
                    postponed[form] += 1;
                    order.push_back(form);
                    continue;
                }
                let one = Done { form, pass, outcome };
                count += 1;
                let progress = Progress { done: count, total };
                let go_on = take(Event::Done(&one), progress);
                done[form][pass as usize] = Some(one.outcome);
                if go_on.is_break() {
                    return Ok(());
                }
                if pass + 1 == passes {
                    let outcomes: Vec<Outcome> = done[form].iter_mut().filter_map(Option::take).collect();
                    done[form].iter_mut().for_each(|place| *place = Some(Outcome::Measured(Vec::new())));
                    if take(Event::Row(Box::new(self.row(form, &outcomes))), progress).is_break() {
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    /// The experiments of a form, or why there are none.
    pub fn plan(&self, form: usize) -> Result<Plan, Outcome> {
        let subject = &self.subjects[form];
        let Some(anatomy) = Anatomy::of(subject.form) else {
            return Err(Outcome::Failed("no instance can be encoded".to_string()));
        };
        match skip(&anatomy, self.features) {
            Some(skip) => Err(Outcome::Skipped(skip.code().to_string())),
            None => Ok(Plan::new(anatomy, self.features, subject)),
        }
    }

    /// Measures a form once.
    pub fn measure(&self, executor: &mut dyn Executor, form: usize, pass: u32) -> Result<Outcome, RunError> {
        let plan = match self.plan(form) {
            Ok(plan) => plan,
            Err(outcome) => return Ok(outcome),
        };
        if plan.experiments.is_empty() {
            return Ok(Outcome::Failed("no program can be written".to_string()));
        }
        // By its name, not its place among others: alone, a form gets the layouts that it has in a larger survey.
        let mut random = Random::new(mix(mix(self.seed, u64::from(pass)), name(&plan.anatomy.form)));
        match self.readings(executor, &plan, &mut random) {
            Ok(readings) => Ok(Outcome::Measured(readings)),
            Err(error @ RunError::System { .. }) => Err(error),
            Err(error) => Ok(Outcome::Failed(error.to_string())),
        }
    }

    fn readings(
        &self,
        executor: &mut dyn Executor,
        plan: &Plan,
        random: &mut Random,
    ) -> Result<Vec<Reading>, RunError> {
        let surroundings = (plan.element, plan.touches_memory);
        // First with few instances: a slow instruction would take for ever in a long body.
        let mut scout = self.timed(plan, true);
        scout.truncate(1);
        let first = self.watch.time(executor, &scout, (1, 1, SCOUT_ROUNDS), surroundings, random)?;
        let about = first[0][0].about();
        let slow = about >= SLOW || about.is_nan();
        let mut timed = self.timed(plan, slow);
        let chosen: Vec<usize> = (0..timed.len()).filter(|index| !slow || !is_spare(plan, *index)).collect();
        timed = chosen.iter().map(|index| timed[*index].clone()).collect();
        let scouted = self.watch.time(executor, &timed, (1, 1, SCOUT_ROUNDS), surroundings, random)?;
        for (timed, timing) in timed.iter_mut().zip(&scouted[0]) {
            let body = timing.about() * timed.copies as f64;
            let wanted = self.effort.cycles / 4.0 / body;
            let wanted = if wanted.is_finite() { wanted } else { LOOPS_LEAST as f64 };
            timed.loops = (wanted as u64).clamp(if slow { 1 } else { LOOPS_LEAST }, LOOPS_MOST);
        }
        let mut readings = vec![Reading::default(); plan.experiments.len()];
        let mut open: Vec<(usize, Timed)> = chosen.into_iter().zip(timed).collect();
        let mut wanted = self.effort.layouts;
        for _ in 0..TRIES {
            let programs: Vec<Timed> = open.iter().map(|(_, timed)| timed.clone()).collect();
            let size = (wanted, WARM_UP, self.effort.rounds);
            let timings = self.watch.time(executor, &programs, size, surroundings, random)?;
            for layout in &timings {
                for (timing, (index, _)) in layout.iter().zip(&open) {
                    readings[*index].add(timing);
                }
            }
            // Programs whose every round was disturbed, or that are not linear in some layouts, get others; the rest
            // has what it needs.
            let lacks = |index: usize| {
                let extra = plan.experiments[index].meaning.is_extra();
                if extra { 0 } else { self.effort.layouts.saturating_sub(readings[index].cycles.len()) }
            };
            open.retain(|(index, _)| lacks(*index) > 0);
            wanted = open.iter().map(|(index, _)| lacks(*index)).max().unwrap_or(0);
            if wanted == 0 {
                break;
            }
        }
        self.lengthen(executor, plan, &mut readings, random)?;
        if self.effort.decoders && plan.rate(&readings) < DECODED_BELOW {
            self.decode(executor, plan, &mut readings, random)?;
        }
        Ok(readings)
    }

    /// Measures the rate of code that comes from the decoders, beside the first reading.
    fn decode(
        &self,
        executor: &mut dyn Executor,
        plan: &Plan,
        readings: &mut [Reading],
        random: &mut Random,
    ) -> Result<(), RunError> {
        let Some(experiment) = plan.decoders() else { return Ok(()) };
        let repeats = experiment.repeats(false);
        let program = self.watch.program(experiment.world, &experiment.init, &experiment.period, repeats);
        let timed = [Timed { program, copies: repeats * experiment.copies, loops: 1 }];
        let size = (self.effort.layouts, WARM_UP, self.effort.rounds);
        let timings = self.watch.time(executor, &timed, size, (plan.element, plan.touches_memory), random)?;
        let mut decoded = Reading::default();
        timings.iter().for_each(|layout| decoded.add(&layout[0]));
        readings[0].decoded = decoded.cycles;
        Ok(())
    }

    /// Measures chains that are no slower than the rate of their instances again, with more links.
    fn lengthen(
        &self,
        executor: &mut dyn Executor,
        plan: &Plan,
        readings: &mut [Reading],
        random: &mut Random,
    ) -> Result<(), RunError> {
        let rate = plan.rate(readings);
        let more = rate.ceil() as usize + 2;
        if rate <= 1.0 + BOUND_SHARE || rate.is_infinite() || more > PADDING_MOST {
            return Ok(());
        }
        let mut chosen = Vec::new();
        let mut timed = Vec::new();
        for (index, reading) in readings.iter().enumerate() {
            let mut cycles = reading.cycles.clone();
            if cycles.is_empty() || median(&mut cycles) > rate * (1.0 + BOUND_SHARE) {
                continue;
            }
            let Some((experiment, _)) = plan.padded(index, more) else { continue };
            let repeats = experiment.repeats(false);
            let program = self.watch.program(experiment.world, &experiment.init, &experiment.period, repeats);
            let body = (more as f64 + rate) * (repeats * experiment.copies) as f64;
            let loops = ((self.effort.cycles / 4.0 / body) as u64).clamp(LOOPS_LEAST, LOOPS_MOST);
            timed.push(Timed { program, copies: repeats * experiment.copies, loops });
            chosen.push(index);
        }
        if timed.is_empty() {
            return Ok(());
        }
        let size = (self.effort.layouts, WARM_UP, self.effort.rounds);
        let timings = self.watch.time(executor, &timed, size, (plan.element, plan.touches_memory), random)?;
        for (at, index) in chosen.into_iter().enumerate() {
            let mut longer = Reading::default();
            timings.iter().for_each(|layout| longer.add(&layout[at]));
            readings[index].padded = Some((more, longer.cycles));
        }
        Ok(())
    }

    fn timed(&self, plan: &Plan, few: bool) -> Vec<Timed> {
        let one = |experiment: &super::experiment::Experiment| {
            let repeats = experiment.repeats(few);
            let program = self.watch.program(experiment.world, &experiment.init, &experiment.period, repeats);
            Timed { program, copies: repeats * experiment.copies, loops: SCOUT_LOOPS }
        };
        plan.experiments.iter().map(one).collect()
    }

    /// The row of a form from its passes.
    pub fn row(&self, form: usize, outcomes: &[Outcome]) -> Row {
        let mut row = self.key(form);
        let mut passes = Vec::new();
        for outcome in outcomes {
            match outcome {
                Outcome::Measured(readings) => passes.push(readings.clone()),
                Outcome::Skipped(reason) => {
                    (row.status, row.reason) = (Status::Skipped, Some(reason.clone()));
                    return row;
                }
                Outcome::Failed(reason) => row.reason = Some(reason.clone()),
            }
        }
        // What failed once is not believed.
        if passes.len() < outcomes.len() {
            return row;
        }
        if let Ok(plan) = self.plan(form) {
            let analysis = Analysis {
                plan: &plan,
                gauge: &self.gauge,
                confidence: self.confidence,
                slot: self.gauge.slot(),
            };
            analysis.fill(&mut row, &passes);
            if !self.subjects[form].throughput {
                row.throughput = None;
            }
        }
        row
    }

    /// A row with its key and nothing measured.
    pub fn key(&self, form: usize) -> Row {
        let form = self.subjects[form].form;
        let anatomy = Anatomy::of(form);
        let features = anatomy.as_ref().map(|anatomy| anatomy.sample.cpuid_features()).unwrap_or_default();
        let isa: Vec<String> = features.iter().map(|feature| format!("{feature:?}").to_lowercase()).collect();
        let bytes = anatomy.as_ref().and_then(|anatomy| super::operands::encode(&[anatomy.sample]));
        Row {
            code: format!("{:?}", form.code),
            mnemonic: form.mnemonic(),
            operands: form.operands(),
            encoding: form.encoding().to_string(),
            isa: isa.join("+"),
            implicit: anatomy.map(|anatomy| anatomy.implicit).unwrap_or_default(),
            bytes: bytes.map(|bytes| hex(&bytes)).unwrap_or_default(),
            status: Status::Failed,
            reason: None,
            latency: Vec::new(),
            throughput: None,
            tags: Vec::new(),
            caveats: Vec::new(),
            repro: String::new(),
        }
    }
}

impl Timing {
    /// The cost, whatever disturbed it.
    fn about(&self) -> f64 {
        centre(if self.cycles.is_empty() { &self.shared } else { &self.cycles })
    }
}

impl Reading {
    /// Adds a layout, unless all its rounds were disturbed or its cost is not proportional to the iterations.
    fn add(&mut self, timing: &Timing) {
        let alone = !timing.cycles.is_empty();
        let (all, bends) =
            if alone { (&timing.cycles, &timing.bend) } else { (&timing.shared, &timing.shared_bend) };
        if all.is_empty() {
            return;
        }
        let (cycles, bend) = (centre(all), median(&mut bends.clone()));
        if cycles <= NOTHING || cycles.is_nan() || bend.abs() > BEND_CYCLES.max(BEND_SHARE * cycles.abs()) {
            self.bent += 1;
        } else if alone {
            self.cycles.push(cycles);
        } else {
            self.shared.push(cycles);
        }
    }
}

/// A number for a form.
fn name(form: &Form) -> u64 {
    let text = format!("{:?} {}", form.code, form.operands());
    text.bytes().fold(0, |hash, byte| mix(hash, u64::from(byte)))
}

/// Whether an experiment can be left out of a slow form's.
fn is_spare(plan: &Plan, index: usize) -> bool {
    let meaning = &plan.experiments[index].meaning;
    let spare =
        matches!(meaning, Meaning::Throughput { .. } | Meaning::SameDestination { .. }) || meaning.is_extra();
    index > 0 && spare
}

/// The mean of the rounds near their median.
fn centre(cycles: &[f64]) -> f64 {
    if cycles.is_empty() {
        return f64::NAN;
    }
    let middle = median(&mut cycles.to_vec());
    let near: Vec<f64> = cycles
        .iter()
        .copied()
        .filter(|cycles| (cycles - middle).abs() <= ROUND_SHARE * middle.abs())
        .collect();
    if near.is_empty() { middle } else { mean(&near) }
}

impl Skip {
    /// The reason with this code.
    pub fn named(code: &str) -> Option<Skip> {
        Skip::ALL.iter().find(|(_, name, _)| *name == code).map(|(skip, ..)| *skip)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timing(cycles: f64, bend: f64) -> Timing {
        Timing { cycles: vec![cycles; 3], bend: vec![bend; 3], ..Timing::default() }
    }

    #[test]
    fn layouts_that_are_bent_or_impossible_are_left_out() {
        let mut reading = Reading::default();
        reading.add(&timing(1.0, 0.01));
        for (cycles, bend) in [(1.0, 0.2), (1.0, -0.2), (-0.167, 0.0), (0.01, 0.0), (f64::NAN, 0.0)] {
            reading.add(&timing(cycles, bend));
        }
        assert_eq!((reading.cycles, reading.bent), (vec![1.0], 5));
    }

    #[test]
    fn a_neighbours_figures_are_kept_apart() {
        let mut reading = Reading::default();
        let shared = Timing { shared: vec![2.0], shared_bend: vec![0.0], ..Timing::default() };
        reading.add(&shared);
        assert!(Outcome::Measured(vec![reading.clone()]).is_disturbed());
        reading.add(&timing(1.0, 0.0));
        assert_eq!((&reading.cycles, &reading.shared), (&vec![1.0], &vec![2.0]));
        assert!(
            !Outcome::Measured(vec![reading, Reading { cycles: vec![1.0], ..Reading::default() }])
                .is_disturbed()
        );
        assert!(Outcome::Measured(vec![Reading::default()]).is_disturbed());
    }
}
