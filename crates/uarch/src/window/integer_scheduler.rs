//! Integer operations that wait for an operand.

use crate::spec::*;

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

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "integer_scheduler",
    about: "how many integer operations can wait for an operand",
    definition: "integer operations that wait for one result when a further one finds no room: others of several queues may have some",
    source: "H. Wong, Measuring Reorder Buffer Capacity (2013)",
    answers: &["out_of_order"],
    part: TestedPart::Window,
    experiment: Experiment::Overlap(OverlapSpec::new(&[[SQRTSD, DIVSD]], &[ADD, LEA, TEST_FLAGS], 400)),
}];
