//! Where the worker's memory lies, and the file that it shares with its caller.
//!
//! All but the executable lies in one stretch of addresses, the view, which the caller chooses. So the caller knows each
//! address in the worker, and a worker that replaces another finds the same ones. The memory areas of programs have
//! stretches of their own.

use super::command::FENCED_PAGE;
use super::context::EVICTION_PAGES;

/// Bytes that nothing is mapped to around each region.
pub const GUARD: usize = 64 << 10;
/// Bytes of the code arena.
pub const ARENA: usize = 4 << 20;
/// Bytes of the command region.
pub const COMMAND: usize = 1 << 20;
/// Bytes of the samples region; pages exist only where samples were written.
pub const SAMPLES: usize = 64 << 20;
/// Bytes of the harness's stack.
pub const STACK: usize = 128 << 10;
/// Bytes of the signal stack: an AVX-512 frame takes 4 KiB, an AMX frame 12 KiB.
pub const SIGNAL_STACK: usize = 64 << 10;
/// Bytes of the region that cold programs read through, a page at a time.
pub const EVICTION: usize = EVICTION_PAGES * 4096;
/// Bytes of what FS points into the middle of.
pub const THREAD: usize = 8192;
/// Bytes of the region with the [`Setup`](super::setup::Setup).
pub const SETUP: usize = 1 << 20;

/// Offset of the code arena in the view.
pub const ARENA_AT: usize = GUARD;
/// Offset of the command in the view.
pub const COMMAND_AT: usize = ARENA_AT + ARENA + GUARD;
/// Offset of the context's page in the view.
pub const CONTEXT_AT: usize = COMMAND_AT + COMMAND + GUARD;
/// Offset of the status's page in the view.
pub const STATUS_AT: usize = CONTEXT_AT + FENCED_PAGE + GUARD;
/// Offset of the samples in the view.
pub const SAMPLES_AT: usize = STATUS_AT + FENCED_PAGE + GUARD;
/// Offset of the harness's stack in the view.
pub const STACK_AT: usize = SAMPLES_AT + SAMPLES + GUARD;
/// Offset of that stack's end in the view.
pub const STACK_TOP: usize = STACK_AT + STACK;
/// Offset of the signal stack in the view.
pub const SIGNAL_STACK_AT: usize = STACK_TOP + GUARD;
/// Where the region starts that cold programs read through.
pub const EVICTION_AT: usize = SIGNAL_STACK_AT + SIGNAL_STACK + GUARD;
/// The page in which the kernel reports the number of the core-cycles counter.
pub const COUNTER_AT: usize = EVICTION_AT + EVICTION + GUARD;
/// What FS points into the middle of, in a worker that is no copy of another process.
pub const THREAD_AT: usize = COUNTER_AT + 4096 + GUARD;
/// Offset of the setup in the view.
pub const SETUP_AT: usize = THREAD_AT + THREAD + GUARD;
/// Bytes of the view.
pub const LEN: usize = SETUP_AT + SETUP + GUARD;

/// Offsets in the shared file. It begins with the command.
pub mod file {
    use super::*;

    /// Offset of the context's page.
    pub const CONTEXT_AT: usize = COMMAND;
    /// Offset of the status's page.
    pub const STATUS_AT: usize = CONTEXT_AT + FENCED_PAGE;
    /// Offset of the samples.
    pub const SAMPLES_AT: usize = STATUS_AT + FENCED_PAGE;
    /// Offset of the setup.
    pub const SETUP_AT: usize = SAMPLES_AT + SAMPLES;
    /// Bytes of the file.
    pub const LEN: usize = SETUP_AT + SETUP;
}

/// Where the executable is linked to (`image/link.ld`).
pub const IMAGE_AT: u64 = 0x7000_0000;
/// Where the one system call instruction is that the worker's filter allows.
pub const CALL_AT: u64 = IMAGE_AT + 0x1000;
