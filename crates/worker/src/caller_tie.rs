//! Ties a worker's life to that of its caller.
//!
//! The kernel ends the worker when its caller ends. A caller that ended before the kernel knew must
//! be noticed by the worker itself: by the number of its parent, or by a process descriptor where a
//! namespace hides that number.

use super::kernel::{POLLIN, PR_SET_PDEATHSIG, SIGKILL, WAIT_ALL, WNOHANG, call};
use super::rights::{RefusedCall, call_kernel};
use super::setup::CallerTie;
use core::ptr;

/// `struct pollfd`
#[repr(C)]
struct PolledFile {
    file: i32,
    events: i16,
    ready: i16,
}

impl CallerTie {
    /// Makes this process end with its caller. False if the caller has already ended.
    ///
    /// # Safety
    ///
    /// Only in a worker that has the descriptor open.
    pub unsafe fn tie(&self) -> Result<bool, RefusedCall> {
        // SAFETY: plain numbers.
        let parent = unsafe {
            call_kernel(call::PRCTL, [PR_SET_PDEATHSIG, SIGKILL as usize, 0, 0])?;
            call_kernel(call::GETPPID, [0; 4])?
        };
        if self.descriptor < 0 {
            return Ok(parent == self.pid as isize);
        }
        let mut polled = PolledFile { file: self.descriptor, events: POLLIN as i16, ready: 0 };
        // SAFETY: the structure lives through the call.
        let ended = unsafe {
            // The kernel sends the signal and marks the caller as ended under one lock. A wait takes
            // the same lock, so it returns after both or before both (Linux, `exit_notify`,
            // `do_wait`). There is no child to wait for.
            let _ = call_kernel(call::WAIT4, [usize::MAX, 0, WNOHANG | WAIT_ALL, 0]);
            call_kernel(call::POLL, [ptr::from_mut(&mut polled) as usize, 1, 0, 0])
        };
        // A container that refuses the call leaves the signal alone.
        Ok(!matches!(ended, Ok(1..)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_that_has_ended_is_noticed_by_number_and_by_descriptor() {
        // SAFETY: the children only make system calls, and end.
        unsafe {
            let ended = libc::fork();
            if ended == 0 {
                libc::_exit(0);
            }
            let descriptor = libc::syscall(libc::SYS_pidfd_open, ended, 0) as i32;
            let mut info = core::mem::zeroed();
            assert_eq!(libc::waitid(libc::P_PID, ended as u32, &mut info, libc::WEXITED | libc::WNOWAIT), 0);
            let own = libc::getpid();
            let own_descriptor = libc::syscall(libc::SYS_pidfd_open, own, 0) as i32;
            if descriptor < 0 || own_descriptor < 0 {
                // Older kernels and some containers lack process descriptors.
                return;
            }
            let ties = [(ended, -1, false), (own, -1, true), (0, descriptor, false), (0, own_descriptor, true)];
            for (pid, descriptor, lives) in ties {
                let child = libc::fork();
                if child == 0 {
                    let tied = CallerTie { pid, descriptor }.tie();
                    libc::_exit(if tied == Ok(lives) { 0 } else { 1 });
                }
                let mut status = 0;
                assert!(child > 0 && libc::waitpid(child, &raw mut status, 0) == child);
                assert_eq!(status, 0, "{pid} {descriptor}");
            }
        }
    }
}
