//! Screens all constants of a form, and measures fully those that may matter.
//!
//! Most forms cost the same with every immediate. Each constant therefore first gets one layout of
//! few programs: the best throughput program of the general constant, and one chain per pair of
//! operands. If all costs equal the general constant's, nothing more is measured. Limits: effects
//! in other programs or in chains through memory go undetected. Slow microcoded forms are not
//! screened.

use super::experiment::ExperimentMeaning;
use super::form_measurement::{FormMeasurement, LOOPS_LEAST, LOOPS_MOST, SLOW_CYCLES, WARM_UP};
use super::form_plan::FormPlan;
use super::program_reading::{ConstantReadings, ProgramReading, layout_cost};
use super::survey_effort::SurveyEffort;
use super::timing::{LoopedProgram, ProgramTiming, TimingSize};
use crate::forms::encoded_constant::EncodedConstant;
use cyclescope_core::error::RunError;
use cyclescope_core::random::Random;
use cyclescope_core::statistics::median;
use cyclescope_exec::Executor;

/// Timed rounds of the screening.
const SCREENING_ROUNDS: u32 = 2;
/// Upper limit of screening attempts while programs have no reading.
const SCREENING_TRIES: usize = 3;
/// A screening call lasts at most this share of a full measurement's.
const CALL_SHARE: f64 = 0.5;
/// A constant may matter if a program's cost differs by both this share and this number of core
/// cycles.
const SUSPECT_SHARE: f64 = 0.03;
const SUSPECT_CYCLES: f64 = 0.012;

impl FormMeasurement<'_> {
    /// Measures the form. Returns one reading per experiment.
    pub(crate) fn run(
        &self,
        executor: &mut dyn Executor,
        random: &mut Random,
    ) -> Result<Vec<ProgramReading>, RunError> {
        let mut readings = self.measure_own_constant(executor, random)?;
        if self.effort.constants {
            let others = self.measure_constants(executor, &readings, random)?;
            if let Some(first) = readings.first_mut() {
                first.constants = others;
            }
        }
        Ok(readings)
    }

    /// The readings of all constants that may matter, by their index in the form's list. `None` if
    /// none was screened.
    fn measure_constants(
        &self,
        executor: &mut dyn Executor,
        readings: &[ProgramReading],
        random: &mut Random,
    ) -> Result<Option<Vec<ConstantReadings>>, RunError> {
        let screened = self.pick_screened(readings);
        let single = self.plan.anatomy.constants.len() < 2;
        if single || screened.is_empty() || screened.iter().any(|(_, cycles)| *cycles >= SLOW_CYCLES) {
            return Ok(None);
        }
        let list = self.plan.anatomy.constants.iter().enumerate().skip(1);
        let others = |(place, constant): (usize, &EncodedConstant)| Some((place, self.plan.with_constant(*constant)?));
        let others: Vec<(usize, FormPlan)> = list.filter_map(others).collect();
        let mut found = Vec::new();
        for (place, plan) in self.find_suspects(executor, others, &screened, random)? {
            let effort =
                SurveyEffort { decoders: false, regimes: false, constants: false, slots: false, ..self.effort };
            let earlier = self.earlier_readings(place);
            let measurement = FormMeasurement { effort, plan: &plan, earlier: &earlier, ..*self };
            let readings = measurement.measure_own_constant(executor, random)?;
            found.push(ConstantReadings { place, readings });
        }
        Ok(Some(found))
    }

    /// Readings of earlier passes with the constant at this index.
    fn earlier_readings(&self, place: usize) -> Vec<Vec<ProgramReading>> {
        let constants = self.earlier.iter().filter_map(|pass| pass.first()?.constants.as_ref());
        let found = constants.filter_map(|constants| constants.iter().find(|other| other.place == place));
        found.map(|other| other.readings.clone()).collect()
    }

    /// The experiments used for screening, with their costs for the general constant.
    fn pick_screened(&self, readings: &[ProgramReading]) -> Vec<(usize, f64)> {
        let mut rate: Option<(usize, f64)> = None;
        let mut chains: Vec<(usize, f64, usize)> = Vec::new();
        for (index, (experiment, reading)) in self.plan.experiments.iter().zip(readings).enumerate() {
            if reading.cycles.is_empty() {
                continue;
            }
            let cycles = median(&mut reading.cycles.clone());
            match &experiment.meaning {
                ExperimentMeaning::Throughput { variant: None, .. } if rate.is_none_or(|(_, best)| cycles < best) => {
                    rate = Some((index, cycles));
                }
                ExperimentMeaning::Latency { from, to, variant: None, links, .. }
                    if !self.plan.is_through_memory(index) =>
                {
                    let same = |other: &&mut (usize, f64, usize)| {
                        let ExperimentMeaning::Latency { from: other_from, to: other_to, .. } =
                            &self.plan.experiments[other.0].meaning
                        else {
                            return false;
                        };
                        (other_from, other_to) == (from, to)
                    };
                    let this = (index, cycles, links.len());
                    match chains.iter_mut().find(same) {
                        Some(known) if links.len() < known.2 => *known = this,
                        Some(_) => {}
                        None => chains.push(this),
                    }
                }
                _ => {}
            }
        }
        rate.into_iter().chain(chains.into_iter().map(|(index, cycles, _)| (index, cycles))).collect()
    }

    /// The plans with a cost that differs in a screened experiment.
    fn find_suspects(
        &self,
        executor: &mut dyn Executor,
        others: Vec<(usize, FormPlan)>,
        screened: &[(usize, f64)],
        random: &mut Random,
    ) -> Result<Vec<(usize, FormPlan)>, RunError> {
        let timed = |plan: &FormPlan, (index, cycles): (usize, f64)| {
            let timed = self.prepare_program(&plan.experiments[index], usize::MAX);
            let loops = (CALL_SHARE * self.effort.cycles / 4.0 / (cycles * timed.copies as f64)) as u64;
            LoopedProgram { loops: loops.clamp(LOOPS_LEAST, LOOPS_MOST), ..timed }
        };
        let programs: Vec<LoopedProgram> =
            others.iter().flat_map(|(_, plan)| screened.iter().map(move |one| timed(plan, *one))).collect();
        if programs.is_empty() {
            return Ok(Vec::new());
        }
        let size = TimingSize { layouts: 1, warm_up: WARM_UP, rounds: SCREENING_ROUNDS };
        let mut looked: Vec<f64> = vec![f64::NAN; programs.len()];
        for _ in 0..SCREENING_TRIES {
            let timings = self.timer.time_programs(executor, &programs, size, self.plan.surroundings, random)?;
            let open = looked.iter_mut().zip(&timings[0]).filter(|(known, _)| known.is_nan());
            open.for_each(|(known, timing)| *known = unshared_cycles(timing));
            if looked.iter().all(|cycles| cycles.is_finite()) {
                break;
            }
        }
        let differs = |(cycles, (_, usual)): (&f64, &(usize, f64))| {
            (cycles - usual).abs() > SUSPECT_CYCLES.max(SUSPECT_SHARE * usual)
        };
        let differ = |looked: &[f64]| looked.iter().zip(screened).any(differs);
        let found = others.into_iter().zip(looked.chunks(screened.len()));
        Ok(found.filter(|(_, looked)| differ(looked)).map(|(other, _)| other).collect())
    }
}

/// A program's cost while its sibling was idle.
fn unshared_cycles(timing: &ProgramTiming) -> f64 {
    if timing.cycles.is_empty() { f64::NAN } else { layout_cost(timing) }
}
