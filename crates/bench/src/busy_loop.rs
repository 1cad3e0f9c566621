//! Background load that keeps one CPU busy, like a runaway program.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

/// A shell in an endless loop on one CPU, until this is dropped.
pub struct BusyLoop(Child);

/// Processor seconds after which the kernel ends the loop if nothing else does.
const CPU_SECONDS_LIMIT: u64 = 3600;

impl BusyLoop {
    /// Starts the loop on a CPU. It ends with the thread that started it.
    pub fn start(cpu: usize) -> io::Result<BusyLoop> {
        let mut command = Command::new("sh");
        command.args(["-c", "while :; do :; done"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // SAFETY: between fork and exec only system calls are made, and nothing is allocated.
        unsafe {
            command.pre_exec(move || {
                let limit = libc::rlimit { rlim_cur: CPU_SECONDS_LIMIT, rlim_max: CPU_SECONDS_LIMIT };
                libc::setrlimit(libc::RLIMIT_CPU, &limit);
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                pin_thread(cpu)
            });
        }
        command.spawn().map(BusyLoop)
    }
}

impl Drop for BusyLoop {
    fn drop(&mut self) {
        // This fails only if the loop has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Keeps the calling thread on one CPU.
pub fn pin_thread(cpu: usize) -> io::Result<()> {
    // SAFETY: the set is plain memory that lives through the call.
    let answer = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set)
    };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loop_ends_when_dropped() {
        // SAFETY: takes no pointers.
        let here = unsafe { libc::sched_getcpu() } as usize;
        let busy = BusyLoop::start(here).unwrap();
        let pid = busy.0.id() as i32;
        drop(busy);
        // SAFETY: signal 0 only checks whether the process exists; it has been waited for.
        assert_eq!(unsafe { libc::kill(pid, 0) }, -1);
    }
}
