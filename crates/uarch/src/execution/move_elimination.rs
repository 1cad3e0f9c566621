//! Moves that renaming does.

use crate::test::rate::{Rates, Row, Way};
use crate::test::text::{repeated, way};
use crate::test::{Look, Part, Test};
use cyclescope_core::unit::Unit;
use iced_x86::CpuidFeature::{AVX, AVX512F};

pub(crate) const TEST: Test = Test {
    name: "move_elimination",
    about: "what a move between registers takes in a chain of moves, and an addition of a constant in one of such",
    definition: "core cycles of a move, or of an addition of a constant, that waits for the one before; less than one where renaming does it, at least where slots for it are free",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    part: Part::Execution,
    look: Look::Rates(Rates {
        rows: &[
            Row::new(
                "32_bits",
                1,
                2.0,
                &[way!("mov eax, ebx; mov ebx, eax"), way!("mov esi, r8d; mov r8d, esi")],
            ),
            Row::new(
                "64_bits",
                1,
                2.0,
                &[way!("mov rax, rbx; mov rbx, rax"), way!("mov rsi, r8; mov r8, rsi")],
            ),
            Row::new(
                "16_bits_extended",
                1,
                2.0,
                &[way!("movzx eax, bx; movzx ebx, ax"), way!("movzx esi, r8w; movzx r8d, si")],
            ),
            Row::new(
                "8_bits_extended",
                1,
                2.0,
                &[way!("movzx eax, bl; movzx ebx, al"), way!("movzx ecx, dl; movzx edx, cl")],
            ),
            Row::new(
                "8_bits_extended_of_new_registers",
                1,
                2.0,
                &[way!("movzx esi, r8b; movzx r8d, sil"), way!("movzx edi, r9b; movzx r9d, dil")],
            ),
            Row::new(
                "xmm",
                1,
                2.0,
                &[way!("movaps xmm2, xmm3; movaps xmm3, xmm2"), way!("movdqa xmm4, xmm5; movdqa xmm5, xmm4")],
            ),
            Row::new(
                "ymm",
                1,
                2.0,
                &[
                    way!("vmovaps ymm2, ymm3; vmovaps ymm3, ymm2").needing(&[AVX]),
                    way!("vmovdqa ymm4, ymm5; vmovdqa ymm5, ymm4").needing(&[AVX]),
                ],
            ),
            Row::new(
                "zmm",
                1,
                2.0,
                &[
                    way!("vmovaps zmm2, zmm3; vmovaps zmm3, zmm2").needing(&[AVX512F]),
                    way!("vmovdqa64 zmm4, zmm5; vmovdqa64 zmm5, zmm4").needing(&[AVX512F]),
                ],
            ),
            Row::new(
                "constant_added",
                1,
                2.0,
                &[way!("add rax, 3; add rax, 3"), way!("add rsi, 5; add rsi, 5")],
            ),
            Row::new(
                "long_constant_added",
                1,
                2.0,
                &[way!("add rax, 123456; add rax, 123456"), way!("add rsi, 654321; add rsi, 654321")],
            ),
        ],
        unit: Unit::CoreCycles,
        bytes: 0,
        apart: 0.05,
        alone: false,
        within: None,
    }),
};
