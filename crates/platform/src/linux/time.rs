//! Clocks of the system.

use std::io;

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
