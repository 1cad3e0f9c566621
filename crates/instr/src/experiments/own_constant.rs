//! Measures a form with its own constant: its programs, then what their readings call for.
//!
//! These are variations of latency chains that may be slow for another reason than their latency,
//! decoded copies, regimes, and bodies that count dispatch slots.

use super::experiment::{BOUND_SHARE, ChainVariation, ExperimentMeaning, FormExperiment};
use super::form_measurement::{FormMeasurement, LOOPS_LEAST, LOOPS_MOST};
use super::program_reading::ProgramReading;
use super::regimes::{self, DIFFERENT_CYCLES, ShortChainTimer};
use super::timing::LoopedProgram;
use cyclescope_code::program::VectorSetup;
use cyclescope_core::error::RunError;
use cyclescope_core::random::Random;
use cyclescope_core::statistics::{median, t_interval};
use cyclescope_exec::Executor;

/// Lower and upper limit of links that lengthen a chain.
const PADDING_LEAST: usize = 8;
const PADDING_MOST: usize = 64;
/// Upper limit of fillers per instance.
const FILLERS_MOST: usize = 12;
/// A chain may be limited by throughput if its cost exceeds the reciprocal throughput by no more
/// than this share.
const NEAR_SHARE: f64 = 0.3;
/// A chain's cost is a whole number if it is this close to one, in cycles.
const WHOLE_CYCLES: f64 = 0.03;
/// Confidence level for the decision that a chain's cost is not a whole number.
const CONFIDENCE: f64 = 0.95;

impl FormMeasurement<'_> {
    /// Measures the form with its own constant: all programs, then what their readings call for.
    pub(super) fn measure_own_constant(
        &self,
        executor: &mut dyn Executor,
        random: &mut Random,
    ) -> Result<Vec<ProgramReading>, RunError> {
        let mut readings = self.measure_programs(executor, random)?;
        self.remeasure_chains(executor, &mut readings, random)?;
        if self.effort.decoders && self.may_decoders_limit(&readings) {
            self.measure_decoders(executor, &mut readings, random)?;
        }
        self.clear_operands(executor, &mut readings, random)?;
        if self.effort.regimes {
            let mut fenced =
                ShortChainTimer { timer: self.timer, surroundings: self.plan.surroundings, executor, random };
            regimes::measure_regimes(&mut fenced, self.plan, self.earlier, &mut readings)?;
        }
        if self.effort.slots {
            self.measure_slots(executor, &mut readings, random)?;
        }
        Ok(readings)
    }

    /// Measures variations of chains that may be slow for another reason than their latency. A
    /// chain may be limited by the throughput of its instances. A cost that is not a whole number
    /// suggests waits for a unit, or units of different latency. Later passes repeat the variations
    /// of earlier ones.
    fn remeasure_chains(
        &self,
        executor: &mut dyn Executor,
        readings: &mut [ProgramReading],
        random: &mut Random,
    ) -> Result<(), RunError> {
        let rthroughput = self.plan.least_rthroughput(readings);
        let more = (rthroughput.ceil() as usize).saturating_add(2).max(PADDING_LEAST);
        if rthroughput.is_infinite() || more > PADDING_MOST {
            return Ok(());
        }
        let mut chosen: Vec<(usize, ChainVariation)> = Vec::new();
        let mut programs = Vec::new();
        for (index, reading) in readings.iter().enumerate() {
            let cycles = match reading.cycles.is_empty() {
                true => continue,
                false => median(&mut reading.cycles.clone()),
            };
            if self.plan.is_through_memory(index) {
                continue;
            }
            let bound = rthroughput > 1.0 - BOUND_SHARE && cycles <= rthroughput * (1.0 + NEAR_SHARE);
            // The margin keeps chance from changing the verdict between runs.
            let chance = t_interval(&reading.cycles, CONFIDENCE).map_or(0.0, |cost| cost.half_width());
            let odd = cycles > 1.0 && (cycles - cycles.round()).abs() > WHOLE_CYCLES + chance;
            let mut variations = self.earlier_variations(index);
            variations.retain(|variation| *variation != ChainVariation::Cleared);
            variations.extend((bound || odd).then_some(ChainVariation::Longer(more)));
            // Cores combine their units for 512 bits in several ways.
            let wide = self.plan.surroundings.vectors == VectorSetup::Zmm && cycles > 1.0 + WHOLE_CYCLES;
            if odd || wide {
                // Enough fillers to keep a unit busy throughout a chain that is one or two cycles
                // shorter.
                let about = cycles.round() as usize;
                let counts = [about.saturating_sub(2), about.saturating_sub(1)];
                variations.extend(
                    counts.into_iter().filter(|count| (1..=FILLERS_MOST).contains(count)).map(ChainVariation::Beside),
                );
            }
            variations.sort_unstable();
            variations.dedup();
            for variation in variations {
                let Some(experiment) = self.plan.vary_chain(index, variation) else { continue };
                let each = cycles + if let ChainVariation::Longer(more) = variation { more as f64 } else { 0.0 };
                programs.push(self.prepare_variation(&experiment, each));
                chosen.push((index, variation));
            }
        }
        self.time_variations(executor, &programs, chosen, readings, random)
    }

    /// Measures chains with cleared operands if they are slower than another chain to the same
    /// output, which may be because an instance waits for two operands.
    fn clear_operands(
        &self,
        executor: &mut dyn Executor,
        readings: &mut [ProgramReading],
        random: &mut Random,
    ) -> Result<(), RunError> {
        let direct = |index: usize| match &self.plan.experiments[index].meaning {
            ExperimentMeaning::Latency { to, variant: None, links, .. } if links.is_empty() => Some(to),
            _ => None,
        };
        let cost = |index: usize| {
            let cycles = &readings[index].cycles;
            (!cycles.is_empty()).then(|| median(&mut cycles.clone()))
        };
        let (mut chosen, mut programs) = (Vec::new(), Vec::new());
        for index in 0..readings.len() {
            let (Some(to), Some(cycles)) = (direct(index), cost(index)) else { continue };
            let others = (0..readings.len()).filter(|other| direct(*other) == Some(to)).filter_map(cost);
            let is_slower = cycles > others.fold(cycles, f64::min) + DIFFERENT_CYCLES;
            let is_odd = (cycles - cycles.round()).abs() > DIFFERENT_CYCLES;
            let repeated = self.earlier_variations(index).contains(&ChainVariation::Cleared);
            if !repeated && !is_slower && !is_odd {
                continue;
            }
            let Some(experiment) = self.plan.vary_chain(index, ChainVariation::Cleared) else { continue };
            programs.push(self.prepare_variation(&experiment, cycles));
            chosen.push((index, ChainVariation::Cleared));
        }
        self.time_variations(executor, &programs, chosen, readings, random)
    }

    /// The program of a chain's variation that takes about this many core cycles per instance.
    fn prepare_variation(&self, experiment: &FormExperiment, cycles: f64) -> LoopedProgram {
        let timed = self.prepare_program(experiment, usize::MAX);
        let loops = (self.effort.cycles / 4.0 / (cycles * timed.copies as f64)) as u64;
        LoopedProgram { loops: loops.clamp(LOOPS_LEAST, LOOPS_MOST), ..timed }
    }

    /// Times these variations, each of the chain at an index, and adds them to its reading.
    fn time_variations(
        &self,
        executor: &mut dyn Executor,
        programs: &[LoopedProgram],
        chosen: Vec<(usize, ChainVariation)>,
        readings: &mut [ProgramReading],
        random: &mut Random,
    ) -> Result<(), RunError> {
        if chosen.is_empty() {
            return Ok(());
        }
        let timings = self.time_layouts(executor, programs, self.effort.layouts, random)?;
        for (at, (index, variation)) in chosen.into_iter().enumerate() {
            let mut other = ProgramReading::default();
            timings.iter().for_each(|layout| other.add_layout(&layout[at]));
            readings[index].again.push((variation, other.cycles));
        }
        Ok(())
    }
}
