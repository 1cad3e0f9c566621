//! The end of the program where it can't go on: memory ran out, or it panicked.
//!
//! Rust would abort, or end with a status that no document names, and leave temporary files behind.
//! Instead the program says why on standard error, removes its temporary files, ends its processes,
//! and exits as for an internal error. Result files keep their complete lines.

use crate::output::Failure;
use crate::process::interrupt;
use cyclescope_platform::console;
use std::alloc::{GlobalAlloc, Layout, System};
use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{Cursor, Write};
use std::panic::PanicHookInfo;

/// The system's allocator, which ends the program where it has no memory.
pub struct ReportingAllocator;

// SAFETY: every call is the system's allocator's, with the same arguments and the same answer.
unsafe impl GlobalAlloc for ReportingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        require_memory(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        require_memory(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: as the caller promises.
        require_memory(unsafe { System.realloc(memory, layout, bytes) }, bytes)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }
}

fn require_memory(memory: *mut u8, bytes: usize) -> *mut u8 {
    if memory.is_null() {
        end_without_memory(bytes)
    }
    memory
}

/// Ends the program because this number of bytes was refused. Allocates nothing.
#[cold]
fn end_without_memory(bytes: usize) -> ! {
    let mut text = [0u8; 512];
    let mut line = Cursor::new(&mut text[..]);
    // The text fits, and a number needs no memory.
    let _ = write!(
        line,
        "error: memory ran out: the system refused {bytes} bytes (brk, mmap)\n\
         help: allow more memory (`ulimit -v`, `ulimit -d`, memory.max of the control group), or end other programs; \
         if a filter refuses these calls, allow them\n"
    );
    let length = line.position() as usize;
    console::write_to_stderr(&text[..length]);
    interrupt::end_at_once()
}

/// Makes a panic end the program with an error.
pub fn install_panic_hook() {
    std::panic::set_hook(Box::new(|panic| end_after_panic(panic)));
}

fn end_after_panic(panic: &PanicHookInfo) -> ! {
    let payload = panic.payload();
    let text = payload.downcast_ref::<&str>().copied();
    let why = text.or(payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("for an unknown reason");
    let place = panic.location().map(|place| format!(" ({}:{})", place.file(), place.line())).unwrap_or_default();
    let remedy = "if a filter refuses system calls, or memory and processes are limited, allow more; otherwise report \
        this as a bug";
    Failure::internal(format!("{UNEXPECTED_STATE}: {why}{place}")).with_remedy(remedy).report(false);
    let trace = Backtrace::capture();
    if trace.status() == BacktraceStatus::Captured {
        // Nothing more can be done if it fails.
        let _ = writeln!(std::io::stderr(), "{trace}");
    }
    interrupt::end_at_once()
}

/// The beginning of the text for a panic.
const UNEXPECTED_STATE: &str = "the program met a state that it does not expect";
