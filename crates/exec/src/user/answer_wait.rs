//! How a worker is waited for: actively at first, then asleep, up to a limit of its time.

use super::process::{SETUP_LIMIT, SETUP_LIMIT_COUNTS, STARTING_WORKER, WorkerProcess};
use super::time_limit::{OvertimeVerdict, StopCause, WaitResult, WorkerTimeLimit};
use cyclescope_core::error::RunError;
use std::sync::atomic::{AtomicU32, Ordering};

/// Iterations of active waiting if the worker runs on another CPU: about 20 µs.
const SPIN_ITERATIONS: u32 = 500;

/// Why a worker did not answer.
#[derive(Debug)]
pub(super) enum WaitFailure {
    /// It has ended.
    Ended,
    /// It used up its time.
    Hung,
    /// It does not run, for this reason.
    Stopped(StopCause),
    /// The system refuses this call, which waits for it, with this error.
    Refused(&'static str, i32),
}

impl WorkerProcess {
    /// The worker's number: of its process, or of its thread, by which its time is counted.
    pub(super) fn pid(&self) -> i32 {
        self.pid
    }

    /// The limit of the worker's set-up, which begins now.
    pub(super) fn setup_limit(&self) -> WorkerTimeLimit {
        WorkerTimeLimit::new(self.pid, SETUP_LIMIT)
    }

    /// Waits until this word is a command's number, within a limit.
    pub(super) fn wait_for_answer(
        &self,
        done: &AtomicU32,
        sequence: u32,
        spin: bool,
        limit: &mut WorkerTimeLimit,
    ) -> Result<(), WaitFailure> {
        loop {
            let until = limit.next_check();
            if spin && spin_until_answer(done, sequence) {
                return Ok(());
            }
            match self.sleep_until_answer(done, sequence, until) {
                WaitResult::Done => return Ok(()),
                WaitResult::Ended => return Err(WaitFailure::Ended),
                WaitResult::Refused(call, errno) => return Err(WaitFailure::Refused(call, errno)),
                WaitResult::Late => match limit.check_overtime() {
                    OvertimeVerdict::Busy => {}
                    OvertimeVerdict::Hung => return Err(WaitFailure::Hung),
                    OvertimeVerdict::Stopped(cause) => return Err(WaitFailure::Stopped(cause)),
                },
            }
        }
    }
}

/// Waits actively for a short time; whether the answer came.
fn spin_until_answer(done: &AtomicU32, sequence: u32) -> bool {
    for _ in 0..SPIN_ITERATIONS {
        if done.load(Ordering::Acquire) == sequence {
            return true;
        }
        std::hint::spin_loop();
    }
    false
}

impl WaitFailure {
    /// Ends a worker that did not complete its set-up; the error for it.
    pub(super) fn into_setup_error(self, worker: &mut WorkerProcess) -> RunError {
        let end = worker.kill_and_reap();
        match self {
            WaitFailure::Ended => end.into_setup_error(),
            WaitFailure::Hung => {
                let why = format!("it took more than {} s{SETUP_LIMIT_COUNTS}", SETUP_LIMIT.as_secs());
                RunError::from_harness(STARTING_WORKER, why, "run it again on a quieter machine")
            }
            WaitFailure::Stopped(cause) => cause.into_error(STARTING_WORKER),
            WaitFailure::Refused(call, errno) => RunError::from_system_call(STARTING_WORKER, call, errno),
        }
    }
}
