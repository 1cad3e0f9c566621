//! The memory that an executor shares with its workers, and the addresses reserved for them.
//!
//! The caller reserves one stretch of addresses that it never touches itself. The worker maps
//! everything into it (`cyclescope_worker::view`). The memory areas of programs have stretches of
//! their own, see `areas`.

use cyclescope_core::error::RunError;
use cyclescope_worker::command::{FENCED_PAGE, SharedPointers};
use cyclescope_worker::image;
use cyclescope_worker::setup::{ForeignMapping, MOST_FOREIGN, PIECE_COUNT, ViewPiece, WorkerSetup};
use cyclescope_worker::view::{
    self, ARENA_BYTES, COMMAND_BYTES, EVICTION_BYTES, SAMPLES_BYTES, SETUP_BYTES, SIGNAL_STACK_BYTES, STACK_BYTES,
    THREAD_BYTES, file,
};
use rustix::fs::MemfdFlags;
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;

/// One mapping of the caller, unmapped on drop.
pub(super) struct MemoryMapping {
    pub(super) start: *mut u8,
    pub(super) bytes: usize,
}

// SAFETY: the mapping belongs to this value alone.
unsafe impl Send for MemoryMapping {}

impl MemoryMapping {
    /// The address of its first byte.
    pub(super) fn start(&self) -> u64 {
        self.start as u64
    }
}

/// A mapping of a file that no worker can write: workers map it for reading, or privately.
pub(super) struct ContentsMapping(MemoryMapping);

impl ContentsMapping {
    /// Maps a file from [`create_memory_file`].
    pub(super) fn map(fd: &MemoryFile, bytes: usize) -> Result<ContentsMapping, RunError> {
        map_shared(fd, bytes).map(ContentsMapping)
    }

    /// The contents. Memory that a worker may write is never borrowed.
    pub(super) fn contents_mut(&mut self) -> &mut [u8] {
        // SAFETY: mapped for writing, and borrowed from `self` as a whole. Nothing else in this
        // process uses the mapping, and no worker can write the file.
        unsafe { std::slice::from_raw_parts_mut(self.0.start, self.0.bytes) }
    }
}

impl Drop for MemoryMapping {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to this value alone, and nothing borrows from it.
        let _ = unsafe { rustix::mm::munmap(self.start.cast(), self.bytes) };
    }
}

/// The harness's memory of one executor. It outlives its workers.
pub(super) struct WorkerRegions {
    /// The worker's executable.
    image: OwnedFd,
    code_file: OwnedFd,
    shared_file: OwnedFd,
    reservation: MemoryMapping,
    pub(super) arena: MemoryMapping,
    pub(super) shared: MemoryMapping,
}

/// The error of a failed system call.
pub(super) fn call_error<E: Into<io::Error>>(doing: &'static str, call: &'static str) -> impl Fn(E) -> RunError {
    move |error| RunError::from_system_call(doing, call, error.into().raw_os_error().unwrap_or(0))
}

/// Memory that several mappings share.
pub(super) type MemoryFile = OwnedFd;

/// The number under which a worker knows the memory.
pub(super) fn file_number(file: &MemoryFile) -> i32 {
    file.as_raw_fd()
}

/// Gives the memory its pages: a shortage becomes an error instead of a signal.
pub(super) fn allocate_file(file: &MemoryFile, bytes: usize) -> Result<(), RunError> {
    let mode = rustix::fs::FallocateFlags::empty();
    rustix::fs::fallocate(file, mode, 0, bytes as u64).map_err(call_error("filling the memory areas", "fallocate"))
}

/// Whether areas can be private mappings of their sources.
pub(super) const HAS_TEMPLATES: bool = true;
/// Multiple of addresses at which memory is mapped.
pub(super) const MAPPING_STEP: u64 = 4096;
/// Whether an area can have huge pages.
pub(super) const REFUSED_HUGE: Option<(&str, &str)> = None;

pub(super) fn create_memory_file(name: &str, bytes: usize) -> Result<MemoryFile, RunError> {
    let fd = create_memfd(name, MemfdFlags::NOEXEC_SEAL)?;
    rustix::fs::ftruncate(&fd, bytes as u64).map_err(call_error(CREATING_MEMORY, "ftruncate"))?;
    Ok(fd)
}

/// A file with the worker's executable.
fn create_image_file() -> Result<OwnedFd, RunError> {
    let fd = create_memfd("cyclescope-worker", MemfdFlags::EXEC)?;
    let mut left = image::IMAGE;
    while !left.is_empty() {
        let written = rustix::io::write(&fd, left).map_err(call_error(CREATING_MEMORY, "write"))?;
        left = &left[written..];
    }
    Ok(fd)
}

const CREATING_MEMORY: &str = "creating shared memory";

/// A file in memory. Kernels before 6.3 lack the flag and do not need it.
fn create_memfd(name: &str, flag: MemfdFlags) -> Result<OwnedFd, RunError> {
    rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | flag)
        .or_else(|_| rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC))
        .map_err(call_error(CREATING_MEMORY, "memfd_create"))
}

/// Reserves unmapped addresses: at a place of the kernel's choice, or at a given free one.
pub(super) fn reserve_addresses(at: Option<u64>, bytes: usize) -> io::Result<MemoryMapping> {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    let (hint, flags) = match at {
        Some(at) => (at as usize as *mut core::ffi::c_void, flags | MapFlags::FIXED_NOREPLACE),
        None => (ptr::null_mut(), flags),
    };
    // SAFETY: a new mapping at free addresses touches no other memory.
    let start = unsafe { rustix::mm::mmap_anonymous(hint, bytes, ProtFlags::empty(), flags) }?;
    let mapping = MemoryMapping { start: start.cast(), bytes };
    // Kernels before 4.17 treat the address as a hint.
    if hint.is_null() || start == hint { Ok(mapping) } else { Err(Errno::EXIST.into()) }
}

/// Maps a file from [`create_memory_file`] for writing; no worker inherits the mapping.
fn map_shared(fd: &OwnedFd, bytes: usize) -> Result<MemoryMapping, RunError> {
    let doing = "mapping shared memory";
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
    let start = unsafe { rustix::mm::mmap(ptr::null_mut(), bytes, protection, MapFlags::SHARED, fd, 0) }
        .map_err(call_error(doing, "mmap"))?;
    let mapping = MemoryMapping { start: start.cast(), bytes };
    // SAFETY: keeping the mapping from children changes nothing in this process.
    unsafe { rustix::mm::madvise(start, bytes, Advice::LinuxDontFork) }.map_err(call_error(doing, "madvise"))?;
    Ok(mapping)
}

impl WorkerRegions {
    /// The memory, with addresses for the workers' view.
    pub(super) fn new(reservation: MemoryMapping) -> Result<WorkerRegions, RunError> {
        let code_file = create_memory_file("cyclescope-code", ARENA_BYTES)?;
        let shared_file = create_memory_file("cyclescope-shared", file::FILE_BYTES)?;
        let arena = map_shared(&code_file, ARENA_BYTES)?;
        let shared = map_shared(&shared_file, file::FILE_BYTES)?;
        Ok(WorkerRegions { image: create_image_file()?, code_file, shared_file, reservation, arena, shared })
    }

    /// The address in the worker of an offset in its view.
    pub(super) fn worker_address(&self, offset: usize) -> u64 {
        self.reservation.start as u64 + offset as u64
    }

    /// The worker's executable.
    pub(super) fn image_fd(&self) -> i32 {
        self.image.as_raw_fd()
    }

    /// The file that both sides write, and the one with the code.
    pub(super) fn shared_fds(&self) -> [i32; 2] {
        [self.shared_file.as_raw_fd(), self.code_file.as_raw_fd()]
    }

    /// Writes the setup of the next worker, and the mappings that it removes. No worker may be
    /// running.
    pub(super) fn write_setup(&mut self, setup: &WorkerSetup, foreign: &[ForeignMapping]) {
        assert!(foreign.len() <= MOST_FOREIGN, "their number is checked");
        let into = self.shared.start.wrapping_add(file::SETUP_AT).cast::<WorkerSetup>();
        // SAFETY: the region is mapped for writing, aligned to pages, and large enough for a setup
        // with this number of mappings. Nothing refers to it.
        unsafe {
            ptr::copy_nonoverlapping(setup, into, 1);
            ptr::copy_nonoverlapping(foreign.as_ptr(), into.add(1).cast::<ForeignMapping>(), foreign.len());
        }
    }

    /// The mappings that the worker makes.
    pub(super) fn view_pieces(&self) -> [ViewPiece; PIECE_COUNT] {
        use libc::{MAP_ANONYMOUS, MAP_PRIVATE, MAP_SHARED, PROT_EXEC, PROT_READ, PROT_WRITE};
        let write = PROT_READ | PROT_WRITE;
        let shared = |at, bytes, protection, offset| {
            let fd = self.shared_file.as_raw_fd();
            ViewPiece { at, bytes, protection, flags: MAP_SHARED, fd, offset }
        };
        let anonymous = |at, bytes| ViewPiece {
            at,
            bytes,
            protection: write,
            flags: MAP_PRIVATE | MAP_ANONYMOUS,
            fd: -1,
            offset: 0,
        };
        [
            ViewPiece {
                at: view::ARENA_AT,
                bytes: ARENA_BYTES,
                protection: PROT_READ | PROT_EXEC,
                flags: MAP_SHARED,
                fd: self.code_file.as_raw_fd(),
                offset: 0,
            },
            shared(view::COMMAND_AT, COMMAND_BYTES, PROT_READ, 0),
            shared(view::CONTEXT_AT, FENCED_PAGE, write, file::CONTEXT_AT),
            shared(view::STATUS_AT, FENCED_PAGE, write, file::STATUS_AT),
            shared(view::SAMPLES_AT, SAMPLES_BYTES, write, file::SAMPLES_AT),
            anonymous(view::STACK_AT, STACK_BYTES),
            anonymous(view::SIGNAL_STACK_AT, SIGNAL_STACK_BYTES),
            ViewPiece { protection: PROT_READ, ..anonymous(view::EVICTION_AT, EVICTION_BYTES) },
            anonymous(view::THREAD_AT, THREAD_BYTES),
            shared(view::SETUP_AT, SETUP_BYTES, PROT_READ, file::SETUP_AT),
        ]
    }

    /// The caller's pointers to the memory that both sides write.
    pub(super) fn shared_pointers(&self) -> SharedPointers {
        let at = |offset| self.shared.start.wrapping_add(offset);
        SharedPointers {
            context_page: at(file::CONTEXT_AT),
            status_page: at(file::STATUS_AT),
            samples: at(file::SAMPLES_AT),
        }
    }
}
