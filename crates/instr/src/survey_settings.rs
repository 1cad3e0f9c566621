//! Settings of a survey: timing, effort, seed and confidence level.

use super::experiments::survey_effort::SurveyEffort;
use super::experiments::timing::ProgramTimer;
use cyclescope_code::asm::CodeMode;
use cyclescope_code::clock::Clock;
use cyclescope_core::machine::integer_adders::IntegerAdders;
use cyclescope_measure::ruler::least_unshared_width;

/// The timing method and the ruler's scale.
#[derive(Debug, Clone, Copy)]
pub struct SurveyTiming<'a> {
    /// The timing method.
    pub clock: &'a Clock,
    /// Resolution of the clock in raw units.
    pub step: f64,
    /// Latency in core cycles of `imul r64, r64`, or `imul r32, r32` in 32-bit code. The ruler is a
    /// chain of them.
    pub imul_latency: f64,
    /// The mode of all programs.
    pub mode: CodeMode,
    /// Integer adders of the core, from data of the micro-architecture: they show a sibling that is
    /// busy all the time.
    pub adders: Option<IntegerAdders>,
}

impl<'a> SurveyTiming<'a> {
    pub(crate) fn to_timer(self) -> ProgramTimer<'a> {
        let timer = ProgramTimer::new(self.clock, self.step, self.imul_latency, self.mode);
        timer.with_least_width(self.adders.map(least_unshared_width))
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
