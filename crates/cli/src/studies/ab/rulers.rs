//! Converts CPU time to core cycles with the ruler, read on the programs' CPU before and after each
//! run.

use cyclescope_clock::pairs::LfenceRdtscLfence as Clock;
use cyclescope_clock::{Calibration, Pair, Scale};
use std::time::{Duration, Instant};

/// Readings per measurement; the median counts. Each took 120 microseconds (Zen 4).
const READINGS_PER_TIME: usize = 3;
/// Time after which the clock's rate is known to one part in ten thousand.
const RATE_TIME: Duration = Duration::from_millis(5);

/// The ruler and the rate of its clock.
pub struct TickRulers {
    calibration: Calibration,
    begun: Instant,
    ticks: u64,
}

impl TickRulers {
    /// Calibrates both on the current CPU, in some milliseconds.
    pub fn new() -> TickRulers {
        let calibration = Calibration::measure::<Clock>();
        let rulers = TickRulers { calibration, begun: Instant::now(), ticks: Clock::start() };
        while rulers.begun.elapsed() < RATE_TIME {
            rulers.read_cycles_per_tick();
        }
        rulers
    }

    /// Measures the core cycles per tick now.
    pub fn read_cycles_per_tick(&self) -> f64 {
        let mut readings = [(); READINGS_PER_TIME].map(|()| Scale::read::<Clock>(&self.calibration).cycles);
        readings.sort_unstable_by(f64::total_cmp);
        readings[READINGS_PER_TIME / 2]
    }

    /// Converts a time between two readings to core cycles.
    pub fn to_core_cycles(&self, time: Duration, around: [f64; 2]) -> f64 {
        let passed = Clock::end().wrapping_sub(self.ticks) as f64;
        let rate = passed / self.begun.elapsed().as_secs_f64();
        time.as_secs_f64() * rate * (around[0] + around[1]) / 2.0
    }
}
