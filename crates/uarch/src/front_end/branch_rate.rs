//! Branches that go through the core in a cycle.

use crate::spec::*;

/// Branches of an iteration that are not taken, or of which each other one is.
const BRANCHES: usize = 64;

/// Conditional branches that are not taken, with a no-operation behind each.
fn untaken_branches(number: usize, condition: u8) -> Vec<u8> {
    let one = [&[0x0f, condition, 0, 0, 0, 0][..], &nop_of_length(2)].concat();
    [assemble("test r14, r14"), one.repeat(number)].concat()
}

fn untaken_jc(number: usize) -> StepLoop {
    straight_loop(untaken_branches(number, 0x82), number + 1)
}

/// Each behind a comparison of its own.
fn untaken_je(number: usize) -> StepLoop {
    let one = [&assemble("test r14, r14"), &[0x0f, 0x84, 0, 0, 0, 0][..], &nop_of_length(7)].concat();
    straight_loop(one.repeat(number), number + 1)
}

/// A conditional branch that is not taken before each jump, and the loop's own branch.
fn untaken_and_jmp(number: usize, condition: u8) -> StepLoop {
    // jmp over five bytes.
    let jump = [0xe9, 5, 0, 0, 0, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc];
    let one = [&[0x0f, condition, 0, 0, 0, 0][..], &jump].concat();
    straight_loop([assemble("test r14, r14"), one.repeat(number / 2)].concat(), number / 2 * 2 + 1)
}

fn jc_and_jmp(number: usize) -> StepLoop {
    untaken_and_jmp(number, 0x82)
}

fn je_and_jmp(number: usize) -> StepLoop {
    untaken_and_jmp(number, 0x84)
}

const fn branch_row(name: &'static str, n: usize, ways: &'static [ProgramVariant]) -> TestRow {
    TestRow::for_n(name, n, ways)
}

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "branch_rate",
    about: "how many branches the core does in a cycle, of those that it always predicts",
    definition: "branches in a core cycle of a loop of 64, its own taken one among them: jc and je that are not taken, or these and \
                 jmp in turn",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    answers: &["jmp"],
    part: TestedPart::FrontEnd,
    experiment: Experiment::Rates(RatesSpec::new(
        Unit::PerCycle,
        &[
            branch_row(
                "not_taken",
                BRANCHES,
                &[ProgramVariant::new("jc", untaken_jc), ProgramVariant::new("test and je", untaken_je)],
            ),
            branch_row(
                "in_turn",
                BRANCHES,
                &[ProgramVariant::new("jc and jmp", jc_and_jmp), ProgramVariant::new("je and jmp", je_and_jmp)],
            ),
        ],
    )),
}];
