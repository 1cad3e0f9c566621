//! The throughput of code that comes from the decoders.

use super::FormMeasurement;
use crate::experiments::experiment::BOUND_SHARE;
use crate::experiments::modes::{find_lowest_mode, is_proved};
use crate::experiments::program_reading::ProgramReading;
use crate::experiments::timing::LoopedProgram;
use cyclescope_core::error::RunError;
use cyclescope_core::random::Random;
use cyclescope_exec::Executor;

/// Slower instructions than this never wait for decoders.
const DECODED_BELOW: f64 = 1.5;

impl FormMeasurement<'_> {
    /// Whether the decoders may have a lower rate than the best program. If an earlier pass found that
    /// they keep up with it, they do.
    pub(in super::super) fn may_decoders_limit(&self, readings: &[ProgramReading]) -> bool {
        let rthroughput = self.plan.least_rthroughput(readings);
        let kept_up =
            |pass: &Vec<ProgramReading>| pass.first().is_some_and(|first| keeps_up(&first.decoded, rthroughput));
        rthroughput < DECODED_BELOW && !self.earlier.iter().any(kept_up)
    }

    /// Measures the throughput of code that comes from the decoders. The first reading records it.
    pub(in super::super) fn measure_decoders(
        &self,
        executor: &mut dyn Executor,
        readings: &mut [ProgramReading],
        random: &mut Random,
    ) -> Result<(), RunError> {
        let Some(experiment) = self.plan.decoder_experiment() else { return Ok(()) };
        let timed = [LoopedProgram { loops: 1, ..self.prepare_program(&experiment, usize::MAX) }];
        let rthroughput = self.plan.least_rthroughput(readings);
        let mut decoded = ProgramReading::default();
        // If the decoders keep up in the first half, that is the answer.
        let half = self.effort.layouts.div_ceil(2);
        for layouts in [half, self.effort.layouts - half] {
            let timings = self.time_layouts(executor, &timed, layouts, random)?;
            timings.iter().for_each(|layout| decoded.add_rate_layout(&layout[0]));
            if keeps_up(&decoded.cycles, rthroughput) {
                break;
            }
        }
        readings[0].decoded = decoded.cycles;
        Ok(())
    }
}

/// Whether the lowest proved rate of decoded code is no slower than the best program.
fn keeps_up(decoded: &[f64], rthroughput: f64) -> bool {
    is_proved(decoded)
        && find_lowest_mode(decoded).is_some_and(|decoded| decoded.value <= rthroughput * (1.0 + BOUND_SHARE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::form_measurement::sample_form::{give_readings, new_timer, plan_imul};
    use crate::experiments::survey_effort::SurveyEffort;

    #[test]
    fn decoders_that_keep_up_are_an_answer() {
        let (plan, timer) = (plan_imul(), new_timer());
        let readings = give_readings(&plan, |_| Some(0.5));
        let asks = |decoded: &[f64]| {
            let mut earlier = readings.clone();
            earlier[0].decoded = decoded.to_vec();
            let effort = SurveyEffort::FULL;
            FormMeasurement::without_slots(&timer, effort, &plan, &[earlier]).may_decoders_limit(&readings)
        };
        assert!(!asks(&[0.51, 0.505, 0.7]));
        assert!(asks(&[0.6; 6]) && asks(&[0.5, 0.7, 0.9]) && asks(&[]));
    }
}
