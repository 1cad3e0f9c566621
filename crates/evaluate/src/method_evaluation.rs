//! What was found about one timing method.

use super::MethodCandidate;
use super::contamination::Contamination;
use super::pair_breakdown::PairBreakdown;
use super::resolution::Resolution;
use super::sampled_method::SampledMethod;

/// What was found about one timing method.
#[derive(Debug, Clone)]
pub struct MethodEvaluation {
    /// The method, and where it ran.
    pub candidate: MethodCandidate,
    /// Its samples; none where no duration was sane.
    pub method: Option<SampledMethod<'static>>,
    /// What neighbouring code does to its readings.
    pub contamination: Vec<Contamination>,
    /// What it tells apart.
    pub resolution: Resolution,
    /// What its pair takes its time for; none where too much was disturbed, or the machine is emulated.
    pub parts: Option<PairBreakdown>,
}
