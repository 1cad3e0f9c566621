//! Instructions of two encodings, of which one keeps the upper half of a register.

use crate::test::rate::{Contrast, Row, Way};
use crate::test::text::{ITERATIONS_SLOW, repeated};
use crate::test::walk::{Steps, code};
use crate::test::{Look, Part, Test};
use iced_x86::CpuidFeature::AVX;

/// Sets registers to ones, with their upper halves.
const ONES: &str = "vcmpps ymm2, ymm2, ymm2, 15; vmovaps ymm3, ymm2; vmovaps ymm4, ymm2; vmovaps ymm5, ymm2; vmovaps ymm6, ymm2; vmovaps ymm7, ymm2";
/// Makes the upper halves zero.
const CLEAN: &str = "vzeroupper";

fn computing(text: &str, clean: bool) -> Steps {
    let before = if clean { format!("{ONES}; {CLEAN}") } else { ONES.to_string() };
    Steps { following: code(CLEAN), iterations: ITERATIONS_SLOW, ..repeated(&before, text) }
}

/// A text behind dirty upper halves, less the same behind clean ones.
macro_rules! dirty {
    ($text:literal) => {
        Way::less($text, |_| computing($text, false), |_| computing($text, true)).needing(&[AVX])
    };
}

/// A text behind dirty upper halves, less another one behind the same.
macro_rules! ordered {
    ($text:literal, less $other:literal) => {
        Way::less(
            concat!($text, ", less ", $other),
            |_| computing($text, false),
            |_| computing($other, false),
        )
        .needing(&[AVX])
    };
}

pub(crate) const TEST: Test = Test {
    name: "upper_halves",
    about: "what legacy vector instructions cost where upper halves of registers are not zero",
    definition: "core cycles by which an instruction, or a pair of them in turns, takes longer than behind vzeroupper, or than in the order that the row's name does not have; of `vzeroupper` itself what it costs",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    part: Part::Execution,
    look: Look::Contrast(Contrast {
        rows: &[
            Row::new("chain", 1, 1.0, &[dirty!("paddd xmm2, xmm6"), dirty!("psubd xmm3, xmm7")]),
            Row::new("overwritten", 1, 1.0, &[dirty!("cvtdq2ps xmm2, xmm6"), dirty!("cvttps2dq xmm3, xmm7")]),
            Row::new(
                "in_turn_with_vex",
                1,
                1.0,
                &[
                    dirty!("paddd xmm2, xmm6; vpaddd xmm4, xmm4, xmm6"),
                    dirty!("psubd xmm3, xmm7; vpsubd xmm5, xmm5, xmm7"),
                ],
            ),
            Row::new(
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
            Row::new(
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
            Row::new(
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
        apart: 0.2,
        apart_share: 0.15,
    }),
};
