//! The worker as its caller sees it: a process in a job, which is waited for and ended.

use super::handle::SystemHandle;
use super::time_limit::{StopCause, WaitResult};
use super::worker_contents;
use cyclescope_code::program::Program;
use cyclescope_core::error::{RunError, Unavailable};
use cyclescope_core::process_state::ProcessState;
use iced_x86::{Decoder, DecoderOptions, Mnemonic};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::ThreadId;
use std::time::{Duration, Instant};
use windows_sys::Win32::Foundation::{WAIT_FAILED, WAIT_OBJECT_0};
use windows_sys::Win32::System::Diagnostics::Debug::ReadProcessMemory;
use windows_sys::Win32::System::Threading::{
    GetCurrentProcess, GetExitCodeProcess, SetEvent, TerminateProcess, WaitForMultipleObjects, WaitForSingleObject,
};

pub(super) use super::worker::called_functions;

/// A running worker. Dropping it ends it.
pub(super) struct WorkerProcess {
    /// The number of its thread, by which its time is counted.
    pub(super) pid: i32,
    pub(super) process: SystemHandle,
    /// The job that it is in; closing it ends the worker.
    pub(super) _job: Option<SystemHandle>,
    /// The event that is set after a new command.
    pub(super) wake: SystemHandle,
    /// The event that the worker sets after an answer.
    pub(super) done: SystemHandle,
    pub(super) made_by: ThreadId,
    pub(super) reaped: bool,
}

/// Time limit for the set-up of a worker.
pub(super) const SETUP_LIMIT: Duration = Duration::from_secs(20);
/// What [`SETUP_LIMIT`] counts, at the end of a sentence: elapsed time.
pub(super) const SETUP_LIMIT_COUNTS: &str = "";
/// Time in which an ended process disappears.
const END_TIMEOUT: Duration = Duration::from_secs(5);
/// Exit code of a worker that its caller ended.
const ENDED_BY_CALLER: u32 = 0xC5C0;
/// The step that fails if no worker could be made.
pub(super) const STARTING_WORKER: &str = "starting the worker";

/// Longest time in one wait.
const SLICE: Duration = Duration::from_millis(64);

impl WorkerProcess {
    /// Waits until this word is a command's number, or until a time.
    pub(super) fn sleep_until_answer(&self, done: &AtomicU32, sequence: u32, until: Instant) -> WaitResult {
        let handles = [self.done.raw(), self.process.raw()];
        loop {
            if done.load(Ordering::Acquire) == sequence {
                return WaitResult::Done;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return WaitResult::Late;
            }
            let milliseconds = left.min(SLICE).as_millis().max(1) as u32;
            // SAFETY: the handles live through the call.
            match unsafe { WaitForMultipleObjects(2, handles.as_ptr(), 0, milliseconds) } {
                WAIT_FAILED => return WaitResult::Refused("WaitForMultipleObjects", last_errno()),
                signalled if signalled == WAIT_OBJECT_0 + 1 => {
                    let answered = done.load(Ordering::Acquire) == sequence;
                    return if answered { WaitResult::Done } else { WaitResult::Ended };
                }
                _ => {}
            }
        }
    }

    /// Whether it has ended.
    pub(super) fn has_ended(&self) -> bool {
        // SAFETY: the handle lives through the call.
        unsafe { WaitForSingleObject(self.process.raw(), 0) == WAIT_OBJECT_0 }
    }

    /// Wakes it after the word with the command's number has changed.
    pub(super) fn wake(&self, _word: &AtomicU32) -> Result<(), RunError> {
        // SAFETY: the handle lives through the call.
        match unsafe { SetEvent(self.wake.raw()) } {
            0 => Err(RunError::from_system_call("waking the worker", "SetEvent", last_errno())),
            _ => Ok(()),
        }
    }

    /// Ends the worker if it still runs, and says how it ended.
    pub(super) fn kill_and_reap(&mut self) -> WorkerEnd {
        self.reaped = true;
        let mut code = 0;
        // SAFETY: the handle and the number live through the calls.
        unsafe {
            // It fails if the worker has ended.
            TerminateProcess(self.process.raw(), ENDED_BY_CALLER);
            if WaitForSingleObject(self.process.raw(), END_TIMEOUT.as_millis() as u32) != WAIT_OBJECT_0 {
                return WorkerEnd::Stuck;
            }
            if GetExitCodeProcess(self.process.raw(), &mut code) == 0 {
                return WorkerEnd::Unknown(last_errno());
            }
        }
        if code == ENDED_BY_CALLER { WorkerEnd::Killed } else { WorkerEnd::Exited(code as i32) }
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        if !self.reaped {
            self.kill_and_reap();
        }
    }
}

/// How a worker ended.
pub(super) enum WorkerEnd {
    /// By itself or by the system, with this status; before its memory is mapped, an error number.
    Exited(i32),
    /// By its caller.
    Killed,
    /// Unknown: the system reported this error.
    Unknown(i32),
    /// Not yet, although it was ended.
    Stuck,
}

impl WorkerEnd {
    /// The error for a lost worker.
    pub(super) fn into_error(self) -> RunError {
        let how = match self {
            WorkerEnd::Exited(status) => format!("it exited with status {status:#x}"),
            WorkerEnd::Killed => "its caller ended it".to_owned(),
            WorkerEnd::Stuck => return StopCause(ProcessState::Frozen).into_error("ending the worker"),
            WorkerEnd::Unknown(errno) => {
                return RunError::from_system_call("waiting for the worker", "GetExitCodeProcess", errno);
            }
        };
        RunError::WorkerLost { how }
    }

    /// The error for a worker that ended before its first answer.
    pub(super) fn into_setup_error(self) -> RunError {
        match self {
            WorkerEnd::Exited(errno @ 1..=0xffff) => {
                RunError::from_system_call("mapping the worker's memory", "MapViewOfFileEx", errno)
            }
            WorkerEnd::Exited(code) => worker_contents::explain_exit(code).unwrap_or_else(|| self.into_error()),
            end => end.into_error(),
        }
    }
}

/// The error number of the last failed system call.
pub(super) fn last_errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// Memory of an image or a library whose functions are called: this process has a library at the same
/// address as its workers.
pub(super) fn read_own_memory(address: u64, bytes: usize) -> Option<Vec<u8>> {
    if let Some(image) = worker_contents::read_image(address, bytes) {
        return Some(image);
    }
    if !worker_contents::is_in_library(address) {
        return None;
    }
    let (mut read, mut count) = (vec![0; bytes], 0);
    // SAFETY: the buffer has room for these bytes, and the system checks the addresses.
    let done = unsafe {
        ReadProcessMemory(GetCurrentProcess(), address as *const _, read.as_mut_ptr().cast(), bytes, &mut count) != 0
    };
    (done && count == bytes).then_some(read)
}

/// Refuses code with an instruction that calls the kernel.
pub(super) fn check_code(programs: &[Program]) -> Result<(), RunError> {
    for program in programs {
        for code in [program.snippet(), program.init()] {
            let mut decoder = Decoder::new(program.mode().bits(), code, DecoderOptions::NONE);
            for instruction in &mut decoder {
                let calls = matches!(instruction.mnemonic(), Mnemonic::Syscall | Mnemonic::Sysenter | Mnemonic::Int);
                if calls {
                    return Err(RunError::Unavailable(Unavailable {
                        what: format!("the instruction {:?}", instruction.mnemonic()).to_lowercase(),
                        why: "it calls the kernel, and Windows has no filter that would stop it".to_string(),
                        remedy: "measure it on Linux".to_string(),
                    }));
                }
            }
        }
    }
    Ok(())
}
