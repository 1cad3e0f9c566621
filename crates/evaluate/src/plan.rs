//! The plan of an evaluation: methods, effort of each experiment, and time budget.

use super::ensemble_reader::{SamplingShape, SamplingSize};
use super::resolution;
use super::sampled_method::ticks_per_unit;
use super::sampling::PairSampler;
use super::sampling::SampleCost;
use super::{MethodCandidate, TestedClock};
use cyclescope_code::asm::CodeMode;
use cyclescope_code::clock::Clock;
use cyclescope_core::error::Unavailable;
use cyclescope_core::machine::Machine;
use cyclescope_doctor::ExaminationEffort;
use cyclescope_events::CounterRequest;
use cyclescope_exec::Capabilities;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The parameters of an evaluation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EvaluatePlan {
    /// The timing methods. The entries of a method with two executors are adjacent, so that drift
    /// affects both alike.
    pub candidates: Vec<MethodCandidate>,
    /// Methods that this machine cannot evaluate.
    pub not_run: Vec<RefusedMethod>,
    /// The mode that the methods run in.
    #[serde(rename = "bits", default, skip_serializing_if = "CodeMode::is_default")]
    pub mode: CodeMode,
    /// Number of ensembles and samples of quick methods.
    pub size: SamplingSize,
    /// Time for the whole evaluation.
    pub budget: Duration,
    /// Time for the samples of a method that is not quick; `None` for no separate limit.
    pub slow: Option<Duration>,
    /// Time for each of the other experiments.
    pub times: ExperimentTimes,
    /// Readings of each length of the staircases, regardless of time; `None` if their time decides.
    pub resolution_samples: Option<u32>,
    /// Seed of all random choices.
    pub seed: u64,
    /// Whether to write a record for each ensemble.
    pub series: bool,
    /// Events to count in further ensembles of each method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counters: Option<CounterRequest>,
}

/// Factor by which a small number of samples may exceed the pilot's estimate.
const SPARE: f64 = 3.0;

/// Seconds per sample assumed before the first measurement: a pair of 50 ticks on a machine of 3
/// GHz.
const SAMPLE_GUESS: f64 = 80e-9;

/// Seconds assumed per staircase reading, with its share of the ruler. The body takes 500 core
/// cycles on average.
const BODY_GUESS: f64 = 400e-9;

impl EvaluatePlan {
    /// Expected duration of the whole evaluation, before the machine is known.
    pub(crate) fn expected_time(&self) -> Duration {
        let ExperimentTimes { contamination, resolution, watch, synchrony, .. } = self.times;
        let sampling = self.size.total_samples() as f64 * SAMPLE_GUESS;
        let readings = f64::from(self.resolution_samples.unwrap_or(0)) * resolution::READINGS_PER_REPETITION;
        let each = contamination + resolution + Duration::from_secs_f64(sampling + readings * BODY_GUESS);
        (watch + synchrony + each * self.candidates.len() as u32).min(self.budget)
    }

    /// Whether the stand-in is needed because no candidate covers the methods of ring 0.
    pub(super) fn needs_stand_in(&self) -> bool {
        let needs_ring0 = |candidate: &MethodCandidate| candidate.clock.needs_ring0();
        self.not_run.iter().any(|not| needs_ring0(&not.candidate)) && !self.candidates.iter().any(needs_ring0)
    }
}

/// Time for each experiment except the samples.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct ExperimentTimes {
    /// The machine's facts.
    pub facts: ExaminationEffort,
    /// Contamination, per method.
    pub contamination: Duration,
    /// Resolution, per method.
    pub resolution: Duration,
    /// The core clock over time.
    pub watch: Duration,
    /// The TSCs of the other CPUs.
    pub synchrony: Duration,
}

impl ExperimentTimes {
    /// About ten seconds for a dozen methods.
    pub const FULL: ExperimentTimes = ExperimentTimes {
        facts: ExaminationEffort::FULL,
        contamination: Duration::from_millis(200),
        resolution: resolution::RESOLUTION_TIME,
        watch: Duration::from_millis(400),
        synchrony: Duration::from_millis(600),
    };
    /// Scales the times to a budget smaller than `its_budget`. A larger budget changes nothing.
    pub fn scale_to_budget(self, budget: Duration, its_budget: Duration) -> ExperimentTimes {
        let share = (budget.as_secs_f64() / its_budget.as_secs_f64()).min(1.0);
        ExperimentTimes {
            facts: self.facts,
            contamination: self.contamination.mul_f64(share),
            resolution: self.resolution.mul_f64(share),
            watch: self.watch.mul_f64(share),
            synchrony: self.synchrony.mul_f64(share),
        }
    }

    /// About three seconds.
    pub const QUICK: ExperimentTimes = ExperimentTimes {
        facts: ExaminationEffort::QUICK,
        contamination: Duration::from_millis(60),
        resolution: resolution::RESOLUTION_TIME_QUICK,
        watch: Duration::from_millis(200),
        synchrony: Duration::from_millis(200),
    };
}

/// Default budget.
pub const BUDGET: Duration = Duration::from_secs(88);
/// Default budget of a quick evaluation.
pub const BUDGET_QUICK: Duration = Duration::from_secs(13);
/// Time for the samples of a method that is not quick.
pub const SLOW_METHOD_TIME: Duration = Duration::from_secs(1);
/// The same in a quick evaluation.
pub const SLOW_METHOD_TIME_QUICK: Duration = Duration::from_millis(150);
/// Number of ensembles and samples in a quick evaluation.
pub const SIZE_QUICK: SamplingSize = SamplingSize { ensembles: 100, samples: 100_000 };

/// A timing method that this machine cannot evaluate.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RefusedMethod {
    /// The method and the executor that cannot run it.
    pub candidate: MethodCandidate,
    /// The reason.
    pub why: Unavailable,
}

/// Splits methods on executors into those that run in a mode and those that do not, with reasons.
pub fn split_candidates(
    clocks: impl IntoIterator<Item = &'static Clock>,
    mode: CodeMode,
    machine: &Machine,
    executors: &[Capabilities],
) -> (Vec<MethodCandidate>, Vec<RefusedMethod>) {
    let (mut run, mut not) = (Vec::new(), Vec::new());
    for clock in clocks {
        for capabilities in executors {
            let candidate = MethodCandidate { clock, executor: capabilities.executor };
            match capabilities.require_clock_for(clock, mode, machine) {
                Ok(()) => run.push(candidate),
                Err(why) => not.push(RefusedMethod { candidate, why }),
            }
        }
    }
    (run, not)
}

/// A method waiting for its samples.
#[derive(Debug, Clone, Copy)]
pub(super) struct WaitingMethod {
    pub(super) cost: SampleCost,
    pub(super) quick: bool,
}

impl WaitingMethod {
    pub(super) fn new(clock: &Clock, cost: SampleCost, hertz: f64) -> WaitingMethod {
        WaitingMethod { cost, quick: cost.is_quick(ticks_per_unit(clock.counts, hertz)) }
    }

    /// The shape of its samples.
    pub(super) fn sampling_shape(&self, tested: &TestedClock, size: SamplingSize) -> SamplingShape {
        PairSampler::new(tested).sampling_shape(size, self.cost.seconds)
    }

    /// Seconds that its samples take without a cut.
    pub(super) fn needed_seconds(&self, plan: &EvaluatePlan) -> f64 {
        let all = plan.size.total_samples() as f64 * self.cost.seconds;
        match plan.slow {
            Some(slow) if !self.quick => all.min(slow.as_secs_f64()),
            _ => all,
        }
    }
}

/// Size of the first waiting method and the seconds that it may take. `left` is the time for all of
/// them.
///
/// If the total need exceeds `left`, each method may take an equal part, and unused time goes to
/// the others. A method with CPUID then does not starve methods that need a hundredth of its time.
pub(super) fn share_budget(waiting: &[WaitingMethod], left: f64, plan: &EvaluatePlan) -> (SamplingSize, f64) {
    let WaitingMethod { cost, .. } = waiting[0];
    let own_seconds = waiting[0].needed_seconds(plan);
    let all: f64 = waiting.iter().map(|method| method.needed_seconds(plan)).sum();
    if all <= left {
        // A method slower than its pilot may take the time that the others leave.
        return (plan.size.cut_to_total(own_seconds / cost.seconds * (1.0 + 1e-9)), own_seconds + left - all);
    }
    let mut wishes: Vec<f64> = waiting.iter().map(|method| method.needed_seconds(plan)).collect();
    wishes.sort_by(f64::total_cmp);
    let (mut left, mut level) = (left.max(0.0), 0.0);
    for (at, wish) in wishes.iter().enumerate() {
        level = left / (wishes.len() - at) as f64;
        if *wish > level {
            break;
        }
        left -= wish;
    }
    let part = own_seconds.min(level);
    let size = plan.size.cut_to_total(part / cost.seconds * (1.0 + 1e-9));
    let needed = size.total_samples() as f64 * cost.seconds;
    // The smallest size may exceed its part.
    (size, if needed > part { SPARE * needed } else { part })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(size: SamplingSize, slow: Option<Duration>) -> EvaluatePlan {
        EvaluatePlan {
            candidates: Vec::new(),
            not_run: Vec::new(),
            mode: CodeMode::default(),
            size,
            budget: BUDGET,
            slow,
            times: ExperimentTimes::QUICK,
            resolution_samples: None,
            seed: 0,
            series: false,
            counters: None,
        }
    }

    #[test]
    fn with_enough_time_quick_methods_get_all_samples_and_slow_ones_a_second() {
        let quick = WaitingMethod { cost: SampleCost { seconds: 70e-9, pair: 48.0 }, quick: true };
        let slow = WaitingMethod { cost: SampleCost { seconds: 15e-6, pair: 17_000.0 }, quick: false };
        let plan = plan(SamplingSize::PAPER, Some(SLOW_METHOD_TIME));
        let (size, seconds) = share_budget(&[quick, slow], 20.0, &plan);
        assert_eq!(size, SamplingSize::PAPER);
        assert!((seconds - 19.0).abs() < 1e-6, "{seconds}");
        let (size, _) = share_budget(&[slow], 20.0, &plan);
        assert_eq!(size, SamplingSize { ensembles: 100, samples: 666 });
    }

    #[test]
    fn missing_time_is_cut_evenly() {
        let quick = WaitingMethod { cost: SampleCost { seconds: 100e-9, pair: 48.0 }, quick: true };
        let plan = plan(SamplingSize::PAPER, None);
        let (size, seconds) = share_budget(&[quick, quick, quick, quick], 20.0, &plan);
        assert_eq!((size, seconds), (SamplingSize { ensembles: 500, samples: 100_000 }, 5.0));
        assert_eq!(share_budget(&[quick], -1.0, &plan).0, SamplingSize { ensembles: 100, samples: 100 });
    }

    #[test]
    fn a_slow_method_does_not_starve_a_quick_one() {
        let quick = WaitingMethod { cost: SampleCost { seconds: 80e-9, pair: 48.0 }, quick: true };
        let slow = WaitingMethod { cost: SampleCost { seconds: 15e-6, pair: 17_000.0 }, quick: false };
        let plan = plan(SamplingSize::PAPER, None);
        let (size, seconds) = share_budget(&[quick, slow], 20.0, &plan);
        assert_eq!(size, SamplingSize::PAPER);
        assert!((seconds - 8.0).abs() < 1e-6, "{seconds}");
        let (size, seconds) = share_budget(&[slow, quick], 20.0, &plan);
        assert!(size.total_samples() > 700_000 && (seconds - 12.0).abs() < 1e-6, "{size:?} {seconds}");
    }

    #[test]
    fn a_quick_method_has_a_short_pair_and_short_samples() {
        assert!(SampleCost { seconds: 140e-9, pair: 118.0 }.is_quick(1.0));
        assert!(!SampleCost { seconds: 15e-6, pair: 44.0 }.is_quick(1.0));
        assert!(!SampleCost { seconds: 300e-9, pair: 100.0 }.is_quick(2.3));
    }
}
