//! Integer operations that wait for an operand.

use crate::test::chain::{DIVSD, SQRTSD};
use crate::test::{Filler, Look, Part, Test, Window};

const WAIT: &[&str] = &["movq rax, xmm0"];

pub(super) const ADD: Filler = Filler {
    before: WAIT,
    ..Filler::plain(
        "add",
        &[
            "add rbx, rax",
            "add r8, rax",
            "add r9, rax",
            "add r10, rax",
            "add r11, rax",
            "add r12, rax",
            "add r13, rax",
        ],
        &["rob", "int_registers"],
    )
};
pub(super) const LEA: Filler = Filler {
    before: WAIT,
    ..Filler::plain(
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
const TEST_FLAGS: Filler = Filler {
    before: WAIT,
    shares: &["int_registers", "flags"],
    ..Filler::plain("test", &["test rax, rcx", "test rax, rbx", "test rax, r8", "test rax, r9"], &["rob"])
};

pub(crate) const TEST: Test = Test {
    name: "integer_scheduler",
    about: "how many integer operations can wait for an operand",
    definition: "integer operations that wait for one result when a further one finds no room: others of several queues may have some",
    source: "H. Wong, Measuring Reorder Buffer Capacity (2013)",
    part: Part::Window,
    look: Look::Overlap(Window {
        beside: 0,
        leads: &[0],
        heads: &[[SQRTSD, DIVSD]],
        fillers: &[ADD, LEA, TEST_FLAGS],
        most: 400,
    }),
};
