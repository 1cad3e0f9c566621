//! The protocol of caller and worker: a command that the worker can only read, and the worker's
//! answer.

use super::area::AreaOrders;
use super::context::ProgramContext;
use core::mem::size_of;
use core::sync::atomic::AtomicU32;

/// A command, at the start of the command region; placed layouts and calls follow.
#[repr(C)]
pub struct WorkerCommand {
    /// Counts commands; the worker waits for it to change.
    pub sequence: AtomicU32,
    /// Whether the caller runs on another CPU, so that waiting actively takes no time from it.
    pub spin: u32,
    /// The value of every canary word, new for each command.
    pub canary: u64,
    /// Number of layouts.
    pub layouts: u32,
    /// Number of calls in a round.
    pub calls: u32,
    /// Number of untimed rounds at the start.
    pub warm_up: u32,
    /// Number of rounds whose samples are kept.
    pub rounds: u32,
    /// Largest number of iterations of the delay before each call.
    pub delay: u32,
    /// Number of events that the worker reads around each call, instead of the clock's readings.
    pub events: u32,
    /// Segment of 32-bit code, if the programs are such code; 0 for 64-bit code.
    pub code_segment: u32,
    /// Whether the readings are times, so that a call may be marked as interrupted. A probe's are any
    /// numbers.
    pub reads_times: u32,
    /// Memory areas to prepare before a layout.
    pub orders: AreaOrders,
    /// The context of every call except the general purpose registers.
    pub context: ProgramContext,
}

/// One layout with its addresses, as the worker sees them.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct WorkerLayout {
    /// General purpose registers at the entry of every call.
    pub gpr: [u64; 16],
    /// Seed of the random delays.
    pub seed: u64,
}

/// One call of one layout.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct WorkerCall {
    /// The program's address.
    pub entry: u64,
    /// Iterations of its loop.
    pub loop_count: u64,
}

/// Offset of the placed layouts in the command region.
pub const LAYOUTS_AT: usize = 4096;
const _: () = assert!(size_of::<WorkerCommand>() <= LAYOUTS_AT);

/// Values of [`WorkerAnswer::outcome`].
pub mod outcome {
    /// A command is running.
    pub const RUNNING: u32 = 0;
    /// The command has run.
    pub const DONE: u32 = 1;
    /// Code raised a signal.
    pub const FAULT: u32 = 2;
    /// A fence is damaged; the detail is its index.
    pub const FENCE: u32 = 3;
    /// The worker could not be set up; the detail is the step's index.
    pub const SETUP: u32 = 4;
}

/// The worker's result of a command.
#[repr(C)]
pub struct WorkerStatus {
    /// The sequence number of the last finished command, whatever its outcome.
    pub done: AtomicU32,
    /// The outcome and its details.
    pub answer: WorkerAnswer,
}

/// The worker's answer.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct WorkerAnswer {
    /// The outcome; see [`outcome`].
    pub outcome: u32,
    /// Index of a step or a fence, see [`outcome`].
    pub detail: u32,
    /// The error number of a failed set-up.
    pub errno: i32,
    /// The signal of a fault.
    pub signal: i32,
    /// Its `si_code`.
    pub code: i32,
    /// `si_addr`; with SIGSYS the number of the system call.
    pub address: u64,
    /// The instruction pointer of a fault.
    pub rip: u64,
    /// The error code of the processor's exception; meaningless with SIGSYS.
    pub error: u32,
    /// The processor's exception; meaningless with SIGSYS.
    pub vector: u32,
    /// The error number of each barrier, see [`barrier`], or 0 if it holds. Only a set-up writes
    /// them.
    pub barriers: [i32; barrier::COUNT],
}

/// Barriers that a worker sets up where the system allows them: indices of
/// [`WorkerAnswer::barriers`].
pub mod barrier {
    /// Landlock forbids files and connections.
    pub const LANDLOCK: usize = 0;
    /// The root directory has no files.
    pub const EMPTY_ROOT: usize = 1;
    /// Number of barriers.
    pub const COUNT: usize = 2;
}

/// Fences that hold canaries or constants, by index.
pub const FENCES: [&str; 5] = [
    "the context's fence",
    "the status block's fence",
    "the samples' fence",
    "the context",
    "a clock reading, skipped or overwritten,",
];
/// Index in [`FENCES`] of constants of the context.
pub const FENCE_CONTEXT: u32 = 3;
/// Index in [`FENCES`] of a reading that no clock wrote.
pub const FENCE_READING: u32 = 4;
/// Not a fence: the core-cycles counter, or an event, was on no hardware counter.
pub const FENCE_COUNTER: u32 = 5;
/// Not a fence: a round began on one CPU and ended on another.
pub const FENCE_CPU: u32 = 6;

/// Bytes of the context's page, and of the status's page.
pub const FENCED_PAGE: usize = 4096;
/// Offset of the context and of the status in their pages; canaries fill the rest.
pub const FENCED_AT: usize = 512;
/// Bytes of canary before and after the samples.
pub const SAMPLES_FENCE: usize = 64;
const _: () = assert!(FENCED_AT + size_of::<ProgramContext>() + 64 <= FENCED_PAGE);

/// One side's pointers to the memory that both can write.
#[derive(Clone, Copy)]
pub struct SharedPointers {
    /// The page with the context.
    pub context_page: *mut u8,
    /// The page with the status.
    pub status_page: *mut u8,
    /// The samples, with a fence before and after them.
    pub samples: *mut u8,
}

/// The bit of [`ReadingPair::end`] that says that other threads ran during the call for long. No
/// clock of any machine is so far.
pub const INTERRUPTED: u64 = 1 << 63;

/// Two raw readings: before and after a body.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct ReadingPair {
    /// The reading before the body.
    pub start: u64,
    /// The reading after the body, perhaps with [`INTERRUPTED`].
    pub end: u64,
}

impl SharedPointers {
    /// The context.
    pub fn context_pointer(&self) -> *mut ProgramContext {
        self.context_page.wrapping_add(FENCED_AT).cast()
    }

    /// The status.
    pub fn status_pointer(&self) -> *mut WorkerStatus {
        self.status_page.wrapping_add(FENCED_AT).cast()
    }

    /// The first sample.
    pub fn first_sample(&self) -> *mut ReadingPair {
        self.samples.wrapping_add(SAMPLES_FENCE).cast()
    }

    /// The canary words: fence, start, bytes.
    fn fence_ranges(&self, samples: usize) -> [(u32, *mut u8, usize); 6] {
        let after = |object: usize| FENCED_AT + object.next_multiple_of(8);
        let context = after(size_of::<ProgramContext>());
        let status = after(size_of::<WorkerStatus>());
        let last = SAMPLES_FENCE + samples * size_of::<ReadingPair>();
        [
            (0, self.context_page, FENCED_AT),
            (0, self.context_page.wrapping_add(context), FENCED_PAGE - context),
            (1, self.status_page, FENCED_AT),
            (1, self.status_page.wrapping_add(status), FENCED_PAGE - status),
            (2, self.samples, SAMPLES_FENCE),
            (2, self.samples.wrapping_add(last), SAMPLES_FENCE),
        ]
    }

    /// Fills every fence with the canary.
    ///
    /// # Safety
    ///
    /// The pointers are mapped for writing; the samples' one for this number of samples and two
    /// fences.
    pub unsafe fn set_fences(&self, samples: usize, canary: u64) {
        for (_, start, bytes) in self.fence_ranges(samples) {
            for word in 0..bytes / 8 {
                // SAFETY: inside the mappings that the caller guarantees; all starts are multiples
                // of 8.
                unsafe { start.cast::<u64>().wrapping_add(word).write_volatile(canary) };
            }
        }
    }

    /// The first damaged fence.
    ///
    /// # Safety
    ///
    /// As for [`SharedPointers::set_fences`].
    pub unsafe fn find_damaged_fence(&self, samples: usize, canary: u64) -> Option<u32> {
        for (fence, start, bytes) in self.fence_ranges(samples) {
            for word in 0..bytes / 8 {
                // SAFETY: inside the mappings that the caller guarantees; all starts are multiples
                // of 8.
                if unsafe { start.cast::<u64>().wrapping_add(word).read_volatile() } != canary {
                    return Some(fence);
                }
            }
        }
        None
    }
}
