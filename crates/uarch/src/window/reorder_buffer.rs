//! The reorder buffer: all that is fetched and not retired.

use crate::spec::*;

/// A no-operation takes nothing else, but Zen 4 and 5 hold several of them in an entry.
pub(crate) const NOP: FillerSpec = FillerSpec { may_pack: true, ..FillerSpec::new("nop", &["nop"], &[]) };
const LONG_NOP: FillerSpec =
    FillerSpec { may_pack: true, ..FillerSpec::new("long nop", &["nop dword ptr [rax]"], &[]) };

/// A result of zero is known at once and takes no register. Of vector registers it takes one on Zen 4 where legacy code makes it, which
/// keeps the upper part.
const ZEROS: FillerSpec = FillerSpec::new(
    "zeros",
    &["xor ebx, ebx", "xor r8d, r8d", "xor r9d, r9d", "xor r10d, r10d", "xor r11d, r11d", "xor r12d, r12d"],
    &[],
);

/// A part of each class, so that none of their structures is full first. Were zeros to take registers, these would be full at
/// another number of fillers than of zeros, for other parts of both take them. No vectors, flags alone or no-operations are among
/// them: Zen 4 holds one of these in an entry with a neighbour (376 zeros of which each fourth is of a vector register, and 420 with
/// each fourth a comparison, where 318 are zeros or copies, loads and stores among zeros).
const MIXED: FillerSpec = FillerSpec::new(
    "mixed",
    &[
        "xor ebx, ebx",
        "lea r8, [rcx + rdx]",
        "xor r9d, r9d",
        "mov [r14], rcx",
        "xor r10d, r10d",
        "mov r11, [r14 + 64]",
        "xor r12d, r12d",
        "xor r13d, r13d",
    ],
    &[],
);

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "rob",
    about: "how many instructions the core holds until they retire",
    definition: "instructions between the oldest one that has not retired and the youngest one, both included",
    source: "H. Wong, Measuring Reorder Buffer Capacity (2013)",
    answers: &["out_of_order"],
    part: TestedPart::Window,
    experiment: Experiment::Overlap(OverlapSpec {
        chain_entries: 2,
        lead_nops: &[0, 1, 2, 3, 4, 5, 6, 7],
        ..OverlapSpec::new(&[[SQRTSD, FSQRT]], &[ZEROS, MIXED, NOP, LONG_NOP], 900)
    }),
}];
