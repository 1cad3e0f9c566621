//! The protocol of caller and worker: a command that the worker can only read, and the worker's answer.

use super::orders::Orders;
use crate::context::Context;
use std::mem::size_of;
use std::sync::atomic::AtomicU32;

/// A command, at the start of the command region; placed layouts and calls follow.
#[repr(C)]
pub(super) struct Command {
    /// Counts commands; the worker waits for it to change.
    pub(super) sequence: AtomicU32,
    /// Whether the caller runs on another CPU, so that waiting actively takes nothing from it.
    pub(super) spin: u32,
    /// The value of every canary word, new for each command.
    pub(super) canary: u64,
    pub(super) layouts: u32,
    pub(super) calls: u32,
    pub(super) warm_up: u32,
    pub(super) rounds: u32,
    /// Largest number of iterations of the delay before each call.
    pub(super) delay: u32,
    /// Which memory areas are prepared before a layout.
    pub(super) orders: Orders,
    /// The context of every call but for the general purpose registers.
    pub(super) context: Context,
}

/// One layout with its addresses, as the worker sees them.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct PlacedLayout {
    /// General purpose registers at the entry of every call.
    pub(super) gpr: [u64; 16],
    pub(super) seed: u64,
}

/// One call of one layout.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct PlacedCall {
    pub(super) entry: u64,
    pub(super) loop_count: u64,
}

/// Where placed layouts start in the command region.
pub(super) const LAYOUTS_AT: usize = 4096;
const _: () = assert!(size_of::<Command>() <= LAYOUTS_AT);

/// Values of [`Status::outcome`].
pub(super) mod outcome {
    pub(in super::super) const RUNNING: u32 = 0;
    pub(in super::super) const DONE: u32 = 1;
    pub(in super::super) const FAULT: u32 = 2;
    /// A fence is damaged; the detail is its index.
    pub(in super::super) const FENCE: u32 = 3;
    /// The worker could not be set up; the detail is the step's index.
    pub(in super::super) const SETUP: u32 = 4;
}

/// The worker's answer.
#[repr(C)]
pub(super) struct Status {
    /// The sequence number of the last command that came to an end, whichever.
    pub(super) done: AtomicU32,
    pub(super) outcome: u32,
    pub(super) detail: u32,
    pub(super) errno: i32,
    pub(super) signal: i32,
    pub(super) code: i32,
    /// `si_addr`; with SIGSYS the number of the system call.
    pub(super) address: u64,
    pub(super) rip: u64,
    /// The processor's exception; of no meaning with SIGSYS.
    pub(super) vector: u32,
}

/// Fences that hold canaries or constants, by index.
pub(super) const FENCES: [&str; 5] = [
    "the context's fence",
    "the status block's fence",
    "the samples' fence",
    "the context",
    "a clock reading, skipped or overwritten,",
];
/// Index in [`FENCES`] of constants of the context.
pub(super) const FENCE_CONTEXT: u32 = 3;
/// Index in [`FENCES`] of a reading that no clock wrote.
pub(super) const FENCE_READING: u32 = 4;
/// Not a fence: the core-cycles counter was on no hardware counter.
pub(super) const FENCE_COUNTER: u32 = 5;

/// Bytes of the page that holds the context, and of the one that holds the status.
pub(super) const FENCED_PAGE: usize = 4096;
/// Offset of the context and of the status in their pages; canaries fill the rest.
pub(super) const FENCED_AT: usize = 512;
/// Bytes of canary before and after the samples.
pub(super) const SAMPLES_FENCE: usize = 64;
const _: () = assert!(FENCED_AT + size_of::<Context>() + 64 <= FENCED_PAGE);

/// One side's pointers to the memory that both can write.
#[derive(Clone, Copy)]
pub(super) struct Shared {
    pub(super) context_page: *mut u8,
    pub(super) status_page: *mut u8,
    pub(super) samples: *mut u8,
}

impl Shared {
    pub(super) fn context(&self) -> *mut Context {
        self.context_page.wrapping_add(FENCED_AT).cast()
    }

    pub(super) fn status(&self) -> *mut Status {
        self.status_page.wrapping_add(FENCED_AT).cast()
    }

    /// The first sample.
    pub(super) fn first_sample(&self) -> *mut super::Sample {
        self.samples.wrapping_add(SAMPLES_FENCE).cast()
    }

    /// The stretches of canary words: fence, start, bytes.
    fn fences(&self, samples: usize) -> [(u32, *mut u8, usize); 6] {
        let after = |object: usize| FENCED_AT + object.next_multiple_of(8);
        let context = after(size_of::<Context>());
        let status = after(size_of::<Status>());
        let last = SAMPLES_FENCE + samples * size_of::<super::Sample>();
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
    /// The pointers are mapped for writing, that of the samples for this number of samples and two fences.
    pub(super) unsafe fn set_fences(&self, samples: usize, canary: u64) {
        for (_, start, bytes) in self.fences(samples) {
            for word in 0..bytes / 8 {
                // SAFETY: inside the mappings that the caller vouches for; all starts are multiples of 8.
                unsafe { start.cast::<u64>().wrapping_add(word).write_volatile(canary) };
            }
        }
    }

    /// The first damaged fence.
    ///
    /// # Safety
    ///
    /// As for [`Shared::set_fences`].
    pub(super) unsafe fn damaged_fence(&self, samples: usize, canary: u64) -> Option<u32> {
        for (fence, start, bytes) in self.fences(samples) {
            for word in 0..bytes / 8 {
                // SAFETY: inside the mappings that the caller vouches for; all starts are multiples of 8.
                if unsafe { start.cast::<u64>().wrapping_add(word).read_volatile() } != canary {
                    return Some(fence);
                }
            }
        }
        None
    }
}
