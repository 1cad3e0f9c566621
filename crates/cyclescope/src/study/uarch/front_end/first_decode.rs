//! Decoding of code that the instruction cache does not hold.

use crate::study::uarch::test::rate::{Contrast, Row, Way};
use crate::study::uarch::test::walk::{LINE, Steps, straight};
use crate::study::uarch::test::{Look, Part, Test};

/// Bytes of straight code that the first caches of all cores hold, and that none does but second ones.
const HELD: usize = 28 << 10;
const BEYOND: usize = 160 << 10;

fn body(bytes: usize, one: u8) -> Steps {
    straight(vec![one; bytes], bytes / LINE)
}

pub(in crate::study::uarch) const TEST: Test = Test {
    name: "first_decode",
    about: "what a line of code costs that the instruction cache does not hold",
    definition: "core cycles by which a line of 64 instructions of one byte takes longer in 160 KiB of straight code, whose lines come from the second cache each time, than in 28 KiB: fetching the line, and finding anew where instructions begin",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    part: Part::FrontEnd,
    look: Look::Contrast(Contrast {
        rows: &[Row::new(
            "",
            1,
            1.0,
            &[
                Way::less("nop", |_| body(BEYOND, 0x90), |_| body(HELD, 0x90)),
                Way::less("clc", |_| body(BEYOND, 0xf8), |_| body(HELD, 0xf8)),
            ],
        )],
        apart: 1.0,
        apart_share: 0.1,
    }),
};
