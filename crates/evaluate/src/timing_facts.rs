//! What is found about the machine beside its timing methods.

use cyclescope_core::machine::core_series::CoreSeries;
use cyclescope_core::machine::core_study::StepPhases;
use cyclescope_core::machine::fact::Fact;
use cyclescope_core::machine::features::LfenceOrder;
use cyclescope_core::machine::synchrony::TscSynchrony;
use cyclescope_core::machine::tsc::TscFacts;
use cyclescope_core::machine::tsc_study::TscStudy;
use serde::{Deserialize, Serialize};

/// What was found about the machine.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TimingFacts {
    /// What CPUID and the kernel say of the TSC.
    pub told: TscFacts,
    /// What makes LFENCE wait.
    pub lfence: Fact<LfenceOrder>,
    /// The experiments on the TSC.
    pub tsc: Fact<TscStudy>,
    /// Whether means see through the TSC's step.
    pub phases: Fact<StepPhases>,
    /// The core clock against the TSC over time.
    pub series: Fact<CoreSeries>,
    /// The TSCs of other CPUs against the target's.
    pub synchrony: Fact<TscSynchrony>,
    /// Whether the machine is emulated, so that nothing can be said in core cycles.
    pub emulated: bool,
}

impl TimingFacts {
    /// The rate of the TSC, or one like that of most machines: it only says which methods count as quick.
    pub(super) fn tsc_hertz(&self) -> f64 {
        self.tsc.known().map_or(2.5e9, |study| study.calibration.hertz.0)
    }
}
