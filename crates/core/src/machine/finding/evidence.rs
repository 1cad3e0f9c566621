//! The facts that findings are made from.

use crate::machine::Machine;
use crate::machine::core_study::{CoreStudy, SiblingStudy, StepPhases};
use crate::machine::counters::CounterFacts;
use crate::machine::fact::Fact;
use crate::machine::kernel_module::ModuleStudy;
use crate::machine::noise::{NoiseBetween, NoiseCounts};
use crate::machine::tsc_study::TscStudy;

/// The facts that findings are made from; what was not collected stays `None` and yields no finding.
#[derive(Debug, Clone, Copy)]
pub struct FindingEvidence<'a> {
    /// The machine.
    pub machine: &'a Machine,
    /// Performance counters.
    pub counters: Option<&'a CounterFacts>,
    /// What the kernel module says, or why it couldn't be asked.
    pub module: Option<&'a Fact<ModuleStudy>>,
    /// The experiments on the TSC.
    pub study: Option<&'a TscStudy>,
    /// The core by the ruler, or why it wasn't read.
    pub core: Option<&'a Fact<CoreStudy>>,
    /// The phases of the TSC's step.
    pub phases: Option<&'a StepPhases>,
    /// Which CPUs were seen to share the core.
    pub siblings: Option<&'a SiblingStudy>,
    /// Whether other runs of cyclescope kept off the CPU.
    pub exclusive: Option<bool>,
    /// Whether measured code runs in a process that has nothing of this one.
    pub own_process: Option<bool>,
    /// The noise on the target CPU now.
    pub noise: Option<&'a NoiseCounts>,
    /// What happened there over a while, and how long that was in seconds.
    pub between: Option<(&'a NoiseBetween, f64)>,
    /// Other tasks that run or are ready on the target CPU.
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
