//! Settings of a survey: timing, effort, seed and confidence level.

use super::experiments::survey_effort::SurveyEffort;
use super::experiments::timing::ProgramTimer;
use cyclescope_code::clock::Clock;

/// The timing method and the ruler's scale.
#[derive(Debug, Clone, Copy)]
pub struct SurveyTiming<'a> {
    /// The timing method.
    pub clock: &'a Clock,
    /// Resolution of the clock in raw units.
    pub step: f64,
    /// Latency of `imul r64, r64` in core cycles. The ruler is a chain of them.
    pub imul_latency: f64,
}

impl<'a> SurveyTiming<'a> {
    pub(crate) fn to_timer(self) -> ProgramTimer<'a> {
        ProgramTimer::new(self.clock, self.step, self.imul_latency)
    }
}

/// Effort, seed and confidence level of a survey.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SurveySettings {
    /// How thoroughly the survey measures.
    pub effort: SurveyEffort,
    /// Seed of all orders and layouts.
    pub seed: u64,
    /// Confidence level of the intervals.
    pub confidence: f64,
}
