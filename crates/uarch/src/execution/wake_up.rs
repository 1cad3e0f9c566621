//! Wide vector units that rest when nobody uses them.

use crate::test::rate::{Contrast, Row, Way};
use crate::test::walk::{Steps, code, straight};
use crate::test::{Look, Part, Test};
use iced_x86::CpuidFeature::{AVX, AVX512F};

/// Instructions of a step, which do not wait for each other.
const TOGETHER: usize = 16;
/// Steps of the shorter call: what is measured is as many that follow them, a microsecond behind the rest at most.
const SOON: u64 = 8;

/// Steps of a vector instruction. Before them runs a loop of `cycles` core cycles: one that `rests` has no vector instruction, the
/// other executes one in each cycle.
fn behind(name: &str, register: &str, cycles: usize, rests: bool) -> Steps {
    let one = |to: usize| format!("{name} {register}{to}, {register}15, {register}15");
    let inside = if rests { String::new() } else { format!("{}; ", one(0)) };
    let body: Vec<String> = (0..TOGETHER).map(|number| one(number % 12)).collect();
    let rest = format!("vxorps xmm15, xmm15, xmm15; mov ecx, {cycles}; 1: {inside}dec ecx; jnz 1b");
    Steps { init: code(&rest), iterations: SOON, ..straight(code(&body.join("; ")), 1) }
}

macro_rules! ways {
    ($register:literal, $needs:expr) => {
        &[
            Way::less(
                concat!("vmulps ", $register),
                |cycles| behind("vmulps", $register, cycles, true),
                |cycles| behind("vmulps", $register, cycles, false),
            )
            .needing($needs),
            Way::less(
                concat!("vmulpd ", $register),
                |cycles| behind("vmulpd", $register, cycles, true),
                |cycles| behind("vmulpd", $register, cycles, false),
            )
            .needing($needs),
        ]
    };
}

/// Core cycles of a rest that is longer than units stay awake: most of a millisecond on the fastest.
const LONG: usize = 4_500_000;

pub(crate) const TEST: Test = Test {
    name: "wake_up",
    about: "how much slower vector units are that have rested",
    definition: "core cycles by which sixteen multiplications take longer some hundred cycles behind a loop without vectors than behind one with them",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024), warm-up of the vector units",
    part: Part::Execution,
    look: Look::Contrast(Contrast {
        rows: &[
            Row::new("256_bits", LONG, 1.0, ways!("ymm", &[AVX])),
            Row::new("512_bits", LONG, 1.0, ways!("zmm", &[AVX, AVX512F])),
        ],
        apart: 2.0,
        apart_share: 0.25,
    }),
};
