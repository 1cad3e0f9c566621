//! Reference sides for comparison with a method's sides: the same counter between fences.

use cyclescope_code::clock::{Clock, ClockStep};

/// A reading of a clock's counter that no instruction crosses.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ReferenceReading {
    /// LFENCE before: all earlier instructions have executed. LFENCE after: no later one has begun.
    pub(super) fenced: &'static [ClockStep],
    /// The same after MFENCE: earlier stores are also globally visible.
    pub(super) draining: &'static [ClockStep],
}

impl ReferenceReading {
    /// The reference for a clock: the counter that its start reads.
    pub(super) fn from_clock(clock: &Clock) -> ReferenceReading {
        use ClockStep::*;
        let reads = |step: &&ClockStep| matches!(step, Rdtscp | Rdpru | Rdpmc | ClockGettime);
        match clock.start.iter().find(reads) {
            Some(Rdtscp) => ReferenceReading {
                fenced: &[Lfence, Rdtscp, Lfence, Store],
                draining: &[Mfence, Lfence, Rdtscp, Lfence, Store],
            },
            Some(Rdpru) => ReferenceReading {
                fenced: &[Lfence, Rdpru, Lfence, Store],
                draining: &[Mfence, Lfence, Rdpru, Lfence, Store],
            },
            Some(Rdpmc) => ReferenceReading {
                fenced: &[Lfence, Rdpmc, Lfence, Store],
                draining: &[Mfence, Lfence, Rdpmc, Lfence, Store],
            },
            Some(ClockGettime) => ReferenceReading {
                fenced: &[Lfence, ClockGettime, Lfence, Store],
                draining: &[Mfence, Lfence, ClockGettime, Lfence, Store],
            },
            _ => ReferenceReading {
                fenced: &[Lfence, Rdtsc, Lfence, Store],
                draining: &[Mfence, Lfence, Rdtsc, Lfence, Store],
            },
        }
    }
}
