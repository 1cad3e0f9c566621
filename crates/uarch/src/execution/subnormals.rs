//! Numbers that are too small to be normal.

use crate::test::rate::{Contrast, Row, Way};
use crate::test::text::{ITERATIONS_SLOW, repeated};
use crate::test::walk::{Steps, code};
use crate::test::{Look, Part, Test};
use iced_x86::CpuidFeature::{AVX, FMA};

/// MXCSR with all exceptions masked, and the same where subnormal numbers are zero, as operands and as results.
const AS_THEY_ARE: u32 = 0x1f80;
const AS_ZERO: u32 = 0x9fc0;

/// A loop over a text, where xmm2 and xmm4 hold a subnormal number, xmm3 and xmm5 one and a half, and xmm6 and xmm7 the smallest normal
/// number, xmm8 and xmm9 one half: of doubles, and of singles in the later register of each pair. xmm10 holds a double that as a single is
/// subnormal.
fn computing(mxcsr: u32, text: &str) -> Steps {
    let single = |register: &str, bits: u32| format!("mov esi, {bits:#x}; movd {register}, esi; ");
    let double = |register: &str, bits: u64| format!("mov rsi, {bits:#x}; movq {register}, rsi; ");
    let before = [
        format!("mov dword ptr [r14], {mxcsr}; ldmxcsr [r14]; "),
        double("xmm2", 1 << 40),
        single("xmm4", 1 << 16),
        double("xmm3", 1.5f64.to_bits()),
        single("xmm5", 1.5f32.to_bits()),
        double("xmm6", f64::MIN_POSITIVE.to_bits()),
        single("xmm7", f32::MIN_POSITIVE.to_bits()),
        double("xmm8", 0.5f64.to_bits()),
        single("xmm9", 0.5f32.to_bits()),
        double("xmm10", 1e-40f64.to_bits()),
    ];
    let steps = repeated(before.concat().trim_end_matches("; "), text);
    Steps {
        following: code(&format!("mov dword ptr [r14], {AS_THEY_ARE}; ldmxcsr [r14]")),
        iterations: ITERATIONS_SLOW,
        ..steps
    }
}

/// A computation with subnormal numbers, less the same one that takes them as zero.
macro_rules! subnormal {
    ($text:literal) => {
        Way::less($text, |_| computing(AS_THEY_ARE, $text), |_| computing(AS_ZERO, $text))
    };
    // Zero would take another time than any normal number.
    ($text:literal, less $normal:literal) => {
        Way::less($text, |_| computing(AS_THEY_ARE, $text), |_| computing(AS_THEY_ARE, $normal))
    };
}

pub(crate) const TEST: Test = Test {
    name: "subnormals",
    about: "what operations with subnormal numbers cost",
    definition: "core cycles by which an operation takes longer than where MXCSR makes subnormal operands and results zero; a square root than that of a normal number",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    part: Part::Execution,
    look: Look::Contrast(Contrast {
        rows: &[
            Row::new(
                "add_operand",
                1,
                1.0,
                &[
                    subnormal!("movaps xmm0, xmm2; addsd xmm0, xmm3"),
                    subnormal!("movaps xmm1, xmm4; addss xmm1, xmm5"),
                ],
            ),
            Row::new(
                "add_result",
                1,
                1.0,
                &[
                    subnormal!("movaps xmm0, xmm2; addsd xmm0, xmm2"),
                    subnormal!("movaps xmm1, xmm4; addss xmm1, xmm4"),
                ],
            ),
            Row::new(
                "multiply_operand",
                1,
                1.0,
                &[
                    subnormal!("movaps xmm0, xmm2; mulsd xmm0, xmm3"),
                    subnormal!("movaps xmm1, xmm4; mulss xmm1, xmm5"),
                ],
            ),
            Row::new(
                "multiply_result",
                1,
                1.0,
                &[
                    subnormal!("movaps xmm0, xmm6; mulsd xmm0, xmm8"),
                    subnormal!("movaps xmm1, xmm7; mulss xmm1, xmm9"),
                ],
            ),
            Row::new(
                "fma_operand",
                1,
                1.0,
                &[
                    subnormal!("vmovaps xmm0, xmm2; vfmadd213sd xmm0, xmm3, xmm3").needing(&[AVX, FMA]),
                    subnormal!("vmovaps xmm1, xmm4; vfmadd213ss xmm1, xmm5, xmm5").needing(&[AVX, FMA]),
                ],
            ),
            Row::new(
                "convert_result",
                1,
                1.0,
                &[subnormal!("cvtsd2ss xmm0, xmm10"), subnormal!("cvtpd2ps xmm1, xmm10")],
            ),
            Row::new(
                "divide_result",
                1,
                1.0,
                &[
                    subnormal!("movaps xmm0, xmm6; divsd xmm0, xmm3"),
                    subnormal!("movaps xmm1, xmm7; divss xmm1, xmm5"),
                ],
            ),
            Row::new(
                "square_root_operand",
                1,
                1.0,
                &[
                    subnormal!("sqrtsd xmm0, xmm2", less "sqrtsd xmm0, xmm3"),
                    subnormal!("sqrtss xmm1, xmm4", less "sqrtss xmm1, xmm5"),
                ],
            ),
        ],
        apart: 2.0,
        apart_share: 0.2,
    }),
};
