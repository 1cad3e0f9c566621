//! Times many mixes: each in several orders, of which the fastest counts.
//!
//! The order is chosen on one pass and estimated on another, in other layouts. The minimum of
//! several orders would be too low.

use super::mix::Mix;
use super::mix_body::MixBody;
use super::mix_form::MixForm;
use super::mix_order::MixOrder;
use crate::experiments::modes::{estimate_lowest_mode, find_lowest_mode};
use crate::experiments::program_reading::ProgramReading;
use crate::experiments::timing::{LoopedProgram, ProgramTimer, TimingSize, TimingSurroundings};
use crate::survey_settings::SurveyTiming;
use cyclescope_code::program::{EntryState, VectorSetup};
use cyclescope_code::snippet::Snippet;
use cyclescope_core::error::RunError;
use cyclescope_core::random::Random;
use cyclescope_core::statistics::Interval;
use cyclescope_core::unit::Unit;
use cyclescope_exec::Executor;
use cyclescope_measure::result::record::Quantity;
use cyclescope_measure::sibling::SiblingPolicy;
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::time::Duration;

/// How thoroughly mixes are timed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MixEffort {
    /// Orders of each mix.
    pub orders: usize,
    /// Layouts of each order in the pass that chooses one.
    pub first_layouts: usize,
    /// Layouts of the chosen order.
    pub layouts: usize,
    /// Timed rounds of each layout.
    pub rounds: u32,
    /// Approximate core cycles of a program's longest call.
    pub cycles: f64,
}

impl MixEffort {
    /// The default effort.
    pub const FULL: MixEffort = MixEffort { orders: 6, first_layouts: 2, layouts: 4, rounds: 3, cycles: 6_000.0 };
    /// Few orders, for very many mixes.
    pub const QUICK: MixEffort = MixEffort { orders: 2, first_layouts: 1, layouts: 2, rounds: 2, cycles: 4_000.0 };
}

/// The time of one mix. If the core's choice of ports changes within a call, the time may be too low by
/// the share that the longest call alone allows: 1 %, and 100 core cycles of its start.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MixTime {
    /// Core cycles of one mix in the fastest order.
    pub cycles: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
    /// Core cycles in the slowest order: how much the order matters.
    pub worst: f64,
    /// The fastest order.
    pub order: MixOrder,
    /// Number of orders that were timed.
    pub orders: usize,
}

impl MixTime {
    /// The time of one mix as a quantity.
    pub fn to_quantity(&self) -> Quantity {
        Quantity::new(Interval { value: self.cycles, low: self.low, high: self.high }, Unit::CoreCycles)
    }
}

/// What came of a mix.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MixOutcome {
    /// Its time.
    Timed(MixTime),
    /// Why it has none.
    Refused(String),
}

/// Times mixes of a list of forms.
pub struct MixTimer<'a> {
    timer: ProgramTimer<'a>,
    forms: &'a [MixForm],
    effort: MixEffort,
    confidence: f64,
    /// Retries left while the sibling is busy in nearly all mixes.
    patience: Cell<u32>,
}

/// Lower limit of instructions in a loop. The loop's end takes a slot or two, and on Zen 5 up to three
/// cycles of an ALU among instructions of another latency. No difference of two loops is taken: these
/// may be in different scheduling modes, and a mix that seems too fast proves what is wrong.
const INSTRUCTIONS_LEAST: usize = 320;
/// How the chain of a form is timed. A rough figure suffices.
const CHAIN_EFFORT: MixEffort = MixEffort { orders: 1, first_layouts: 0, layouts: 2, rounds: 2, cycles: 3_000.0 };
/// Copies in a chain.
const CHAIN_COPIES: usize = 48;
/// Programs of one batch.
const BATCH_PROGRAMS: usize = 84;
/// Untimed rounds of each layout.
const WARM_UP: u32 = 1;
/// Instructions per core cycle that the first call of a program assumes.
const USUAL_RATE: f64 = 4.0;
/// Iterations of a program's shortest call.
const LOOPS_LEAST: u64 = 2;
const LOOPS_MOST: u64 = 400;
/// Mixes without a round that had an idle sibling are timed again, unless it was busy in nearly all of
/// many mixes: then it does not rest. Siblings were busy for tens of milliseconds at a time.
const MIX_RETRY_POLICY: SiblingPolicy =
    SiblingPolicy { retries: 20, pause: Duration::from_millis(20), resting_share: 0.9, ..SiblingPolicy::USUAL };
const MANY_MIXES: usize = 20;
/// Retries until a sibling that was busy in nearly all mixes counts as one that does not rest: some
/// tenths of a second, once.
const PATIENT_RETRIES: u32 = 12;

/// A mix, and the bodies to time.
struct TimedMix {
    /// Index among the mixes.
    mix: usize,
    bodies: Vec<TimedBody>,
    /// What the first pass says.
    chosen: Option<ChosenOrder>,
}

/// A body and what its code needs. Both are kept: to decode the code takes longer than to time it.
#[derive(Clone)]
struct TimedBody {
    body: MixBody,
    world: EntryState,
    touches_memory: bool,
}

/// The order that the first pass chose.
#[derive(Clone, Copy)]
struct ChosenOrder {
    /// Core cycles of one iteration of its body.
    cycles: f64,
    /// Core cycles of the slowest order.
    slowest: f64,
    /// Number of orders that were timed.
    orders: usize,
}

impl TimedBody {
    fn new(body: MixBody) -> TimedBody {
        let outline = Snippet::new(body.code.clone(), body.init.clone(), "").outline(true);
        TimedBody { body, world: outline.world, touches_memory: outline.touches_memory }
    }
}

impl TimedMix {
    fn new(mix: usize, bodies: Vec<MixBody>) -> TimedMix {
        TimedMix { mix, bodies: bodies.into_iter().map(TimedBody::new).collect(), chosen: None }
    }

    /// The vector registers that it needs.
    fn vectors(&self) -> VectorSetup {
        self.bodies[0].world.vectors
    }
}

impl<'a> MixTimer<'a> {
    /// A timer of mixes of these forms.
    pub fn new(timing: SurveyTiming<'a>, forms: &'a [MixForm], effort: MixEffort, confidence: f64) -> MixTimer<'a> {
        MixTimer { timer: timing.to_timer(), forms, effort, confidence, patience: Cell::new(PATIENT_RETRIES) }
    }

    /// The body of a mix in an order, as [`MixTimer::time_mixes`] runs it. An error says why there is
    /// none.
    pub fn build_body(&self, mix: &Mix, order: MixOrder) -> Result<MixBody, String> {
        let forms: Vec<&MixForm> = mix.parts.iter().map(|part| &self.forms[part.form]).collect();
        MixBody::new(&forms, &mix.counts(), order, INSTRUCTIONS_LEAST)
    }

    /// Measures how long copies in one register wait for each other, for all forms that update their
    /// destination, so that mixes give them enough registers.
    pub fn measure_latencies(
        timing: SurveyTiming<'a>,
        executor: &mut dyn Executor,
        forms: &mut [MixForm],
        random: &mut Random,
    ) -> Result<(), RunError> {
        let updating: Vec<usize> = (0..forms.len()).filter(|form| forms[*form].updates_registers()).collect();
        let known = forms.to_vec();
        let timer = MixTimer::new(timing, &known, CHAIN_EFFORT, 0.95);
        let chain = |form: &usize| {
            let body = MixBody::new_chain(&known[*form], CHAIN_COPIES)?;
            Some(TimedMix::new(*form, vec![body]))
        };
        let chains = updating.iter().filter_map(chain).collect();
        let size = TimingSize { layouts: CHAIN_EFFORT.layouts, warm_up: WARM_UP, rounds: CHAIN_EFFORT.rounds };
        // A form that can't run is refused in its mixes.
        let mut outcomes = vec![None; forms.len()];
        for (timed, readings) in timer.read_mixes(executor, chains, size, &mut outcomes, random)? {
            let cycles = find_lowest_mode(&readings[0].cycles).map(|mode| mode.value / CHAIN_COPIES as f64);
            if let Some(cycles) = cycles {
                forms[timed.mix].latency = cycles.max(1.0);
            }
        }
        Ok(())
    }

    /// Times mixes. Returns what came of each, in the same order.
    pub fn time_mixes(
        &self,
        executor: &mut dyn Executor,
        mixes: &[Mix],
        random: &mut Random,
    ) -> Result<Vec<MixOutcome>, RunError> {
        let mut outcomes: Vec<Option<MixOutcome>> = vec![None; mixes.len()];
        let mut open = Vec::new();
        for (mix, asked) in mixes.iter().enumerate() {
            match self.build_orders(asked) {
                Ok(bodies) => open.push(TimedMix::new(mix, bodies)),
                Err(why) => outcomes[mix] = Some(MixOutcome::Refused(why)),
            }
        }
        let mut retries = MIX_RETRY_POLICY.start_retries();
        while !open.is_empty() {
            let shared = self.time_open(executor, open, &mut outcomes, random)?;
            let share = if mixes.len() < MANY_MIXES { 0.0 } else { shared.len() as f64 / mixes.len() as f64 };
            let patience = self.patience.get();
            let rests = share <= MIX_RETRY_POLICY.resting_share;
            self.patience.set(if rests { PATIENT_RETRIES } else { patience.saturating_sub(1) });
            let counted = if patience > 0 { 0.0 } else { share };
            if shared.is_empty() || !retries.pause_if_shared(executor, counted) {
                refuse(&shared, &mut outcomes, "the sibling was busy, or no call was proportional to its length");
                break;
            }
            open = shared;
        }
        Ok(outcomes.into_iter().map(|outcome| outcome.expect("each mix has an outcome")).collect())
    }

    /// The bodies of a mix in all orders that differ.
    fn build_orders(&self, mix: &Mix) -> Result<Vec<MixBody>, String> {
        let mut bodies: Vec<MixBody> = Vec::new();
        for order in MixOrder::list(self.effort.orders) {
            let body = self.build_body(mix, order)?;
            if bodies.iter().all(|known| known.code != body.code) {
                bodies.push(body);
            }
        }
        Ok(bodies)
    }

    /// Times mixes in both passes. Returns those without a reading.
    fn time_open(
        &self,
        executor: &mut dyn Executor,
        open: Vec<TimedMix>,
        outcomes: &mut [Option<MixOutcome>],
        random: &mut Random,
    ) -> Result<Vec<TimedMix>, RunError> {
        let choosing = TimingSize { layouts: self.effort.first_layouts, warm_up: WARM_UP, rounds: self.effort.rounds };
        let estimating = TimingSize { layouts: self.effort.layouts, ..choosing };
        let (mut chosen, mut shared) = (Vec::new(), Vec::new());
        for (timed, readings) in self.read_mixes(executor, open, choosing, outcomes, random)? {
            let cost = |reading: &ProgramReading| find_lowest_mode(&reading.cycles).map(|mode| mode.value);
            let costs: Vec<Option<f64>> = readings.iter().map(cost).collect();
            let known = costs.iter().enumerate().filter_map(|(at, cost)| Some((at, (*cost)?)));
            let Some((fastest, cycles)) = known.min_by(|one, other| one.1.total_cmp(&other.1)) else {
                shared.push(timed);
                continue;
            };
            let slowest = costs.iter().flatten().copied().fold(cycles, f64::max);
            let first = ChosenOrder { cycles, slowest, orders: timed.bodies.len() };
            let body = timed.bodies[fastest].clone();
            chosen.push(TimedMix { bodies: vec![body], chosen: Some(first), ..timed });
        }
        for (timed, readings) in self.read_mixes(executor, chosen, estimating, outcomes, random)? {
            let body = &timed.bodies[0].body;
            let estimate = estimate_lowest_mode(&readings[0].cycles, self.confidence);
            let (Some(estimate), Some(ChosenOrder { slowest, orders, .. })) = (estimate, timed.chosen) else {
                shared.push(timed);
                continue;
            };
            let per_mix = |cycles: f64| cycles / body.repeats as f64;
            outcomes[timed.mix] = Some(MixOutcome::Timed(MixTime {
                cycles: per_mix(estimate.cost.value),
                low: per_mix(estimate.cost.low),
                high: per_mix(estimate.cost.high),
                worst: per_mix(slowest.max(estimate.cost.value)),
                order: body.order,
                orders,
            }));
        }
        // A mix whose chosen order has no reading is chosen again.
        for timed in &mut shared {
            timed.chosen = None;
        }
        Ok(shared)
    }

    /// Times all bodies of these mixes, in batches. Mixes that can't run get their outcome here.
    fn read_mixes(
        &self,
        executor: &mut dyn Executor,
        mut mixes: Vec<TimedMix>,
        size: TimingSize,
        outcomes: &mut [Option<MixOutcome>],
        random: &mut Random,
    ) -> Result<Vec<(TimedMix, Vec<ProgramReading>)>, RunError> {
        // Wide vector code changes the clock of what runs beside it.
        mixes.sort_by_key(|timed| (timed.vectors(), timed.mix));
        let mut batches: Vec<Vec<TimedMix>> = Vec::new();
        for timed in mixes {
            let fits = batches.last().is_some_and(|batch| {
                let programs: usize = batch.iter().map(|timed| timed.bodies.len()).sum();
                programs + timed.bodies.len() <= BATCH_PROGRAMS && batch[0].vectors() == timed.vectors()
            });
            match batches.last_mut().filter(|_| fits) {
                Some(batch) => batch.push(timed),
                None => batches.push(vec![timed]),
            }
        }
        // The next batch is the last.
        batches.reverse();
        let mut all = Vec::new();
        while let Some(mut batch) = batches.pop() {
            match self.read_batch(executor, &batch, size, random) {
                Ok(readings) => all.extend(batch.into_iter().zip(readings)),
                Err(error) if error.is_harness_failure() => return Err(error),
                Err(error) if batch.len() == 1 => refuse(&batch, outcomes, &error.to_string()),
                // Halves find the mix that fails.
                Err(_) => {
                    let rest = batch.split_off(batch.len() / 2);
                    batches.extend([rest, batch]);
                }
            }
        }
        Ok(all)
    }

    fn read_batch(
        &self,
        executor: &mut dyn Executor,
        batch: &[TimedMix],
        size: TimingSize,
        random: &mut Random,
    ) -> Result<Vec<Vec<ProgramReading>>, RunError> {
        let mut surroundings = TimingSurroundings::default();
        let mut programs = Vec::new();
        for timed in batch {
            for TimedBody { body, world, touches_memory } in &timed.bodies {
                surroundings.touches_memory |= touches_memory;
                surroundings.vectors = surroundings.vectors.max(world.vectors);
                let program = self.timer.build_program(*world, &body.init, &body.code, 1);
                let cycles = timed.chosen.map_or(body.instructions.len() as f64 / USUAL_RATE, |first| first.cycles);
                let loops = ((self.effort.cycles / 4.0 / cycles) as u64).clamp(LOOPS_LEAST, LOOPS_MOST);
                programs.push(LoopedProgram { program, copies: 1, loops });
            }
        }
        let timings = self.timer.time_programs(executor, &programs, size, surroundings, random)?;
        let mut readings = vec![ProgramReading::default(); programs.len()];
        for layout in &timings {
            readings.iter_mut().zip(layout).for_each(|(reading, timing)| reading.add_rate_layout(timing));
        }
        let mut readings = readings.into_iter();
        Ok(batch.iter().map(|timed| readings.by_ref().take(timed.bodies.len()).collect()).collect())
    }
}

fn refuse(mixes: &[TimedMix], outcomes: &mut [Option<MixOutcome>], why: &str) {
    for timed in mixes {
        outcomes[timed.mix] = Some(MixOutcome::Refused(why.to_string()));
    }
}
