//! Loads that wait for a store to another address.

use crate::test::rate::{Contrast, Row, Way};
use crate::test::text::{repeated, way};
use crate::test::{Look, Part, Test};

/// A chain of loads of a cell that holds its own address, beside stores so many bytes behind it, less the same beside stores that are
/// one or two lines further. A store's address comes with the load's, so that the load meets it before it is checked in whole.
macro_rules! apart {
    ($name:literal, $bytes:literal) => {
        Row::new(
            $name,
            1,
            1.0,
            &[
                way!(
                    "lea rbp, [r14 + 256]; mov [rbp], rbp",
                    concat!("mov [rbp + ", $bytes, "], rdi; mov rbp, [rbp]"),
                    less concat!("mov [rbp + 64 + ", $bytes, "], rdi; mov rbp, [rbp]")
                ),
                way!(
                    "lea rsi, [r14 + 648]; mov [rsi], rsi",
                    concat!("mov [rsi + ", $bytes, "], rdi; mov rsi, [rsi]"),
                    less concat!("mov [rsi + 128 + ", $bytes, "], rdi; mov rsi, [rsi]")
                ),
            ],
        )
        // By the place of the code 1.5 or 25 cycles, in chains that differ in their register alone (Genoa, family 25, model 17).
        .varying()
    };
}

pub(crate) const TEST: Test = Test {
    name: "false_dependence",
    about: "what it costs to load behind a store to an address that ends in the same bits",
    definition: "core cycles by which a load takes longer in a chain than beside stores 64 or 128 bytes further; with the least and the most where that depends on the place of the code",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    part: Part::Memory,
    look: Look::Contrast(Contrast {
        rows: &[
            apart!("256_bytes", "256"),
            apart!("512_bytes", "512"),
            apart!("1_KiB", "1024"),
            apart!("2_KiB", "2048"),
            apart!("4_KiB", "4096"),
            apart!("8_KiB", "8192"),
            apart!("16_KiB", "16384"),
            apart!("64_KiB", "65536"),
        ],
        apart: 0.5,
        apart_share: 0.2,
    }),
};
