//! Integer operations that wait for an operand.

use crate::spec::chain::{DIVSD, SQRTSD};
use crate::spec::{Experiment, FillerSpec, OverlapSpec, TestSpec, TestedPart};

const WAIT: &[&str] = &["movq rax, xmm0"];

pub(super) const ADD: FillerSpec = FillerSpec {
    prologue: WAIT,
    ..FillerSpec::new(
        "add",
        &["add rbx, rax", "add r8, rax", "add r9, rax", "add r10, rax", "add r11, rax", "add r12, rax", "add r13, rax"],
        &["rob", "int_registers"],
    )
};
pub(super) const LEA: FillerSpec = FillerSpec {
    prologue: WAIT,
    ..FillerSpec::new(
        "lea",
        &[
            "lea rbx, [rax + rcx]",
            "lea r8, [rax + rcx]",
            "lea r9, [rax + rcx]",
            "lea r10, [rax + rcx]",
            "lea r11, [rax + rcx]",
            "lea r12, [rax + rcx]",
        ],
        &["rob", "int_registers"],
    )
};
const TEST_FLAGS: FillerSpec = FillerSpec {
    prologue: WAIT,
    may_occupy: &["int_registers", "flags"],
    ..FillerSpec::new("test", &["test rax, rcx", "test rax, rbx", "test rax, r8", "test rax, r9"], &["rob"])
};

pub(crate) const TEST: TestSpec = TestSpec {
    name: "integer_scheduler",
    about: "how many integer operations can wait for an operand",
    definition: "integer operations that wait for one result when a further one finds no room: others of several queues may have some",
    source: "H. Wong, Measuring Reorder Buffer Capacity (2013)",
    part: TestedPart::Window,
    experiment: Experiment::Overlap(OverlapSpec {
        chain_entries: 0,
        lead_nops: &[0],
        first_chains: &[[SQRTSD, DIVSD]],
        fillers: &[ADD, LEA, TEST_FLAGS],
        max_fillers: 400,
    }),
};
