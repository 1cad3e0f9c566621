//! Loads that wait for their address.

use crate::spec::*;

/// A zero that waits: addresses stay those of the area.
const WAIT: &[&str] = &["movq rax, xmm0", "and eax, 0"];

pub(super) const TO_INTEGER: FillerSpec = FillerSpec {
    prologue: WAIT,
    ..FillerSpec::new(
        "mov r64, m64",
        &[
            "mov rbx, [r14 + rax]",
            "mov r8, [r14 + rax + 64]",
            "mov r9, [r14 + rax + 128]",
            "mov r10, [r14 + rax + 192]",
        ],
        &["rob", "int_registers", "loads_in_flight"],
    )
};
const TO_VECTOR: FillerSpec = FillerSpec {
    prologue: WAIT,
    ..FillerSpec::new(
        "movups xmm, m128",
        &["movups xmm2, [r14 + rax]", "movups xmm3, [r14 + rax + 64]", "movups xmm4, [r14 + rax + 128]"],
        &["rob", "vector_registers_xmm", "loads_in_flight"],
    )
};
/// It takes no register. Loads to vector registers wait in the vectors' scheduler too on Zen 4: 42 of them, and 48 of the others.
pub(super) const PREFETCH: FillerSpec = FillerSpec {
    prologue: WAIT,
    ..FillerSpec::new(
        "prefetcht0",
        &["prefetcht0 [r14 + rax]", "prefetcht0 [r14 + rax + 64]", "prefetcht0 [r14 + rax + 128]"],
        &["rob", "loads_in_flight"],
    )
};

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "load_scheduler",
    about: "how many loads can wait for their address",
    definition: "loads whose address is one result that is not there yet, when a further one finds no room: others of several queues may have some",
    source: "H. Wong, Measuring Reorder Buffer Capacity (2013)",
    answers: &[],
    part: TestedPart::Window,
    experiment: Experiment::Overlap(OverlapSpec::new(&[[SQRTSD, DIVSD]], &[TO_INTEGER, TO_VECTOR, PREFETCH], 400)),
}];
