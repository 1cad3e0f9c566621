//! Numbers that are too small to be normal.

use crate::spec::program_family::{StepLoop, assemble};
use crate::spec::rate::{ContrastSpec, ProgramVariant, TestRow};
use crate::spec::text_loop::{ITERATIONS_SLOW, repeat_text};
use crate::spec::{Experiment, TestSpec, TestedPart};
use iced_x86::CpuidFeature::{AVX, FMA};

/// MXCSR with all exceptions masked, and the same where subnormal numbers are zero, as operands and as results.
const AS_THEY_ARE: u32 = 0x1f80;
const AS_ZERO: u32 = 0x9fc0;

/// A loop over a text, where xmm2 and xmm4 hold a subnormal number, xmm3 and xmm5 one and a half, and xmm6 and xmm7 the smallest normal
/// number, xmm8 and xmm9 one half: of doubles, and of singles in the later register of each pair. xmm10 holds a double that as a single is
/// subnormal.
fn loop_with_mxcsr(mxcsr: u32, text: &str) -> StepLoop {
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
    let steps = repeat_text(before.concat().trim_end_matches("; "), text);
    StepLoop {
        following: assemble(&format!("mov dword ptr [r14], {AS_THEY_ARE}; ldmxcsr [r14]")),
        iterations: ITERATIONS_SLOW,
        ..steps
    }
}

/// A computation with subnormal numbers, less the same one that takes them as zero.
macro_rules! subnormal {
    ($text:literal) => {
        ProgramVariant::with_control(
            $text,
            |_| loop_with_mxcsr(AS_THEY_ARE, $text),
            |_| loop_with_mxcsr(AS_ZERO, $text),
        )
    };
    // Zero would take another time than any normal number.
    ($text:literal, less $normal:literal) => {
        ProgramVariant::with_control(
            $text,
            |_| loop_with_mxcsr(AS_THEY_ARE, $text),
            |_| loop_with_mxcsr(AS_THEY_ARE, $normal),
        )
    };
}

pub(crate) const TEST: TestSpec = TestSpec {
    name: "subnormals",
    about: "what operations with subnormal numbers cost",
    definition: "core cycles by which an operation takes longer than where MXCSR makes subnormal operands and results zero; a square root than that of a normal number",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    part: TestedPart::Execution,
    experiment: Experiment::Contrast(ContrastSpec {
        rows: &[
            TestRow::new(
                "add_operand",
                1,
                1.0,
                &[subnormal!("movaps xmm0, xmm2; addsd xmm0, xmm3"), subnormal!("movaps xmm1, xmm4; addss xmm1, xmm5")],
            ),
            TestRow::new(
                "add_result",
                1,
                1.0,
                &[subnormal!("movaps xmm0, xmm2; addsd xmm0, xmm2"), subnormal!("movaps xmm1, xmm4; addss xmm1, xmm4")],
            ),
            TestRow::new(
                "multiply_operand",
                1,
                1.0,
                &[subnormal!("movaps xmm0, xmm2; mulsd xmm0, xmm3"), subnormal!("movaps xmm1, xmm4; mulss xmm1, xmm5")],
            ),
            TestRow::new(
                "multiply_result",
                1,
                1.0,
                &[subnormal!("movaps xmm0, xmm6; mulsd xmm0, xmm8"), subnormal!("movaps xmm1, xmm7; mulss xmm1, xmm9")],
            ),
            TestRow::new(
                "fma_operand",
                1,
                1.0,
                &[
                    subnormal!("vmovaps xmm0, xmm2; vfmadd213sd xmm0, xmm3, xmm3").requiring(&[AVX, FMA]),
                    subnormal!("vmovaps xmm1, xmm4; vfmadd213ss xmm1, xmm5, xmm5").requiring(&[AVX, FMA]),
                ],
            ),
            TestRow::new(
                "convert_result",
                1,
                1.0,
                &[subnormal!("cvtsd2ss xmm0, xmm10"), subnormal!("cvtpd2ps xmm1, xmm10")],
            ),
            TestRow::new(
                "divide_result",
                1,
                1.0,
                &[subnormal!("movaps xmm0, xmm6; divsd xmm0, xmm3"), subnormal!("movaps xmm1, xmm7; divss xmm1, xmm5")],
            ),
            TestRow::new(
                "square_root_operand",
                1,
                1.0,
                &[
                    subnormal!("sqrtsd xmm0, xmm2", less "sqrtsd xmm0, xmm3"),
                    subnormal!("sqrtss xmm1, xmm4", less "sqrtss xmm1, xmm5"),
                ],
            ),
        ],
        tolerance: 2.0,
        tolerance_share: 0.2,
    }),
};
