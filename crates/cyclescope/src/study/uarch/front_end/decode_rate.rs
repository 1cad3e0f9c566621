//! Instructions that are decoded in a cycle, by their length.

use crate::study::uarch::test::lengths::{nop_of, zero_of};
use crate::study::uarch::test::rate::{Rates, Row, Way};
use crate::study::uarch::test::walk::{Steps, straight};
use crate::study::uarch::test::{Look, Part, Test};
use crate::unit::Unit;

/// Bytes of straight code: less than the first caches of all cores, and so many that no known cache of decoded instructions holds them where
/// they have four bytes at most.
const BYTES: usize = 28 << 10;
/// Bytes of less code, of which such a cache would hold a larger part. Of longer instructions it
/// holds a part however many the first cache holds.
const FEWER: usize = 20 << 10;

fn body(bytes: usize, length: usize, one: fn(usize, usize) -> Vec<u8>) -> Steps {
    let number = bytes / length;
    straight((0..number).flat_map(|place| one(length, place)).collect(), number)
}

fn nops(length: usize) -> Steps {
    body(BYTES, length, nop)
}

fn nop(length: usize, _: usize) -> Vec<u8> {
    nop_of(length)
}

fn zeros(length: usize) -> Steps {
    body(BYTES, length, zero_of)
}

fn fewer_zeros(length: usize) -> Steps {
    body(FEWER, length, zero_of)
}

/// clc, of one byte.
const CLC: u8 = 0xf8;

fn clears(length: usize) -> Steps {
    body(BYTES, length, |_, _| vec![CLC])
}

fn fewer_clears(length: usize) -> Steps {
    body(FEWER, length, |_, _| vec![CLC])
}

const NOP: Way = Way::plain("no-operations", nops);
const OF_ONE: &[Way] = &[NOP, Way::plain("clc", clears), Way::plain("clc, 20 KiB", fewer_clears)];
const LONGER: &[Way] =
    &[NOP, Way::plain("xor r32, same", zeros), Way::plain("xor r32, same, 20 KiB", fewer_zeros)];

pub(in crate::study::uarch) const TEST: Test = Test {
    name: "decode_rate",
    about: "how many instructions of one to four bytes the core decodes in a cycle",
    definition: "instructions of this length in a core cycle from 28 KiB of straight code, which the instruction cache holds and no cache of decoded \
                 ones, and from 20 KiB no more",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    part: Part::FrontEnd,
    look: Look::Rates(Rates {
        rows: &[
            Row::new("1_byte", 1, 1.0, OF_ONE),
            Row::new("2_bytes", 2, 1.0, LONGER),
            Row::new("3_bytes", 3, 1.0, LONGER),
            Row::new("4_bytes", 4, 1.0, LONGER),
        ],
        unit: Unit::PerCycle,
        bytes: 0,
        apart: 0.05,
        alone: false,
        within: None,
    }),
};
