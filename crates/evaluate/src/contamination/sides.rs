//! The sides that a method's sides are compared with: the same counter between fences.

use cyclescope_code::clock::{Clock, Step};

/// A clock's counter, read so that nothing crosses the reading.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Reference {
    /// LFENCE before: all earlier instructions have executed. LFENCE after: no later one has begun.
    pub(super) fenced: &'static [Step],
    /// MFENCE before these: earlier stores are globally visible, too.
    pub(super) draining: &'static [Step],
}

impl Reference {
    /// The reference for a clock: the counter that its start reads.
    pub(super) fn of(clock: &Clock) -> Reference {
        use Step::*;
        let reads = |step: &&Step| matches!(step, Rdtscp | Rdpru | Rdpmc | ClockGettime);
        match clock.start.iter().find(reads) {
            Some(Rdtscp) => Reference {
                fenced: &[Lfence, Rdtscp, Lfence, Store],
                draining: &[Mfence, Lfence, Rdtscp, Lfence, Store],
            },
            Some(Rdpru) => Reference {
                fenced: &[Lfence, Rdpru, Lfence, Store],
                draining: &[Mfence, Lfence, Rdpru, Lfence, Store],
            },
            Some(Rdpmc) => Reference {
                fenced: &[Lfence, Rdpmc, Lfence, Store],
                draining: &[Mfence, Lfence, Rdpmc, Lfence, Store],
            },
            Some(ClockGettime) => Reference {
                fenced: &[Lfence, ClockGettime, Lfence, Store],
                draining: &[Mfence, Lfence, ClockGettime, Lfence, Store],
            },
            _ => Reference {
                fenced: &[Lfence, Rdtsc, Lfence, Store],
                draining: &[Mfence, Lfence, Rdtsc, Lfence, Store],
            },
        }
    }
}
