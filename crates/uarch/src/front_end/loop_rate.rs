//! Instructions of a loop, by its length.

use crate::spec::*;

const WAYS: &[ProgramVariant] = &[
    ProgramVariant::new("no-operations", nop_loop),
    ProgramVariant::new("xor r32, same", zeroing_loop),
    ProgramVariant::new("mov r32, immediate", mov_imm_loop),
    ProgramVariant::new("mov r32, r32", mov_reg_loop),
];

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "loop_rate",
    about: "how many instructions of a loop the core does in a cycle, by its length",
    definition: "instructions in a core cycle of a loop of so many, and of the two that count it, which are not counted",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    answers: &["loop_buffer", "loop_size"],
    part: TestedPart::FrontEnd,
    experiment: Experiment::Rates(RatesSpec {
        allow_outlier: true,
        ..RatesSpec::new(
            Unit::PerCycle,
            &[
                TestRow::for_n("4_instructions", 4, WAYS),
                TestRow::for_n("8_instructions", 8, WAYS),
                TestRow::for_n("16_instructions", 16, WAYS),
                TestRow::for_n("32_instructions", 32, WAYS),
                TestRow::for_n("64_instructions", 64, WAYS),
                TestRow::for_n("128_instructions", 128, WAYS),
                TestRow::for_n("512_instructions", 512, WAYS),
                TestRow::for_n("2048_instructions", 2048, WAYS),
            ],
        )
    }),
}];
