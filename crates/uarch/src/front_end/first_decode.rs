//! Decoding of code that the instruction cache does not hold.

use crate::spec::program_family::{LINE, StepLoop, straight_loop};
use crate::spec::rate::{ContrastSpec, ProgramVariant, TestRow};
use crate::spec::sized_instructions::{nop_of_length, zeroing_of_length};
use crate::spec::{Experiment, TestSpec, TestedPart};

/// Bytes of straight code that the first caches of all cores hold, and that none does but second ones.
const HELD: usize = 28 << 10;
const BEYOND: usize = 160 << 10;

/// Whole lines of these instructions in turn, which have as many bytes each.
fn whole_lines(bytes: usize, all: &[Vec<u8>]) -> StepLoop {
    let length = all[0].len();
    let code = all.iter().cycle().take(bytes / length).flatten().copied().collect();
    straight_loop(code, bytes / LINE)
}

/// Less code from what is beyond the instruction cache.
macro_rules! beyond {
    ($name:literal, $all:expr) => {
        ProgramVariant::with_control($name, |_| whole_lines(BEYOND, &$all), |_| whole_lines(HELD, &$all))
    };
}

/// clc and stc.
const CLC: u8 = 0xf8;
const STC: u8 = 0xf9;
/// Bytes of a long instruction.
const LONG: usize = 8;

fn zeroing_instructions() -> Vec<Vec<u8>> {
    (0..LONG).map(|place| zeroing_of_length(LONG, place)).collect()
}

pub(crate) const TEST: TestSpec = TestSpec {
    name: "first_decode",
    about: "what a line of code costs that the instruction cache does not hold",
    definition: "core cycles by which a line of 64 instructions of one byte, or of 8 instructions of 8, takes longer in 160 KiB of straight code, whose lines come from the second cache each time, than in 28 KiB: fetching the line, where decoding it does not take as long, and finding anew where instructions begin",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    part: TestedPart::FrontEnd,
    experiment: Experiment::Contrast(ContrastSpec {
        rows: &[
            // No-operations of one byte are packed by some cores, which are short of other things then.
            TestRow::new(
                "1_byte",
                1,
                1.0,
                &[beyond!("clc", [vec![CLC]]), beyond!("clc and stc", [vec![CLC], vec![STC]])],
            ),
            TestRow::new(
                "8_bytes",
                LONG,
                1.0,
                &[beyond!("nop", [nop_of_length(LONG)]), beyond!("xor r32, same", zeroing_instructions())],
            ),
        ],
        tolerance: 1.0,
        tolerance_share: 0.1,
    }),
};
