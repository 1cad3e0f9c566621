//! Times many mixes: each in several orders, of which the fastest counts.
//!
//! The order is chosen on one pass and estimated on another, in other layouts. The minimum of
//! several orders would be too low.

use super::mix::Mix;
use super::mix_body::MixBody;
use super::mix_form::MixForm;
use super::mix_order::MixOrder;
use super::timed_mix::{TimedBody, TimedMix};
use crate::experiments::modes::{estimate_lowest_mode, find_lowest_mode};
use crate::experiments::program_reading::ProgramReading;
use crate::experiments::timing::{LoopedProgram, ProgramTimer, TimingSize, TimingSurroundings};
use crate::survey_settings::SurveyTiming;
use cyclescope_core::error::RunError;
use cyclescope_core::random::Random;
use cyclescope_core::statistics::Interval;
use cyclescope_core::unit::Unit;
use cyclescope_exec::Executor;
use cyclescope_measure::result::record::Quantity;
use cyclescope_measure::sibling::SiblingWait;
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
    /// Longest time of retries beside a busy sibling, in all mixes together, but for what each list of
    /// mixes has at least.
    #[serde(default)]
    pub wait: Duration,
    /// Most tries of a mix until its two fastest layouts agree, if no sibling is seen to be busy. One that
    /// uses some slots only goes unseen, and slows mixes that need all.
    #[serde(default)]
    pub tries: u32,
}

impl MixEffort {
    /// The default effort.
    pub const FULL: MixEffort = MixEffort {
        orders: 6,
        first_layouts: 2,
        layouts: 4,
        rounds: 12,
        cycles: 6_000.0,
        wait: Duration::from_secs(120),
        tries: 8,
    };
    /// Few orders, for very many mixes.
    pub const QUICK: MixEffort = MixEffort {
        orders: 2,
        first_layouts: 1,
        layouts: 2,
        rounds: 8,
        cycles: 4_000.0,
        wait: Duration::from_secs(40),
        tries: 6,
    };
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
    /// The time of a mix by the layouts of its chosen order.
    fn estimate(timed: &TimedMix, confidence: f64) -> Option<MixTime> {
        let body = &timed.bodies[0].body;
        let (estimate, first) = (estimate_lowest_mode(&timed.cycles, confidence)?, timed.chosen?);
        let per_mix = |cycles: f64| cycles / body.repeats as f64;
        Some(MixTime {
            cycles: per_mix(estimate.cost.value),
            low: per_mix(estimate.cost.low),
            high: per_mix(estimate.cost.high),
            worst: per_mix(first.slowest.max(estimate.cost.value)),
            order: body.order,
            orders: first.orders,
        })
    }

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
    /// Mixes without a round that had an idle sibling are timed again.
    wait: Cell<SiblingWait>,
}

/// Lower limit of instructions in a loop. The loop's end takes a slot or two, and on Zen 5 up to three
/// cycles of an ALU among instructions of another latency. No difference of two loops is taken: these
/// may be in different scheduling modes, and a mix that seems too fast proves what is wrong.
const INSTRUCTIONS_LEAST: usize = 320;
/// How the chain of a form is timed. A rough figure suffices.
const CHAIN_EFFORT: MixEffort = MixEffort {
    orders: 1,
    first_layouts: 0,
    layouts: 2,
    rounds: 2,
    cycles: 3_000.0,
    wait: Duration::from_secs(20),
    tries: 0,
};
/// Copies in a chain.
const CHAIN_COPIES: usize = 48;
/// Programs of one batch.
const BATCH_PROGRAMS: usize = 84;
/// Untimed rounds of each layout.
const WARM_UP: u32 = 1;
/// Instructions per core cycle that the first call of a program assumes.
const USUAL_RATE: f64 = 4.0;
/// The share of the time for retries that each list of mixes has at least.
const CALL_WAIT_SHARE: f64 = 0.2;
/// Most tries of a mix that has no reading for another reason than a busy sibling.
const TRIES_MOST: u32 = 20;
/// Iterations of a program's shortest call.
const LOOPS_LEAST: u64 = 2;
const LOOPS_MOST: u64 = 400;
impl<'a> MixTimer<'a> {
    /// A timer of mixes of these forms.
    pub fn new(timing: SurveyTiming<'a>, forms: &'a [MixForm], effort: MixEffort, confidence: f64) -> MixTimer<'a> {
        let wait = Cell::new(SiblingWait::new(effort.wait));
        MixTimer { timer: timing.to_timer(), forms, effort, confidence, wait }
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
        timer.try_all(executor, chains, &mut outcomes, |executor, open, outcomes| {
            let mut missed = Vec::new();
            for (mut timed, readings) in timer.read_mixes(executor, open, size, outcomes, random)? {
                match find_lowest_mode(&readings[0].cycles) {
                    Some(mode) => forms[timed.mix].latency = (mode.value / CHAIN_COPIES as f64).max(1.0),
                    None => {
                        timed.note_try(&readings);
                        missed.push(timed);
                    }
                }
            }
            Ok(missed)
        })
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
        self.try_all(executor, open, &mut outcomes, |executor, open, outcomes| {
            self.time_open(executor, open, outcomes, random)
        })?;
        Ok(outcomes.into_iter().map(|outcome| outcome.expect("each mix has an outcome")).collect())
    }

    /// Tries mixes until each has a reading or is refused. A try returns those without a reading.
    fn try_all(
        &self,
        executor: &mut dyn Executor,
        mut open: Vec<TimedMix>,
        outcomes: &mut [Option<MixOutcome>],
        mut try_once: impl FnMut(
            &mut dyn Executor,
            Vec<TimedMix>,
            &mut [Option<MixOutcome>],
        ) -> Result<Vec<TimedMix>, RunError>,
    ) -> Result<(), RunError> {
        let mut wait = self.wait.get();
        // Mixes that ports of many forms depend on come late in a survey.
        wait.leave_at_least(self.effort.wait.mul_f64(CALL_WAIT_SHARE));
        while !open.is_empty() {
            let tried = open.len();
            let missed = try_once(executor, open, outcomes)?;
            let gained = missed.len() < tried;
            let (vain, missed): (Vec<_>, Vec<_>) = missed.into_iter().partition(|timed| timed.vain_tries >= TRIES_MOST);
            self.give_up(&vain, outcomes, "no call was proportional to its length");
            open = missed;
            if open.iter().any(|timed| timed.shared) && !wait.pause_before_retry(executor, gained) {
                // The others only wait for layouts that agree.
                let (shared, others): (Vec<_>, Vec<_>) = open.into_iter().partition(|timed| timed.shared);
                self.give_up(&shared, outcomes, "the sibling was busy");
                open = others;
            }
        }
        wait.end_retries();
        self.wait.set(wait);
        Ok(())
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
        let (mut chosen, open): (Vec<_>, Vec<_>) = open.into_iter().partition(|timed| timed.chosen.is_some());
        let mut missed = Vec::new();
        for (mut timed, readings) in self.read_mixes(executor, open, choosing, outcomes, random)? {
            timed.choose_order(&readings);
            match timed.chosen {
                Some(_) => chosen.push(timed),
                None => {
                    timed.note_try(&readings);
                    missed.push(timed);
                }
            }
        }
        for (mut timed, readings) in self.read_mixes(executor, chosen, estimating, outcomes, random)? {
            if timed.add_try(&readings[0], self.effort.tries) {
                outcomes[timed.mix] = MixTime::estimate(&timed, self.confidence).map(MixOutcome::Timed);
            } else {
                timed.note_try(&readings);
                missed.push(timed);
            }
        }
        Ok(missed)
    }

    /// Ends mixes that would need more tries: with the time that they have, or without one.
    fn give_up(&self, mixes: &[TimedMix], outcomes: &mut [Option<MixOutcome>], why: &str) {
        for timed in mixes {
            let time = MixTime::estimate(timed, self.confidence).map(MixOutcome::Timed);
            outcomes[timed.mix] = Some(time.unwrap_or_else(|| MixOutcome::Refused(why.to_string())));
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selection::list_forms;
    use cyclescope_code::asm::CodeMode;
    use cyclescope_core::machine::Machine;
    use cyclescope_exec::PrivilegeRing;

    /// A mix of additions in all orders.
    fn additions() -> TimedMix {
        let features = Machine::detect().features;
        let form = |name: &str| {
            let target = list_forms(CodeMode::Bits64).into_iter().find(|target| target.code() == name).unwrap();
            MixForm::new(&target, &features, PrivilegeRing::Three).unwrap()
        };
        let forms = [form("Add_r64_rm64"), form("Imul_r64_rm64")];
        let bodies = MixOrder::list(3)
            .into_iter()
            .map(|order| MixBody::new(&forms.iter().collect::<Vec<_>>(), &[5, 1], order, INSTRUCTIONS_LEAST).unwrap());
        TimedMix::new(0, bodies.collect())
    }

    fn alone(cycles: &[f64]) -> ProgramReading {
        ProgramReading { cycles: cycles.to_vec(), ..ProgramReading::default() }
    }

    fn beside_sibling(cycles: &[f64]) -> ProgramReading {
        ProgramReading { shared: vec![9.0], ..alone(cycles) }
    }

    #[test]
    fn an_order_is_chosen_when_a_busy_sibling_hides_none() {
        let mut mix = additions();
        mix.choose_order(&[alone(&[5.0]), beside_sibling(&[]), alone(&[6.0])]);
        assert!(mix.chosen.is_none() && mix.bodies.len() == 3);
        // The fastest of all tries; an order without a time for another reason is left out.
        mix.choose_order(&[beside_sibling(&[]), alone(&[4.0]), alone(&[7.0])]);
        let chosen = mix.chosen.unwrap();
        assert_eq!((chosen.cycles, chosen.slowest, chosen.orders, mix.bodies.len()), (4.0, 6.0, 3, 1));
        let mut mix = additions();
        mix.choose_order(&[alone(&[]), alone(&[4.0]), alone(&[])]);
        assert_eq!(mix.chosen.unwrap().cycles, 4.0);
    }

    #[test]
    fn two_layouts_agree_if_a_sibling_may_be_busy_now_and_then() {
        let mut mix = additions();
        mix.choose_order(&[alone(&[4.0]), alone(&[5.0]), alone(&[5.0])]);
        assert!(!mix.add_try(&beside_sibling(&[4.6]), 0), "one layout may hide a busy sibling");
        assert!(!mix.add_try(&beside_sibling(&[4.02]), 0) && mix.add_try(&beside_sibling(&[4.01]), 0));
        let time = MixTime::estimate(&mix, 0.95).unwrap();
        let repeats = mix.bodies[0].body.repeats as f64;
        assert!((time.cycles * repeats - 4.015).abs() < 1e-9 && (time.worst * repeats - 5.0).abs() < 1e-9);
        // Without a busy sibling, one layout suffices.
        let mut mix = additions();
        mix.choose_order(&[alone(&[4.0]), alone(&[5.0]), alone(&[5.0])]);
        assert!(MixTime::estimate(&mix, 0.95).is_none() && mix.add_try(&alone(&[4.6]), 0));
        // It may be busy unseen, so that two layouts have to agree within some tries.
        let mut mix = additions();
        mix.choose_order(&[alone(&[4.0]), alone(&[5.0]), alone(&[5.0])]);
        assert!(!mix.add_try(&alone(&[4.6]), 3) && !mix.add_try(&alone(&[4.2]), 3) && mix.add_try(&alone(&[4.0]), 3));
        let mut mix = additions();
        mix.choose_order(&[alone(&[4.0]), alone(&[5.0]), alone(&[5.0])]);
        assert!(mix.add_try(&alone(&[4.01, 4.0]), 3), "two layouts agree at once");
    }
}
