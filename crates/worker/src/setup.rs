//! All that a worker needs to know before it runs commands, written by its caller.

use super::area::AreaSetup;
use super::command::SharedPointers;
use super::kernel::{MAP_FIXED, MAP_FIXED_NOREPLACE};
use super::view::{self, SETUP_BYTES};
use core::mem::size_of;
use core::{ptr, slice};

/// Pieces of the worker's view.
pub const PIECE_COUNT: usize = 10;
/// The most memory areas of programs.
pub const MOST_AREAS: usize = 32;
/// The most instructions of the filter.
pub const MOST_FILTER_STEPS: usize = 96;
/// Value of [`WorkerSetup::data_limit`] where there is no limit.
pub const UNLIMITED: u64 = u64::MAX;
/// 64-bit words of a `perf_event_attr`, with room for later ones.
const EVENT_WORDS: usize = 32;

/// A piece of the worker's view, with the arguments of its mmap(2).
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ViewPiece {
    /// Offset in the view.
    pub at: usize,
    /// Its length.
    pub bytes: usize,
    /// What may be done with it.
    pub protection: i32,
    /// Kind of mapping.
    pub flags: i32,
    /// The file, or -1.
    pub fd: i32,
    /// Offset in the file.
    pub offset: usize,
}

/// All that a worker needs to know. A list of [`ForeignMapping`] mappings follows.
#[repr(C)]
pub struct WorkerSetup {
    /// Address of the view.
    pub view: u64,
    /// The mappings in the view.
    pub pieces: [ViewPiece; PIECE_COUNT],
    /// The memory areas of programs.
    pub areas: [AreaSetup; MOST_AREAS],
    /// How many there are.
    pub area_count: usize,
    /// The CPU that code runs on.
    pub cpu: usize,
    /// Whether programs read the core-cycles counter.
    pub counts: bool,
    /// The event that it counts, as perf_event_open(2) takes it.
    pub event: [u64; EVENT_WORDS],
    /// The process that made the worker.
    pub caller: i32,
    /// The filter of system calls (`struct sock_filter`).
    pub filter: [u64; MOST_FILTER_STEPS],
    /// Its length.
    pub filter_steps: usize,
    /// The most memory of its own that it may have, in bytes, or [`UNLIMITED`].
    pub data_limit: u64,
    /// No open file has this number or a higher one.
    pub files: usize,
    /// Whether this is a copy of the process that made it, and the view replaces a reservation of that process.
    pub copy: bool,
    /// Address of what the C library has registered with rseq(2), or 0.
    pub rseq: usize,
    /// Its length.
    pub rseq_bytes: usize,
    /// Whether there is AVX.
    pub avx: bool,
    /// Whether code may read and write the bases of FS and GS.
    pub fsgsbase: bool,
    /// The command to start after.
    pub sequence: u32,
    /// Number of mappings that the process shared with others before.
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

/// The most [`ForeignMapping`] mappings.
pub const MOST_FOREIGN: usize = (SETUP_BYTES - size_of::<WorkerSetup>()) / size_of::<ForeignMapping>();

impl WorkerSetup {
    /// The address of an offset in the view.
    pub fn address_at(&self, offset: usize) -> *mut u8 {
        (self.view + offset as u64) as *mut u8
    }

    /// The flag of mmap(2) for an address that the caller chose: in a copy of the caller it replaces what the caller
    /// reserved there; otherwise something of the worker's own may be there.
    pub fn fixed_map_flag(&self) -> usize {
        if self.copy { MAP_FIXED } else { MAP_FIXED_NOREPLACE }
    }

    /// The worker's pointers to what both sides write.
    pub fn shared_pointers(&self) -> SharedPointers {
        SharedPointers {
            context_page: self.address_at(view::CONTEXT_AT),
            status_page: self.address_at(view::STATUS_AT),
            samples: self.address_at(view::SAMPLES_AT),
        }
    }

    /// The memory areas of programs.
    pub fn areas(&self) -> &[AreaSetup] {
        // SAFETY: the caller of the worker has written this number of areas, at most all. An index that could be too
        // large would make the compiler call what reports it.
        unsafe { self.areas.get_unchecked(..self.area_count) }
    }

    /// The mappings to remove.
    ///
    /// # Safety
    ///
    /// The setup lies at the start of its region, and the list behind it.
    pub unsafe fn foreign_mappings(&self) -> &[ForeignMapping] {
        // SAFETY: as the caller promises.
        unsafe { slice::from_raw_parts(ptr::from_ref(self).add(1).cast(), self.foreign_count) }
    }
}
