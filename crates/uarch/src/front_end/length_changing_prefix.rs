//! Prefixes that change the length of an instruction's immediate.

use crate::spec::*;

/// Bytes of straight code.
const BYTES: usize = 28 << 10;
/// No-operations of one byte behind each instruction: with them the code has more instructions than a cache of decoded ones holds.
const NOPS: [u8; 5] = [0x90; 5];

fn among_nops(instruction: &[u8]) -> StepLoop {
    let one = [instruction, &NOPS].concat();
    let number = BYTES / one.len();
    straight_loop(one.repeat(number), number)
}

/// cmp cx, 1234h
fn cmp_16(_: usize) -> StepLoop {
    among_nops(&[0x66, 0x81, 0xf9, 0x34, 0x12])
}

/// cmp ecx, 1234h
fn cmp_32(_: usize) -> StepLoop {
    among_nops(&[0x81, 0xf9, 0x34, 0x12, 0, 0])
}

/// test dx, 1234h
fn test_16(_: usize) -> StepLoop {
    among_nops(&[0x66, 0xf7, 0xc2, 0x34, 0x12])
}

/// test edx, 1234h
fn test_32(_: usize) -> StepLoop {
    among_nops(&[0xf7, 0xc2, 0x34, 0x12, 0, 0])
}

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "length_changing_prefix",
    about: "how long a prefix that changes an immediate's length delays the decoders",
    definition: "core cycles that an instruction with prefix 66h and an immediate of 16 bits takes longer than one of 32 bits without, both from the \
                 decoders, among no-operations of one byte",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    answers: &["length_chg_prefix"],
    part: TestedPart::FrontEnd,
    experiment: Experiment::Contrast(ContrastSpec {
        rows: &[TestRow::new(
            "",
            &[
                ProgramVariant::new("cmp r16, imm16, less cmp r32, imm32", cmp_16).less_generated(cmp_32),
                ProgramVariant::new("test r16, imm16, less test r32, imm32", test_16).less_generated(test_32),
            ],
        )],
        tolerance: 0.5,
        tolerance_share: 0.1,
    }),
}];
