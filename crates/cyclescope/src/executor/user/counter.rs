//! The core-cycles counter that programs read with RDPMC, opened by the worker for itself.
//!
//! The kernel puts the event on any free hardware counter and writes the counter's number to a page of memory
//! (perf_event_open(2), `index`); the number is copied to the context before each call. The event counts in user
//! mode only, so that an interrupt's own cycles are not in the readings.

use super::regions::view;
use super::setup::Setup;
use super::stub;
use perf_event_open_sys::bindings as abi;
use std::mem::{offset_of, size_of};
use std::ptr;

/// The event: core cycles in user mode.
pub(super) fn attributes() -> abi::perf_event_attr {
    let mut attributes = abi::perf_event_attr {
        size: size_of::<abi::perf_event_attr>() as u32,
        type_: abi::PERF_TYPE_HARDWARE,
        config: abi::PERF_COUNT_HW_CPU_CYCLES.into(),
        ..Default::default()
    };
    attributes.set_exclude_kernel(1);
    attributes.set_exclude_hv(1);
    attributes.set_pinned(1);
    attributes
}

/// Opens the event and maps its page. The error is an error number.
///
/// # Safety
///
/// Only in the worker, before its sandbox is closed.
pub(super) unsafe fn open(setup: &Setup) -> Result<(), i32> {
    let Some(attributes) = &setup.counter else { return Ok(()) };
    let whoever = usize::MAX;
    let close_on_exec = abi::PERF_FLAG_FD_CLOEXEC as usize;
    // SAFETY: the attributes are a complete structure that the call only reads. The mapping replaces a page of
    // the worker's reservation; it keeps the event alive when the worker's files are closed.
    let answer = unsafe {
        let event = ptr::from_ref(attributes) as usize;
        let fd = stub::syscall(libc::SYS_perf_event_open, event, 0, whoever, whoever, close_on_exec, 0);
        if fd < 0 {
            fd
        } else {
            let address = setup.at(view::COUNTER_AT) as usize;
            let flags = (libc::MAP_SHARED | libc::MAP_FIXED) as usize;
            let read = libc::PROT_READ as usize;
            stub::syscall(libc::SYS_mmap, address, 4096, read, flags, fd as usize, 0)
        }
    };
    if answer < 0 { Err(-answer as i32) } else { Ok(()) }
}

/// The operand with which RDPMC reads the event; `None` while the event is on no counter.
///
/// # Safety
///
/// After [`open`] has succeeded with a counter asked for.
pub(super) unsafe fn index(setup: &Setup) -> Option<u32> {
    let at = view::COUNTER_AT + offset_of!(abi::perf_event_mmap_page, index);
    // SAFETY: the page is mapped; the kernel may change it at any time.
    let index = unsafe { setup.at(at).cast::<u32>().read_volatile() };
    // The page has the number plus one; 0 means that the event is on no counter.
    index.checked_sub(1)
}
