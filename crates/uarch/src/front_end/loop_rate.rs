//! Instructions of a loop, by its length.

use crate::spec::rate::{ProgramVariant, RatesSpec, TestRow};
use crate::spec::sized_instructions::{mov_imm_loop, mov_reg_loop, nop_loop, zeroing_loop};
use crate::spec::{Experiment, TestSpec, TestedPart};
use cyclescope_core::unit::Unit;

const WAYS: &[ProgramVariant] = &[
    ProgramVariant::new("no-operations", nop_loop),
    ProgramVariant::new("xor r32, same", zeroing_loop),
    ProgramVariant::new("mov r32, immediate", mov_imm_loop),
    ProgramVariant::new("mov r32, r32", mov_reg_loop),
];

pub(crate) const TEST: TestSpec = TestSpec {
    name: "loop_rate",
    about: "how many instructions of a loop the core does in a cycle, by its length",
    definition: "instructions in a core cycle of a loop of so many, and of the two that count it, which are not counted",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    part: TestedPart::FrontEnd,
    experiment: Experiment::Rates(RatesSpec {
        rows: &[
            TestRow::new("4_instructions", 4, 1.0, WAYS),
            TestRow::new("8_instructions", 8, 1.0, WAYS),
            TestRow::new("16_instructions", 16, 1.0, WAYS),
            TestRow::new("32_instructions", 32, 1.0, WAYS),
            TestRow::new("64_instructions", 64, 1.0, WAYS),
            TestRow::new("128_instructions", 128, 1.0, WAYS),
            TestRow::new("512_instructions", 512, 1.0, WAYS),
            TestRow::new("2048_instructions", 2048, 1.0, WAYS),
        ],
        unit: Unit::PerCycle,
        bytes_per_n: 0,
        tolerance_share: 0.05,
        allow_outlier: true,
        required_entries: None,
    }),
};
