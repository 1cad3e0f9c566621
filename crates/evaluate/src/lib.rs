//! The question `evaluate` asks: how good is each timing method on this machine?
//!
//! After G. Paoloni, "How to Benchmark Code Execution Times on Intel IA-32 and IA-64 Instruction
//! Set Architectures", Intel 324264-001 (2010), "the paper", and the notes on RDTSC(P), "the
//! notes".

#![warn(unreachable_pub)]

mod chance_variance;
pub mod claims;
pub mod contamination;
pub mod counted_pairs;
pub mod criteria;
pub mod ensemble;
pub mod ensemble_reader;
pub mod ergodic_verdict;
pub mod evaluation;
pub(crate) mod method_evaluation;
pub mod pair_breakdown;
pub mod plan;
mod power_sums;
pub mod published;
pub mod published_comparison;
pub mod record;
pub mod resolution;
pub mod sampled_method;
pub(crate) mod sampling;
mod study;
pub mod timing_facts;
pub(crate) mod trimmed_ensemble;
pub mod verdict;

#[cfg(test)]
mod tests;

pub use study::INFO;
pub use study::{EvaluateStudy, NAME};

use cyclescope_code::asm::CodeMode;
use cyclescope_code::clock::Clock;
use cyclescope_code::program::ProgramRecipe;
use cyclescope_core::error::StaticText;
use cyclescope_exec::ExecutorOffer;
use cyclescope_measure::result::caveat::Caveat;
use cyclescope_measure::ruler::LeastWidth;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A timing method and its executor.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct MethodCandidate {
    /// The method.
    #[serde(with = "cyclescope_code::clock::by_name")]
    pub clock: &'static Clock,
    /// Name of the executor that runs it.
    #[serde(deserialize_with = "cyclescope_core::error::constant")]
    pub executor: StaticText,
}

impl fmt::Display for MethodCandidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.clock.name)?;
        match ExecutorOffer::find_by_name(self.executor) {
            Some(offer) if offer.is_default() => Ok(()),
            offer => write!(f, " in {}", offer.map_or(self.executor, |offer| offer.place)),
        }
    }
}

/// A timing method under evaluation, and the machine parameters needed to interpret it.
#[derive(Debug, Clone, Copy)]
pub struct TestedClock<'a> {
    /// The method.
    pub clock: &'a Clock,
    /// Name of the executor that runs it.
    pub executor: &'static str,
    /// The mode of all programs.
    pub mode: CodeMode,
    /// A fully fenced method that reads the same counter. It reads the ruler.
    pub ruler: &'a Clock,
    /// Step of its readings, in raw units.
    pub step: f64,
    /// Latency of the ruler's `imul` in core cycles, an integer.
    pub imul_latency: f64,
    /// The least width of an unshared core, if known.
    pub width: Option<LeastWidth>,
    /// Whether the machine is emulated. No figure in core cycles is possible then.
    pub emulated: bool,
}

impl TestedClock<'_> {
    /// Recipe for a pair of readings with an empty body.
    pub(crate) fn empty_recipe(&self) -> ProgramRecipe<'_> {
        ProgramRecipe::empty(self.clock).for_mode(self.mode)
    }

    /// Caveats that apply to every figure of the method.
    pub(crate) fn caveats(&self) -> Vec<Caveat> {
        self.emulated.then(Caveat::emulated_machine).into_iter().collect()
    }
}

impl TestedClock<'static> {
    /// The method and where it runs.
    pub fn candidate(&self) -> MethodCandidate {
        MethodCandidate { clock: self.clock, executor: self.executor }
    }
}
