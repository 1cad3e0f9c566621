//! Clocks of the system.

use std::sync::OnceLock;
use std::time::Duration;
use windows_sys::Win32::System::Performance::{QueryPerformanceCounter, QueryPerformanceFrequency};

/// Name of the clock that [`read_steady_clock`] reads.
pub const STEADY_CLOCK: &str = "QueryPerformanceCounter";

/// A clock in nanoseconds that nothing adjusts: `QueryPerformanceCounter`. It counts in steps of 100
/// ns where the system derives it from the TSC.
pub fn read_steady_clock() -> u64 {
    static FREQUENCY: OnceLock<i64> = OnceLock::new();
    let frequency = *FREQUENCY.get_or_init(|| {
        let mut frequency = 0;
        // SAFETY: the number lives through the call, which never fails since Windows XP.
        unsafe { QueryPerformanceFrequency(&mut frequency) };
        frequency.max(1)
    });
    let mut count = 0;
    // SAFETY: as above.
    unsafe { QueryPerformanceCounter(&mut count) };
    (count as i128 * 1_000_000_000 / i128::from(frequency)) as u64
}

/// Parts per million by which the system speeds its clock up.
///
/// # Errors
///
/// It is not asked.
pub fn read_clock_correction() -> Result<f64, String> {
    Err("Windows does not report it for QueryPerformanceCounter".to_string())
}

/// How often the system took the CPU from this thread.
///
/// # Errors
///
/// Windows does not report it.
pub fn read_preemptions() -> Result<u64, String> {
    Err("Windows does not count it".to_string())
}

/// Lets this thread rest for a time, or somewhat longer.
pub fn sleep(time: Duration) {
    std::thread::sleep(time);
}
