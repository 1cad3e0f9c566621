//! Moves that renaming does.

use crate::spec::rate::{ProgramVariant, RatesSpec, TestRow};
use crate::spec::text_loop::{repeat_text, variant};
use crate::spec::{Experiment, TestSpec, TestedPart};
use cyclescope_core::unit::Unit;
use iced_x86::CpuidFeature::{AVX, AVX512F};

pub(crate) const TEST: TestSpec = TestSpec {
    name: "move_elimination",
    about: "what a move between registers takes in a chain of moves, and an addition of a constant in one of such",
    definition: "core cycles of a move, or of an addition of a constant, that waits for the one before; less than one where renaming does it, at least where slots for it are free",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    part: TestedPart::Execution,
    experiment: Experiment::Rates(RatesSpec {
        rows: &[
            TestRow::new(
                "32_bits",
                1,
                2.0,
                &[variant!("mov eax, ebx; mov ebx, eax"), variant!("mov esi, r8d; mov r8d, esi")],
            ),
            TestRow::new(
                "64_bits",
                1,
                2.0,
                &[variant!("mov rax, rbx; mov rbx, rax"), variant!("mov rsi, r8; mov r8, rsi")],
            ),
            TestRow::new(
                "16_bits_extended",
                1,
                2.0,
                &[variant!("movzx eax, bx; movzx ebx, ax"), variant!("movzx esi, r8w; movzx r8d, si")],
            ),
            TestRow::new(
                "8_bits_extended",
                1,
                2.0,
                &[variant!("movzx eax, bl; movzx ebx, al"), variant!("movzx ecx, dl; movzx edx, cl")],
            ),
            TestRow::new(
                "8_bits_extended_of_new_registers",
                1,
                2.0,
                &[variant!("movzx esi, r8b; movzx r8d, sil"), variant!("movzx edi, r9b; movzx r9d, dil")],
            ),
            TestRow::new(
                "xmm",
                1,
                2.0,
                &[variant!("movaps xmm2, xmm3; movaps xmm3, xmm2"), variant!("movdqa xmm4, xmm5; movdqa xmm5, xmm4")],
            ),
            TestRow::new(
                "ymm",
                1,
                2.0,
                &[
                    variant!("vmovaps ymm2, ymm3; vmovaps ymm3, ymm2").requiring(&[AVX]),
                    variant!("vmovdqa ymm4, ymm5; vmovdqa ymm5, ymm4").requiring(&[AVX]),
                ],
            ),
            TestRow::new(
                "zmm",
                1,
                2.0,
                &[
                    variant!("vmovaps zmm2, zmm3; vmovaps zmm3, zmm2").requiring(&[AVX512F]),
                    variant!("vmovdqa64 zmm4, zmm5; vmovdqa64 zmm5, zmm4").requiring(&[AVX512F]),
                ],
            ),
            TestRow::new(
                "constant_added",
                1,
                2.0,
                &[variant!("add rax, 3; add rax, 3"), variant!("add rsi, 5; add rsi, 5")],
            ),
            TestRow::new(
                "long_constant_added",
                1,
                2.0,
                &[variant!("add rax, 123456; add rax, 123456"), variant!("add rsi, 654321; add rsi, 654321")],
            ),
        ],
        unit: Unit::CoreCycles,
        bytes_per_n: 0,
        tolerance_share: 0.05,
        allow_outlier: false,
        required_entries: None,
    }),
};
