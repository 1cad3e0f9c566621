//! All that a worker needs to know before it exists.

use super::command::Shared;
use super::orders::AreaSetup;
use super::regions::{PIECES, Piece, view};

/// All that a worker needs to know, prepared before it exists.
pub(super) struct Setup {
    pub(super) view: u64,
    pub(super) pieces: [Piece; PIECES],
    /// The memory areas of programs.
    pub(super) areas: Vec<AreaSetup>,
    pub(super) cpu: usize,
    /// The event that programs read with RDPMC, if they do.
    pub(super) counter: Option<perf_event_open_sys::bindings::perf_event_attr>,
    pub(super) caller: i32,
    pub(super) filter: Vec<libc::sock_filter>,
    /// The most memory of its own that it may have, in bytes, where it may get more.
    pub(super) data_limit: Option<u64>,
    /// No open file has this number or a higher one.
    pub(super) files: usize,
    /// Mappings that the host program shares with others: start, bytes.
    pub(super) foreign: Vec<(usize, usize)>,
    pub(super) avx: bool,
    pub(super) fsgsbase: bool,
    /// The command to start after.
    pub(super) sequence: u32,
}

impl Setup {
    pub(super) fn at(&self, offset: usize) -> *mut u8 {
        (self.view + offset as u64) as *mut u8
    }

    pub(super) fn shared(&self) -> Shared {
        Shared {
            context_page: self.at(view::CONTEXT_AT),
            status_page: self.at(view::STATUS_AT),
            samples: self.at(view::SAMPLES_AT),
        }
    }
}
