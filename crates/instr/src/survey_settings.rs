//! What a survey is begun with: by what it measures time, how thoroughly, and from which seed.

use super::experiments::survey_effort::SurveyEffort;
use super::experiments::timing::ProgramTimer;
use cyclescope_code::clock::Clock;

/// By what a survey measures time.
#[derive(Debug, Clone, Copy)]
pub struct SurveyTiming<'a> {
    /// The timing method.
    pub clock: &'a Clock,
    /// Its step in raw units.
    pub step: f64,
    /// Latency of `imul r64, r64` in core cycles: the ruler's.
    pub imul_latency: f64,
}

impl<'a> SurveyTiming<'a> {
    pub(super) fn to_timer(self) -> ProgramTimer<'a> {
        ProgramTimer::new(self.clock, self.step, self.imul_latency)
    }
}

/// How thoroughly a survey measures, and from which seed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SurveySettings {
    /// How much to measure.
    pub effort: SurveyEffort,
    /// Seed of orders and layouts.
    pub seed: u64,
    /// Level of the intervals.
    pub confidence: f64,
}
