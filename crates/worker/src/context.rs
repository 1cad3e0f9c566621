//! The context of a program: the inputs and outputs of one call, in one block of memory.

use core::mem::{offset_of, size_of};
use core::ops::Range;

/// Pages that programs with a cold start read through. Their number exceeds every second-level
/// translation buffer (Zen 5 data TLB: 4 096 entries, AMD document 58455).
pub const EVICTION_PAGES: usize = 8192;

/// One block of memory, read and written by every program.
#[repr(C, align(64))]
#[derive(Clone)]
pub struct ProgramContext {
    /// The clock's raw reading before the body.
    pub start: u64,
    /// The clock's raw reading after the body.
    pub end: u64,
    /// Iterations of a looped body: R15 at its entry.
    pub loop_count: u64,
    /// The caller's stack pointer, kept here while RSP belongs to the snippet.
    pub return_rsp: u64,
    /// Registers of the snippet while a clock uses them.
    pub spill: [u64; 10],
    /// MXCSR at the snippet's entry.
    pub mxcsr: u32,
    /// Index of the hardware counter for clocks that read one with RDPMC.
    pub counter_index: u32,
    /// Address of the system's `clock_gettime`, for the clock that calls it.
    pub clock_gettime: u64,
    /// Address of the pages that programs with a cold start read through.
    pub eviction: u64,
    /// Memory for the `timespec` of that call.
    pub timespec: [u64; 2],
    /// General purpose registers at the snippet's entry, by encoding number.
    pub gpr: [u64; 16],
    /// Mask registers at the snippet's entry.
    pub mask: [u64; 8],
    /// Vector registers at the snippet's entry.
    pub vector: [[u64; 8]; 32],
    /// Address of the system's `memcpy`, for programs that call it.
    pub memcpy: u64,
}

/// The part of a context that no program writes. Padding follows.
pub const CONSTANT_PART: Range<usize> =
    offset_of!(ProgramContext, gpr)..offset_of!(ProgramContext, vector) + size_of::<[[u64; 8]; 32]>();
