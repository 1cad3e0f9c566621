//! Loads that wait for a store to another address.

use crate::spec::*;

/// A chain of loads of a cell that holds its own address, beside stores `{a}` bytes behind it, less the same beside stores that
/// are one or two lines further. A store's address comes with the load's, so that the load meets it before it is checked in
/// whole.
const fn offset(bytes: &'static str) -> [ProgramVariant; 2] {
    let texts = [bytes, "", "", ""];
    let one = AsmLoop { before: "lea rbp, [r14 + 256]; mov [rbp], rbp", ..AsmLoop::REPEATED };
    let other = AsmLoop { before: "lea rsi, [r14 + 648]; mov [rsi], rsi", ..AsmLoop::REPEATED };
    [
        one.with(texts).asm("mov [rbp + {a}], rdi; mov rbp, [rbp]").less("mov [rbp + 64 + {a}], rdi; mov rbp, [rbp]"),
        other
            .with(texts)
            .asm("mov [rsi + {a}], rdi; mov rsi, [rsi]")
            .less("mov [rsi + 128 + {a}], rdi; mov rsi, [rsi]"),
    ]
}

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "false_dependence",
    about: "what it costs to load behind a store to an address that ends in the same bits",
    definition: "core cycles by which a load takes longer in a chain than beside stores 64 or 128 bytes further; with the least and the most where that depends on the place of the code",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    answers: &[],
    part: TestedPart::Memory,
    experiment: Experiment::Contrast(ContrastSpec {
        // By the place of the code 1.5 or 25 cycles, in chains that differ in their register alone (Genoa, family 25, model 17).
        rows: &[
            TestRow::new("256_bytes", &offset("256")).varying_by_place(),
            TestRow::new("512_bytes", &offset("512")).varying_by_place(),
            TestRow::new("1_KiB", &offset("1024")).varying_by_place(),
            TestRow::new("2_KiB", &offset("2048")).varying_by_place(),
            TestRow::new("4_KiB", &offset("4096")).varying_by_place(),
            TestRow::new("8_KiB", &offset("8192")).varying_by_place(),
            TestRow::new("16_KiB", &offset("16384")).varying_by_place(),
            TestRow::new("64_KiB", &offset("65536")).varying_by_place(),
        ],
        tolerance: 0.5,
        tolerance_share: 0.2,
    }),
}];
