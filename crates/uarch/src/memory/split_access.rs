//! Loads and stores across a boundary of lines or pages.

use crate::spec::*;
use iced_x86::CpuidFeature::{AVX, AVX512F};

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "split_access",
    about: "what a load or a store costs that lies in two lines or two pages",
    definition: "core cycles by which it takes longer than one within a line, where none waits for another",
    source: FOG,
    answers: &["unaligned_mem"],
    part: TestedPart::Memory,
    experiment: Experiment::Contrast(ContrastSpec {
        rows: &[
            TestRow::new(
                "load_8_within",
                &[
                    asm("mov rax, [r14 + 3]").less("mov rax, [r14 + 8]"),
                    asm("mov rsi, [r14 + 1237]").less("mov rsi, [r14 + 1240]"),
                ],
            ),
            TestRow::new(
                "load_16_within",
                &[
                    asm("movups xmm2, [r14 + 24]").less("movups xmm2, [r14 + 32]"),
                    asm("movups xmm3, [r14 + 1241]").less("movups xmm3, [r14 + 1248]"),
                ],
            ),
            TestRow::new(
                "load_32_within",
                &[
                    asm("vmovups ymm2, [r14 + 16]").less("vmovups ymm2, [r14 + 32]").requiring(&[AVX]),
                    asm("vmovups ymm3, [r14 + 1237]").less("vmovups ymm3, [r14 + 1248]").requiring(&[AVX]),
                ],
            ),
            TestRow::new(
                "store_8_within",
                &[
                    asm("mov [r14 + 3], rax").less("mov [r14 + 8], rax"),
                    asm("mov [r14 + 1237], rsi").less("mov [r14 + 1240], rsi"),
                ],
            ),
            TestRow::new(
                "store_16_within",
                &[
                    asm("movups [r14 + 24], xmm2").less("movups [r14 + 32], xmm2"),
                    asm("movups [r14 + 1241], xmm3").less("movups [r14 + 1248], xmm3"),
                ],
            ),
            TestRow::new(
                "store_32_within",
                &[
                    asm("vmovups [r14 + 16], ymm2").less("vmovups [r14 + 32], ymm2").requiring(&[AVX]),
                    asm("vmovups [r14 + 1237], ymm3").less("vmovups [r14 + 1248], ymm3").requiring(&[AVX]),
                ],
            ),
            TestRow::new(
                "load_8_lines",
                &[
                    asm("mov rax, [r14 + 60]").less("mov rax, [r14 + 56]"),
                    asm("mov rsi, [r14 + 1277]").less("mov rsi, [r14 + 1272]"),
                ],
            ),
            TestRow::new(
                "load_16_lines",
                &[
                    asm("movups xmm2, [r14 + 60]").less("movups xmm2, [r14 + 32]"),
                    asm("movups xmm3, [r14 + 1272]").less("movups xmm3, [r14 + 1264]"),
                ],
            ),
            TestRow::new(
                "load_32_lines",
                &[
                    asm("vmovups ymm2, [r14 + 44]").less("vmovups ymm2, [r14 + 32]").requiring(&[AVX]),
                    asm("vmovups ymm3, [r14 + 1276]").less("vmovups ymm3, [r14 + 1248]").requiring(&[AVX]),
                ],
            ),
            TestRow::new(
                "load_8_pages",
                &[
                    asm("mov rax, [r14 + 4092]").less("mov rax, [r14 + 4088]"),
                    asm("mov rsi, [r14 + 12283]").less("mov rsi, [r14 + 12280]"),
                ],
            ),
            TestRow::new(
                "store_8_lines",
                &[
                    asm("mov [r14 + 60], rax").less("mov [r14 + 56], rax"),
                    asm("mov [r14 + 1277], rsi").less("mov [r14 + 1272], rsi"),
                ],
            ),
            TestRow::new(
                "store_16_lines",
                &[
                    asm("movups [r14 + 60], xmm2").less("movups [r14 + 32], xmm2"),
                    asm("movups [r14 + 1272], xmm3").less("movups [r14 + 1264], xmm3"),
                ],
            ),
            TestRow::new(
                "store_8_pages",
                &[
                    asm("mov [r14 + 4092], rax").less("mov [r14 + 4088], rax"),
                    asm("mov [r14 + 12283], rsi").less("mov [r14 + 12280], rsi"),
                ],
            ),
            TestRow::new(
                "load_64_lines",
                &[
                    asm("vmovups zmm2, [r14 + 44]").less("vmovups zmm2, [r14 + 64]").requiring(&[AVX512F]),
                    asm("vmovups zmm3, [r14 + 1276]").less("vmovups zmm3, [r14 + 1280]").requiring(&[AVX512F]),
                ],
            ),
            TestRow::new(
                "load_64_pages",
                &[
                    asm("vmovups zmm2, [r14 + 4060]").less("vmovups zmm2, [r14 + 4032]").requiring(&[AVX512F]),
                    asm("vmovups zmm3, [r14 + 12252]").less("vmovups zmm3, [r14 + 12224]").requiring(&[AVX512F]),
                ],
            ),
            TestRow::new(
                "store_64_lines",
                &[
                    asm("vmovups [r14 + 44], zmm2").less("vmovups [r14 + 64], zmm2").requiring(&[AVX512F]),
                    asm("vmovups [r14 + 1276], zmm3").less("vmovups [r14 + 1280], zmm3").requiring(&[AVX512F]),
                ],
            ),
            TestRow::new(
                "store_64_pages",
                &[
                    asm("vmovups [r14 + 4060], zmm2").less("vmovups [r14 + 4032], zmm2").requiring(&[AVX512F]),
                    asm("vmovups [r14 + 12252], zmm3").less("vmovups [r14 + 12224], zmm3").requiring(&[AVX512F]),
                ],
            ),
            TestRow::new(
                "load_32_pages",
                &[
                    asm("vmovups ymm2, [r14 + 4076]").less("vmovups ymm2, [r14 + 4064]").requiring(&[AVX]),
                    asm("vmovups ymm3, [r14 + 12268]").less("vmovups ymm3, [r14 + 12256]").requiring(&[AVX]),
                ],
            ),
            TestRow::new(
                "store_32_lines",
                &[
                    asm("vmovups [r14 + 44], ymm2").less("vmovups [r14 + 32], ymm2").requiring(&[AVX]),
                    asm("vmovups [r14 + 1276], ymm3").less("vmovups [r14 + 1248], ymm3").requiring(&[AVX]),
                ],
            ),
        ],
        tolerance: 0.15,
        tolerance_share: 0.15,
        slot_costs: &[],
    }),
}];
