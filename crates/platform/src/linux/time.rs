//! Clocks of the system.

use rustix::thread::{NanosleepRelativeResult, Timespec};
use std::io;
use std::time::{Duration, Instant};

/// Name of the clock that [`read_steady_clock`] reads.
pub const STEADY_CLOCK: &str = "CLOCK_MONOTONIC_RAW";

/// A clock in nanoseconds that nothing adjusts: `CLOCK_MONOTONIC_RAW` (clock_gettime(2)).
pub fn read_steady_clock() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call fills the structure; this clock exists since Linux 2.6.28.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_RAW, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Parts per million by which the system speeds its clock up, to follow others (adjtimex(2)).
///
/// # Errors
///
/// Says why it is unknown.
pub fn read_clock_correction() -> Result<f64, String> {
    // SAFETY: all-zero is a valid timex; modes = 0 only reads.
    let (state, status) = unsafe {
        let mut status: libc::timex = std::mem::zeroed();
        (libc::adjtimex(&mut status), status)
    };
    if state < 0 {
        return Err(format!("adjtimex failed: {}", io::Error::last_os_error()));
    }
    if status.status & libc::STA_UNSYNC != 0 {
        return Err("the system's clock is not synchronised".to_string());
    }
    // Unit: 2^-16 ppm.
    Ok(status.freq as f64 / 65536.0)
}

/// How often the system took the CPU from this thread.
///
/// # Errors
///
/// Says why it is unknown.
pub fn read_preemptions() -> Result<u64, String> {
    // SAFETY: all-zero is a valid rusage, which the call fills.
    let (result, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        (libc::getrusage(libc::RUSAGE_THREAD, &mut usage), usage)
    };
    if result == 0 { Ok(usage.ru_nivcsw as u64) } else { Err("getrusage failed".to_string()) }
}

/// Lets this thread rest for a time, or somewhat longer. Where a filter refuses the system call, the
/// thread gives way to others instead: the standard library would panic.
pub fn sleep(time: Duration) {
    let until = Instant::now() + time;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        if let NanosleepRelativeResult::Err(_) = rustix::thread::nanosleep(&left) {
            std::thread::yield_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Refuses a system call to this thread.
    fn refuse(call: i64) -> io::Result<()> {
        let step = |code: u32, k, jf| libc::sock_filter { code: code as u16, jt: 0, jf, k };
        let filter = [
            step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
            step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, call as u32, 1),
            step(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32, 0),
            step(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0),
        ];
        let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
        // SAFETY: the filter outlives both calls, which change only this thread.
        let result = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program)
        };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    #[test]
    fn a_refused_sleep_takes_its_time_all_the_same() {
        let time = Duration::from_millis(20);
        let sleep_in_thread = |refused: &'static [i64]| {
            let thread = std::thread::spawn(move || -> io::Result<Duration> {
                refused.iter().try_for_each(|call| refuse(*call))?;
                let begun = Instant::now();
                sleep(time);
                Ok(begun.elapsed())
            });
            thread.join().expect("no panic")
        };
        assert!(sleep_in_thread(&[]).expect("nothing is refused") >= time);
        match sleep_in_thread(&[libc::SYS_nanosleep, libc::SYS_clock_nanosleep]) {
            Ok(slept) => assert!(slept >= time),
            Err(error) => cyclescope_skipped::report_skipped(format_args!("no filter can be installed: {error}")),
        }
    }
}
