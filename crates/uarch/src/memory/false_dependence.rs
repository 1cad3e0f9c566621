//! Loads that wait for a store to another address.

use crate::spec::rate::{ContrastSpec, ProgramVariant, TestRow};
use crate::spec::text_loop::{repeat_text, variant};
use crate::spec::{Experiment, TestSpec, TestedPart};

/// A chain of loads of a cell that holds its own address, beside stores so many bytes behind it, less the same beside stores that are
/// one or two lines further. A store's address comes with the load's, so that the load meets it before it is checked in whole.
macro_rules! offset_row {
    ($name:literal, $bytes:literal) => {
        TestRow::new(
            $name,
            1,
            1.0,
            &[
                variant!(
                    "lea rbp, [r14 + 256]; mov [rbp], rbp",
                    concat!("mov [rbp + ", $bytes, "], rdi; mov rbp, [rbp]"),
                    less concat!("mov [rbp + 64 + ", $bytes, "], rdi; mov rbp, [rbp]")
                ),
                variant!(
                    "lea rsi, [r14 + 648]; mov [rsi], rsi",
                    concat!("mov [rsi + ", $bytes, "], rdi; mov rsi, [rsi]"),
                    less concat!("mov [rsi + 128 + ", $bytes, "], rdi; mov rsi, [rsi]")
                ),
            ],
        )
        // By the place of the code 1.5 or 25 cycles, in chains that differ in their register alone (Genoa, family 25, model 17).
        .varying_by_place()
    };
}

pub(crate) const TEST: TestSpec = TestSpec {
    name: "false_dependence",
    about: "what it costs to load behind a store to an address that ends in the same bits",
    definition: "core cycles by which a load takes longer in a chain than beside stores 64 or 128 bytes further; with the least and the most where that depends on the place of the code",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    part: TestedPart::Memory,
    experiment: Experiment::Contrast(ContrastSpec {
        rows: &[
            offset_row!("256_bytes", "256"),
            offset_row!("512_bytes", "512"),
            offset_row!("1_KiB", "1024"),
            offset_row!("2_KiB", "2048"),
            offset_row!("4_KiB", "4096"),
            offset_row!("8_KiB", "8192"),
            offset_row!("16_KiB", "16384"),
            offset_row!("64_KiB", "65536"),
        ],
        tolerance: 0.5,
        tolerance_share: 0.2,
    }),
};
