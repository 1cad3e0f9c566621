//! What the worker asks of Windows between calls.

use windows_sys::Win32::System::Kernel::PROCESSOR_NUMBER;
use windows_sys::Win32::System::Threading::GetCurrentProcessorNumberEx;

/// The CPU's number, and its processor group above.
pub fn read_cpu_number() -> u32 {
    let mut number = PROCESSOR_NUMBER::default();
    // SAFETY: the structure lives through the call.
    unsafe { GetCurrentProcessorNumberEx(&mut number) };
    u32::from(number.Group) << 8 | u32::from(number.Number)
}

/// The elapsed time and the processor time of this thread: unknown, so that no call counts as
/// interrupted. Windows counts a thread's time in turns of its timer of 15.6 ms, far too coarse.
///
/// # Safety
///
/// Only in a worker.
pub unsafe fn read_clocks() -> Option<[u64; 2]> {
    None
}
