//! Instructions of two encodings, of which one keeps the upper half of a register.

use crate::spec::*;
use iced_x86::CpuidFeature::AVX;

/// Registers are ones, with their upper halves, behind which `{a}` runs.
const ONES: AsmLoop = AsmLoop {
    before: "vcmpps ymm2, ymm2, ymm2, 15; vmovaps ymm3, ymm2; vmovaps ymm4, ymm2; vmovaps ymm5, ymm2; \
             vmovaps ymm6, ymm2; vmovaps ymm7, ymm2; {a}",
    following: "vzeroupper",
    ..AsmLoop::SLOW
};
const CLEAN: AsmLoop = ONES.with(["vzeroupper", "", "", ""]);

/// A text behind dirty upper halves, less the same text behind clean ones.
const fn dirty(text: &'static str) -> ProgramVariant {
    ONES.asm(text).less_in(CLEAN).requiring(&[AVX])
}

/// A text behind dirty upper halves, less another one behind the same.
const fn ordered(text: &'static str, other: &'static str) -> ProgramVariant {
    ONES.asm(text).less(other).requiring(&[AVX])
}

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "upper_halves",
    about: "what legacy vector instructions cost where upper halves of registers are not zero",
    definition: "core cycles by which an instruction, or a pair of them in turns, takes longer than behind vzeroupper, or than in the order that the row's name does not have; of `vzeroupper` itself what it costs",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    answers: &["AVX_states"],
    part: TestedPart::Execution,
    experiment: Experiment::Contrast(ContrastSpec {
        rows: &[
            TestRow::new("chain", &[dirty("paddd xmm2, xmm6"), dirty("psubd xmm3, xmm7")]),
            TestRow::new("overwritten", &[dirty("cvtdq2ps xmm2, xmm6"), dirty("cvttps2dq xmm3, xmm7")]),
            TestRow::new(
                "in_turn_with_vex",
                &[
                    dirty("paddd xmm2, xmm6; vpaddd xmm4, xmm4, xmm6"),
                    dirty("psubd xmm3, xmm7; vpsubd xmm5, xmm5, xmm7"),
                ],
            ),
            TestRow::new(
                "before_vzeroupper",
                &[
                    ordered(
                        "vorps ymm2, ymm6, ymm7; paddd xmm3, xmm6; vzeroupper",
                        "vorps ymm2, ymm6, ymm7; vzeroupper; paddd xmm3, xmm6",
                    ),
                    ordered(
                        "vandps ymm4, ymm6, ymm7; psubd xmm5, xmm7; vzeroupper",
                        "vandps ymm4, ymm6, ymm7; vzeroupper; psubd xmm5, xmm7",
                    ),
                ],
            ),
            TestRow::new(
                "in_turns_or_pairs",
                &[
                    ordered(
                        "paddd xmm2, xmm6; vpaddd xmm4, xmm4, xmm6; paddd xmm2, xmm6; vpaddd xmm4, xmm4, xmm6",
                        "paddd xmm2, xmm6; paddd xmm2, xmm6; vpaddd xmm4, xmm4, xmm6; vpaddd xmm4, xmm4, xmm6",
                    ),
                    ordered(
                        "psubd xmm3, xmm7; vpsubd xmm5, xmm5, xmm7; psubd xmm3, xmm7; vpsubd xmm5, xmm5, xmm7",
                        "psubd xmm3, xmm7; psubd xmm3, xmm7; vpsubd xmm5, xmm5, xmm7; vpsubd xmm5, xmm5, xmm7",
                    ),
                ],
            ),
            TestRow::new(
                "vzeroupper",
                &[
                    ordered(
                        "vandps ymm3, ymm6, ymm7; vzeroupper; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop",
                        "vandps ymm3, ymm6, ymm7; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop",
                    ),
                    ordered(
                        "vorps ymm2, ymm6, ymm7; vzeroupper; xor eax, eax; xor ebx, ebx; xor ecx, ecx; xor edx, edx; xor esi, esi; xor edi, edi; xor r8d, r8d; xor r9d, r9d; xor eax, eax; xor ebx, ebx; xor ecx, ecx; xor edx, edx; xor esi, esi; xor edi, edi; xor r8d, r8d; xor r9d, r9d",
                        "vorps ymm2, ymm6, ymm7; xor eax, eax; xor ebx, ebx; xor ecx, ecx; xor edx, edx; xor esi, esi; xor edi, edi; xor r8d, r8d; xor r9d, r9d; xor eax, eax; xor ebx, ebx; xor ecx, ecx; xor edx, edx; xor esi, esi; xor edi, edi; xor r8d, r8d; xor r9d, r9d",
                    ),
                ],
            ),
        ],
        tolerance: 0.2,
        tolerance_share: 0.15,
    }),
}];
