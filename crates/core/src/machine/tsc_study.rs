//! TSC properties that only experiments show: its rate, its step for each reading sequence, the
//! cost of reads, and whether LFENCE waits.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Machine;
use super::counters::CounterFacts;
use super::fact::Fact;
use super::kernel_log::KernelLog;
use super::timing_costs::TimingCosts;
use super::tsc::RateSource;
use super::tsc_calibration::{TscCalibration, calibrate_tsc};
use super::tsc_read::TscRead;
use super::tsc_step::{TscStep, measure_step};
use crate::error::Unavailable;

/// Results of the experiments on the TSC, made on the calling thread's CPU.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TscStudy {
    /// Measured rate.
    pub calibration: TscCalibration,
    /// Rate by every source, with its difference from the calibration.
    pub sources: Vec<ComparedSource>,
    /// Step of each reading sequence.
    pub steps: Vec<ReadingStep>,
    /// Costs of the timing instructions.
    pub traps: TimingCosts,
    /// Why the kernel does not trust this TSC; `None` if it does, or if its log does not say.
    pub unstable: Option<String>,
}

/// Rate from one source, with its difference from the calibration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComparedSource {
    /// The source and its rate.
    #[serde(flatten)]
    pub source: RateSource,
    /// Difference from the calibration in parts per million, positive if the source is higher.
    /// `None` if the source has no rate.
    pub ppm: Option<f64>,
}

/// Step of one reading sequence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReadingStep {
    /// Reading sequence.
    pub reading: TscRead,
    /// Measured step.
    pub step: Fact<TscStep>,
}

const STEP_READ_PAIRS: usize = 100_000;

impl TscStudy {
    /// Runs the experiments: calibration within `budget`, then about 50 ms for the rest. The caller
    /// pins the thread to the CPU of interest.
    pub fn measure(machine: &Machine, counters: &CounterFacts, budget: Duration) -> Result<TscStudy, Unavailable> {
        let calibration = calibrate_tsc(&machine.tsc, budget)?;
        let log = KernelLog::read();
        let mut sources = machine.tsc.sources.clone();
        sources.push(RateSource { name: "kernel log, detected", rate: log.detected });
        sources.push(RateSource { name: "kernel log, refined", rate: log.refined });
        sources.push(RateSource { name: "perf page", rate: counters.page_rate.clone() });
        let compare = |source: RateSource| {
            let ppm = source.ppm_above(calibration.hertz);
            ComparedSource { source, ppm }
        };
        Ok(TscStudy {
            sources: sources.into_iter().map(compare).collect(),
            steps: TscRead::ALL.into_iter().map(|reading| measure_reading_step(machine, reading)).collect(),
            traps: TimingCosts::measure(&machine.tsc, &machine.features)?,
            unstable: log.unstable,
            calibration,
        })
    }

    /// Step of `reading`, if measured.
    pub fn find_step(&self, reading: TscRead) -> Option<&TscStep> {
        self.steps.iter().find(|found| found.reading == reading)?.step.known()
    }
}

fn measure_reading_step(machine: &Machine, reading: TscRead) -> ReadingStep {
    let missing = reading == TscRead::Rdtscp && !machine.features.has_rdtscp();
    let step = if missing {
        Fact::unknown("the processor has no RDTSCP")
    } else {
        // SAFETY: the calibration has succeeded, so RDTSC doesn't fault; RDTSCP was checked above.
        unsafe { measure_step(reading, STEP_READ_PAIRS) }
    };
    ReadingStep { reading, step }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_studied_or_gives_a_reason() {
        let machine = Machine::detect();
        let counters = CounterFacts::unknown("not asked");
        match TscStudy::measure(&machine, &counters, Duration::from_millis(20)) {
            Err(refused) => cyclescope_skipped::report_skipped(refused),
            Ok(study) => {
                assert!(study.steps.iter().all(|found| found.step.known().is_none_or(|step| step.ticks >= 1.0)));
                assert!(serde_json::to_string(&study).unwrap().contains(r#""name":"perf page""#));
            }
        }
    }
}
