//! Detects chains that are quicker in an empty scheduler.
//!
//! A chain in a long loop fills the scheduler with waiting instructions. Behind a fence, it finds
//! an empty one. While the scheduler has room, a loop of LFENCE and n turns takes a constant plus n
//! times a turn's cost. The constant contains the fence and the loop. It cancels in the difference
//! between two lengths.
//!
//! - lfence
//! - n turns of the chain
//! - dec, jnz
//!
//! Two short lengths serve for screening. If their slope is below the long loop's cost, the
//! screening is repeated in other layouts. If that confirms it, all [`CURVE_LENGTHS`] are measured.
//! Slow chains and chains that store are excluded, because LFENCE does not wait for stores.

use super::chain_turns::{ChainTurns, FENCE_CYCLES};
use super::experiment::{BOUND_SHARE, ChainVariation, ExperimentMeaning, FormExperiment};
use super::form_plan::FormPlan;
use super::modes::is_one_mode;
use super::program_reading::{ProgramReading, layout_cost};
use super::regime_reading::RegimeReading;
use super::timing::{LoopedProgram, ProgramTimer, TimingSize, TimingSurroundings};
use crate::forms::form_anatomy::OperandPlace;
use cyclescope_code::program::EntryState;
use cyclescope_core::error::RunError;
use cyclescope_core::random::Random;
use cyclescope_core::statistics::{mean, median, welch_interval};
use cyclescope_exec::Executor;
use std::borrow::Cow;

/// Approximate instructions of the two screening chains. The shorter exceeds what starts during the
/// fence; the longer fits the scheduler of most cores. A unit's own queue may be smaller: 14
/// entries in Zen 1, 16 in Zen 2. Its knee then lies between the two lengths, and the slope between
/// both costs. Only a large difference is found in this case.
pub(crate) const SCREENING_LENGTHS: [usize; 2] = [8, 24];
/// Approximate instructions of the chains on a curve. All these programs share a round.
const CURVE_LENGTHS: [usize; 14] = [6, 10, 14, 18, 24, 32, 40, 48, 56, 64, 80, 96, 128, 176];
/// Number of times that a difference must be found.
const CONFIRMATIONS: usize = 2;
/// Layouts and rounds of a screening, and how often they may be extended if the result is unclear.
/// One of three rounds may be disturbed.
const SCREENING_SIZE: TimingSize = TimingSize { layouts: 3, warm_up: 1, rounds: 3 };
const SCREENING_TRIES: usize = 3;
/// Short chains are alike if they are quicker by at most this multiple of the least difference.
const ALIKE_FACTOR: f64 = 2.5;
/// Layouts and rounds of a curve.
const CURVE_SIZE: TimingSize = TimingSize { layouts: 4, warm_up: 1, rounds: 3 };
/// Approximate core cycles of a program's longest call.
const CALL_CYCLES: f64 = 5_000.0;
/// A turn is slow if it takes more than this many core cycles per instruction.
const SLOW_CYCLES: f64 = 64.0;
/// Upper limit of links in short chains of a variation.
const LINKS_MOST: usize = 16;
/// Lower limit of a turn's core cycles if its instructions wait for each other.
const TURN_LEAST: f64 = 0.95;
/// Least difference between turns of short and long chains, in core cycles and as a share.
pub(crate) const DIFFERENT_CYCLES: f64 = 0.1;
pub(crate) const DIFFERENT_SHARE: f64 = 0.02;
/// Confidence level for a difference in a screening.
const CONFIDENCE: f64 = 0.99;

/// A chain measured in a long loop.
pub(super) struct LongChain<'a> {
    pub(super) turns: ChainTurns<'a>,
    pub(super) init: &'a [u8],
    pub(super) world: EntryState,
    /// Core cycles per turn, by layout.
    pub(super) cycles: &'a [f64],
}

impl LongChain<'_> {
    /// LFENCE and a chain of this many turns.
    fn build_short(&self, timer: &ProgramTimer, turns: usize) -> LoopedProgram {
        let program = timer.build_program(self.world, self.init, &self.turns.build_fenced_code(turns), 1);
        let loops = CALL_CYCLES / 4.0 / (mean(self.cycles) * turns as f64 + FENCE_CYCLES);
        LoopedProgram { program, copies: 1, loops: (loops as u64).max(1) }
    }

    /// Whether turns of short chains are quicker.
    pub(super) fn judge_short(&self, short: &[f64]) -> RegimeVerdict {
        judge_short(short, self.cycles)
    }
}

/// Whether turns of short chains are quicker than those of the long one, beyond chance and instrument
/// error.
fn judge_short(short: &[f64], long: &[f64]) -> RegimeVerdict {
    let Some(difference) = welch_interval(short, long, CONFIDENCE) else {
        return RegimeVerdict::Unclear;
    };
    let least = DIFFERENT_CYCLES.max(DIFFERENT_SHARE * mean(long));
    if difference.high < 0.0 && difference.value < -least {
        RegimeVerdict::Quicker
    } else if difference.low >= -ALIKE_FACTOR * least {
        RegimeVerdict::Alike
    } else {
        RegimeVerdict::Unclear
    }
}

/// The verdict on short chains. Slower ones mean nothing: their start may cost extra.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RegimeVerdict {
    Quicker,
    Alike,
    Unclear,
}

/// Measures short chains.
pub(super) struct ShortChainTimer<'a> {
    pub(super) timer: &'a ProgramTimer<'a>,
    pub(super) surroundings: TimingSurroundings,
    pub(super) executor: &'a mut dyn Executor,
    pub(super) random: &'a mut Random,
}

/// Costs of a chain by layout and length. Null if a layout has no figure.
type ChainCurve = Vec<Vec<Option<f64>>>;

/// Core cycles per further turn between two lengths.
fn find_slope(layout: &[Option<f64>], lengths: &[usize]) -> Option<f64> {
    match layout {
        [Some(short), Some(long)] => Some((long - short) / (lengths[1] - lengths[0]) as f64),
        _ => None,
    }
}

impl ShortChainTimer<'_> {
    /// Core cycles per further turn in short chains, by chain and layout. Adds layouts until the
    /// verdict is clear.
    pub(super) fn screen_chains(&mut self, chains: &[&LongChain]) -> Result<Vec<Vec<f64>>, RunError> {
        let mut slopes: Vec<Vec<f64>> = vec![Vec::new(); chains.len()];
        for _ in 0..SCREENING_TRIES {
            let is_unclear = |at: &usize| chains[*at].judge_short(&slopes[*at]) == RegimeVerdict::Unclear;
            let unclear: Vec<usize> = (0..chains.len()).filter(is_unclear).collect();
            let some: Vec<&LongChain> = unclear.iter().map(|at| chains[*at]).collect();
            for (at, more) in unclear.into_iter().zip(self.measure_slopes(&some)?) {
                slopes[at].extend(more);
            }
        }
        Ok(slopes)
    }

    /// Core cycles per further turn in short chains, by chain and layout.
    fn measure_slopes(&mut self, chains: &[&LongChain]) -> Result<Vec<Vec<f64>>, RunError> {
        let lengths: Vec<Vec<usize>> =
            chains.iter().map(|chain| chain.turns.choose_lengths(&SCREENING_LENGTHS)).collect();
        let pairs: Vec<(&LongChain, &[usize])> =
            chains.iter().copied().zip(lengths.iter().map(Vec::as_slice)).collect();
        let curves = self.measure_curves(&pairs, SCREENING_SIZE)?;
        let slopes = |(curve, lengths): (&ChainCurve, &Vec<usize>)| {
            curve.iter().filter_map(|layout| find_slope(layout, lengths)).collect()
        };
        Ok(curves.iter().zip(&lengths).map(slopes).collect())
    }

    /// Core cycles of chains of several lengths, including fence and loop, by chain.
    fn measure_curves(
        &mut self,
        chains: &[(&LongChain, &[usize])],
        size: TimingSize,
    ) -> Result<Vec<ChainCurve>, RunError> {
        let short = |(chain, turns): (&LongChain, &[usize])| -> Vec<LoopedProgram> {
            turns.iter().map(|turns| chain.build_short(self.timer, *turns)).collect()
        };
        let programs: Vec<LoopedProgram> = chains.iter().flat_map(|chain| short(*chain)).collect();
        if programs.is_empty() {
            return Ok(Vec::new());
        }
        let timings = self.timer.time_programs(self.executor, &programs, size, self.surroundings, self.random)?;
        let mut curves = vec![ChainCurve::new(); chains.len()];
        for layout in &timings {
            // Each iteration ends at the next one's fence, so the cost is proportional to the
            // iterations.
            let mut each = layout.iter().map(|timing| {
                let cycles = layout_cost(timing);
                (!timing.cycles.is_empty() && cycles > 0.0).then_some(cycles)
            });
            for ((_, lengths), curve) in chains.iter().zip(&mut curves) {
                curve.push(each.by_ref().take(lengths.len()).collect());
            }
        }
        Ok(curves)
    }
}

/// Finds chains with quicker short ones and adds their costs to the readings. Chains that an earlier
/// pass found alike are not measured again.
pub(super) fn measure_regimes(
    fenced: &mut ShortChainTimer,
    plan: &FormPlan,
    earlier: &[Vec<ProgramReading>],
    readings: &mut [ProgramReading],
) -> Result<(), RunError> {
    let chosen: Vec<ChosenChain> = (0..readings.len()).map(|at| ChosenChain::new(plan, at, &readings[at])).collect();
    let long = |index: usize| Some((index, chosen[index].find_long_chain(plan, index)?));
    let is_settled = |(index, chain): &(usize, LongChain)| {
        let known = earlier.iter().filter_map(|pass| Some((&pass.get(*index)?.cycles, pass[*index].regimes.as_ref()?)));
        let is_alike = |(long, short): (&Vec<f64>, &RegimeReading)| {
            let is_planned = short.variation.is_none() && chosen[*index].variation.is_none();
            is_planned
                && short.turns.is_empty()
                && judge_short(&short.short, long) == RegimeVerdict::Alike
                && is_one_mode(long.iter().chain(chain.cycles).copied())
        };
        known.clone().count() > 0 && known.into_iter().all(is_alike)
    };
    let mut open: Vec<(usize, LongChain)> = (0..chosen.len()).filter_map(long).filter(|one| !is_settled(one)).collect();
    for _ in 0..CONFIRMATIONS {
        let chains: Vec<&LongChain> = open.iter().map(|(_, chain)| chain).collect();
        let mut slopes = fenced.screen_chains(&chains)?.into_iter();
        open.retain(|(index, chain)| {
            let slopes = slopes.next().unwrap_or_default();
            let reading = readings[*index].regimes.get_or_insert_default();
            reading.variation = chosen[*index].variation;
            reading.instructions = chain.turns.each as u32;
            reading.short.extend(&slopes);
            chain.judge_short(&slopes) == RegimeVerdict::Quicker
        });
    }
    for (index, chain) in &open {
        let lengths = chain.turns.choose_lengths(&CURVE_LENGTHS);
        let reading = readings[*index].regimes.get_or_insert_default();
        reading.turns = lengths.iter().map(|turns| *turns as u32).collect();
        reading.curve = fenced.measure_curves(&[(chain, &lengths)], CURVE_SIZE)?.remove(0);
    }
    measure_short_variations(fenced, plan, readings)
}

/// Measures short chains that are longer by some links, for chains that the rate of their instances
/// limits. With the links, a turn takes longer than an instance's rate allows.
fn measure_short_variations(
    fenced: &mut ShortChainTimer,
    plan: &FormPlan,
    readings: &mut [ProgramReading],
) -> Result<(), RunError> {
    let rthroughput = plan.least_rthroughput(readings);
    let more = rthroughput.ceil().max(1.0) as usize;
    let variation = ChainVariation::Longer(more);
    let limited = |index: &usize| {
        let cycles = &readings[*index].cycles;
        let middle = if cycles.is_empty() { f64::NAN } else { median(&mut cycles.clone()) };
        more <= LINKS_MOST && middle > 1.0 + BOUND_SHARE && middle <= rthroughput * (1.0 + BOUND_SHARE)
    };
    let varied = |index: usize| {
        let experiment = plan.vary_chain(index, variation)?;
        let cycles = readings[index].cycles.iter().map(|cycles| cycles + more as f64).collect();
        Some((index, ChosenChain { experiment: Cow::Owned(experiment), variation: Some(variation), cycles }))
    };
    let chosen: Vec<(usize, ChosenChain)> = (0..readings.len()).filter(limited).filter_map(varied).collect();
    let open: Vec<(usize, LongChain)> =
        chosen.iter().filter_map(|(index, chosen)| Some((*index, chosen.find_long_chain(plan, *index)?))).collect();
    let chains: Vec<(&LongChain, Vec<usize>)> =
        open.iter().map(|(_, chain)| (chain, chain.turns.choose_lengths(&SCREENING_LENGTHS))).collect();
    let pairs: Vec<(&LongChain, &[usize])> =
        chains.iter().map(|(chain, lengths)| (*chain, lengths.as_slice())).collect();
    let curves = fenced.measure_curves(&pairs, CURVE_SIZE)?;
    for (((index, _), (_, lengths)), curve) in open.iter().zip(&chains).zip(&curves) {
        let slopes = curve.iter().filter_map(|layout| find_slope(layout, lengths)).collect();
        readings[*index].short_variation = Some((variation, slopes));
    }
    Ok(())
}

/// The chain of an experiment that is compared with short ones.
struct ChosenChain<'a> {
    experiment: Cow<'a, FormExperiment>,
    variation: Option<ChainVariation>,
    /// Core cycles per turn of the long chain, by layout.
    cycles: Vec<f64>,
}

impl<'a> ChosenChain<'a> {
    /// The chain with cleared operands if it is quicker, otherwise the planned one.
    fn new(plan: &'a FormPlan, index: usize, reading: &ProgramReading) -> ChosenChain<'a> {
        let planned = || ChosenChain {
            experiment: Cow::Borrowed(&plan.experiments[index]),
            variation: None,
            cycles: reading.cycles.clone(),
        };
        let middle = |cycles: &[f64]| median(&mut cycles.to_vec());
        let cleared = reading.again.iter().find(|(variation, _)| *variation == ChainVariation::Cleared);
        let Some((variation, cycles)) = cleared.filter(|(_, cycles)| !cycles.is_empty()) else { return planned() };
        let quicker = !reading.cycles.is_empty() && middle(cycles) < middle(&reading.cycles) - DIFFERENT_CYCLES;
        match plan.vary_chain(index, *variation).filter(|_| quicker) {
            Some(experiment) => {
                let experiment = Cow::Owned(experiment);
                ChosenChain { experiment, variation: Some(*variation), cycles: cycles.clone() }
            }
            None => planned(),
        }
    }

    /// The chain, if short ones can be measured.
    fn find_long_chain(&self, plan: &FormPlan, index: usize) -> Option<LongChain<'_>> {
        let FormExperiment { period, copies, init, world, .. } = &*self.experiment;
        let planned = &plan.experiments[index];
        let is_chain = matches!(planned.meaning, ExperimentMeaning::Latency { ports: Some(_), .. });
        let stores = plan.is_through_memory(index) || plan.anatomy.writes_place(OperandPlace::Memory);
        if !is_chain || stores || plan.surroundings.emptied || self.cycles.len() < 2 {
            return None;
        }
        let mut turns = ChainTurns::from_period(world.mode, period, *copies)?;
        if self.variation == Some(ChainVariation::Cleared) {
            // Instructions that only clear registers never wait.
            let waiting = ChainTurns::from_period(world.mode, &planned.period, planned.copies)?.each;
            turns = ChainTurns::with_cleared(world.mode, period, *copies, turns.each - waiting)?;
        }
        let range = TURN_LEAST..=SLOW_CYCLES * turns.each as f64;
        let chain = LongChain { turns, init, world: *world, cycles: &self.cycles };
        range.contains(&mean(&self.cycles)).then_some(chain)
    }
}
