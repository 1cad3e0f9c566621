//! The setup of a worker, written by its caller before the worker runs commands.

use super::area::AreaSetup;
use super::command::SharedPointers;
use super::kernel::{MAP_FIXED, MAP_FIXED_NOREPLACE};
use super::view::{self, MOST_EVENTS, SETUP_BYTES};
use core::mem::size_of;
use core::{ptr, slice};

/// Number of pieces of the worker's view.
pub const PIECE_COUNT: usize = 10;
/// Largest number of memory areas of programs.
pub const MOST_AREAS: usize = 32;
/// Largest number of instructions of the filter.
pub const MOST_FILTER_STEPS: usize = 96;
/// Value of [`WorkerSetup::data_limit`] without a limit.
pub const UNLIMITED: u64 = u64::MAX;
/// 64-bit words of a `perf_event_attr`, with room for later ones.
pub const EVENT_WORDS: usize = 32;

/// A piece of the worker's view, with the arguments of its mmap(2).
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ViewPiece {
    /// Offset in the view.
    pub at: usize,
    /// Its length.
    pub bytes: usize,
    /// Its access rights.
    pub protection: i32,
    /// Kind of mapping.
    pub flags: i32,
    /// The file, or -1.
    pub fd: i32,
    /// Offset in the file.
    pub offset: usize,
}

/// What a worker knows of its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct CallerTie {
    /// The caller's process number.
    pub pid: i32,
    /// A descriptor of the caller, if the worker has its own process numbers; otherwise -1.
    pub descriptor: i32,
}

/// Everything that a worker needs to know. A list of [`ForeignMapping`] values follows.
#[repr(C)]
pub struct WorkerSetup {
    /// Address of the view.
    pub view: u64,
    /// The mappings in the view.
    pub pieces: [ViewPiece; PIECE_COUNT],
    /// The memory areas of programs.
    pub areas: [AreaSetup; MOST_AREAS],
    /// Number of areas.
    pub area_count: usize,
    /// The CPU that code runs on.
    pub cpu: usize,
    /// Whether programs read the core-cycles counter.
    pub counts: bool,
    /// The event that it counts, as perf_event_open(2) takes it.
    pub event: [u64; EVENT_WORDS],
    /// The events that batches are counted by, the group's leader first.
    pub events: [[u64; EVENT_WORDS]; MOST_EVENTS],
    /// Number of events.
    pub event_count: usize,
    /// Whether the worker reads them with RDPMC. Otherwise the caller reads them around commands.
    pub reads_events: bool,
    /// The socket that takes the events' descriptors.
    pub event_socket: i32,
    /// The process that made the worker.
    pub caller: CallerTie,
    /// The filter of system calls (`struct sock_filter`).
    pub filter: [u64; MOST_FILTER_STEPS],
    /// Its length.
    pub filter_steps: usize,
    /// Largest amount of its own memory, in bytes, or [`UNLIMITED`].
    pub data_limit: u64,
    /// No open file has this number or a higher one.
    pub files: usize,
    /// Whether this worker is a copy of its creator. The view then replaces a reservation of that
    /// process.
    pub copy: bool,
    /// Address of the C library's registration with rseq(2), or 0.
    pub rseq: usize,
    /// Its length.
    pub rseq_bytes: usize,
    /// Whether the processor has AVX.
    pub avx: bool,
    /// Whether code may read and write the bases of FS and GS.
    pub fsgsbase: bool,
    /// Sequence number of the last command before the worker's first.
    pub sequence: u32,
    /// Number of mappings that the process shares with others.
    pub foreign_count: usize,
}

/// A mapping that the worker removes.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ForeignMapping {
    /// Its first address.
    pub start: usize,
    /// Its length.
    pub bytes: usize,
}

/// Largest number of [`ForeignMapping`] values.
pub const MOST_FOREIGN: usize = (SETUP_BYTES - size_of::<WorkerSetup>()) / size_of::<ForeignMapping>();

impl WorkerSetup {
    /// The address of an offset in the view.
    pub fn address_at(&self, offset: usize) -> *mut u8 {
        (self.view + offset as u64) as *mut u8
    }

    /// The flag of mmap(2) for an address that the caller chose. In a copy of the caller it
    /// replaces the caller's reservation; otherwise it must not replace a mapping of the worker.
    pub fn fixed_map_flag(&self) -> usize {
        if self.copy { MAP_FIXED } else { MAP_FIXED_NOREPLACE }
    }

    /// The worker's pointers to the memory that both sides write.
    pub fn shared_pointers(&self) -> SharedPointers {
        SharedPointers {
            context_page: self.address_at(view::CONTEXT_AT),
            status_page: self.address_at(view::STATUS_AT),
            samples: self.address_at(view::SAMPLES_AT),
        }
    }

    /// The memory areas of programs.
    pub fn areas(&self) -> &[AreaSetup] {
        // SAFETY: the worker's caller has written this number of areas, at most all. A checked
        // index would make the compiler call a function that reports it.
        unsafe { self.areas.get_unchecked(..self.area_count) }
    }

    /// The mappings to remove.
    ///
    /// # Safety
    ///
    /// The setup lies at the start of its region, followed by the list.
    pub unsafe fn foreign_mappings(&self) -> &[ForeignMapping] {
        // SAFETY: as the caller promises.
        unsafe { slice::from_raw_parts(ptr::from_ref(self).add(1).cast(), self.foreign_count) }
    }
}
