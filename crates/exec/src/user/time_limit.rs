//! Time limits of a worker, in its own processor time: on a busy machine elapsed time says little.

use super::process_clock::{ProcessClock, read_state};
use crate::lock;
use cyclescope_core::error::RunError;
use cyclescope_core::process_state::ProcessState;
use std::time::{Duration, Instant};

/// A worker without processor time for this long does not run, unless it is waiting for its turn. A
/// busy machine shares its time in fractions of a second, however long the code may take.
pub(super) const STOPPED_AFTER: Duration = Duration::from_secs(3);
/// The same for a worker that is waiting for its turn. One waited for more than three seconds with
/// sixteen busy threads on two virtual CPUs.
const STARVED_AFTER: Duration = Duration::from_secs(60);
/// Smallest interval between checks of the processor time.
const MIN_CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// The time limit of a worker.
pub(super) struct WorkerTimeLimit {
    pid: i32,
    limit: Duration,
    /// The worker's processor time as a clock; `None` if the system refuses it.
    clock: Option<ProcessClock>,
    /// That clock at the start.
    start: Duration,
    /// The worker's processor time at the last check, and when it last increased.
    seen: (Duration, Instant),
    until: Instant,
}

/// Consequence of the end of a limit.
pub(super) enum OvertimeVerdict {
    /// It got less processor time than the limit. The caller keeps waiting.
    Busy,
    /// It used up its limit.
    Hung,
    /// It does not run.
    Stopped(StopCause),
}

/// Why a worker does not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StopCause(pub(super) ProcessState);

impl StopCause {
    /// The error of a step that such a worker does not complete.
    pub(super) fn into_error(self, doing: &'static str) -> RunError {
        let (why, remedy) = match self.0 {
            ProcessState::Stopped => ("something stopped its process", "SIGSTOP and debuggers do so: run it again"),
            ProcessState::Frozen => {
                let remedy = "thaw it: write THAWED to its freezer.state, or 0 to its cgroup.freeze";
                ("its control group is frozen", remedy)
            }
            ProcessState::Runnable => {
                ("its process got no processor time", "end other programs on this CPU, or see --cpu")
            }
            ProcessState::Asleep | ProcessState::Ended => ("its process sleeps", "run it again"),
        };
        RunError::from_harness(doing, why, remedy)
    }
}

/// Outcome of waiting for a worker.
pub(super) enum WaitResult {
    /// It has answered.
    Done,
    /// The time is over.
    Late,
    /// It has ended.
    Ended,
    /// The system refuses this call, with this error.
    Refused(&'static str, i32),
}

impl WorkerTimeLimit {
    /// A limit that begins now.
    pub(super) fn new(pid: i32, limit: Duration) -> WorkerTimeLimit {
        let clock = ProcessClock::open(pid);
        let start = clock.as_ref().and_then(ProcessClock::read).unwrap_or_default();
        let seen = (Duration::ZERO, Instant::now());
        WorkerTimeLimit { pid, limit, clock, start, seen, until: lock::end_of_deadline(check_interval(limit)) }
    }

    /// When to call [`WorkerTimeLimit::check_overtime`].
    pub(super) fn next_check(&self) -> Instant {
        self.until
    }

    /// Decides how to continue after a check is due.
    pub(super) fn check_overtime(&mut self) -> OvertimeVerdict {
        let Some(now) = self.clock.as_ref().and_then(ProcessClock::read) else {
            // From elapsed time alone.
            let left = self.limit.saturating_sub(self.seen.1.elapsed());
            self.until = lock::end_of_deadline(check_interval(left));
            return if left.is_zero() { OvertimeVerdict::Hung } else { OvertimeVerdict::Busy };
        };
        let used = now.saturating_sub(self.start);
        if used >= self.limit {
            return OvertimeVerdict::Hung;
        }
        let (before, when) = self.seen;
        if used > before {
            self.seen = (used, Instant::now());
        } else if when.elapsed() >= STOPPED_AFTER {
            let state = read_state(self.pid);
            if state != ProcessState::Runnable || when.elapsed() >= STARVED_AFTER {
                return OvertimeVerdict::Stopped(StopCause(state));
            }
        }
        self.until = lock::end_of_deadline(check_interval(self.limit - used));
        OvertimeVerdict::Busy
    }
}

/// Interval to the next check, if this much of the limit is left.
fn check_interval(left: Duration) -> Duration {
    left.clamp(MIN_CHECK_INTERVAL, STOPPED_AFTER)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_stopped_process_is_detected_in_seconds_whatever_the_limit() {
        let mut sleeping = std::process::Command::new("sleep").arg("60").spawn().expect("it is installed");
        let mut long = WorkerTimeLimit::new(sleeping.id() as i32, Duration::from_secs(100_000));
        let begun = Instant::now();
        let verdict = loop {
            std::thread::sleep(long.next_check().saturating_duration_since(Instant::now()));
            match long.check_overtime() {
                // Its start used some time.
                OvertimeVerdict::Busy => assert!(begun.elapsed() < 20 * STOPPED_AFTER, "still waiting"),
                verdict => break verdict,
            }
        };
        sleeping.kill().and_then(|()| sleeping.wait()).expect("it is a child");
        assert!(matches!(verdict, OvertimeVerdict::Stopped(StopCause(ProcessState::Asleep))));
    }

    #[test]
    fn a_process_waiting_for_its_turn_does_not_count_as_stopped() {
        let own = std::process::id() as i32;
        let when = Instant::now().checked_sub(2 * STOPPED_AFTER).expect("the machine runs for longer");
        let mut waiting = WorkerTimeLimit::new(own, Duration::from_secs(1000));
        // It has used all of its time so far.
        waiting.seen = (Duration::from_secs(900), when);
        let sleeping = std::process::Command::new("sleep").arg("60").spawn();
        let mut sleeping = sleeping.expect("it is installed");
        waiting.pid = rustix::thread::gettid().as_raw_nonzero().get();
        assert!(matches!(waiting.check_overtime(), OvertimeVerdict::Busy));
        waiting.pid = sleeping.id() as i32;
        // Its start uses some time.
        let verdict = loop {
            match waiting.check_overtime() {
                OvertimeVerdict::Busy => std::thread::sleep(MIN_CHECK_INTERVAL),
                verdict => break verdict,
            }
        };
        sleeping.kill().and_then(|()| sleeping.wait()).expect("it is a child");
        assert!(matches!(verdict, OvertimeVerdict::Stopped(StopCause(ProcessState::Asleep))));
    }

    #[test]
    fn without_a_processor_clock_the_limit_is_elapsed_time() {
        let without_clock =
            |limit| WorkerTimeLimit { clock: None, ..WorkerTimeLimit::new(std::process::id() as i32, limit) };
        assert!(matches!(without_clock(Duration::from_secs(1000)).check_overtime(), OvertimeVerdict::Busy));
        assert!(matches!(without_clock(Duration::ZERO).check_overtime(), OvertimeVerdict::Hung));
    }

    #[test]
    fn the_limit_is_in_processor_time() {
        let own = std::process::id() as i32;
        let mut long = WorkerTimeLimit::new(own, Duration::from_secs(1000));
        assert!(matches!(long.check_overtime(), OvertimeVerdict::Busy), "little of it was used");
        let mut none = WorkerTimeLimit::new(own, Duration::ZERO);
        assert!(matches!(none.check_overtime(), OvertimeVerdict::Hung));
    }
}
