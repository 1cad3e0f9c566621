//! The processor time of a worker: that of its thread, because Wine knows that of no other process.

use super::handle::SystemHandle;
use cyclescope_core::process_state::ProcessState;
use std::time::{Duration, Instant};
use windows_sys::Win32::Foundation::FILETIME;
use windows_sys::Win32::System::Threading::{GetThreadTimes, OpenThread, THREAD_QUERY_LIMITED_INFORMATION};

/// A clock that counts a worker's time on processors.
#[derive(Debug)]
pub(super) struct ProcessClock {
    thread: SystemHandle,
    /// Its time when the clock was opened, and when that was.
    opened: (Duration, Instant),
}

impl ProcessClock {
    /// The clock of a worker whose thread has this number; `None` if the system refuses it.
    pub(super) fn open(thread: i32) -> Option<ProcessClock> {
        // SAFETY: takes no pointers.
        let thread = unsafe { OpenThread(THREAD_QUERY_LIMITED_INFORMATION, 0, thread as u32) };
        let mut clock =
            ProcessClock { thread: SystemHandle::take(thread).ok()?, opened: (Duration::ZERO, Instant::now()) };
        clock.opened.0 = clock.read_times()?;
        Some(clock)
    }

    /// Its time so far. As long as the count stays the same, elapsed time takes its place, because
    /// some systems don't count.
    pub(super) fn read(&self) -> Option<Duration> {
        let (before, when) = self.opened;
        let now = self.read_times()?;
        Some(if now > before { now } else { before + when.elapsed() })
    }

    fn read_times(&self) -> Option<Duration> {
        let mut times = [FILETIME::default(); 4];
        let [created, ended, system, user] = &mut times;
        // SAFETY: all times live through the call.
        if unsafe { GetThreadTimes(self.thread.raw(), created, ended, system, user) } == 0 {
            return None;
        }
        let hundreds = |time: FILETIME| u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime);
        Some(Duration::from_nanos(100 * (hundreds(times[2]) + hundreds(times[3]))))
    }
}

/// What keeps a process without processor time from running: Windows does not tell, so it counts as
/// waiting for its turn.
pub(super) fn read_state(_pid: i32) -> ProcessState {
    ProcessState::Runnable
}
