//! What a worker's answer, or its end, means for a batch.

use super::answer_wait::WaitFailure;
use super::process::WorkerEnd;
use super::setup;
use super::time_limit::{STOPPED_AFTER, StopCause};
use crate::Sample;
use cyclescope_core::error::RunError;
use cyclescope_core::process_state::ProcessState;
use cyclescope_platform::error_code;
use cyclescope_worker::command::{FENCE_COUNTER, FENCE_CPU, FENCES, INTERRUPTED, WorkerAnswer, outcome};
use cyclescope_worker::sandbox;
use std::time::Duration;

/// The error of a worker that could not set itself up.
pub(super) fn describe_setup_failure(answer: &WorkerAnswer) -> RunError {
    let step = sandbox::STEPS.get(answer.detail as usize);
    let doing = step.copied().unwrap_or("setting the worker up");
    if answer.detail == sandbox::PIN && answer.errno == error_code::EINVAL {
        let why = "the CPU is offline, or not among those that this process may use";
        return RunError::from_harness(doing, why, "choose another one with --cpu");
    }
    match setup::setup_call_name(answer.address as i64) {
        Some(name) => RunError::from_system_call(doing, name, answer.errno),
        None => RunError::System { doing, errno: answer.errno },
    }
}

/// Checks the answer to a batch whose code has ended. `counts` says whether it needs the counters.
pub(super) fn check_fences(answer: &WorkerAnswer, counts: bool, damaged: Option<u32>) -> Result<(), RunError> {
    // Without a counter, only a forged answer reports this.
    if counts && answer.outcome == outcome::FENCE && answer.detail == FENCE_COUNTER {
        let why = "something took it away while the code ran";
        let remedy = "another run uses it; wait until it has ended";
        return Err(RunError::from_harness("keeping the counters", why, remedy));
    }
    if answer.outcome == outcome::FENCE && answer.detail == FENCE_CPU {
        let why = "something moved it to another CPU between two readings";
        let remedy = "change neither the affinity nor the cpuset of this program, and measure again";
        return Err(RunError::from_harness("keeping the code on its CPU", why, remedy));
    }
    if answer.outcome == outcome::FENCE {
        let fence = FENCES.get(answer.detail as usize).copied().unwrap_or("the status block");
        return Err(RunError::DirtyCanary { fence });
    }
    match damaged {
        Some(fence) => Err(RunError::DirtyCanary { fence: FENCES[fence as usize] }),
        None if answer.outcome != outcome::DONE => Err(RunError::DirtyCanary { fence: "the status block" }),
        None => Ok(()),
    }
}

/// Removes the marks of interrupted calls, and returns their indices.
pub(super) fn take_interruptions(readings: &mut [Sample]) -> Vec<usize> {
    let marked = readings.iter_mut().enumerate().filter(|(_, sample)| sample.end & INTERRUPTED != 0);
    marked
        .map(|(index, sample)| {
            sample.end &= !INTERRUPTED;
            index
        })
        .collect()
}

/// The error where a worker is needed and none exists.
pub(super) fn worker_missing_error() -> RunError {
    RunError::WorkerLost { how: "no worker exists".to_owned() }
}

/// The error for a worker that ran no code to its end and was ended.
pub(super) fn describe_failure(failure: WaitFailure, end: WorkerEnd, deadline: Duration) -> RunError {
    let hung_after = |time: Duration| RunError::Hung { deadline_ms: time.as_millis() as u64 };
    match failure {
        WaitFailure::Ended => end.into_error(),
        WaitFailure::Hung => hung_after(deadline),
        // Measured code sleeps only by a jump into the harness, which waits there for a command.
        WaitFailure::Stopped(StopCause(ProcessState::Asleep)) => hung_after(STOPPED_AFTER),
        WaitFailure::Stopped(cause) => cause.into_error("running the snippet"),
        WaitFailure::Refused(call, errno) => RunError::from_system_call("waiting for the worker", call, errno),
    }
}
