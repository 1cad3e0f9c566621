//! The processor time of another process.

use cyclescope_core::process_state::ProcessState;
use std::time::Duration;

/// A clock that counts a process's time on processors.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProcessClock(libc::clockid_t);

impl ProcessClock {
    /// The clock of a process; `None` if the system refuses it.
    pub(super) fn open(pid: i32) -> Option<ProcessClock> {
        let mut clock = 0;
        // SAFETY: the clock's number lives through the call.
        let has_clock = unsafe { libc::clock_getcpuclockid(pid, &mut clock) } == 0;
        has_clock.then_some(ProcessClock(clock)).filter(|clock| clock.read().is_some())
    }

    /// Its time so far.
    pub(super) fn read(&self) -> Option<Duration> {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the structure lives through the call.
        let done = unsafe { libc::clock_gettime(self.0, &mut time) } == 0;
        done.then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
    }
}

/// What keeps a process without processor time from running.
pub(super) fn read_state(pid: i32) -> ProcessState {
    ProcessState::read(pid)
}
