//! Wide vector units that rest when nobody uses them.

use crate::spec::*;
use iced_x86::CpuidFeature::{AVX, AVX512F};

/// Instructions of a step, which do not wait for each other.
const TOGETHER: usize = 16;
/// Steps of the shorter call: what is measured is as many that follow them, a microsecond behind the rest at most.
const SOON: u64 = 8;

/// Steps of a vector instruction, `{a}`, of registers `{b}`. Before them runs a loop of `cycles` core cycles: one that
/// rests has no vector instruction, the other executes one in each cycle.
fn loop_after_rest(cycles: usize, inputs: &Inputs) -> StepLoop {
    let Inputs { texts: [name, register, ..], numbers: [rests, ..] } = inputs;
    let one = |to: usize| format!("{name} {register}{to}, {register}15, {register}15");
    let inside = if *rests == 1 { String::new() } else { format!("{}; ", one(0)) };
    let body: Vec<String> = (0..TOGETHER).map(|number| one(number % 12)).collect();
    let rest = format!("vxorps xmm15, xmm15, xmm15; mov ecx, {cycles}; 1: {inside}dec ecx; jnz 1b");
    StepLoop { init: assemble(&rest), iterations: SOON, ..straight_loop(assemble(&body.join("; ")), 1) }
}

/// An instruction behind a rest, less the same one behind a loop of it.
const fn rested(name: &'static str, register: &'static str) -> ProgramVariant {
    let texts = [name, register, "", ""];
    ProgramVariant::built("{a} {b}", loop_after_rest, texts, [1, 0, 0, 0]).less_built(texts, [0; 4])
}

/// Core cycles of a rest that is longer than units stay awake: most of a millisecond on the fastest.
const LONG: usize = 4_500_000;

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "wake_up",
    about: "how much slower vector units are that have rested",
    definition: "core cycles by which sixteen multiplications take longer some hundred cycles behind a loop without vectors than behind one with them",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024), warm-up of the vector units",
    answers: &["warmup_fp"],
    part: TestedPart::Execution,
    experiment: Experiment::Contrast(ContrastSpec {
        rows: &[
            TestRow::for_n(
                "256_bits",
                LONG,
                &[rested("vmulps", "ymm").requiring(&[AVX]), rested("vmulpd", "ymm").requiring(&[AVX])],
            ),
            TestRow::for_n(
                "512_bits",
                LONG,
                &[
                    rested("vmulps", "zmm").requiring(&[AVX, AVX512F]),
                    rested("vmulpd", "zmm").requiring(&[AVX, AVX512F]),
                ],
            ),
        ],
        tolerance: 2.0,
        tolerance_share: 0.25,
    }),
}];
