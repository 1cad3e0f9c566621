//! How long a worker may take, by the processor time that it got: on a busy machine the time that passes says little.

use crate::executor::lock;
use std::time::{Duration, Instant};

/// A worker that gets no processor time for so long, or for the whole limit, does not run.
const STOPPED: Duration = Duration::from_secs(2);
/// The processor time is looked at no more often.
const LEAST: Duration = Duration::from_millis(10);

/// The time limit of a worker.
pub(super) struct Patience {
    limit: Duration,
    /// The worker's processor time as a clock; none where the system refuses it.
    clock: Option<libc::clockid_t>,
    /// That clock at the start.
    start: Duration,
    /// What the worker had got when it was last looked at, and when that was less.
    seen: (Duration, Instant),
    until: Instant,
}

/// What follows when the time is over.
pub(super) enum Overtime {
    /// It got less processor time than the limit: wait on.
    Busy,
    /// It used the limit up.
    Hung,
    /// It does not run.
    Stopped,
}

impl Patience {
    /// A limit that begins now.
    pub(super) fn new(pid: i32, limit: Duration) -> Patience {
        let mut clock = 0;
        // SAFETY: the clock's number lives through the call.
        let known = unsafe { libc::clock_getcpuclockid(pid, &mut clock) } == 0;
        let clock = known.then_some(clock).filter(|clock| read(*clock).is_some());
        let start = clock.and_then(read).unwrap_or_default();
        let seen = (Duration::ZERO, Instant::now());
        Patience { limit, clock, start, seen, until: lock::until(limit) }
    }

    /// When to call `over`.
    pub(super) fn until(&self) -> Instant {
        self.until
    }

    /// Asks what follows when `until` has passed.
    pub(super) fn over(&mut self) -> Overtime {
        let Some(now) = self.clock.and_then(read) else { return Overtime::Hung };
        let used = now.saturating_sub(self.start);
        if used >= self.limit {
            return Overtime::Hung;
        }
        let (before, when) = self.seen;
        if used > before {
            self.seen = (used, Instant::now());
        } else if when.elapsed() >= self.limit.max(STOPPED) {
            return Overtime::Stopped;
        }
        self.until = lock::until((self.limit - used).max(LEAST));
        Overtime::Busy
    }
}

fn read(clock: libc::clockid_t) -> Option<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure lives through the call.
    let done = unsafe { libc::clock_gettime(clock, &mut time) } == 0;
    done.then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_one_of_processor_time() {
        let own = std::process::id() as i32;
        let mut long = Patience::new(own, Duration::from_secs(1000));
        assert!(matches!(long.over(), Overtime::Busy), "little of it was used");
        let mut none = Patience::new(own, Duration::ZERO);
        assert!(matches!(none.over(), Overtime::Hung));
    }
}
