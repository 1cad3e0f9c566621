//! Wide vector units that rest when nobody uses them.

use crate::spec::program_family::{StepLoop, assemble, straight_loop};
use crate::spec::rate::{ContrastSpec, ProgramVariant, TestRow};
use crate::spec::{Experiment, TestSpec, TestedPart};
use iced_x86::CpuidFeature::{AVX, AVX512F};

/// Instructions of a step, which do not wait for each other.
const TOGETHER: usize = 16;
/// Steps of the shorter call: what is measured is as many that follow them, a microsecond behind the rest at most.
const SOON: u64 = 8;

/// Steps of a vector instruction. Before them runs a loop of `cycles` core cycles: one that `rests` has no vector instruction, the
/// other executes one in each cycle.
fn loop_after_rest(name: &str, register: &str, cycles: usize, rests: bool) -> StepLoop {
    let one = |to: usize| format!("{name} {register}{to}, {register}15, {register}15");
    let inside = if rests { String::new() } else { format!("{}; ", one(0)) };
    let body: Vec<String> = (0..TOGETHER).map(|number| one(number % 12)).collect();
    let rest = format!("vxorps xmm15, xmm15, xmm15; mov ecx, {cycles}; 1: {inside}dec ecx; jnz 1b");
    StepLoop { init: assemble(&rest), iterations: SOON, ..straight_loop(assemble(&body.join("; ")), 1) }
}

macro_rules! ways {
    ($register:literal, $needs:expr) => {
        &[
            ProgramVariant::with_control(
                concat!("vmulps ", $register),
                |cycles| loop_after_rest("vmulps", $register, cycles, true),
                |cycles| loop_after_rest("vmulps", $register, cycles, false),
            )
            .requiring($needs),
            ProgramVariant::with_control(
                concat!("vmulpd ", $register),
                |cycles| loop_after_rest("vmulpd", $register, cycles, true),
                |cycles| loop_after_rest("vmulpd", $register, cycles, false),
            )
            .requiring($needs),
        ]
    };
}

/// Core cycles of a rest that is longer than units stay awake: most of a millisecond on the fastest.
const LONG: usize = 4_500_000;

pub(crate) const TEST: TestSpec = TestSpec {
    name: "wake_up",
    about: "how much slower vector units are that have rested",
    definition: "core cycles by which sixteen multiplications take longer some hundred cycles behind a loop without vectors than behind one with them",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024), warm-up of the vector units",
    part: TestedPart::Execution,
    experiment: Experiment::Contrast(ContrastSpec {
        rows: &[
            TestRow::new("256_bits", LONG, 1.0, ways!("ymm", &[AVX])),
            TestRow::new("512_bits", LONG, 1.0, ways!("zmm", &[AVX, AVX512F])),
        ],
        tolerance: 2.0,
        tolerance_share: 0.25,
    }),
};
