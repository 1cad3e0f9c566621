//! Loads and stores that lie in two lines or two pages.

use crate::test::rate::{Contrast, Row, Way};
use crate::test::text::{repeated, way};
use crate::test::{Look, Part, Test};
use iced_x86::CpuidFeature::AVX;

pub(crate) const TEST: Test = Test {
    name: "split_access",
    about: "what a load or a store costs that lies in two lines or two pages",
    definition: "core cycles by which it takes longer than one within a line, where none waits for another",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    part: Part::Memory,
    look: Look::Contrast(Contrast {
        rows: &[
            Row::new(
                "load_8_within",
                1,
                1.0,
                &[
                    way!("mov rax, [r14 + 3]", less "mov rax, [r14 + 8]"),
                    way!("mov rsi, [r14 + 1237]", less "mov rsi, [r14 + 1240]"),
                ],
            ),
            Row::new(
                "load_16_within",
                1,
                1.0,
                &[
                    way!("movups xmm2, [r14 + 24]", less "movups xmm2, [r14 + 32]"),
                    way!("movups xmm3, [r14 + 1241]", less "movups xmm3, [r14 + 1248]"),
                ],
            ),
            Row::new(
                "load_32_within",
                1,
                1.0,
                &[
                    way!("vmovups ymm2, [r14 + 16]", less "vmovups ymm2, [r14 + 32]").needing(&[AVX]),
                    way!("vmovups ymm3, [r14 + 1237]", less "vmovups ymm3, [r14 + 1248]").needing(&[AVX]),
                ],
            ),
            Row::new(
                "store_8_within",
                1,
                1.0,
                &[
                    way!("mov [r14 + 3], rax", less "mov [r14 + 8], rax"),
                    way!("mov [r14 + 1237], rsi", less "mov [r14 + 1240], rsi"),
                ],
            ),
            Row::new(
                "store_16_within",
                1,
                1.0,
                &[
                    way!("movups [r14 + 24], xmm2", less "movups [r14 + 32], xmm2"),
                    way!("movups [r14 + 1241], xmm3", less "movups [r14 + 1248], xmm3"),
                ],
            ),
            Row::new(
                "store_32_within",
                1,
                1.0,
                &[
                    way!("vmovups [r14 + 16], ymm2", less "vmovups [r14 + 32], ymm2").needing(&[AVX]),
                    way!("vmovups [r14 + 1237], ymm3", less "vmovups [r14 + 1248], ymm3").needing(&[AVX]),
                ],
            ),
            Row::new(
                "load_8_lines",
                1,
                1.0,
                &[
                    way!("mov rax, [r14 + 60]", less "mov rax, [r14 + 56]"),
                    way!("mov rsi, [r14 + 1277]", less "mov rsi, [r14 + 1272]"),
                ],
            ),
            Row::new(
                "load_16_lines",
                1,
                1.0,
                &[
                    way!("movups xmm2, [r14 + 60]", less "movups xmm2, [r14 + 32]"),
                    way!("movups xmm3, [r14 + 1272]", less "movups xmm3, [r14 + 1264]"),
                ],
            ),
            Row::new(
                "load_32_lines",
                1,
                1.0,
                &[
                    way!("vmovups ymm2, [r14 + 44]", less "vmovups ymm2, [r14 + 32]").needing(&[AVX]),
                    way!("vmovups ymm3, [r14 + 1276]", less "vmovups ymm3, [r14 + 1248]").needing(&[AVX]),
                ],
            ),
            Row::new(
                "load_8_pages",
                1,
                1.0,
                &[
                    way!("mov rax, [r14 + 4092]", less "mov rax, [r14 + 4088]"),
                    way!("mov rsi, [r14 + 12283]", less "mov rsi, [r14 + 12280]"),
                ],
            ),
            Row::new(
                "store_8_lines",
                1,
                1.0,
                &[
                    way!("mov [r14 + 60], rax", less "mov [r14 + 56], rax"),
                    way!("mov [r14 + 1277], rsi", less "mov [r14 + 1272], rsi"),
                ],
            ),
            Row::new(
                "store_16_lines",
                1,
                1.0,
                &[
                    way!("movups [r14 + 60], xmm2", less "movups [r14 + 32], xmm2"),
                    way!("movups [r14 + 1272], xmm3", less "movups [r14 + 1264], xmm3"),
                ],
            ),
            Row::new(
                "store_8_pages",
                1,
                1.0,
                &[
                    way!("mov [r14 + 4092], rax", less "mov [r14 + 4088], rax"),
                    way!("mov [r14 + 12283], rsi", less "mov [r14 + 12280], rsi"),
                ],
            ),
        ],
        apart: 0.15,
        apart_share: 0.15,
    }),
};
