//! Loads that are not retired.

use crate::spec::*;

const TO_INTEGER: FillerSpec = FillerSpec::new(
    "mov r64, m64",
    &["mov rbx, [r14]", "mov r8, [r14 + 64]", "mov r9, [r14 + 128]", "mov r10, [r14 + 192]", "mov r11, [r14 + 256]"],
    &["rob", "int_registers"],
);
const TO_VECTOR: FillerSpec = FillerSpec::new(
    "movups xmm, m128",
    &[
        "movups xmm2, [r14]",
        "movups xmm3, [r14 + 64]",
        "movups xmm4, [r14 + 128]",
        "movups xmm5, [r14 + 192]",
        "movups xmm6, [r14 + 256]",
    ],
    &["rob", "vector_registers_xmm"],
);
const COMPARED: FillerSpec = FillerSpec {
    may_occupy: &["int_registers", "flags"],
    ..FillerSpec::new(
        "cmp m64, r64",
        &["cmp [r14], rbx", "cmp [r14 + 64], r8", "cmp [r14 + 128], r9", "cmp [r14 + 192], r10"],
        &["rob"],
    )
};

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "loads_in_flight",
    about: "how many loads that hit the first cache the core holds until they retire",
    definition: "loads that are executed and not retired",
    source: "H. Wong, Measuring Reorder Buffer Capacity (2013)",
    answers: &[],
    part: TestedPart::Window,
    experiment: Experiment::Overlap(OverlapSpec::new(&[[SQRTSD, FSQRT]], &[TO_INTEGER, TO_VECTOR, COMPARED], 600)),
}];
