//! Checks that readings can be true: code that takes the worker over can write any numbers.
//!
//! The caller reads its own clocks before a command and after its answer. Readings of the TSC must
//! lie between its own readings, and in the order of the calls. Durations of other clocks together
//! must fit into the elapsed time at the highest rate that a core could have.
//!
//! Limits: a snippet can still lie about itself within the time that it really takes.

use crate::{Layout, Sample};
use cyclescope_code::program::Program;
use cyclescope_core::error::RunError;
use cyclescope_core::machine::tsc::TscFacts;
use cyclescope_core::unit::Unit;
use std::arch::x86_64::{_mm_lfence, _rdtsc};
use std::time::{Duration, Instant};

/// More core cycles per second than any core has; processors are sold with up to 6.2 GHz.
const RATE_MOST: f64 = 8e9;
/// More events per core cycle than any unit counts: dispatch slots, at most ten, are the most.
const EVENTS_PER_CYCLE: f64 = 64.0;
/// Ticks by which readings may seem to overlap: bare RDTSC may execute before earlier instructions,
/// as far as the reorder buffer reaches.
const OVERLAP_MOST: i64 = 4096;
/// Ticks by which the TSCs of two CPUs may differ if the kernel uses the TSC as its clock. It tests
/// them against each other when they start (Linux, `arch/x86/kernel/tsc_sync.c`).
const SKEW_MOST: i64 = 100_000;

/// The time since a command was given, by the caller's own clocks.
pub(super) struct ReadingWindow {
    begun: Instant,
    /// The TSC at that time; `None` if the system forbids reading it.
    ticks: Option<u64>,
    /// Whether the TSCs of all CPUs agree.
    synchronous: bool,
}

/// The time in which a command ran, by the caller's own clocks.
pub(super) struct ClosedWindow {
    elapsed: Duration,
    /// The TSC before and after.
    ticks: Option<[u64; 2]>,
    synchronous: bool,
}

fn read_ticks() -> u64 {
    // SAFETY: LFENCE and RDTSC are in every processor of this architecture. The fences keep the
    // reading in its place among the accesses to shared memory.
    unsafe {
        _mm_lfence();
        let ticks = _rdtsc();
        _mm_lfence();
        ticks
    }
}

impl ReadingWindow {
    /// Opens the window, before the command is given.
    pub(super) fn open(tsc: &TscFacts) -> ReadingWindow {
        let synchronous = tsc.clocksource.known().is_some_and(|name| name == "tsc");
        let ticks = tsc.disabled.is_none().then(read_ticks);
        ReadingWindow { begun: Instant::now(), ticks, synchronous }
    }

    /// Closes the window, after the answer.
    pub(super) fn close(&self) -> ClosedWindow {
        let ticks = self.ticks.map(|before| [before, read_ticks()]);
        ClosedWindow { elapsed: self.begun.elapsed(), ticks, synchronous: self.synchronous }
    }
}

impl ClosedWindow {
    /// Fails if these counts of events can't be true.
    pub(super) fn check_counts(&self, samples: &[Sample]) -> Result<(), RunError> {
        let most = RATE_MOST * EVENTS_PER_CYCLE * self.elapsed.as_secs_f64();
        let highest = samples.iter().map(|sample| sample.end.wrapping_sub(sample.start)).max().unwrap_or(0);
        match highest as f64 <= most {
            true => Ok(()),
            false => {
                let why = format!("one counts {highest} events in {:?}", self.elapsed);
                Err(RunError::ImplausibleReadings { why })
            }
        }
    }

    /// Fails if the readings of these layouts can't be true.
    pub(super) fn check(
        &self,
        programs: &[Program],
        layouts: &[Layout],
        rounds: u32,
        samples: &[Sample],
    ) -> Result<(), RunError> {
        let implausible = |why: String| Err(RunError::ImplausibleReadings { why });
        let calls = |layout: &Layout| {
            let units: Vec<Unit> =
                layout.round.iter().map(|call| programs[layout.code[call.place].program].counts()).collect();
            units.repeat(rounds as usize)
        };
        let units = layouts.iter().flat_map(calls);
        let (mut first, mut last) = (None, None);
        let mut others = 0.0;
        for (Sample { start, end }, unit) in samples.iter().zip(units) {
            let duration = end.wrapping_sub(*start) as i64;
            match unit {
                Unit::TscTicks if duration < -OVERLAP_MOST => {
                    return implausible(format!("one ends {} ticks before it begins", duration.unsigned_abs()));
                }
                Unit::TscTicks => {
                    let gap = start.wrapping_sub(last.unwrap_or(*start)) as i64;
                    if gap < -OVERLAP_MOST {
                        return implausible(format!("two overlap by {} ticks", gap.unsigned_abs()));
                    }
                    first = first.or(Some(*start));
                    last = Some(*end);
                }
                Unit::CoreCycles | Unit::Nanos => others += duration.max(0) as f64,
                _ => {}
            }
        }
        let most = RATE_MOST * self.elapsed.as_secs_f64();
        if others > most {
            return implausible(format!("they add up to {others:e} in {:?}", self.elapsed));
        }
        let (Some(first), Some(last), Some([before, after])) = (first, last, self.ticks) else { return Ok(()) };
        let ticks = |from: u64, to: u64| to.wrapping_sub(from) as i64;
        let (claimed, elapsed) = (ticks(first, last), ticks(before, after));
        // Without synchronous TSCs the caller may have read those of two CPUs.
        let most = if self.synchronous { (elapsed + SKEW_MOST) as f64 } else { most };
        if claimed as f64 > most {
            return implausible(format!("they span {claimed} ticks, and only {elapsed} passed"));
        }
        if self.synchronous && (ticks(before, first) < -SKEW_MOST || ticks(last, after) < -SKEW_MOST) {
            return implausible("they are from another time".to_string());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PlacedProgram, ProgramCall};
    use cyclescope_code::clock::Clock;
    use cyclescope_code::program::ProgramRecipe;

    const BEFORE: u64 = 1_000_000_000;

    /// What is wrong with these readings of a clock, two calls in each of two rounds, in a window
    /// of one millisecond and three million ticks.
    fn check(clock: &str, samples: [[u64; 2]; 4]) -> Option<String> {
        let program = ProgramRecipe::empty(Clock::find_named(clock).unwrap()).build();
        let round = vec![ProgramCall { place: 0, loop_count: 1 }; 2];
        let code = vec![PlacedProgram { program: 0, offset: 0 }];
        let layouts = [Layout { code, round, data: Vec::new(), seed: 0 }];
        let ticks = Some([BEFORE, BEFORE + 3_000_000]);
        let window = ClosedWindow { elapsed: Duration::from_millis(1), ticks, synchronous: true };
        let samples = samples.map(|[start, end]| Sample { start, end });
        window.check(&[program], &layouts, 2, &samples).err().map(|error| error.to_string())
    }

    fn tsc(samples: [[u64; 2]; 4]) -> Option<String> {
        check("rdtscp-lfence", samples.map(|sample| sample.map(|ticks| BEFORE.wrapping_add(ticks))))
    }

    #[test]
    fn readings_lie_in_the_window_and_in_order() {
        assert_eq!(tsc([[0, 10], [20, 30], [40, 1_000_000], [1_000_000, 3_000_000]]), None);
        // A bare RDTSC may execute early.
        assert_eq!(tsc([[0, 10], [8, 5], [40, 50], [60, 70]]), None);
        let fails = |samples, why: &str| {
            let error = tsc(samples).expect("an error");
            assert!(error.contains(why), "{error}");
        };
        fails([[0, 10], [20, 900_000], [40, 900_010], [900_020, 900_030]], "overlap by 899960 ticks");
        fails([[0, 10], [20, 30], [90_000, 50], [60, 70]], "89950 ticks before it begins");
        fails([[0, 10], [20, 30], [40, 1_000_000_000_000], [1_000_000_000_000, 1_000_000_000_010]], "only 3000000");
        fails([[9_000_000, 9_000_010], [9_000_020, 9_000_030], [9_000_040, 9_000_050], [9_000_060, 9_000_070]], "time");
    }

    #[test]
    fn durations_of_other_clocks_fit_into_the_elapsed_time() {
        for clock in ["rdpmc", "clock-gettime"] {
            assert_eq!(check(clock, [[5, 1_000_005], [0, 10], [0, 3_000_000], [9, 1]]), None);
            assert!(check(clock, [[0, 10], [0, 10], [0, 9_000_000], [0, 10]]).is_some());
            assert!(check(clock, [[0, 10], [0, u64::MAX / 2], [0, 10], [0, 10]]).is_some());
        }
    }
}
