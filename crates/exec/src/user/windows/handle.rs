//! Handles of the system, closed on drop.

use std::io;
use windows_sys::Win32::Foundation::{CloseHandle, HANDLE};

/// An open handle.
#[derive(Debug)]
pub(super) struct SystemHandle(HANDLE);

// SAFETY: a handle is a number that any thread may use.
unsafe impl Send for SystemHandle {}
// SAFETY: as above.
unsafe impl Sync for SystemHandle {}

impl SystemHandle {
    /// Takes a handle that a call has just returned; the call's error if it returned none.
    pub(super) fn take(handle: HANDLE) -> io::Result<SystemHandle> {
        if handle.is_null() { Err(io::Error::last_os_error()) } else { Ok(SystemHandle(handle)) }
    }

    /// The handle for a call.
    pub(super) fn raw(&self) -> HANDLE {
        self.0
    }

    /// The number under which a worker knows an inherited handle. Windows uses 32 bits of it.
    pub(super) fn number(&self) -> i32 {
        self.0 as usize as i32
    }
}

impl Drop for SystemHandle {
    fn drop(&mut self) {
        // SAFETY: the handle belongs to this value alone.
        unsafe { CloseHandle(self.0) };
    }
}

/// The handle that an inherited number means.
pub(super) fn handle_from_number(number: i32) -> HANDLE {
    number as isize as HANDLE
}
