//! The addresses of the worker's memory, and the file that it shares with its caller.
//!
//! All memory except the executable lies in one stretch of addresses, the view, which the caller
//! chooses. The caller therefore knows each address in the worker, and a replacement worker has the
//! same ones. The memory areas of programs have stretches of their own.

use super::command::FENCED_PAGE;
use super::context::EVICTION_PAGES;

/// Largest number of events that batches are counted by at the same time.
pub const MOST_EVENTS: usize = 8;
/// Unmapped bytes around each region.
pub const GUARD_BYTES: usize = 64 << 10;
/// Bytes of the code arena.
pub const ARENA_BYTES: usize = 4 << 20;
/// Bytes of the command region.
pub const COMMAND_BYTES: usize = 1 << 20;
/// Bytes of the samples region; pages exist only where samples were written.
pub const SAMPLES_BYTES: usize = 64 << 20;
/// Bytes of the harness's stack.
pub const STACK_BYTES: usize = 128 << 10;
/// Bytes of the signal stack: an AVX-512 frame takes 4 KiB, an AMX frame 12 KiB.
pub const SIGNAL_STACK_BYTES: usize = 64 << 10;
/// Bytes of the region that cold programs read through, a page at a time.
pub const EVICTION_BYTES: usize = EVICTION_PAGES * 4096;
/// Bytes of the region that FS points into the middle of.
pub const THREAD_BYTES: usize = 8192;
/// Bytes of the region with the [`WorkerSetup`](super::setup::WorkerSetup).
pub const SETUP_BYTES: usize = 1 << 20;

/// Offset of the code arena in the view.
pub const ARENA_AT: usize = GUARD_BYTES;
/// Offset of the command in the view.
pub const COMMAND_AT: usize = ARENA_AT + ARENA_BYTES + GUARD_BYTES;
/// Offset of the context's page in the view.
pub const CONTEXT_AT: usize = COMMAND_AT + COMMAND_BYTES + GUARD_BYTES;
/// Offset of the status's page in the view.
pub const STATUS_AT: usize = CONTEXT_AT + FENCED_PAGE + GUARD_BYTES;
/// Offset of the samples in the view.
pub const SAMPLES_AT: usize = STATUS_AT + FENCED_PAGE + GUARD_BYTES;
/// Offset of the harness's stack in the view.
pub const STACK_AT: usize = SAMPLES_AT + SAMPLES_BYTES + GUARD_BYTES;
/// Offset of that stack's end in the view.
pub const STACK_TOP: usize = STACK_AT + STACK_BYTES;
/// Offset of the signal stack in the view.
pub const SIGNAL_STACK_AT: usize = STACK_TOP + GUARD_BYTES;
/// Offset of the region that cold programs read through.
pub const EVICTION_AT: usize = SIGNAL_STACK_AT + SIGNAL_STACK_BYTES + GUARD_BYTES;
/// Offset of the page in which the kernel reports the number of the core-cycles counter.
pub const COUNTER_AT: usize = EVICTION_AT + EVICTION_BYTES + GUARD_BYTES;
/// Offset of the pages in which the kernel reports the counters of the batch's events, one a page.
pub const EVENTS_AT: usize = COUNTER_AT + 4096;
/// Offset of the region that FS points into the middle of, unless the worker is a copy of another
/// process.
pub const THREAD_AT: usize = EVENTS_AT + MOST_EVENTS * 4096 + GUARD_BYTES;
/// Offset of the setup in the view.
pub const SETUP_AT: usize = THREAD_AT + THREAD_BYTES + GUARD_BYTES;
/// Bytes of the view.
pub const VIEW_BYTES: usize = SETUP_AT + SETUP_BYTES + GUARD_BYTES;

/// Offsets in the shared file. It begins with the command.
pub mod file {
    use super::*;

    /// Offset of the context's page.
    pub const CONTEXT_AT: usize = COMMAND_BYTES;
    /// Offset of the status's page.
    pub const STATUS_AT: usize = CONTEXT_AT + FENCED_PAGE;
    /// Offset of the samples.
    pub const SAMPLES_AT: usize = STATUS_AT + FENCED_PAGE;
    /// Offset of the setup.
    pub const SETUP_AT: usize = SAMPLES_AT + SAMPLES_BYTES;
    /// Bytes of the file.
    pub const FILE_BYTES: usize = SETUP_AT + SETUP_BYTES;
}

/// The address that the executable is linked to (`image/link.ld`).
pub const IMAGE_AT: u64 = 0x7000_0000;
/// The address of the one system call instruction that the worker's filter allows.
pub const CALL_AT: u64 = IMAGE_AT + 0x1000;
