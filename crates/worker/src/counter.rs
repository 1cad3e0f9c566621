//! The core-cycles counter that programs read with RDPMC, opened by the worker for itself.
//!
//! The kernel puts the event on any free hardware counter and writes the counter's number to a page
//! of memory (perf_event_open(2), `index`). The number is copied to the context before each call.
//! The event counts only in user mode, so that the readings exclude an interrupt's own cycles.

use super::kernel::{MAP_SHARED, PERF_FLAG_FD_CLOEXEC, PROT_READ, call};
use super::setup::WorkerSetup;
use super::{stub, view};

/// Offset of `index` in `struct perf_event_mmap_page` (Linux, `perf_event.h`).
pub const COUNTER_INDEX_AT: usize = 12;

/// Opens the event and maps its page. The error is an error number.
///
/// # Safety
///
/// Only in the worker, before its sandbox is closed.
pub unsafe fn open_counter(setup: &WorkerSetup) -> Result<(), i32> {
    if !setup.counts {
        return Ok(());
    }
    let whoever = usize::MAX;
    // SAFETY: the attributes are a complete structure that the call only reads. The mapping
    // replaces a page of the worker's view; it keeps the event alive when the worker's files are
    // closed.
    let answer = unsafe {
        let event = setup.event.as_ptr() as usize;
        let fd = stub::syscall(call::PERF_EVENT_OPEN, event, 0, whoever, whoever, PERF_FLAG_FD_CLOEXEC, 0);
        if fd < 0 {
            fd
        } else {
            let address = setup.address_at(view::COUNTER_AT) as usize;
            stub::syscall(call::MMAP, address, 4096, PROT_READ, MAP_SHARED | setup.fixed_map_flag(), fd as usize, 0)
        }
    };
    if answer < 0 { Err(-answer as i32) } else { Ok(()) }
}

/// The operand for reading the event with RDPMC; `None` while no hardware counter has the event.
///
/// # Safety
///
/// After [`open_counter`] has succeeded with a requested counter.
pub unsafe fn read_counter_index(setup: &WorkerSetup) -> Option<u32> {
    // SAFETY: the page is mapped; the kernel may change it at any time.
    let index = unsafe { setup.address_at(view::COUNTER_AT + COUNTER_INDEX_AT).cast::<u32>().read_volatile() };
    // The page holds the number plus one; 0 means that no counter has the event.
    index.checked_sub(1)
}
