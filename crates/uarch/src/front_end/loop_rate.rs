//! Instructions of a loop, by its length.

use crate::test::lengths::{copies, moves, nops, zeros};
use crate::test::rate::{Rates, Row, Way};
use crate::test::{Look, Part, Test};
use cyclescope_core::unit::Unit;

const WAYS: &[Way] = &[
    Way::plain("no-operations", nops),
    Way::plain("xor r32, same", zeros),
    Way::plain("mov r32, immediate", moves),
    Way::plain("mov r32, r32", copies),
];

pub(crate) const TEST: Test = Test {
    name: "loop_rate",
    about: "how many instructions of a loop the core does in a cycle, by its length",
    definition: "instructions in a core cycle of a loop of so many, and of the two that count it, which are not counted",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    part: Part::FrontEnd,
    look: Look::Rates(Rates {
        rows: &[
            Row::new("4_instructions", 4, 1.0, WAYS),
            Row::new("8_instructions", 8, 1.0, WAYS),
            Row::new("16_instructions", 16, 1.0, WAYS),
            Row::new("32_instructions", 32, 1.0, WAYS),
            Row::new("64_instructions", 64, 1.0, WAYS),
            Row::new("128_instructions", 128, 1.0, WAYS),
            Row::new("512_instructions", 512, 1.0, WAYS),
            Row::new("2048_instructions", 2048, 1.0, WAYS),
        ],
        unit: Unit::PerCycle,
        bytes: 0,
        apart: 0.05,
        alone: true,
        within: None,
    }),
};
