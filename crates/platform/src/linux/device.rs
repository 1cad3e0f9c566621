//! Calls of a device (ioctl(2)).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Makes a call of a device.
///
/// # Errors
///
/// The device's error.
///
/// # Safety
///
/// The argument is what this call of this device takes.
pub unsafe fn call_device<T>(device: &File, call: u64, argument: *mut T) -> io::Result<()> {
    // SAFETY: as the caller promises.
    match unsafe { libc::ioctl(device.as_raw_fd(), call, argument) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
