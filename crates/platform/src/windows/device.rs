//! Calls of a device: the kernel module is for Linux only.

use std::fs::File;
use std::io;

/// Makes a call of a device.
///
/// # Errors
///
/// Always.
///
/// # Safety
///
/// Nothing is called.
pub unsafe fn call_device<T>(_device: &File, _call: u64, _argument: *mut T) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
