//! Infinities and what is no number, as operands and as results.

use crate::test::rate::{Contrast, Row, Way};
use crate::test::text::{ITERATIONS_SLOW, repeated};
use crate::test::walk::Steps;
use crate::test::{Look, Part, Test};

/// An ordinary number.
const ORDINARY: f64 = 1.5;

/// A loop over a text, where xmm2 and xmm3 hold a number, a double and a single, and xmm6 and xmm7 an ordinary one. x87 has the number on top of
/// its stack and the ordinary one below.
fn computing(number: f64, text: &str) -> Steps {
    let single =
        |register: &str, number: f32| format!("mov esi, {:#x}; movd {register}, esi", number.to_bits());
    let double = |register: &str, number: f64| {
        format!("mov rsi, {:#x}; movq {register}, rsi; mov [r14], rsi; fld qword ptr [r14]", number.to_bits())
    };
    // The largest number of each kind, where the number is the largest one.
    let narrow = if number == f64::MAX { f32::MAX } else { number as f32 };
    let before = [
        double("xmm6", ORDINARY),
        double("xmm2", number),
        single("xmm7", ORDINARY as f32),
        single("xmm3", narrow),
    ];
    Steps { iterations: ITERATIONS_SLOW, ..repeated(&before.join("; "), text) }
}

/// A text with this number, less the same with an ordinary one.
macro_rules! special {
    ($name:literal, $number:expr, $one:literal, $other:literal) => {
        Row::new(
            $name,
            1,
            1.0,
            &[
                Way::less($one, |_| computing($number, $one), |_| computing(ORDINARY, $one)),
                Way::less($other, |_| computing($number, $other), |_| computing(ORDINARY, $other)),
            ],
        )
    };
}

pub(crate) const TEST: Test = Test {
    name: "special_numbers",
    about: "what operations with infinities cost, with what is no number, and those that overflow",
    definition: "core cycles by which an operation takes longer than with ordinary numbers, all exceptions masked",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    part: Part::Execution,
    look: Look::Contrast(Contrast {
        rows: &[
            special!(
                "add_infinity",
                f64::INFINITY,
                "movaps xmm0, xmm2; addsd xmm0, xmm6",
                "movaps xmm1, xmm3; addss xmm1, xmm7"
            ),
            special!(
                "add_nan",
                f64::NAN,
                "movaps xmm0, xmm2; addsd xmm0, xmm6",
                "movaps xmm1, xmm3; addss xmm1, xmm7"
            ),
            special!(
                "multiply_infinity",
                f64::INFINITY,
                "movaps xmm0, xmm2; mulsd xmm0, xmm6",
                "movaps xmm1, xmm3; mulss xmm1, xmm7"
            ),
            special!(
                "multiply_nan",
                f64::NAN,
                "movaps xmm0, xmm2; mulsd xmm0, xmm6",
                "movaps xmm1, xmm3; mulss xmm1, xmm7"
            ),
            special!(
                "multiply_overflow",
                f64::MAX,
                "movaps xmm0, xmm2; mulsd xmm0, xmm6",
                "movaps xmm1, xmm3; mulss xmm1, xmm7"
            ),
            special!(
                "add_overflow",
                f64::MAX,
                "movaps xmm0, xmm2; addsd xmm0, xmm2",
                "movaps xmm1, xmm3; addss xmm1, xmm3"
            ),
            special!(
                "x87_infinity",
                f64::INFINITY,
                "fld st(0); fadd st(0), st(2); fstp st(0)",
                "fld st(0); fmul st(0), st(2); fstp st(0)"
            ),
            special!(
                "x87_nan",
                f64::NAN,
                "fld st(0); fadd st(0), st(2); fstp st(0)",
                "fld st(0); fmul st(0), st(2); fstp st(0)"
            ),
        ],
        apart: 2.0,
        apart_share: 0.2,
    }),
};
