//! Where the harness's own memory lies in the worker, and the caller's view of what it shares.
//!
//! The caller reserves one stretch of addresses that it never touches itself; the worker maps everything
//! into it. So the caller knows each address in the worker, and a worker that replaces another finds the
//! same ones. The memory areas of programs have stretches of their own, see `areas`.

use super::command::{Command, FENCED_PAGE, Shared};
use crate::error::RunError;
use rustix::fs::MemfdFlags;
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags};
use std::os::fd::OwnedFd;
use std::ptr;

/// Bytes that nothing is mapped to around each region.
pub(super) const GUARD: usize = 64 << 10;
/// Bytes of the code arena.
pub(super) const ARENA: usize = 4 << 20;
/// Bytes of the command region.
pub(super) const COMMAND: usize = 1 << 20;
/// Bytes of the samples region; pages exist only where samples were written.
pub(super) const SAMPLES: usize = 64 << 20;
const STACK: usize = 128 << 10;
/// Bytes of the signal stack: an AVX-512 frame takes 4 KiB, an AMX frame 12 KiB.
pub(super) const SIGNAL_STACK: usize = 64 << 10;
/// Bytes of the region that cold programs read through, a page at a time.
const EVICTION: usize = crate::context::EVICTION_PAGES * 4096;
/// Offsets in the worker's view.
pub(super) mod view {
    use super::*;
    pub(in super::super) const ARENA_AT: usize = GUARD;
    pub(in super::super) const COMMAND_AT: usize = ARENA_AT + ARENA + GUARD;
    pub(in super::super) const CONTEXT_AT: usize = COMMAND_AT + COMMAND + GUARD;
    pub(in super::super) const STATUS_AT: usize = CONTEXT_AT + FENCED_PAGE + GUARD;
    pub(in super::super) const SAMPLES_AT: usize = STATUS_AT + FENCED_PAGE + GUARD;
    pub(in super::super) const STACK_AT: usize = SAMPLES_AT + SAMPLES + GUARD;
    pub(in super::super) const STACK_TOP: usize = STACK_AT + STACK;
    pub(in super::super) const SIGNAL_STACK_AT: usize = STACK_TOP + GUARD;
    /// Where the region starts that cold programs read through.
    pub(in super::super) const EVICTION_AT: usize = SIGNAL_STACK_AT + SIGNAL_STACK + GUARD;
    /// The page in which the kernel reports the number of the core-cycles counter.
    pub(in super::super) const COUNTER_AT: usize = EVICTION_AT + EVICTION + GUARD;
    pub(in super::super) const LEN: usize = COUNTER_AT + GUARD;
}

/// Offsets in the shared file.
mod file {
    use super::*;
    pub(super) const CONTEXT_AT: usize = COMMAND;
    pub(super) const STATUS_AT: usize = CONTEXT_AT + FENCED_PAGE;
    pub(super) const SAMPLES_AT: usize = STATUS_AT + FENCED_PAGE;
    pub(super) const LEN: usize = SAMPLES_AT + SAMPLES;
}

/// Pieces of the worker's view.
pub(super) const PIECES: usize = 8;

/// A piece of the worker's view.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    pub(super) at: usize,
    pub(super) bytes: usize,
    pub(super) protection: i32,
    pub(super) flags: i32,
    pub(super) fd: i32,
    pub(super) offset: usize,
}

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
    let doing = "creating shared memory";
    // Kernels before 6.3 do not know the flag and do not need it.
    let fd = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::NOEXEC_SEAL)
        .or_else(|_| rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC))
        .map_err(failed(doing, "memfd_create"))?;
    rustix::fs::ftruncate(&fd, bytes as u64).map_err(failed(doing, "ftruncate"))?;
    Ok(fd)
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
        Ok(Regions { code_file, shared_file, reservation, arena, shared })
    }

    /// The address in the worker of an offset in its view.
    pub(super) fn in_worker(&self, offset: usize) -> u64 {
        self.reservation.start as u64 + offset as u64
    }

    /// The mappings that the worker makes.
    pub(super) fn pieces(&self) -> [Piece; PIECES] {
        use libc::{MAP_ANONYMOUS, MAP_PRIVATE, MAP_SHARED, PROT_EXEC, PROT_READ, PROT_WRITE};
        use std::os::fd::AsRawFd;
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
        ]
    }

    /// The caller's view of the code arena. No worker may be running.
    pub(super) fn arena(&mut self) -> &mut [u8] {
        // SAFETY: mapped for writing, and borrowed from `self` as a whole; the worker never writes to it.
        unsafe { std::slice::from_raw_parts_mut(self.arena.start, self.arena.bytes) }
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
