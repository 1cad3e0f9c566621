//! Memory of this process that 32-bit code reaches, for loaders of such code.

use super::narrow_code::reserve_narrow_addresses;
use cyclescope_core::error::RunError;
use rustix::mm::MprotectFlags;

/// Bytes of a page.
pub const NARROW_PAGE: u64 = 4096;
const SETTING_RIGHTS: &str = "mapping memory for 32-bit code";

/// Addresses below 4 GiB that belong to this value alone. At first nothing is accessible there.
#[derive(Debug)]
pub struct NarrowMemory {
    start: u64,
    bytes: u64,
}

/// What code may do with pages, besides reading them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRights {
    /// Whether it may write them.
    pub write: bool,
    /// Whether it may run them.
    pub execute: bool,
}

impl PageRights {
    /// For variables.
    pub const WRITE: PageRights = PageRights { write: true, execute: false };
    /// For code.
    pub const EXECUTE: PageRights = PageRights { write: false, execute: true };

    /// The rights of a segment by its flags in ELF format (System V ABI, "Segment Permissions").
    pub fn from_segment_flags(flags: u32) -> PageRights {
        PageRights { execute: flags & 1 != 0, write: flags & 2 != 0 }
    }
}

impl NarrowMemory {
    /// Reserves addresses for whole pages.
    ///
    /// # Errors
    ///
    /// Fails if none are free.
    pub fn reserve(bytes: u64) -> Result<NarrowMemory, RunError> {
        let bytes = bytes.next_multiple_of(NARROW_PAGE);
        Ok(NarrowMemory { start: reserve_narrow_addresses(bytes as usize)?, bytes })
    }

    /// The first address.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Whether these bytes are inside.
    pub fn contains(&self, from: u64, bytes: u64) -> bool {
        from >= self.start && bytes <= self.bytes && from - self.start <= self.bytes - bytes
    }

    /// Sets the rights of all pages with these bytes.
    ///
    /// # Errors
    ///
    /// Fails if the system refuses that.
    ///
    /// # Panics
    ///
    /// If the bytes are not inside.
    pub fn set_rights(&self, from: u64, bytes: u64, rights: PageRights) -> Result<(), RunError> {
        assert!(self.contains(from, bytes), "the pages belong to this memory");
        let first = from / NARROW_PAGE * NARROW_PAGE;
        let length = (from + bytes).next_multiple_of(NARROW_PAGE) - first;
        let more = |is_set, right| if is_set { right } else { MprotectFlags::empty() };
        let flags =
            MprotectFlags::READ | more(rights.write, MprotectFlags::WRITE) | more(rights.execute, MprotectFlags::EXEC);
        // SAFETY: the addresses are reserved for this value alone.
        unsafe { rustix::mm::mprotect(first as *mut _, length as usize, flags) }
            .map_err(|errno| RunError::from_system_call(SETTING_RIGHTS, "mprotect", errno.raw_os_error()))
    }

    /// Copies bytes to an address.
    ///
    /// # Safety
    ///
    /// The pages must be writable, and nothing may refer to these bytes.
    ///
    /// # Panics
    ///
    /// If the bytes are not inside.
    pub unsafe fn write(&self, at: u64, bytes: &[u8]) {
        assert!(self.contains(at, bytes.len() as u64), "the bytes belong to this memory");
        // SAFETY: as promised by the caller; the addresses are reserved for this value alone.
        unsafe { (at as *mut u8).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }
}

impl Drop for NarrowMemory {
    fn drop(&mut self) {
        // SAFETY: the addresses are reserved for this value alone, and nothing borrows from it.
        let _ = unsafe { rustix::mm::munmap(self.start as *mut _, self.bytes as usize) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_written_where_32_bit_code_finds_them() {
        let memory = NarrowMemory::reserve(NARROW_PAGE + 1).expect("free addresses");
        let at = memory.start() + NARROW_PAGE;
        assert!(
            at + NARROW_PAGE <= 1 << 32 && memory.contains(at, NARROW_PAGE) && !memory.contains(at + 1, NARROW_PAGE)
        );
        memory.set_rights(at + 7, 1, PageRights::WRITE).expect("rights");
        // SAFETY: the page is writable, and nothing refers to it.
        unsafe {
            memory.write(at + 7, &[1, 2]);
            assert_eq!((at as *const [u8; 10]).read(), [0, 0, 0, 0, 0, 0, 0, 1, 2, 0]);
        }
    }

    #[test]
    fn segments_have_their_rights() {
        let [read, write, execute] = [4, 6, 5].map(PageRights::from_segment_flags);
        assert_eq!((write, execute), (PageRights::WRITE, PageRights::EXECUTE));
        assert_eq!(read, PageRights { write: false, execute: false });
    }
}
