//! Prefixes that change the length of an instruction's immediate.

use crate::test::rate::{Contrast, Row, Way};
use crate::test::walk::{Steps, straight};
use crate::test::{Look, Part, Test};

/// Bytes of straight code.
const BYTES: usize = 28 << 10;
/// No-operations of one byte behind each instruction: with them the code has more instructions than a cache of decoded ones holds.
const NOPS: [u8; 5] = [0x90; 5];

fn body(instruction: &[u8]) -> Steps {
    let one = [instruction, &NOPS].concat();
    let number = BYTES / one.len();
    straight(one.repeat(number), number)
}

/// cmp cx, 1234h
fn cmp_16(_: usize) -> Steps {
    body(&[0x66, 0x81, 0xf9, 0x34, 0x12])
}

/// cmp ecx, 1234h
fn cmp_32(_: usize) -> Steps {
    body(&[0x81, 0xf9, 0x34, 0x12, 0, 0])
}

/// test dx, 1234h
fn test_16(_: usize) -> Steps {
    body(&[0x66, 0xf7, 0xc2, 0x34, 0x12])
}

/// test edx, 1234h
fn test_32(_: usize) -> Steps {
    body(&[0xf7, 0xc2, 0x34, 0x12, 0, 0])
}

pub(crate) const TEST: Test = Test {
    name: "length_changing_prefix",
    about: "how long a prefix that changes an immediate's length delays the decoders",
    definition: "core cycles that an instruction with prefix 66h and an immediate of 16 bits takes longer than one of 32 bits without, both from the \
                 decoders, among no-operations of one byte",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    part: Part::FrontEnd,
    look: Look::Contrast(Contrast {
        rows: &[Row::new(
            "",
            1,
            1.0,
            &[
                Way::less("cmp r16, imm16, less cmp r32, imm32", cmp_16, cmp_32),
                Way::less("test r16, imm16, less test r32, imm32", test_16, test_32),
            ],
        )],
        apart: 0.5,
        apart_share: 0.1,
    }),
};
