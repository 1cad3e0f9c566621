//! Loads and stores that lie in two lines or two pages.

use crate::spec::rate::{ContrastSpec, ProgramVariant, TestRow};
use crate::spec::text_loop::{repeat_text, variant};
use crate::spec::{Experiment, TestSpec, TestedPart};
use iced_x86::CpuidFeature::AVX;

pub(crate) const TEST: TestSpec = TestSpec {
    name: "split_access",
    about: "what a load or a store costs that lies in two lines or two pages",
    definition: "core cycles by which it takes longer than one within a line, where none waits for another",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    part: TestedPart::Memory,
    experiment: Experiment::Contrast(ContrastSpec {
        rows: &[
            TestRow::new(
                "load_8_within",
                1,
                1.0,
                &[
                    variant!("mov rax, [r14 + 3]", less "mov rax, [r14 + 8]"),
                    variant!("mov rsi, [r14 + 1237]", less "mov rsi, [r14 + 1240]"),
                ],
            ),
            TestRow::new(
                "load_16_within",
                1,
                1.0,
                &[
                    variant!("movups xmm2, [r14 + 24]", less "movups xmm2, [r14 + 32]"),
                    variant!("movups xmm3, [r14 + 1241]", less "movups xmm3, [r14 + 1248]"),
                ],
            ),
            TestRow::new(
                "load_32_within",
                1,
                1.0,
                &[
                    variant!("vmovups ymm2, [r14 + 16]", less "vmovups ymm2, [r14 + 32]").requiring(&[AVX]),
                    variant!("vmovups ymm3, [r14 + 1237]", less "vmovups ymm3, [r14 + 1248]").requiring(&[AVX]),
                ],
            ),
            TestRow::new(
                "store_8_within",
                1,
                1.0,
                &[
                    variant!("mov [r14 + 3], rax", less "mov [r14 + 8], rax"),
                    variant!("mov [r14 + 1237], rsi", less "mov [r14 + 1240], rsi"),
                ],
            ),
            TestRow::new(
                "store_16_within",
                1,
                1.0,
                &[
                    variant!("movups [r14 + 24], xmm2", less "movups [r14 + 32], xmm2"),
                    variant!("movups [r14 + 1241], xmm3", less "movups [r14 + 1248], xmm3"),
                ],
            ),
            TestRow::new(
                "store_32_within",
                1,
                1.0,
                &[
                    variant!("vmovups [r14 + 16], ymm2", less "vmovups [r14 + 32], ymm2").requiring(&[AVX]),
                    variant!("vmovups [r14 + 1237], ymm3", less "vmovups [r14 + 1248], ymm3").requiring(&[AVX]),
                ],
            ),
            TestRow::new(
                "load_8_lines",
                1,
                1.0,
                &[
                    variant!("mov rax, [r14 + 60]", less "mov rax, [r14 + 56]"),
                    variant!("mov rsi, [r14 + 1277]", less "mov rsi, [r14 + 1272]"),
                ],
            ),
            TestRow::new(
                "load_16_lines",
                1,
                1.0,
                &[
                    variant!("movups xmm2, [r14 + 60]", less "movups xmm2, [r14 + 32]"),
                    variant!("movups xmm3, [r14 + 1272]", less "movups xmm3, [r14 + 1264]"),
                ],
            ),
            TestRow::new(
                "load_32_lines",
                1,
                1.0,
                &[
                    variant!("vmovups ymm2, [r14 + 44]", less "vmovups ymm2, [r14 + 32]").requiring(&[AVX]),
                    variant!("vmovups ymm3, [r14 + 1276]", less "vmovups ymm3, [r14 + 1248]").requiring(&[AVX]),
                ],
            ),
            TestRow::new(
                "load_8_pages",
                1,
                1.0,
                &[
                    variant!("mov rax, [r14 + 4092]", less "mov rax, [r14 + 4088]"),
                    variant!("mov rsi, [r14 + 12283]", less "mov rsi, [r14 + 12280]"),
                ],
            ),
            TestRow::new(
                "store_8_lines",
                1,
                1.0,
                &[
                    variant!("mov [r14 + 60], rax", less "mov [r14 + 56], rax"),
                    variant!("mov [r14 + 1277], rsi", less "mov [r14 + 1272], rsi"),
                ],
            ),
            TestRow::new(
                "store_16_lines",
                1,
                1.0,
                &[
                    variant!("movups [r14 + 60], xmm2", less "movups [r14 + 32], xmm2"),
                    variant!("movups [r14 + 1272], xmm3", less "movups [r14 + 1264], xmm3"),
                ],
            ),
            TestRow::new(
                "store_8_pages",
                1,
                1.0,
                &[
                    variant!("mov [r14 + 4092], rax", less "mov [r14 + 4088], rax"),
                    variant!("mov [r14 + 12283], rsi", less "mov [r14 + 12280], rsi"),
                ],
            ),
        ],
        tolerance: 0.15,
        tolerance_share: 0.15,
    }),
};
