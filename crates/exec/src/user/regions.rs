//! The memory that an executor shares with its workers, and the addresses that it keeps for them.
//!
//! The caller reserves one stretch of addresses that it never touches itself; the worker maps everything
//! into it (`cyclescope_worker::view`). The memory areas of programs have stretches of their own, see `areas`.

use crate::Sample;
use cyclescope_core::error::RunError;
use cyclescope_worker::command::{Command, FENCED_PAGE, Shared};
use cyclescope_worker::image;
use cyclescope_worker::setup::{PIECES, Piece, Setup};
use cyclescope_worker::view::{
    self, ARENA, COMMAND, EVICTION, SAMPLES, SETUP, SIGNAL_STACK, STACK, THREAD, file,
};
use rustix::fs::MemfdFlags;
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags};
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;

/// One mapping of the caller, unmapped in the end.
pub(super) struct Mapping {
    start: *mut u8,
    bytes: usize,
}

// SAFETY: the mapping belongs to this value alone.
unsafe impl Send for Mapping {}

impl Mapping {
    /// The address of its first byte.
    pub(super) fn start(&self) -> u64 {
        self.start as u64
    }

    /// What a mapping that can be written holds.
    ///
    /// # Safety
    ///
    /// It was made by [`map_shared`].
    pub(super) unsafe fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: mapped for writing as the caller promises, and borrowed from `self` as a whole; nothing else in
        // this process knows of it, and the worker only reads what it shares so.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.bytes) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and nothing borrows from it any more.
        let _ = unsafe { rustix::mm::munmap(self.start.cast(), self.bytes) };
    }
}

/// The harness's memory of one executor. It outlives its workers.
pub(super) struct Regions {
    /// The worker's executable.
    image: OwnedFd,
    code_file: OwnedFd,
    shared_file: OwnedFd,
    reservation: Mapping,
    arena: Mapping,
    shared: Mapping,
}

/// The error of a system call of this name.
pub(super) fn failed(doing: &'static str, call: &'static str) -> impl Fn(Errno) -> RunError {
    move |errno| RunError::call(doing, call, errno.raw_os_error())
}

pub(super) fn memory_file(name: &str, bytes: usize) -> Result<OwnedFd, RunError> {
    let fd = nameless(name, MemfdFlags::NOEXEC_SEAL)?;
    rustix::fs::ftruncate(&fd, bytes as u64).map_err(failed(CREATING, "ftruncate"))?;
    Ok(fd)
}

/// A file with the worker's executable.
fn image_file() -> Result<OwnedFd, RunError> {
    let fd = nameless("cyclescope-worker", MemfdFlags::EXEC)?;
    let mut left = image::IMAGE;
    while !left.is_empty() {
        let written = rustix::io::write(&fd, left).map_err(failed(CREATING, "write"))?;
        left = &left[written..];
    }
    Ok(fd)
}

const CREATING: &str = "creating shared memory";

/// A file in memory. Kernels before 6.3 do not know the flag and do not need it.
fn nameless(name: &str, flag: MemfdFlags) -> Result<OwnedFd, RunError> {
    rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | flag)
        .or_else(|_| rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC))
        .map_err(failed(CREATING, "memfd_create"))
}

/// Reserves addresses that nothing is mapped to: at a place of the kernel's choice, or at one where nothing may be yet.
pub(super) fn reserve(at: Option<u64>, bytes: usize) -> Result<Mapping, Errno> {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    let (hint, flags) = match at {
        Some(at) => (at as usize as *mut core::ffi::c_void, flags | MapFlags::FIXED_NOREPLACE),
        None => (ptr::null_mut(), flags),
    };
    // SAFETY: a new mapping at free addresses touches no other memory.
    let start = unsafe { rustix::mm::mmap_anonymous(hint, bytes, ProtFlags::empty(), flags) }?;
    let mapping = Mapping { start: start.cast(), bytes };
    // Kernels before 4.17 take the address for a hint.
    if hint.is_null() || start == hint { Ok(mapping) } else { Err(Errno::EXIST) }
}

/// Maps a file from [`memory_file`] for writing; no worker inherits the mapping.
pub(super) fn map_shared(fd: &OwnedFd, bytes: usize) -> Result<Mapping, RunError> {
    let doing = "mapping shared memory";
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
    let start = unsafe { rustix::mm::mmap(ptr::null_mut(), bytes, protection, MapFlags::SHARED, fd, 0) }
        .map_err(failed(doing, "mmap"))?;
    let mapping = Mapping { start: start.cast(), bytes };
    // SAFETY: keeping the mapping from children changes nothing in this process.
    unsafe { rustix::mm::madvise(start, bytes, Advice::LinuxDontFork) }.map_err(failed(doing, "madvise"))?;
    Ok(mapping)
}

impl Regions {
    pub(super) fn new() -> Result<Regions, RunError> {
        let code_file = memory_file("cyclescope-code", ARENA)?;
        let shared_file = memory_file("cyclescope-shared", file::LEN)?;
        let arena = map_shared(&code_file, ARENA)?;
        let shared = map_shared(&shared_file, file::LEN)?;
        let reservation =
            reserve(None, view::LEN).map_err(failed("reserving addresses for the worker", "mmap"))?;
        Ok(Regions { image: image_file()?, code_file, shared_file, reservation, arena, shared })
    }

    /// The address in the worker of an offset in its view.
    pub(super) fn in_worker(&self, offset: usize) -> u64 {
        self.reservation.start as u64 + offset as u64
    }

    /// The worker's executable.
    pub(super) fn image(&self) -> i32 {
        self.image.as_raw_fd()
    }

    /// The file that both sides write, and the one with the code.
    pub(super) fn files(&self) -> [i32; 2] {
        [self.shared_file.as_raw_fd(), self.code_file.as_raw_fd()]
    }

    /// Where the next worker finds its setup. No worker may be running.
    pub(super) fn setup(&mut self) -> *mut Setup {
        self.shared.start.wrapping_add(file::SETUP_AT).cast()
    }

    /// The mappings that the worker makes.
    pub(super) fn pieces(&self) -> [Piece; PIECES] {
        use libc::{MAP_ANONYMOUS, MAP_PRIVATE, MAP_SHARED, PROT_EXEC, PROT_READ, PROT_WRITE};
        let write = PROT_READ | PROT_WRITE;
        let shared = |at, bytes, protection, offset| {
            let fd = self.shared_file.as_raw_fd();
            Piece { at, bytes, protection, flags: MAP_SHARED, fd, offset }
        };
        let anonymous = |at, bytes| Piece {
            at,
            bytes,
            protection: write,
            flags: MAP_PRIVATE | MAP_ANONYMOUS,
            fd: -1,
            offset: 0,
        };
        [
            Piece {
                at: view::ARENA_AT,
                bytes: ARENA,
                protection: PROT_READ | PROT_EXEC,
                flags: MAP_SHARED,
                fd: self.code_file.as_raw_fd(),
                offset: 0,
            },
            shared(view::COMMAND_AT, COMMAND, PROT_READ, 0),
            shared(view::CONTEXT_AT, FENCED_PAGE, write, file::CONTEXT_AT),
            shared(view::STATUS_AT, FENCED_PAGE, write, file::STATUS_AT),
            shared(view::SAMPLES_AT, SAMPLES, write, file::SAMPLES_AT),
            anonymous(view::STACK_AT, STACK),
            anonymous(view::SIGNAL_STACK_AT, SIGNAL_STACK),
            Piece { protection: PROT_READ, ..anonymous(view::EVICTION_AT, EVICTION) },
            anonymous(view::THREAD_AT, THREAD),
            shared(view::SETUP_AT, SETUP, PROT_READ, file::SETUP_AT),
        ]
    }

    /// The caller's view of the code arena. No worker may be running.
    pub(super) fn arena(&mut self) -> &mut [u8] {
        // SAFETY: mapped for writing, and borrowed from `self` as a whole; the worker never writes to it.
        unsafe { std::slice::from_raw_parts_mut(self.arena.start, self.arena.bytes) }
    }

    /// A copy of the samples, each reading as it is now: code that the worker runs may write them at any time.
    pub(super) fn samples(&self, count: usize) -> Vec<Sample> {
        let first = self.shared().first_sample();
        let sample = |number: usize| {
            // SAFETY: mapped for all samples of a command.
            let pair = unsafe { first.add(number).read_volatile() };
            Sample { start: pair.start, end: pair.end }
        };
        (0..count).map(sample).collect()
    }

    pub(super) fn command(&self) -> *mut Command {
        self.shared.start.cast()
    }

    pub(super) fn command_bytes(&self, offset: usize) -> *mut u8 {
        self.shared.start.wrapping_add(offset)
    }

    /// The caller's pointers to what both sides write.
    pub(super) fn shared(&self) -> Shared {
        let at = |offset| self.shared.start.wrapping_add(offset);
        Shared {
            context_page: at(file::CONTEXT_AT),
            status_page: at(file::STATUS_AT),
            samples: at(file::SAMPLES_AT),
        }
    }
}
