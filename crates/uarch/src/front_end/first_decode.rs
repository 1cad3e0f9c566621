//! Decoding of code that the instruction cache does not hold.

use crate::spec::*;

/// Bytes of straight code that the first caches of all cores hold, and that none does but second ones.
const HELD: usize = 28 << 10;
const BEYOND: usize = 160 << 10;

/// Whole lines of these instructions in turn, which have as many bytes each.
fn whole_lines(bytes: usize, all: &[Vec<u8>]) -> StepLoop {
    let length = all[0].len();
    let code = all.iter().cycle().take(bytes / length).flatten().copied().collect();
    straight_loop(code, bytes / LINE)
}

/// clc and stc.
const CLC: u8 = 0xf8;
const STC: u8 = 0xf9;
/// Bytes of a long instruction.
const LONG: usize = 8;

fn zeroing_instructions() -> Vec<Vec<u8>> {
    (0..LONG).map(|place| zeroing_of_length(LONG, place)).collect()
}

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "first_decode",
    about: "what a line of code costs that the instruction cache does not hold",
    definition: "core cycles by which a line of 64 instructions of one byte, or of 8 instructions of 8, takes longer in 160 KiB of straight code, whose lines come from the second cache each time, than in 28 KiB: fetching the line, where decoding it does not take as long, and finding anew where instructions begin",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    answers: &["instruct_boundaries"],
    part: TestedPart::FrontEnd,
    experiment: Experiment::Contrast(ContrastSpec {
        rows: &[
            // No-operations of one byte are packed by some cores, which are short of other things then.
            TestRow::new(
                "1_byte",
                &[
                    ProgramVariant::new("clc", |_| whole_lines(BEYOND, &[vec![CLC]]))
                        .less_generated(|_| whole_lines(HELD, &[vec![CLC]])),
                    ProgramVariant::new("clc and stc", |_| whole_lines(BEYOND, &[vec![CLC], vec![STC]]))
                        .less_generated(|_| whole_lines(HELD, &[vec![CLC], vec![STC]])),
                ],
            ),
            TestRow::for_n(
                "8_bytes",
                LONG,
                &[
                    ProgramVariant::new("nop", |_| whole_lines(BEYOND, &[nop_of_length(LONG)]))
                        .less_generated(|_| whole_lines(HELD, &[nop_of_length(LONG)])),
                    ProgramVariant::new("xor r32, same", |_| whole_lines(BEYOND, &zeroing_instructions()))
                        .less_generated(|_| whole_lines(HELD, &zeroing_instructions())),
                ],
            ),
        ],
        tolerance: 1.0,
        tolerance_share: 0.1,
    }),
}];
