//! Infinities and what is no number, as operands and as results.

use crate::spec::program_family::StepLoop;
use crate::spec::rate::{ContrastSpec, ProgramVariant, TestRow};
use crate::spec::text_loop::{ITERATIONS_SLOW, repeat_text};
use crate::spec::{Experiment, TestSpec, TestedPart};

/// An ordinary number.
const ORDINARY: f64 = 1.5;

/// A loop over a text, where xmm2 and xmm3 hold a number, a double and a single, and xmm6 and xmm7 an ordinary one. x87 has the number on top of
/// its stack and the ordinary one below.
fn loop_with_number(number: f64, text: &str) -> StepLoop {
    let single = |register: &str, number: f32| format!("mov esi, {:#x}; movd {register}, esi", number.to_bits());
    let double = |register: &str, number: f64| {
        format!("mov rsi, {:#x}; movq {register}, rsi; mov [r14], rsi; fld qword ptr [r14]", number.to_bits())
    };
    // The largest number of each kind, where the number is the largest one.
    let narrow = if number == f64::MAX { f32::MAX } else { number as f32 };
    let before =
        [double("xmm6", ORDINARY), double("xmm2", number), single("xmm7", ORDINARY as f32), single("xmm3", narrow)];
    StepLoop { iterations: ITERATIONS_SLOW, ..repeat_text(&before.join("; "), text) }
}

/// A text with this number, less the same with an ordinary one.
macro_rules! special {
    ($name:literal, $number:expr, $one:literal, $other:literal) => {
        TestRow::new(
            $name,
            1,
            1.0,
            &[
                ProgramVariant::with_control(
                    $one,
                    |_| loop_with_number($number, $one),
                    |_| loop_with_number(ORDINARY, $one),
                ),
                ProgramVariant::with_control(
                    $other,
                    |_| loop_with_number($number, $other),
                    |_| loop_with_number(ORDINARY, $other),
                ),
            ],
        )
    };
}

pub(crate) const TEST: TestSpec = TestSpec {
    name: "special_numbers",
    about: "what operations with infinities cost, with what is no number, and those that overflow",
    definition: "core cycles by which an operation takes longer than with ordinary numbers, all exceptions masked",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    part: TestedPart::Execution,
    experiment: Experiment::Contrast(ContrastSpec {
        rows: &[
            special!(
                "add_infinity",
                f64::INFINITY,
                "movaps xmm0, xmm2; addsd xmm0, xmm6",
                "movaps xmm1, xmm3; addss xmm1, xmm7"
            ),
            special!("add_nan", f64::NAN, "movaps xmm0, xmm2; addsd xmm0, xmm6", "movaps xmm1, xmm3; addss xmm1, xmm7"),
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
        tolerance: 2.0,
        tolerance_share: 0.2,
    }),
};
