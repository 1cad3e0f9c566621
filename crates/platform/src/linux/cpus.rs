//! Which CPUs threads run on (sched_setaffinity(2)).

use rustix::thread::{CpuSet, Pid, gettid, sched_getaffinity, sched_getcpu, sched_setaffinity};
use std::io;

/// Number of CPUs that a thread can be moved to by number.
pub const MOST_NAMED: usize = CpuSet::MAX_CPU;

/// NR_CPUS of the largest kernels (arch/x86/Kconfig, MAXSMP).
pub const MOST_CPUS: u32 = 8192;

/// The CPUs that this thread may run on.
///
/// # Errors
///
/// Says which call failed.
pub fn read_allowed_cpus() -> Result<Vec<u32>, String> {
    // The kernel rejects a mask smaller than its own, so this one fits the largest.
    let mut mask = [0u64; MOST_CPUS as usize / 64];
    // SAFETY: the kernel writes at most the given number of bytes into the array.
    let written = unsafe { libc::syscall(libc::SYS_sched_getaffinity, 0, size_of_val(&mask), mask.as_mut_ptr()) };
    if written < 0 {
        return Err(format!("sched_getaffinity failed: {}", io::Error::last_os_error()));
    }
    Ok((0..MOST_CPUS).filter(|cpu| mask[*cpu as usize / 64] >> (cpu % 64) & 1 == 1).collect())
}

/// The CPUs that a thread ran on before it was moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadCpus(CpuSet);

impl ThreadCpus {
    /// Those of this thread.
    ///
    /// # Errors
    ///
    /// If the system does not tell them.
    pub fn read() -> io::Result<ThreadCpus> {
        Ok(ThreadCpus(sched_getaffinity(None)?))
    }

    /// Lets this thread run on them.
    ///
    /// # Errors
    ///
    /// If the system refuses it.
    pub fn restore(&self) -> io::Result<()> {
        Ok(sched_setaffinity(None, &self.0)?)
    }

    /// Lets another thread of this process run on them.
    ///
    /// # Errors
    ///
    /// If the thread has ended.
    pub fn give_to(&self, thread: i32) -> io::Result<()> {
        match Pid::from_raw(thread) {
            Some(thread) => Ok(sched_setaffinity(Some(thread), &self.0)?),
            None => Ok(()),
        }
    }
}

/// Moves this thread to a CPU below [`MOST_NAMED`].
///
/// # Errors
///
/// If the system refuses it.
pub fn move_thread(cpu: u32) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu as usize);
    Ok(sched_setaffinity(None, &set)?)
}

/// The CPU that this thread runs on at this moment.
pub fn current_cpu() -> usize {
    sched_getcpu()
}

/// The number of this thread.
pub fn thread_number() -> i32 {
    gettid().as_raw_nonzero().get()
}
