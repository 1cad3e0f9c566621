//! Instructions that are decoded in a cycle, by their length.

use crate::test::lengths::{copy_of, nop_of, zero_of};
use crate::test::rate::{Rates, Row, Way};
use crate::test::walk::{Steps, straight};
use crate::test::{Look, Part, Test};
use cyclescope_core::unit::Unit;

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

fn nops_beyond(length: usize) -> Steps {
    body(BEYOND, length, nop)
}

fn zeros_beyond(length: usize) -> Steps {
    body(BEYOND, length, zero_of)
}

fn copies_beyond(length: usize) -> Steps {
    body(BEYOND, length, copy_of)
}

fn clears_beyond(length: usize) -> Steps {
    body(BEYOND, length, |_, _| vec![CLC])
}

fn clears(length: usize) -> Steps {
    body(BYTES, length, |_, _| vec![CLC])
}

fn fewer_clears(length: usize) -> Steps {
    body(FEWEST, length, |_, _| vec![CLC])
}

const NOP: Way = Way::plain("no-operations", nops);
const NOP_BEYOND: Way = Way::plain("no-operations, 48 KiB", nops_beyond);
const OF_ONE: &[Way] = &[
    NOP,
    Way::plain("clc", clears),
    Way::plain("clc, 12 KiB", fewer_clears),
    NOP_BEYOND,
    Way::plain("clc, 48 KiB", clears_beyond),
];
const LONGER: &[Way] = &[
    NOP,
    Way::plain("xor r32, same", zeros),
    Way::plain("xor r32, same, 20 KiB", fewer_zeros),
    NOP_BEYOND,
    Way::plain("xor r32, same, 48 KiB", zeros_beyond),
    Way::plain("mov r32, r32, 48 KiB", copies_beyond),
];

pub(crate) const TEST: Test = Test {
    name: "decode_rate",
    about: "how many instructions of one to four bytes the core decodes in a cycle",
    definition: "instructions of this length in a core cycle of straight code, from no cache of decoded ones: two programs of 12 to 48 KiB come to \
                 the same, and where less code is faster, which may be decoded in part, only the larger ones",
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
        // Programs of which such a cache holds parts differ by more.
        apart: 0.015,
        alone: true,
        within: None,
    }),
};
