//! Integer registers for results that are not retired.

use crate::spec::*;

pub(crate) const LEA: FillerSpec = FillerSpec::new(
    "lea",
    &[
        "lea rbx, [rcx + rdx]",
        "lea r8, [rcx + rdx]",
        "lea r9, [rcx + rdx]",
        "lea r10, [rcx + rdx]",
        "lea r11, [rcx + rdx]",
        "lea r12, [rcx + rdx]",
        "lea r13, [rcx + rdx]",
    ],
    &["rob"],
);

const ADD: FillerSpec = FillerSpec::new(
    "add",
    &[
        "add rbx, rcx",
        "add r8, rcx",
        "add r9, rcx",
        "add r10, rcx",
        "add r11, rcx",
        "add r12, rcx",
        "add r13, rcx",
        "add rdx, rcx",
    ],
    &["rob"],
);

const NOT: FillerSpec = FillerSpec::new(
    "not",
    &["not rbx", "not r8", "not r9", "not r10", "not r11", "not r12", "not r13", "not rdx"],
    &["rob"],
);

/// Not on the x87 stack: with a chain there six registers more are left on Zen 4 (194 and 188), and four mask registers.
pub(crate) const HEADS: &[[FirstChain; 2]] = &[[SQRTSD, DIVSD]];

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "int_registers",
    about: "how many results in integer registers the core holds until they retire",
    definition: "spare integer registers: those beside the architectural ones and those that the core keeps for itself",
    source: "H. Wong, Measuring Reorder Buffer Capacity (2013)",
    answers: &[],
    part: TestedPart::Window,
    experiment: Experiment::Overlap(OverlapSpec::new(HEADS, &[LEA, ADD, NOT], 700)),
}];
