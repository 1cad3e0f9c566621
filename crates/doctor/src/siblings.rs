//! Finds by experiment which CPUs share the target's core.
//!
//! A worker on another CPU adds as fast as it can while the width sentinel runs on the target. On a
//! shared core the sentinel reads about half of its usual width. Both workers read the same TSC.
//! Only rounds inside a sample of the other worker count, so delays of that worker do no harm.
//!
//! Limits: the test cannot decide if something else keeps the core busy all the time, or if the
//! CPUs' TSCs are not in step.

use cyclescope_code::clock::Clock;
use cyclescope_code::program::ProgramRecipe;
use cyclescope_code::program::chains::SENTINEL;
use cyclescope_core::error::RunError;
use cyclescope_core::machine::core_study::{CoreSharing, SiblingProof, SiblingStudy};
use cyclescope_core::random::Random;
use cyclescope_core::statistics::median;
use cyclescope_exec::{Executor, ProgramCall, Sample};
use cyclescope_measure::rounds::RulerRounds;
use cyclescope_measure::ruler::LeastWidth;
use cyclescope_measure::ruler::{UnsharedWidth, raw_duration};
use cyclescope_measure::schedule::{self, BatchPace, PlannedLayout, Schedule};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Makes an executor on a CPU, in the thread that will use it.
pub(crate) type MakeExecutor<'a> = dyn Fn(u32) -> Result<Box<dyn Executor>, RunError> + Sync + 'a;

/// Time for one CPU, including some milliseconds for the start of the other worker.
const TIME_EACH: Duration = Duration::from_millis(30);
/// Longest start of the other worker.
const START_TIME: Duration = Duration::from_millis(15);
/// Layouts and rounds of one look at the width: half a millisecond.
const LAYOUTS: usize = 8;
const ROUNDS: u32 = 8;
/// Looks at the width before, and after, the other CPU is busy.
const LOOKS: usize = 2;
/// Iterations of the other worker's loop: about 40 µs, so that several rounds of the target fit.
const BUSY_LOOPS: u64 = 20_000;
const BUSY_ROUNDS: u32 = 24;
/// A sample of the other worker is interrupted if it takes longer than the median by this factor.
const INTERRUPTED_FACTOR: f64 = 1.1;
/// Fewest rounds during the load that allow a decision.
const ROUNDS_LEAST: usize = 12;
/// Two workers on one core each see about half its width; on separate cores each sees all of it.
const SHARED_BELOW: f64 = 0.75;
const SEPARATE_ABOVE: f64 = 0.9;
/// Largest difference of the unloaded widths before and after, as a share.
const STEADY_SHARE: f64 = 0.12;

/// The target's side of the experiments.
pub(super) struct SiblingTarget<'a> {
    pub(super) executor: &'a mut dyn Executor,
    pub(super) rounds: &'a RulerRounds,
    pub(super) clock: &'a Clock,
    /// Additions per cycle that the core should reach alone.
    pub(super) width: Option<LeastWidth>,
    pub(super) random: &'a mut Random,
}

/// Tests these CPUs in turn, as long as there is time.
pub(super) fn prove_siblings(
    target: &mut SiblingTarget,
    make: &MakeExecutor,
    cpus: &[u32],
    time: Duration,
) -> SiblingStudy {
    let started = Instant::now();
    let mut study = SiblingStudy::default();
    for &cpu in cpus {
        if started.elapsed() + TIME_EACH > time {
            study.untested.push(cpu);
            continue;
        }
        study.proofs.push(target.prove_sibling(make, cpu));
    }
    study
}

/// Widths on the target: start, end and width of each.
type TimedWidths = Vec<(u64, u64, f64)>;

const STARTING: u32 = 0;
const BUSY: u32 = 1;
const STOP: u32 = 2;

impl SiblingTarget<'_> {
    fn prove_sibling(&mut self, make: &MakeExecutor, cpu: u32) -> SiblingProof {
        let blank =
            SiblingProof { cpu, sharing: CoreSharing::Unclear, why: None, alone: None, beside: None, rounds: 0 };
        match self.measure_widths(make, cpu) {
            Ok((before, during, busy, after)) => {
                let beside = widths_inside_samples(&during, &busy);
                judge_sharing(blank, [&before, &after], &beside, self.width)
            }
            Err(why) => SiblingProof { why: Some(why), ..blank },
        }
    }

    /// Measures widths before, while and after the other CPU is busy. Returns the samples of the
    /// load too.
    fn measure_widths(
        &mut self,
        make: &MakeExecutor,
        cpu: u32,
    ) -> Result<(TimedWidths, TimedWidths, Vec<Sample>, TimedWidths), String> {
        let until = Instant::now() + TIME_EACH;
        let before = self.look_at_width()?;
        let phase = AtomicU32::new(STARTING);
        let (clock, seed) = (self.clock, self.random.next_bits());
        let (during, busy) = std::thread::scope(|scope| {
            let work = || keep_busy(make, cpu, clock, seed, &phase);
            let thread = std::thread::Builder::new()
                .spawn_scoped(scope, work)
                .map_err(|error| format!("no thread could be started: {error}"))?;
            let during = self.look_under_load(&phase, until);
            phase.store(STOP, Ordering::Release);
            let busy = thread.join().map_err(|_| "the busy thread panicked".to_string())?;
            Ok::<_, String>((during?, busy.map_err(|error| error.to_string())?))
        })?;
        Ok((before, during, busy, self.look_at_width()?))
    }

    fn look_at_width(&mut self) -> Result<TimedWidths, String> {
        let mut widths = Vec::new();
        for _ in 0..LOOKS {
            let readings = self.rounds.run(self.executor, LAYOUTS, ROUNDS, self.random);
            let readings = readings.map_err(|error| error.to_string())?;
            widths.extend(readings.iter().flat_map(|layout| layout.round_widths()));
        }
        Ok(widths)
    }

    /// Measures widths while the other CPU is busy.
    fn look_under_load(&mut self, phase: &AtomicU32, until: Instant) -> Result<TimedWidths, String> {
        let started = Instant::now();
        while phase.load(Ordering::Acquire) == STARTING && started.elapsed() < START_TIME {
            cyclescope_platform::time::sleep(Duration::from_micros(200));
        }
        let mut widths = self.look_at_width()?;
        while Instant::now() < until {
            widths.extend(self.look_at_width()?);
        }
        Ok(widths)
    }
}

/// Runs additions on another CPU until the caller stops it.
fn keep_busy(
    make: &MakeExecutor,
    cpu: u32,
    clock: &Clock,
    seed: u64,
    phase: &AtomicU32,
) -> Result<Vec<Sample>, RunError> {
    let mut executor = make(cpu)?;
    let program = ProgramRecipe::with_loop(clock, SENTINEL, 4).build();
    let (code, _) = schedule::place_fixed(std::slice::from_ref(&program));
    let calls = vec![ProgramCall { place: 0, loop_count: BUSY_LOOPS }];
    let pace = BatchPace { rounds: BUSY_ROUNDS, ..BatchPace::default() };
    let schedule = Schedule::with_layouts(vec![program], pace, [PlannedLayout::with_calls_in_order(code, calls, seed)]);
    let mut samples = Vec::new();
    loop {
        // Changes only the starting phase, so that a request to stop is not lost.
        let _ = phase.compare_exchange(STARTING, BUSY, Ordering::AcqRel, Ordering::Acquire);
        samples.extend(schedule.run(&mut *executor)?);
        if phase.load(Ordering::Acquire) == STOP {
            return Ok(samples);
        }
    }
}

/// Widths of rounds inside one undisturbed sample.
fn widths_inside_samples(widths: &TimedWidths, busy: &[Sample]) -> Vec<f64> {
    let length = raw_duration;
    let undisturbed = || busy.iter().filter(|sample| length(sample).is_finite());
    let mut lengths: Vec<f64> = undisturbed().map(length).collect();
    if lengths.is_empty() {
        return Vec::new();
    }
    let most = INTERRUPTED_FACTOR * median(&mut lengths);
    let whole: Vec<&Sample> = undisturbed().filter(|sample| length(sample) <= most).collect();
    let is_inside = |&&(start, end, _): &&(u64, u64, f64)| {
        // The samples are in chronological order.
        let next = whole.partition_point(|sample| sample.end < end);
        whole.get(next).is_some_and(|sample| sample.start <= start)
    };
    widths.iter().filter(is_inside).map(|(_, _, width)| *width).collect()
}

/// Judges from the widths whether the core is shared.
fn judge_sharing(
    blank: SiblingProof,
    looks: [&TimedWidths; 2],
    beside: &[f64],
    width: Option<LeastWidth>,
) -> SiblingProof {
    let middle = |widths: Vec<f64>| {
        let mut widths = widths;
        (!widths.is_empty()).then(|| median(&mut widths))
    };
    let [before, after] = looks.map(|widths| middle(widths.iter().map(|(_, _, width)| *width).collect()));
    let proof = SiblingProof { rounds: beside.len(), beside: middle(beside.to_vec()), ..blank };
    let (Some(before), Some(after)) = (before, after) else {
        return SiblingProof { why: Some("the target CPU was disturbed all the time".to_string()), ..proof };
    };
    let alone = before.max(after);
    let proof = SiblingProof { alone: Some(alone), ..proof };
    let unclear = |why: &str| SiblingProof { why: Some(why.to_string()), ..proof.clone() };
    if beside.len() < ROUNDS_LEAST {
        return unclear("the two CPUs never ran at the same time");
    }
    if !UnsharedWidth::from_widths([(alone, 0.0)], width).is_alone(alone, 0.0)
        || before.min(after) < (1.0 - STEADY_SHARE) * alone
    {
        return unclear("something else uses the core");
    }
    match proof.beside.unwrap_or(alone) / alone {
        share if share < SHARED_BELOW => SiblingProof { sharing: CoreSharing::Shared, ..proof },
        share if share > SEPARATE_ABOVE => SiblingProof { sharing: CoreSharing::Separate, ..proof },
        _ => unclear("the core added fewer numbers per cycle, but not as few as a shared one"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(widths: &[f64]) -> TimedWidths {
        widths.iter().enumerate().map(|(index, width)| (100 * index as u64, 100 * index as u64 + 50, *width)).collect()
    }

    fn sharing(before: f64, beside: f64, after: f64) -> CoreSharing {
        let blank =
            SiblingProof { cpu: 1, sharing: CoreSharing::Unclear, why: None, alone: None, beside: None, rounds: 0 };
        judge_sharing(blank, [&at(&[before; 20]), &at(&[after; 20])], &[beside; 20], Some(LeastWidth { least: 3.36 }))
            .sharing
    }

    #[test]
    fn half_the_width_means_a_shared_core() {
        assert_eq!(sharing(4.8, 2.4, 4.7), CoreSharing::Shared);
        assert_eq!(sharing(4.8, 4.7, 4.8), CoreSharing::Separate);
        assert_eq!(sharing(4.8, 4.1, 4.8), CoreSharing::Unclear);
        // Something is busy all the time, or half of it.
        assert_eq!(sharing(2.4, 2.4, 2.4), CoreSharing::Unclear);
        assert_eq!(sharing(2.4, 2.4, 4.8), CoreSharing::Unclear);
    }

    #[test]
    fn only_rounds_inside_an_undisturbed_sample_count() {
        let widths = at(&[1.0, 2.0, 3.0, 4.0]);
        let sample = |start, end| Sample { start, end };
        // The second sample was interrupted; no sample covers the last round.
        let busy = [sample(0, 90), sample(95, 250), sample(190, 280), sample(290, 340)];
        assert_eq!(widths_inside_samples(&widths, &busy), [1.0, 3.0]);
        assert!(widths_inside_samples(&widths, &[]).is_empty());
    }
}
