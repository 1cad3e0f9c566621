//! Results about the machine apart from its timing methods.

use cyclescope_core::machine::core_series::CoreSeries;
use cyclescope_core::machine::core_study::StepPhases;
use cyclescope_core::machine::fact::Fact;
use cyclescope_core::machine::features::LfenceOrder;
use cyclescope_core::machine::synchrony::TscSynchrony;
use cyclescope_core::machine::tsc::TscFacts;
use cyclescope_core::machine::tsc_study::TscStudy;
use serde::{Deserialize, Serialize};

/// Results about the machine.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TimingFacts {
    /// TSC properties according to CPUID and the kernel.
    pub told: TscFacts,
    /// The reason that LFENCE waits.
    pub lfence: Fact<LfenceOrder>,
    /// Experiments on the TSC.
    pub tsc: Fact<TscStudy>,
    /// Whether means resolve less than the TSC's step.
    pub phases: Fact<StepPhases>,
    /// The core clock relative to the TSC over time.
    pub series: Fact<CoreSeries>,
    /// The TSCs of other CPUs relative to the target's.
    pub synchrony: Fact<TscSynchrony>,
    /// Whether the machine is emulated. No figure in core cycles is possible then.
    pub emulated: bool,
}

impl TimingFacts {
    /// Rate of the TSC, or a typical one if unknown. It only decides which methods count as quick.
    pub(super) fn tsc_hertz(&self) -> f64 {
        self.tsc.known().map_or(2.5e9, |study| study.calibration.hertz.0)
    }
}
