//! What only experiments show about the TSC: its rate, its step for each way of reading, what reads cost, and
//! whether LFENCE waits.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Machine;
use super::calibrate::{Calibration, calibrate};
use super::counters::Counters;
use super::fact::Fact;
use super::kernel_log::KernelLog;
use super::traps::Traps;
use super::tsc::Source;
use super::tsc_read::TscRead;
use super::tsc_step::{TscStep, measure_step};
use crate::error::Unavailable;

/// The results of the experiments on the TSC, made on the CPU that the calling thread runs on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TscStudy {
    /// The rate.
    pub calibration: Calibration,
    /// The rate by every source, with its distance from the calibration.
    pub sources: Vec<ComparedSource>,
    /// The step of each way of reading.
    pub steps: Vec<ReadingStep>,
    /// Costs of the timing instructions.
    pub traps: Traps,
    /// Why the kernel doesn't trust this TSC; `None` where it does, or its log is silent.
    pub unstable: Option<String>,
}

/// A source's word and its distance from the calibration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComparedSource {
    /// The source and its rate.
    #[serde(flatten)]
    pub source: Source,
    /// Parts per million by which it lies above the calibration; `None` where the source is silent.
    pub ppm: Option<f64>,
}

/// The step of one way of reading the TSC.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReadingStep {
    /// The way of reading.
    pub reading: TscRead,
    /// The step found.
    pub step: Fact<TscStep>,
}

const PAIRS: usize = 100_000;

impl TscStudy {
    /// Makes the experiments: calibration within `budget`, then about 50 ms for the rest. The caller pins the
    /// thread to the CPU of interest.
    pub fn measure(
        machine: &Machine,
        counters: &Counters,
        budget: Duration,
    ) -> Result<TscStudy, Unavailable> {
        let calibration = calibrate(&machine.tsc, budget)?;
        let log = KernelLog::read();
        let mut sources = machine.tsc.sources.clone();
        sources.push(Source { name: "kernel log, detected", rate: log.detected });
        sources.push(Source { name: "kernel log, refined", rate: log.refined });
        sources.push(Source { name: "perf page", rate: counters.page_rate.clone() });
        let compare = |source: Source| {
            let ppm = source.ppm_above(calibration.hertz);
            ComparedSource { source, ppm }
        };
        Ok(TscStudy {
            sources: sources.into_iter().map(compare).collect(),
            steps: TscRead::ALL.into_iter().map(|reading| step(machine, reading)).collect(),
            traps: Traps::measure(&machine.tsc, &machine.features)?,
            unstable: log.unstable,
            calibration,
        })
    }

    /// The step of `reading`.
    pub fn step(&self, reading: TscRead) -> Option<&TscStep> {
        self.steps.iter().find(|found| found.reading == reading)?.step.known()
    }
}

fn step(machine: &Machine, reading: TscRead) -> ReadingStep {
    let missing = reading == TscRead::Rdtscp && !machine.features.rdtscp();
    let step = if missing {
        Fact::unknown("the processor has no RDTSCP")
    } else {
        // SAFETY: the calibration has succeeded, so RDTSC doesn't fault; RDTSCP was checked above.
        unsafe { measure_step(reading, PAIRS) }
    };
    ReadingStep { reading, step }
}

#[cfg(test)]
mod tests {
    use super::super::fact::Files;
    use super::*;

    #[test]
    fn this_machine_is_studied_or_says_why() {
        let machine = Machine::detect();
        let counters = Counters::detect(&machine.features, &Files::system());
        match TscStudy::measure(&machine, &counters, Duration::from_millis(20)) {
            Err(refused) => cyclescope_skipped::skipped(refused),
            Ok(study) => {
                assert!(
                    study.steps.iter().all(|found| found.step.known().is_none_or(|step| step.ticks >= 1.0))
                );
                assert!(serde_json::to_string(&study).unwrap().contains(r#""name":"perf page""#));
            }
        }
    }
}
