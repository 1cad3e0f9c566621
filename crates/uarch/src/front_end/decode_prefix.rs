//! Decoding of instructions with several prefixes.

use crate::test::lengths::nop_of;
use crate::test::rate::{Contrast, Row, Way};
use crate::test::walk::{Steps, straight};
use crate::test::{Look, Part, Test};

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

fn among(instruction: &[u8], others: &[u8]) -> Steps {
    let one = [instruction, others].concat();
    let number = BYTES / one.len();
    straight(one.repeat(number), number)
}

fn prefixed(prefixes: usize, prefix: u8, others: &[u8]) -> Steps {
    among(&[&vec![prefix; prefixes], &PLAIN[..]].concat(), others)
}

/// The no-operation of as many bytes that has fewest prefixes.
fn long(prefixes: usize, others: &[u8]) -> Steps {
    among(&nop_of(prefixes + PLAIN.len()), others)
}

const WAYS: &[Way] = &[
    Way::less(
        "prefixes 66h, among nop",
        |number| prefixed(number, SIZE, &NOPS),
        |number| long(number, &NOPS),
    ),
    Way::less("prefixes 2Eh, among clc", |number| prefixed(number, CS, &CLCS), |number| long(number, &CLCS)),
];

pub(crate) const TEST: Test = Test {
    name: "decode_prefix",
    about: "how long several prefixes of an instruction delay the decoders",
    definition: "core cycles by which the decoders take longer for a no-operation with this number of prefixes than for one of the same length with as few as it can have, both among instructions of one byte",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    part: Part::FrontEnd,
    look: Look::Contrast(Contrast {
        rows: &[
            Row::new("1_prefix", 1, 1.0, WAYS),
            Row::new("2_prefixes", 2, 1.0, WAYS),
            Row::new("4_prefixes", 4, 1.0, WAYS),
            Row::new("5_prefixes", 5, 1.0, WAYS),
            Row::new("11_prefixes_for_6", 11, 1.0, WAYS),
        ],
        apart: 0.3,
        apart_share: 0.1,
    }),
};
