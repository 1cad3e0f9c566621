//! The facts that findings are derived from.

use crate::machine::Machine;
use crate::machine::core_study::{CoreStudy, SiblingStudy, StepPhases};
use crate::machine::counters::CounterFacts;
use crate::machine::fact::Fact;
use crate::machine::kernel_module::ModuleStudy;
use crate::machine::noise::{NoiseBetween, NoiseCounts};
use crate::machine::tsc_study::TscStudy;

/// The facts that findings are derived from. Facts that were not collected are `None` and give no
/// finding.
#[derive(Debug, Clone, Copy)]
pub struct FindingEvidence<'a> {
    /// The machine.
    pub machine: &'a Machine,
    /// Performance counters.
    pub counters: Option<&'a CounterFacts>,
    /// What the kernel module reports, or why it could not be asked.
    pub module: Option<&'a Fact<ModuleStudy>>,
    /// Experiments on the TSC.
    pub study: Option<&'a TscStudy>,
    /// The core as measured by the ruler, or why it was not measured.
    pub core: Option<&'a Fact<CoreStudy>>,
    /// Phases of the TSC's step.
    pub phases: Option<&'a StepPhases>,
    /// CPUs that were measured to share the core.
    pub siblings: Option<&'a SiblingStudy>,
    /// Whether other runs of cyclescope stayed off the CPU.
    pub exclusive: Option<bool>,
    /// Whether measured code runs in a process that shares no memory with this one.
    pub own_process: Option<bool>,
    /// Current noise on the target CPU.
    pub noise: Option<&'a NoiseCounts>,
    /// Noise there over a period, and the length of that period in seconds.
    pub between: Option<(&'a NoiseBetween, f64)>,
    /// Number of other tasks that run or are ready on the target CPU.
    pub runnable: Option<u32>,
}

impl<'a> FindingEvidence<'a> {
    /// Evidence from the machine alone; the caller adds other facts.
    #[cfg(test)]
    pub(crate) fn from_machine(machine: &'a Machine) -> FindingEvidence<'a> {
        FindingEvidence {
            machine,
            counters: None,
            module: None,
            study: None,
            core: None,
            phases: None,
            siblings: None,
            exclusive: None,
            own_process: None,
            noise: None,
            between: None,
            runnable: None,
        }
    }
}
