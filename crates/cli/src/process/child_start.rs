//! Starts programs, and ends those that something stops before they run.
//!
//! A new process tells its parent through a pipe that it runs its program. Until then, the standard
//! library waits for it without a limit.

use cyclescope::process_state::ProcessState;
use std::io;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// Time after which a process that does not run its program yet is examined.
const START_TIMEOUT: Duration = Duration::from_secs(3);

/// Starts a program, as [`Command::spawn`] does. A process that something stops before it runs its
/// program is killed.
///
/// A thread watches the start, so a process that measures functions in copies of itself must not call
/// this: after a second thread the C library locks its heap, and functions take longer.
///
/// # Errors
///
/// Those of [`Command::spawn`], and if the process was killed.
pub fn start_child(command: &mut Command) -> io::Result<Child> {
    start_within(command, START_TIMEOUT)
}

fn start_within(command: &mut Command, time: Duration) -> io::Result<Child> {
    let thread = rustix::thread::gettid().as_raw_nonzero().get();
    let before = children_of(thread);
    let (started, starts) = channel::<()>();
    std::thread::scope(|scope| {
        let watch = move || end_stopped_start(&starts, thread, &before, time);
        let watcher = std::thread::Builder::new().spawn_scoped(scope, watch)?;
        let child = command.spawn();
        drop(started);
        // A panic has already been reported.
        let killed = watcher.join().unwrap_or(false);
        match child {
            Ok(mut child) if killed => {
                child.wait()?;
                Err(io::Error::new(io::ErrorKind::TimedOut, "something stopped its process before it ran"))
            }
            child => child,
        }
    })
}

/// Kills a stopped child of a thread, if the start does not end in time. Returns whether it has.
fn end_stopped_start(starts: &Receiver<()>, thread: i32, before: &[i32], time: Duration) -> bool {
    let mut killed = false;
    while starts.recv_timeout(time) == Err(RecvTimeoutError::Timeout) {
        let new = children_of(thread).into_iter().filter(|pid| !before.contains(pid));
        for pid in new.filter(|pid| ProcessState::read(*pid) == ProcessState::Stopped) {
            // SAFETY: takes no pointers. The starting thread has not reaped it.
            killed |= unsafe { libc::kill(pid, libc::SIGKILL) } == 0;
        }
    }
    killed
}

/// The children that a thread of this process has made.
fn children_of(thread: i32) -> Vec<i32> {
    let list = std::fs::read_to_string(format!("/proc/self/task/{thread}/children")).unwrap_or_default();
    list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;

    #[test]
    fn a_process_that_is_stopped_before_it_runs_its_program_is_killed() {
        let mut command = Command::new("true");
        let stop = || {
            // SAFETY: takes no pointers.
            unsafe { libc::raise(libc::SIGSTOP) };
            Ok(())
        };
        // SAFETY: `stop` makes one system call.
        unsafe { command.pre_exec(stop) };
        let error = start_within(&mut command, Duration::from_millis(20)).expect_err("it is killed");
        assert!(error.to_string().contains("stopped"), "{error}");
    }

    #[test]
    fn a_program_that_starts_late_or_never_is_left_to_the_system() {
        let mut late = Command::new("true");
        let sleep = || {
            let pause = libc::timespec { tv_sec: 0, tv_nsec: 100_000_000 };
            // SAFETY: the time outlives the call.
            unsafe { libc::nanosleep(&pause, std::ptr::null_mut()) };
            Ok(())
        };
        // SAFETY: `sleep` makes one system call.
        unsafe { late.pre_exec(sleep) };
        let mut child = start_within(&mut late, Duration::from_millis(10)).expect("it starts");
        assert!(child.wait().expect("a child").success());
        let missing = start_child(&mut Command::new("/none")).expect_err("there is none");
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
}
