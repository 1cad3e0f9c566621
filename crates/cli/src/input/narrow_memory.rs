//! Memory of this process that 32-bit code reaches.

use crate::output::Failure;
use cyclescope::executor::user::reserve_narrow_addresses;

/// Bytes of a page.
pub const PAGE: u64 = 4096;

/// Addresses below 4 GiB that belong to this value alone. At first nothing is accessible there.
pub struct NarrowMemory {
    start: u64,
    bytes: u64,
}

impl NarrowMemory {
    /// Reserves addresses for whole pages.
    pub fn reserve(bytes: u64) -> Result<NarrowMemory, Failure> {
        let bytes = bytes.next_multiple_of(PAGE);
        Ok(NarrowMemory { start: reserve_narrow_addresses(bytes as usize)?, bytes })
    }

    /// The first address.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Sets the rights of whole pages from an address on.
    pub fn set_rights(&self, from: u64, bytes: u64, rights: i32) -> Result<(), Failure> {
        let is_own = from >= self.start && bytes <= self.bytes && from - self.start <= self.bytes - bytes;
        assert!(is_own, "the pages belong to this memory");
        // SAFETY: the addresses are reserved for this value alone.
        match unsafe { libc::mprotect(from as *mut libc::c_void, bytes as usize, rights) } {
            0 => Ok(()),
            _ => Err(Failure::from_system("mapping memory failed", &std::io::Error::last_os_error())),
        }
    }
}

impl Drop for NarrowMemory {
    fn drop(&mut self) {
        // SAFETY: the addresses are reserved for this value alone, and nothing borrows from it.
        unsafe { libc::munmap(self.start as *mut libc::c_void, self.bytes as usize) };
    }
}
