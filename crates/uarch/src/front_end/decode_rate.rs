//! Instructions that are decoded in a cycle, by their length.

use crate::spec::*;

/// Bytes of straight code: less than the first caches of all cores, and so many that no known cache of decoded instructions holds them where
/// they have four bytes at most.
const BYTES: usize = 28 << 10;
/// Bytes of less code, of which such a cache would hold a larger part. Of longer instructions it
/// holds a part however many the first cache holds.
const FEWER: usize = 20 << 10;
/// Bytes of less code whose instructions have one byte.
const FEWEST: usize = 12 << 10;
/// Bytes of code that the first caches of most cores do not hold. A cache of decoded instructions that does not replace the oldest ones keeps some
/// of less code for good, so that the less there is the faster it runs (Zen 4: 4.19, 4.14, 4.08 and 4.00 a cycle of 12, 20, 28 and 48 KiB
/// of clc), and lines from the second cache come fast enough for few bytes a cycle.
const BEYOND: usize = 48 << 10;

fn straight_code(bytes: usize, length: usize, one: fn(usize, usize) -> Vec<u8>) -> StepLoop {
    let number = bytes / length;
    straight_loop((0..number).flat_map(|place| one(length, place)).collect(), number)
}

fn nop_code(length: usize) -> StepLoop {
    straight_code(BYTES, length, nop_instruction)
}

fn nop_instruction(length: usize, _: usize) -> Vec<u8> {
    nop_of_length(length)
}

fn zeroing_code(length: usize) -> StepLoop {
    straight_code(BYTES, length, zeroing_of_length)
}

fn fewer_zeros(length: usize) -> StepLoop {
    straight_code(FEWER, length, zeroing_of_length)
}

/// clc, of one byte.
const CLC: u8 = 0xf8;

fn nops_beyond(length: usize) -> StepLoop {
    straight_code(BEYOND, length, nop_instruction)
}

fn zeros_beyond(length: usize) -> StepLoop {
    straight_code(BEYOND, length, zeroing_of_length)
}

fn copies_beyond(length: usize) -> StepLoop {
    straight_code(BEYOND, length, mov_reg_of_length)
}

fn clears_beyond(length: usize) -> StepLoop {
    straight_code(BEYOND, length, |_, _| vec![CLC])
}

fn clc_code(length: usize) -> StepLoop {
    straight_code(BYTES, length, |_, _| vec![CLC])
}

fn fewer_clears(length: usize) -> StepLoop {
    straight_code(FEWEST, length, |_, _| vec![CLC])
}

const NOP: ProgramVariant = ProgramVariant::new("no-operations", nop_code);
const NOP_BEYOND: ProgramVariant = ProgramVariant::new("no-operations, 48 KiB", nops_beyond);
const OF_ONE: &[ProgramVariant] = &[
    NOP,
    ProgramVariant::new("clc", clc_code),
    ProgramVariant::new("clc, 12 KiB", fewer_clears),
    NOP_BEYOND,
    ProgramVariant::new("clc, 48 KiB", clears_beyond),
];
const LONGER: &[ProgramVariant] = &[
    NOP,
    ProgramVariant::new("xor r32, same", zeroing_code),
    ProgramVariant::new("xor r32, same, 20 KiB", fewer_zeros),
    NOP_BEYOND,
    ProgramVariant::new("xor r32, same, 48 KiB", zeros_beyond),
    ProgramVariant::new("mov r32, r32, 48 KiB", copies_beyond),
];

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "decode_rate",
    about: "how many instructions of one to four bytes the core decodes in a cycle",
    definition: "instructions of this length in a core cycle of straight code, from no cache of decoded ones: two programs of 12 to 48 KiB come to \
                 the same, and where less code is faster, which may be decoded in part, only the larger ones",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    answers: &["decoder_throughput", "decode_nops"],
    part: TestedPart::FrontEnd,
    experiment: Experiment::Rates(RatesSpec {
        // Programs of which such a cache holds parts differ by more.
        tolerance_share: 0.015,
        allow_outlier: true,
        ..RatesSpec::new(
            Unit::PerCycle,
            &[
                TestRow::new("1_byte", OF_ONE),
                TestRow::for_n("2_bytes", 2, LONGER),
                TestRow::for_n("3_bytes", 3, LONGER),
                TestRow::for_n("4_bytes", 4, LONGER),
            ],
        )
    }),
}];
