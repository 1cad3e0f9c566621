//! Loads that have their address and wait for their data.

use crate::spec::*;

/// A store whose data wait for the chain, and another register with its address: a core may know by the register's name that a
/// load gets a store's data.
const WAIT: &[&str] = &["movups [r14], xmm0", "lea rax, [r14]"];

/// A load whose address is known waits in the loads' scheduler on some cores, and leaves it on others.
const WAITING: &[&str] = &["load_scheduler"];

const TO_INTEGER: FillerSpec = FillerSpec {
    prologue: WAIT,
    may_occupy: WAITING,
    ..FillerSpec::new(
        "mov r64, m64",
        &["mov rbx, [rax]", "mov r8, [rax + 8]", "mov r9, [rax]", "mov r10, [rax + 8]"],
        &["rob", "int_registers", "loads_in_flight"],
    )
};
const TO_VECTOR: FillerSpec = FillerSpec {
    prologue: WAIT,
    may_occupy: WAITING,
    ..FillerSpec::new(
        "movups xmm, m128",
        &["movups xmm2, [rax]", "movups xmm3, [rax]", "movups xmm4, [rax]", "movups xmm5, [rax]"],
        &["rob", "vector_registers_xmm", "loads_in_flight"],
    )
};

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "loads_uncompleted",
    about: "how many loads can wait for their data",
    definition: "loads whose address is known and whose data is that of a store that has not got it yet",
    source: "H. Wong, Measuring Reorder Buffer Capacity (2013)",
    answers: &[],
    part: TestedPart::Window,
    experiment: Experiment::Overlap(OverlapSpec::new(&[[SQRTSD, DIVSD]], &[TO_INTEGER, TO_VECTOR], 400)),
}];
