//! Instructions of two encodings, of which one keeps the upper half of a register.

use crate::study::uarch::test::rate::{Contrast, Row, Way};
use crate::study::uarch::test::text::{ITERATIONS_SLOW, repeated};
use crate::study::uarch::test::walk::{Steps, code};
use crate::study::uarch::test::{Look, Part, Test};
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

pub(in crate::study::uarch) const TEST: Test = Test {
    name: "upper_halves",
    about: "what legacy vector instructions cost where upper halves of registers are not zero",
    definition: "core cycles by which an instruction, or a pair of them in turns, takes longer than behind vzeroupper",
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
        ],
        apart: 0.2,
        apart_share: 0.15,
    }),
};
