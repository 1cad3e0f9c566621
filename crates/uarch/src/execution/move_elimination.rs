//! Moves that renaming does.

use crate::spec::*;
use iced_x86::CpuidFeature::{AVX, AVX512F};

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "move_elimination",
    about: "what a move between registers takes in a chain of moves, and an addition of a constant in one of such",
    definition: "core cycles of a move, or of an addition of a constant, that waits for the one before; less than one where renaming does it, at least where slots for it are free",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    answers: &["mov_rename"],
    part: TestedPart::Execution,
    experiment: Experiment::Rates(RatesSpec::new(
        Unit::CoreCycles,
        &[
            TestRow::new("32_bits", &[asm("mov eax, ebx; mov ebx, eax"), asm("mov esi, r8d; mov r8d, esi")])
                .amount(2.0),
            TestRow::new("64_bits", &[asm("mov rax, rbx; mov rbx, rax"), asm("mov rsi, r8; mov r8, rsi")]).amount(2.0),
            TestRow::new(
                "16_bits_extended",
                &[asm("movzx eax, bx; movzx ebx, ax"), asm("movzx esi, r8w; movzx r8d, si")],
            )
            .amount(2.0),
            TestRow::new(
                "8_bits_extended",
                &[asm("movzx eax, bl; movzx ebx, al"), asm("movzx ecx, dl; movzx edx, cl")],
            )
            .amount(2.0),
            TestRow::new(
                "8_bits_extended_of_new_registers",
                &[asm("movzx esi, r8b; movzx r8d, sil"), asm("movzx edi, r9b; movzx r9d, dil")],
            )
            .amount(2.0),
            TestRow::new(
                "xmm",
                &[asm("movaps xmm2, xmm3; movaps xmm3, xmm2"), asm("movdqa xmm4, xmm5; movdqa xmm5, xmm4")],
            )
            .amount(2.0),
            TestRow::new(
                "ymm",
                &[
                    asm("vmovaps ymm2, ymm3; vmovaps ymm3, ymm2").requiring(&[AVX]),
                    asm("vmovdqa ymm4, ymm5; vmovdqa ymm5, ymm4").requiring(&[AVX]),
                ],
            )
            .amount(2.0),
            TestRow::new(
                "zmm",
                &[
                    asm("vmovaps zmm2, zmm3; vmovaps zmm3, zmm2").requiring(&[AVX512F]),
                    asm("vmovdqa64 zmm4, zmm5; vmovdqa64 zmm5, zmm4").requiring(&[AVX512F]),
                ],
            )
            .amount(2.0),
            TestRow::new("constant_added", &[asm("add rax, 3; add rax, 3"), asm("add rsi, 5; add rsi, 5")]).amount(2.0),
            TestRow::new(
                "long_constant_added",
                &[asm("add rax, 123456; add rax, 123456"), asm("add rsi, 654321; add rsi, 654321")],
            )
            .amount(2.0),
        ],
    )),
}];
