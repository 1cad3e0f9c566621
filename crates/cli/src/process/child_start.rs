//! Starts programs, and ends those that something stops before they run.
//!
//! A new process tells through a socket that it runs its program, or why it can't.
//! [`Command::spawn`] waits for that without a limit. A thread that watches it would be a second
//! one: after that the C library locks its heap and counts references atomically. Copies of this
//! process measure functions, which would then take longer.

use crate::output::Failure;
use crate::process::child_watch::{ChildEvent, ChildWatch, stopped_failure};
use cyclescope::process_state::ProcessState;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Why a program does not run.
#[derive(Debug)]
pub enum StartError {
    /// The system refused it.
    Refused(io::Error),
    /// Something stopped its process before it ran, so the process was killed.
    Stopped(ProcessState),
}

impl StartError {
    /// The failure of the program `called`; `explain` describes why the system refused it.
    pub fn into_failure(self, called: &str, explain: impl FnOnce(&io::Error) -> Failure) -> Failure {
        match self {
            StartError::Refused(error) => explain(&error),
            StartError::Stopped(state) => stopped_failure(called, state),
        }
    }
}

impl From<io::Error> for StartError {
    fn from(error: io::Error) -> StartError {
        StartError::Refused(error)
    }
}

/// Starts a program like [`Command::spawn`], and watches its process. Pipes are the caller's:
/// the process drops its end of a [`Stdio::piped`](std::process::Stdio::piped). This process
/// drops the ends that the command has.
///
/// # Errors
///
/// If the system refuses to start it, or if something stops the process before it runs.
pub fn start_child(mut command: Command) -> Result<ChildWatch, StartError> {
    let (mut ours, mut theirs) = UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    // SAFETY: this process may have other threads. The child allocates, reads the environment and
    // ends. The C library's `fork` makes the heap usable, and no thread changes the environment.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error().into()),
        0 => {
            let errno = command.exec().raw_os_error().unwrap_or(libc::EINVAL);
            // If this fails, the exit code remains.
            let _ = theirs.write_all(&errno.to_ne_bytes());
            // SAFETY: ends the process at once, without this program's destructors.
            unsafe { libc::_exit(1) }
        }
        pid => {
            drop((command, theirs));
            let mut watch = ChildWatch::new(pid);
            match await_start(&mut watch, &mut ours) {
                Ok(()) => Ok(watch),
                Err(error) => {
                    end_child(watch);
                    Err(error)
                }
            }
        }
    }
}

/// Waits until a child runs its program: then the system closes the child's end of the socket.
fn await_start(watch: &mut ChildWatch, socket: &mut UnixStream) -> Result<(), StartError> {
    if let ChildEvent::Stopped(state) = watch.wait(None, &[socket.as_fd()])? {
        return Err(StartError::Stopped(state));
    }
    let mut errno = [0; size_of::<i32>()];
    match socket.read(&mut errno) {
        Ok(0) => Ok(()),
        Ok(_) => Err(io::Error::from_raw_os_error(i32::from_ne_bytes(errno)).into()),
        // The child has ended, and a child of another thread still has the other end.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Kills and reaps a child, unless the kernel does not end it.
fn end_child(mut watch: ChildWatch) {
    // SAFETY: takes no pointers. The child is not reaped yet.
    unsafe { libc::kill(watch.pid(), libc::SIGKILL) };
    if watch.wait_for_killed().is_ok() {
        // Without its status, nothing is lost.
        let _ = watch.reap();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

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
        let error = start_child(command).map(|watch| watch.pid()).expect_err("it is killed");
        assert!(matches!(error, StartError::Stopped(ProcessState::Stopped)), "{error:?}");
        // It is reaped too.
        assert_eq!(std::fs::read_to_string("/proc/thread-self/children").unwrap_or_default(), "");
    }

    #[test]
    fn a_program_that_starts_late_is_left_alone() {
        let mut late = Command::new("true");
        let sleep = || {
            // A stopped process is killed after seven seconds.
            let pause = libc::timespec { tv_sec: 9, tv_nsec: 0 };
            // SAFETY: the time outlives the call.
            unsafe { libc::nanosleep(&pause, std::ptr::null_mut()) };
            Ok(())
        };
        // SAFETY: `sleep` makes one system call.
        unsafe { late.pre_exec(sleep) };
        let mut watch = start_child(late).expect("it starts");
        assert_eq!(watch.wait(None, &[]).expect("a child"), ChildEvent::Ended);
        assert_eq!(watch.reap().expect("a child").into_raw(), 0);
    }

    #[test]
    fn what_the_system_refuses_is_the_error_of_spawn() {
        let programs = [("/none", io::ErrorKind::NotFound), ("/", io::ErrorKind::PermissionDenied)];
        for (program, kind) in programs {
            let error = start_child(Command::new(program)).map(|watch| watch.pid()).expect_err("it is refused");
            let spawned = Command::new(program).spawn().expect_err("it is refused");
            assert!(matches!(error, StartError::Refused(error) if error.kind() == kind && spawned.kind() == kind));
        }
    }
}
