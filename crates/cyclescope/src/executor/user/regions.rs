//! Where everything lies in the worker, and the caller's own view of what it shares.
//!
//! The caller reserves one stretch of addresses that it never touches itself; the worker maps everything
//! into it. So the caller knows each address in the worker, and a worker that replaces another finds the
//! same ones.

use super::command::{Command, FENCED_PAGE, Shared};
use crate::context::Element;
use crate::error::RunError;
use rustix::fs::MemfdFlags;
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags};
use std::os::fd::OwnedFd;
use std::ptr;

/// Bytes that nothing is mapped to around each region.
const GUARD: usize = 64 << 10;
/// Bytes of the code arena.
pub(super) const ARENA: usize = 4 << 20;
/// Bytes of the command region.
pub(super) const COMMAND: usize = 1 << 20;
/// Bytes of the samples region; pages exist only where samples were written.
pub(super) const SAMPLES: usize = 64 << 20;
const STACK: usize = 128 << 10;
/// Bytes of the signal stack: an AVX-512 frame takes 4 KiB, an AMX frame 12 KiB.
pub(super) const SIGNAL_STACK: usize = 64 << 10;
/// Bytes of one memory area.
pub(super) const AREA: usize = 1 << 20;
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
    const AREAS_AT: usize = SIGNAL_STACK_AT + SIGNAL_STACK + GUARD;
    /// Where an area starts.
    pub(in super::super) const fn area_at(area: usize) -> usize {
        AREAS_AT + area * (AREA + GUARD)
    }
    /// Where the region starts that cold programs read through.
    pub(in super::super) const EVICTION_AT: usize = area_at(5) + GUARD;
    /// The page through which the kernel tells where the core-cycles counter is.
    pub(in super::super) const COUNTER_AT: usize = EVICTION_AT + EVICTION + GUARD;
    pub(super) const LEN: usize = COUNTER_AT + GUARD;
}

/// Offsets in the shared file.
mod file {
    use super::*;
    pub(super) const CONTEXT_AT: usize = COMMAND;
    pub(super) const STATUS_AT: usize = CONTEXT_AT + FENCED_PAGE;
    pub(super) const SAMPLES_AT: usize = STATUS_AT + FENCED_PAGE;
    pub(super) const LEN: usize = SAMPLES_AT + SAMPLES;
}

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
struct Mapping {
    start: *mut u8,
    bytes: usize,
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and nothing borrows from it any more.
        let _ = unsafe { rustix::mm::munmap(self.start.cast(), self.bytes) };
    }
}

/// The memory of one executor. It outlives its workers.
pub(super) struct Memory {
    code_file: OwnedFd,
    shared_file: OwnedFd,
    template_file: OwnedFd,
    reservation: Mapping,
    arena: Mapping,
    shared: Mapping,
    template: Option<Element>,
}

// SAFETY: the mappings belong to this value alone, and it has no interior mutability of its own.
unsafe impl Send for Memory {}

fn failed(doing: &'static str) -> impl Fn(Errno) -> RunError {
    move |errno| RunError::System { doing, errno: errno.raw_os_error() }
}

fn memory_file(name: &str, bytes: usize) -> Result<OwnedFd, RunError> {
    let doing = "creating shared memory";
    // Kernels before 6.3 do not know the flag and do not need it.
    let fd = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::NOEXEC_SEAL)
        .or_else(|_| rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC))
        .map_err(failed(doing))?;
    rustix::fs::ftruncate(&fd, bytes as u64).map_err(failed(doing))?;
    Ok(fd)
}

fn map_shared(fd: &OwnedFd, bytes: usize) -> Result<Mapping, RunError> {
    let doing = "mapping shared memory";
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
    let start = unsafe { rustix::mm::mmap(ptr::null_mut(), bytes, protection, MapFlags::SHARED, fd, 0) }
        .map_err(failed(doing))?;
    let mapping = Mapping { start: start.cast(), bytes };
    // SAFETY: keeping the mapping from children changes nothing in this process.
    unsafe { rustix::mm::madvise(start, bytes, Advice::LinuxDontFork) }.map_err(failed(doing))?;
    Ok(mapping)
}

impl Memory {
    pub(super) fn new() -> Result<Memory, RunError> {
        let code_file = memory_file("cyclescope-code", ARENA)?;
        let shared_file = memory_file("cyclescope-shared", file::LEN)?;
        let template_file = memory_file("cyclescope-areas", AREA)?;
        let arena = map_shared(&code_file, ARENA)?;
        let shared = map_shared(&shared_file, file::LEN)?;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
        let start =
            unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), view::LEN, ProtFlags::empty(), flags) }
                .map_err(failed("reserving addresses for the worker"))?;
        let reservation = Mapping { start: start.cast(), bytes: view::LEN };
        Ok(Memory { code_file, shared_file, template_file, reservation, arena, shared, template: None })
    }

    /// The address in the worker of an offset in its view.
    pub(super) fn in_worker(&self, offset: usize) -> u64 {
        self.reservation.start as u64 + offset as u64
    }

    /// The mappings that the worker makes.
    pub(super) fn pieces(&self) -> [Piece; 13] {
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
        // All hold the same numbers: what one of them is written to is its own.
        let area = |area: usize| Piece {
            at: view::area_at(area),
            bytes: AREA,
            protection: write,
            flags: MAP_PRIVATE,
            fd: self.template_file.as_raw_fd(),
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
            area(0),
            area(1),
            area(2),
            area(3),
            area(4),
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

    /// Fills the memory areas' template, where it holds another element.
    pub(super) fn set_template(&mut self, element: Element) -> Result<(), RunError> {
        if self.template == Some(element) {
            return Ok(());
        }
        self.template = None;
        let block: Vec<u8> = element.pattern().to_le_bytes().repeat((256 << 10) / 8);
        for offset in (0..AREA).step_by(block.len()) {
            let written = rustix::io::pwrite(&self.template_file, &block, offset as u64)
                .map_err(failed("filling the memory areas"))?;
            if written != block.len() {
                let why = "their file took only a part";
                return Err(RunError::machinery("filling the memory areas", why, ""));
            }
        }
        self.template = Some(element);
        Ok(())
    }
}
