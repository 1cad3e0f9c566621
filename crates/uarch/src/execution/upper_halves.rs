//! Instructions of two encodings, of which one keeps the upper half of a register.

use crate::spec::program_family::{StepLoop, assemble};
use crate::spec::rate::{ContrastSpec, ProgramVariant, TestRow};
use crate::spec::text_loop::{ITERATIONS_SLOW, repeat_text};
use crate::spec::{Experiment, TestSpec, TestedPart};
use iced_x86::CpuidFeature::AVX;

/// Sets registers to ones, with their upper halves.
const ONES: &str = "vcmpps ymm2, ymm2, ymm2, 15; vmovaps ymm3, ymm2; vmovaps ymm4, ymm2; vmovaps ymm5, ymm2; vmovaps ymm6, ymm2; vmovaps ymm7, ymm2";
/// Makes the upper halves zero.
const CLEAN: &str = "vzeroupper";

fn loop_with_upper_halves(text: &str, clean: bool) -> StepLoop {
    let before = if clean { format!("{ONES}; {CLEAN}") } else { ONES.to_string() };
    StepLoop { following: assemble(CLEAN), iterations: ITERATIONS_SLOW, ..repeat_text(&before, text) }
}

/// A text behind dirty upper halves, less the same behind clean ones.
macro_rules! dirty {
    ($text:literal) => {
        ProgramVariant::with_control(
            $text,
            |_| loop_with_upper_halves($text, false),
            |_| loop_with_upper_halves($text, true),
        )
        .requiring(&[AVX])
    };
}

/// A text behind dirty upper halves, less another one behind the same.
macro_rules! ordered {
    ($text:literal, less $other:literal) => {
        ProgramVariant::with_control(
            concat!($text, ", less ", $other),
            |_| loop_with_upper_halves($text, false),
            |_| loop_with_upper_halves($other, false),
        )
        .requiring(&[AVX])
    };
}

pub(crate) const TEST: TestSpec = TestSpec {
    name: "upper_halves",
    about: "what legacy vector instructions cost where upper halves of registers are not zero",
    definition: "core cycles by which an instruction, or a pair of them in turns, takes longer than behind vzeroupper, or than in the order that the row's name does not have; of `vzeroupper` itself what it costs",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    part: TestedPart::Execution,
    experiment: Experiment::Contrast(ContrastSpec {
        rows: &[
            TestRow::new("chain", 1, 1.0, &[dirty!("paddd xmm2, xmm6"), dirty!("psubd xmm3, xmm7")]),
            TestRow::new("overwritten", 1, 1.0, &[dirty!("cvtdq2ps xmm2, xmm6"), dirty!("cvttps2dq xmm3, xmm7")]),
            TestRow::new(
                "in_turn_with_vex",
                1,
                1.0,
                &[
                    dirty!("paddd xmm2, xmm6; vpaddd xmm4, xmm4, xmm6"),
                    dirty!("psubd xmm3, xmm7; vpsubd xmm5, xmm5, xmm7"),
                ],
            ),
            TestRow::new(
                "before_vzeroupper",
                1,
                1.0,
                &[
                    ordered!(
                        "vorps ymm2, ymm6, ymm7; paddd xmm3, xmm6; vzeroupper",
                        less "vorps ymm2, ymm6, ymm7; vzeroupper; paddd xmm3, xmm6"
                    ),
                    ordered!(
                        "vandps ymm4, ymm6, ymm7; psubd xmm5, xmm7; vzeroupper",
                        less "vandps ymm4, ymm6, ymm7; vzeroupper; psubd xmm5, xmm7"
                    ),
                ],
            ),
            TestRow::new(
                "in_turns_or_pairs",
                1,
                1.0,
                &[
                    ordered!(
                        "paddd xmm2, xmm6; vpaddd xmm4, xmm4, xmm6; paddd xmm2, xmm6; vpaddd xmm4, xmm4, xmm6",
                        less "paddd xmm2, xmm6; paddd xmm2, xmm6; vpaddd xmm4, xmm4, xmm6; vpaddd xmm4, xmm4, xmm6"
                    ),
                    ordered!(
                        "psubd xmm3, xmm7; vpsubd xmm5, xmm5, xmm7; psubd xmm3, xmm7; vpsubd xmm5, xmm5, xmm7",
                        less "psubd xmm3, xmm7; psubd xmm3, xmm7; vpsubd xmm5, xmm5, xmm7; vpsubd xmm5, xmm5, xmm7"
                    ),
                ],
            ),
            TestRow::new(
                "vzeroupper",
                1,
                1.0,
                &[
                    ordered!(
                        "vandps ymm3, ymm6, ymm7; vzeroupper; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop",
                        less "vandps ymm3, ymm6, ymm7; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop; nop"
                    ),
                    ordered!(
                        "vorps ymm2, ymm6, ymm7; vzeroupper; xor eax, eax; xor ebx, ebx; xor ecx, ecx; xor edx, edx; xor esi, esi; xor edi, edi; xor r8d, r8d; xor r9d, r9d; xor eax, eax; xor ebx, ebx; xor ecx, ecx; xor edx, edx; xor esi, esi; xor edi, edi; xor r8d, r8d; xor r9d, r9d",
                        less "vorps ymm2, ymm6, ymm7; xor eax, eax; xor ebx, ebx; xor ecx, ecx; xor edx, edx; xor esi, esi; xor edi, edi; xor r8d, r8d; xor r9d, r9d; xor eax, eax; xor ebx, ebx; xor ecx, ecx; xor edx, edx; xor esi, esi; xor edi, edi; xor r8d, r8d; xor r9d, r9d"
                    ),
                ],
            ),
        ],
        tolerance: 0.2,
        tolerance_share: 0.15,
    }),
};
