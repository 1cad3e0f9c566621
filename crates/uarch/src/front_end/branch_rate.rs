//! Branches that go through the core in a cycle.

use crate::test::lengths::nop_of;
use crate::test::rate::{Rates, Row, Way};
use crate::test::walk::{Steps, code, straight};
use crate::test::{Look, Part, Test};
use cyclescope_core::unit::Unit;

/// Branches of an iteration that are not taken, or of which each other one is.
const BRANCHES: usize = 64;

/// Conditional branches that are not taken, with a no-operation behind each.
fn never(number: usize, condition: u8) -> Vec<u8> {
    let one = [&[0x0f, condition, 0, 0, 0, 0][..], &nop_of(2)].concat();
    [code("test r14, r14"), one.repeat(number)].concat()
}

fn never_jc(number: usize) -> Steps {
    straight(never(number, 0x82), number + 1)
}

/// Each behind a comparison of its own.
fn never_equal(number: usize) -> Steps {
    let one = [&code("test r14, r14"), &[0x0f, 0x84, 0, 0, 0, 0][..], &nop_of(7)].concat();
    straight(one.repeat(number), number + 1)
}

/// A conditional branch that is not taken before each jump, and the loop's own branch.
fn both(number: usize, condition: u8) -> Steps {
    // jmp over five bytes.
    let jump = [0xe9, 5, 0, 0, 0, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc];
    let one = [&[0x0f, condition, 0, 0, 0, 0][..], &jump].concat();
    straight([code("test r14, r14"), one.repeat(number / 2)].concat(), number / 2 * 2 + 1)
}

fn both_jc(number: usize) -> Steps {
    both(number, 0x82)
}

fn both_je(number: usize) -> Steps {
    both(number, 0x84)
}

const fn row(name: &'static str, n: usize, ways: &'static [Way]) -> Row {
    Row::new(name, n, 1.0, ways)
}

pub(crate) const TEST: Test = Test {
    name: "branch_rate",
    about: "how many branches the core does in a cycle, of those that it always predicts",
    definition: "branches in a core cycle of a loop of 64, its own taken one among them: jc and je that are not taken, or these and \
                 jmp in turn",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    part: Part::FrontEnd,
    look: Look::Rates(Rates {
        rows: &[
            row("not_taken", BRANCHES, &[Way::plain("jc", never_jc), Way::plain("test and je", never_equal)]),
            row("in_turn", BRANCHES, &[Way::plain("jc and jmp", both_jc), Way::plain("je and jmp", both_je)]),
        ],
        unit: Unit::PerCycle,
        bytes: 0,
        apart: 0.05,
        alone: false,
        within: None,
    }),
};
