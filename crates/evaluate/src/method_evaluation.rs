//! The results for one timing method.

use super::MethodCandidate;
use super::contamination::Contamination;
use super::pair_breakdown::PairBreakdown;
use super::resolution::Resolution;
use super::sampled_method::SampledMethod;

/// The results for one timing method.
#[derive(Debug, Clone)]
pub struct MethodEvaluation {
    /// The method and its executor.
    pub candidate: MethodCandidate,
    /// Its samples; `None` if no duration was valid.
    pub method: Option<SampledMethod<'static>>,
    /// How neighbouring code affects its readings.
    pub contamination: Vec<Contamination>,
    /// The differences that it resolves.
    pub resolution: Resolution,
    /// The cost of each step of its pair; `None` if too many rounds were disturbed, or the machine
    /// is emulated.
    pub parts: Option<PairBreakdown>,
}
