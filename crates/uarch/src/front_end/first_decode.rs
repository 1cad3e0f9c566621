//! Decoding of code that the instruction cache does not hold.

use crate::test::lengths::{nop_of, zero_of};
use crate::test::rate::{Contrast, Row, Way};
use crate::test::walk::{LINE, Steps, straight};
use crate::test::{Look, Part, Test};

/// Bytes of straight code that the first caches of all cores hold, and that none does but second ones.
const HELD: usize = 28 << 10;
const BEYOND: usize = 160 << 10;

/// Whole lines of these instructions in turn, which have as many bytes each.
fn body(bytes: usize, all: &[Vec<u8>]) -> Steps {
    let length = all[0].len();
    let code = all.iter().cycle().take(bytes / length).flatten().copied().collect();
    straight(code, bytes / LINE)
}

/// Less code from what is beyond the instruction cache.
macro_rules! beyond {
    ($name:literal, $all:expr) => {
        Way::less($name, |_| body(BEYOND, &$all), |_| body(HELD, &$all))
    };
}

/// clc and stc.
const CLC: u8 = 0xf8;
const STC: u8 = 0xf9;
/// Bytes of a long instruction.
const LONG: usize = 8;

fn zeros() -> Vec<Vec<u8>> {
    (0..LONG).map(|place| zero_of(LONG, place)).collect()
}

pub(crate) const TEST: Test = Test {
    name: "first_decode",
    about: "what a line of code costs that the instruction cache does not hold",
    definition: "core cycles by which a line of 64 instructions of one byte, or of 8 instructions of 8, takes longer in 160 KiB of straight code, whose lines come from the second cache each time, than in 28 KiB: fetching the line, where decoding it does not take as long, and finding anew where instructions begin",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    part: Part::FrontEnd,
    look: Look::Contrast(Contrast {
        rows: &[
            // No-operations of one byte are packed by some cores, which are short of other things then.
            Row::new(
                "1_byte",
                1,
                1.0,
                &[beyond!("clc", [vec![CLC]]), beyond!("clc and stc", [vec![CLC], vec![STC]])],
            ),
            Row::new(
                "8_bytes",
                LONG,
                1.0,
                &[beyond!("nop", [nop_of(LONG)]), beyond!("xor r32, same", zeros())],
            ),
        ],
        apart: 1.0,
        apart_share: 0.1,
    }),
};
