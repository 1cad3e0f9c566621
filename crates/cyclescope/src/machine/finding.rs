//! What the facts mean for a measurement: a sorted list of findings, each with what to change.
//!
//! Each check is one function of the [`Evidence`]; it returns nothing where its facts are unknown and that
//! itself matters to nobody.

use serde::Serialize;

use super::Machine;
use super::core_study::{CoreStudy, Phases, SiblingStudy};
use super::counters::Counters;
use super::fact::Fact;
use super::kernel_module::ModuleStudy;
use super::noise::{Noise, NoiseBetween};
use super::tsc_study::TscStudy;

mod clock;
mod core;
mod kernel_module;
mod surroundings;

/// How a finding should be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// As it should be, or a fact to know.
    Ok,
    /// Measurements work; this would make them better.
    Advice,
    /// Measurements are wrong or impossible because of this.
    Problem,
}

/// One finding about the machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// A short name, such as `governor`.
    pub name: &'static str,
    /// How it should be taken.
    pub state: State,
    /// What was found and what follows from it.
    pub text: String,
    /// A shell command that changes it, where there is one.
    pub remedy: Option<String>,
}

impl Finding {
    fn ok(name: &'static str, text: impl Into<String>) -> Finding {
        Finding { name, state: State::Ok, text: text.into(), remedy: None }
    }

    fn advice(name: &'static str, text: impl Into<String>) -> Finding {
        Finding { name, state: State::Advice, text: text.into(), remedy: None }
    }

    fn problem(name: &'static str, text: impl Into<String>) -> Finding {
        Finding { name, state: State::Problem, text: text.into(), remedy: None }
    }

    fn remedy(self, command: impl Into<String>) -> Finding {
        Finding { remedy: Some(command.into()), ..self }
    }
}

/// The facts that findings are made from; what was not collected stays `None` and yields no finding.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// The machine.
    pub machine: &'a Machine,
    /// Performance counters.
    pub counters: Option<&'a Counters>,
    /// What the kernel module says, or why it couldn't be asked.
    pub module: Option<&'a Fact<ModuleStudy>>,
    /// The experiments on the TSC.
    pub study: Option<&'a TscStudy>,
    /// The core by the ruler, or why it wasn't read.
    pub core: Option<&'a Fact<CoreStudy>>,
    /// The phases of the TSC's step.
    pub phases: Option<&'a Phases>,
    /// Which CPUs were seen to share the core.
    pub siblings: Option<&'a SiblingStudy>,
    /// Whether other runs of cyclescope kept off the CPU.
    pub exclusive: Option<bool>,
    /// The noise on the target CPU now.
    pub noise: Option<&'a Noise>,
    /// What happened there over a while, and how long that was in seconds.
    pub between: Option<(&'a NoiseBetween, f64)>,
    /// Other tasks that run or are ready on the target CPU.
    pub runnable: Option<u32>,
}

impl<'a> Evidence<'a> {
    /// What the machine alone tells; the caller adds what else it has collected.
    pub fn of(machine: &'a Machine) -> Evidence<'a> {
        Evidence {
            machine,
            counters: None,
            module: None,
            study: None,
            core: None,
            phases: None,
            siblings: None,
            exclusive: None,
            noise: None,
            between: None,
            runnable: None,
        }
    }
}

type Check = fn(&Evidence) -> Option<Finding>;

/// In the order of their report: what decides whether anything can be measured comes first.
const CHECKS: &[Check] = &[
    clock::tsc,
    clock::invariant,
    clock::unstable,
    clock::lfence,
    clock::rate,
    clock::step,
    clock::tsc_exit,
    clock::cpuid_exit,
    core::phases,
    core::ruler,
    core::clock,
    core::width,
    surroundings::hypervisor,
    surroundings::microarchitecture,
    core::hybrid,
    surroundings::counters,
    kernel_module::ring_0,
    kernel_module::deadline,
    kernel_module::kernel_rate,
    surroundings::governor,
    surroundings::preference,
    surroundings::turbo,
    core::sibling,
    surroundings::isolation,
    surroundings::huge_pages,
    surroundings::quota,
    surroundings::steal,
    surroundings::load,
    surroundings::neighbours,
    core::exclusive,
];

/// All findings that the evidence supports.
pub fn findings(evidence: &Evidence) -> Vec<Finding> {
    CHECKS.iter().filter_map(|check| check(evidence)).collect()
}

#[cfg(test)]
mod tests;
