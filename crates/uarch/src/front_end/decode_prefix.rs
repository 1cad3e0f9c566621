//! Decoding of instructions with several prefixes.

use crate::spec::*;

/// Bytes of straight code.
const BYTES: usize = 28 << 10;
/// Instructions of one byte behind each one with prefixes, nop and clc: with them the code has more instructions than a cache of decoded ones
/// holds.
const NOPS: [u8; 10] = [0x90; 10];
const CLCS: [u8; 10] = [0xf8; 10];
/// Prefixes that do nothing here: of an operand's size, and of CS.
const SIZE: u8 = 0x66;
const CS: u8 = 0x2e;
/// `nop dword ptr [rax]`.
const PLAIN: [u8; 3] = [0x0f, 0x1f, 0x00];

fn surround_with(instruction: &[u8], others: &[u8]) -> StepLoop {
    let one = [instruction, others].concat();
    let number = BYTES / one.len();
    straight_loop(one.repeat(number), number)
}

fn prefixed_nop(prefixes: usize, prefix: u8, others: &[u8]) -> StepLoop {
    surround_with(&[&vec![prefix; prefixes], &PLAIN[..]].concat(), others)
}

/// The no-operation of as many bytes that has fewest prefixes.
fn long_nop(prefixes: usize, others: &[u8]) -> StepLoop {
    surround_with(&nop_of_length(prefixes + PLAIN.len()), others)
}

const WAYS: &[ProgramVariant] = &[
    ProgramVariant::new("prefixes 66h, among nop", |number| prefixed_nop(number, SIZE, &NOPS))
        .less_generated(|number| long_nop(number, &NOPS)),
    ProgramVariant::new("prefixes 2Eh, among clc", |number| prefixed_nop(number, CS, &CLCS))
        .less_generated(|number| long_nop(number, &CLCS)),
];

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "decode_prefix",
    about: "how long several prefixes of an instruction delay the decoders",
    definition: "core cycles by which the decoders take longer for a no-operation with this number of prefixes than for one of the same length with as few as it can have, both among instructions of one byte",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    answers: &["decode_prefix"],
    part: TestedPart::FrontEnd,
    experiment: Experiment::Contrast(ContrastSpec {
        rows: &[
            TestRow::new("1_prefix", WAYS),
            TestRow::for_n("2_prefixes", 2, WAYS),
            TestRow::for_n("4_prefixes", 4, WAYS),
            TestRow::for_n("5_prefixes", 5, WAYS),
            TestRow::for_n("11_prefixes_for_6", 11, WAYS),
        ],
        tolerance: 0.3,
        tolerance_share: 0.1,
    }),
}];
