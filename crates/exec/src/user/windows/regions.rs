//! The memory that an executor shares with its workers, and the addresses reserved for them.
//!
//! Shared memory is a section of the paging file, which workers inherit as a handle. The caller
//! reserves addresses that it never touches itself, and workers map everything there. They lie far
//! from those that Windows gives to programs, so that they are free in a new worker too.

use super::handle::SystemHandle;
use super::setup::LaunchSetup;
use crate::draw_secret;
use cyclescope_core::error::RunError;
use cyclescope_core::random::Random;
use cyclescope_platform::error_code;
use cyclescope_worker::command::SharedPointers;
use cyclescope_worker::view::{self, ARENA_BYTES, SAMPLES_BYTES, SETUP_BYTES};

use std::io;
use std::ptr;
use windows_sys::Win32::Foundation::{ERROR_INVALID_ADDRESS, INVALID_HANDLE_VALUE};
use windows_sys::Win32::Security::SECURITY_ATTRIBUTES;
use windows_sys::Win32::System::Memory::{
    CreateFileMappingW, FILE_MAP_WRITE, MEM_RELEASE, MEM_RESERVE, MEMORY_MAPPED_VIEW_ADDRESS, MapViewOfFile,
    PAGE_EXECUTE_READWRITE, PAGE_NOACCESS, PAGE_READWRITE, UnmapViewOfFile, VirtualAlloc, VirtualFree,
};

/// Whether areas can be private mappings of their sources. A private view can't drop its changed
/// pages, so workers copy.
pub(super) const HAS_TEMPLATES: bool = false;
/// Multiple of addresses at which memory is mapped.
pub(super) const MAPPING_STEP: u64 = 64 << 10;
/// Why no area has huge pages, and what helps.
pub(super) const REFUSED_HUGE: Option<(&str, &str)> =
    Some(("this program asks Windows for none: they need a privilege and are locked", "measure on Linux"));

/// Offset in the view at which the memory begins that both sides write.
pub(super) const SHARED_AT: usize = view::COMMAND_AT;
/// Its length: up to the end of the samples.
pub(super) const SHARED_BYTES: usize = view::SAMPLES_AT + SAMPLES_BYTES - SHARED_AT;
/// Offset of the setup in the shared section.
pub(super) const SETUP_IN_SECTION: usize = SHARED_BYTES.next_multiple_of(MAPPING_STEP as usize);
/// Bytes of the shared section.
const SECTION_BYTES: usize = SETUP_IN_SECTION + SETUP_BYTES;

/// Memory that several mappings share.
pub(super) type MemoryFile = SystemHandle;

/// Reserved addresses, or a mapped section, until dropped.
pub(super) struct MemoryMapping {
    pub(super) start: *mut u8,
    pub(super) bytes: usize,
    is_view: bool,
}

// SAFETY: the mapping belongs to this value alone.
unsafe impl Send for MemoryMapping {}

impl MemoryMapping {
    /// The address of its first byte.
    pub(super) fn start(&self) -> u64 {
        self.start as u64
    }
}

impl Drop for MemoryMapping {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to this value alone, and nothing borrows from it.
        unsafe {
            match self.is_view {
                true => UnmapViewOfFile(MEMORY_MAPPED_VIEW_ADDRESS { Value: self.start.cast() }),
                false => VirtualFree(self.start.cast(), 0, MEM_RELEASE),
            }
        };
    }
}

/// A mapping of a section that no worker can write: workers map it for reading.
pub(super) struct ContentsMapping(MemoryMapping);

impl ContentsMapping {
    /// Maps a section from [`create_memory_file`].
    pub(super) fn map(file: &MemoryFile, bytes: usize) -> Result<ContentsMapping, RunError> {
        map_shared(file, bytes).map(ContentsMapping)
    }

    /// The contents. Memory that a worker may write is never borrowed.
    pub(super) fn contents_mut(&mut self) -> &mut [u8] {
        // SAFETY: mapped for writing, and borrowed from `self` as a whole. Nothing else in this
        // process uses the mapping, and no worker can write the section.
        unsafe { std::slice::from_raw_parts_mut(self.0.start, self.0.bytes) }
    }
}

/// The harness's memory of one executor. It outlives its workers.
pub(super) struct WorkerRegions {
    code_file: MemoryFile,
    shared_file: MemoryFile,
    reservation: MemoryMapping,
    pub(super) arena: MemoryMapping,
    pub(super) shared: MemoryMapping,
}

/// The error of a failed system call.
pub(super) fn call_error<E: Into<io::Error>>(doing: &'static str, call: &'static str) -> impl Fn(E) -> RunError {
    move |error| RunError::from_system_call(doing, call, error.into().raw_os_error().unwrap_or(0))
}

/// The number under which a worker knows the memory.
pub(super) fn file_number(file: &MemoryFile) -> i32 {
    file.number()
}

/// Gives the memory its pages. A section has them, or is not made.
pub(super) fn allocate_file(_file: &MemoryFile, _bytes: usize) -> Result<(), RunError> {
    Ok(())
}

/// Makes a section of memory.
pub(super) fn create_memory_file(_name: &str, bytes: usize) -> Result<MemoryFile, RunError> {
    create_section(bytes, PAGE_READWRITE)
}

/// Attributes of a handle that workers inherit.
pub(super) fn inherited_attributes() -> SECURITY_ATTRIBUTES {
    SECURITY_ATTRIBUTES {
        nLength: size_of::<SECURITY_ATTRIBUTES>() as u32,
        lpSecurityDescriptor: ptr::null_mut(),
        bInheritHandle: 1,
    }
}

fn create_section(bytes: usize, protection: u32) -> Result<MemoryFile, RunError> {
    let attributes = inherited_attributes();
    let (high, low) = ((bytes as u64 >> 32) as u32, bytes as u32);
    // SAFETY: the attributes live through the call, and the section has no name.
    let handle = unsafe { CreateFileMappingW(INVALID_HANDLE_VALUE, &attributes, protection, high, low, ptr::null()) };
    SystemHandle::take(handle).map_err(call_error("creating shared memory", "CreateFileMapping"))
}

/// Where addresses are reserved: above those of programs and their heaps, below those of libraries.
const LOWEST: u64 = 0x1000_0000_0000;
const HIGHEST: u64 = 0x6000_0000_0000;
/// Places tried before the addresses count as taken.
const TRIES: u32 = 64;

/// Reserves unmapped addresses: at a random place, or at a given free one.
pub(super) fn reserve_addresses(at: Option<u64>, bytes: usize) -> io::Result<MemoryMapping> {
    if let Some(at) = at {
        return reserve_at(at, bytes);
    }
    let mut random = Random::new(draw_secret().map_err(|_| io::Error::from_raw_os_error(error_code::EIO))?);
    let places = (HIGHEST - LOWEST - bytes as u64) / MAPPING_STEP;
    let mut failed = io::Error::from_raw_os_error(error_code::ENOMEM);
    for _ in 0..TRIES {
        match reserve_at(LOWEST + MAPPING_STEP * random.below(places as usize) as u64, bytes) {
            Ok(reserved) => return Ok(reserved),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

fn reserve_at(at: u64, bytes: usize) -> io::Result<MemoryMapping> {
    // SAFETY: a new reservation at free addresses touches no other memory.
    let start = unsafe { VirtualAlloc(at as usize as *const _, bytes, MEM_RESERVE, PAGE_NOACCESS) };
    if start.is_null() {
        return Err(match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(ERROR_INVALID_ADDRESS as i32) => {
                io::Error::from_raw_os_error(error_code::EEXIST)
            }
            error => error,
        });
    }
    let mapping = MemoryMapping { start: start.cast(), bytes, is_view: false };
    // The system rounds an address down.
    if start as u64 == at { Ok(mapping) } else { Err(io::Error::from_raw_os_error(error_code::EINVAL)) }
}

/// Maps a section for writing.
fn map_shared(file: &MemoryFile, bytes: usize) -> Result<MemoryMapping, RunError> {
    // SAFETY: a new mapping at an address of the system's choice touches no other memory.
    let start = unsafe { MapViewOfFile(file.raw(), FILE_MAP_WRITE, 0, 0, bytes) };
    match start.Value.is_null() {
        true => Err(call_error("mapping shared memory", "MapViewOfFile")(io::Error::last_os_error())),
        false => Ok(MemoryMapping { start: start.Value.cast(), bytes, is_view: true }),
    }
}

impl WorkerRegions {
    /// The memory, with addresses for the workers' view.
    pub(super) fn new(reservation: MemoryMapping) -> Result<WorkerRegions, RunError> {
        let code_file = create_section(ARENA_BYTES, PAGE_EXECUTE_READWRITE)?;
        let shared_file = create_section(SECTION_BYTES, PAGE_READWRITE)?;
        let arena = map_shared(&code_file, ARENA_BYTES)?;
        let shared = map_shared(&shared_file, SECTION_BYTES)?;
        Ok(WorkerRegions { code_file, shared_file, reservation, arena, shared })
    }

    /// The address in the worker of an offset in its view.
    pub(super) fn worker_address(&self, offset: usize) -> u64 {
        self.reservation.start() + offset as u64
    }

    /// The section that both sides write, and the one with the code.
    pub(super) fn shared_files(&self) -> [&MemoryFile; 2] {
        [&self.shared_file, &self.code_file]
    }

    /// Writes the setup of the next worker. No worker may be running.
    pub(super) fn write_setup(&mut self, setup: &LaunchSetup) {
        let into = self.shared.start.wrapping_add(SETUP_IN_SECTION).cast::<LaunchSetup>();
        // SAFETY: the region is mapped for writing, aligned to pages, and large enough. Nothing
        // refers to it.
        unsafe { ptr::copy_nonoverlapping(setup, into, 1) };
    }

    /// The caller's pointers to the memory that both sides write.
    pub(super) fn shared_pointers(&self) -> SharedPointers {
        let at = |offset: usize| self.shared.start.wrapping_add(offset - SHARED_AT);
        SharedPointers {
            context_page: at(view::CONTEXT_AT),
            status_page: at(view::STATUS_AT),
            samples: at(view::SAMPLES_AT),
        }
    }
}
