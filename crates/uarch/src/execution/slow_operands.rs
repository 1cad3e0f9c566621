//! Operations that take longer with some operands than with others.

use crate::spec::program_family::StepLoop;
use crate::spec::rate::{ContrastSpec, ProgramVariant, TestRow};
use crate::spec::text_loop::{ITERATIONS_SLOW, repeat_text};
use crate::spec::{Experiment, TestSpec, TestedPart};
use iced_x86::CpuidFeature::BMI2;

/// A loop over a text, with numbers in R8, R9, RSI, XMM2 and XMM3 that it works with.
fn loop_with_numbers(numbers: [u64; 3], text: &str) -> StepLoop {
    let [one, other, by] = numbers;
    let before = format!("mov r8, {one:#x}; mov r9, {other:#x}; mov rsi, {by:#x}; movq xmm2, r8; movq xmm3, rsi");
    StepLoop { iterations: ITERATIONS_SLOW, ..repeat_text(&before, text) }
}

/// Two programs of numbers that are slow, less the same instructions with numbers that are fast.
macro_rules! slow {
    ($name:literal, $text:literal, $slow:expr, $fast:expr) => {
        TestRow::new($name, 1, 1.0, &slow!($text, $slow, $fast))
    };
    ($text:literal, $slow:expr, $fast:expr) => {
        [
            ProgramVariant::with_control(
                concat!($text, " of one pair"),
                |_| loop_with_numbers($slow[0], $text),
                |_| loop_with_numbers($fast[0], $text),
            ),
            ProgramVariant::with_control(
                concat!($text, " of another pair"),
                |_| loop_with_numbers($slow[1], $text),
                |_| loop_with_numbers($fast[1], $text),
            ),
        ]
    };
}

const fn double_bits(number: f64) -> u64 {
    number.to_bits()
}

pub(crate) const TEST: TestSpec = TestSpec {
    name: "slow_operands",
    about: "what operations cost more with slow operands than with fast ones",
    definition: "core cycles by which an operation takes longer, where none waits for another: of divisions with a large quotient than with one of one bit, of floating point with a result of all bits than with one",
    source: "A. Fog, Instruction tables (2024)",
    part: TestedPart::Execution,
    experiment: Experiment::Contrast(ContrastSpec {
        rows: &[
            slow!(
                "divide_32",
                "mov eax, r8d; xor edx, edx; div esi",
                [[0xffff_fff1, 0, 3], [0xf000_0001, 0, 3]],
                [[5, 0, 3], [4, 0, 3]]
            ),
            slow!(
                "divide_64",
                "mov rax, r8; xor edx, edx; div rsi",
                [[0xffff_ffff_ffff_fff1, 0, 3], [0xf000_0000_0000_0001, 0, 3]],
                [[5, 0, 3], [4, 0, 3]]
            ),
            slow!(
                "divide_128",
                "mov rax, r8; mov rdx, r9; div rsi",
                [
                    [0x1234_5678_9abc_def1, 0x3fff_ffff_ffff_ff01, 0x7fff_ffff_ffff_fff3],
                    [0x1234_5678_9abc_def1, 0x3f00_ffff_0fff_ff01, 0x7fff_ff0f_ffff_fff3]
                ],
                [[5, 0, 3], [4, 0, 3]]
            ),
            slow!(
                "divide_double",
                "movaps xmm4, xmm2; divsd xmm4, xmm3",
                [[double_bits(1.1), 0, double_bits(3.7)], [double_bits(1.7), 0, double_bits(5.3)]],
                [[double_bits(1.0), 0, double_bits(1.0)], [double_bits(2.0), 0, double_bits(1.0)]]
            ),
            slow!(
                "square_root_double",
                "sqrtsd xmm4, xmm2",
                [[double_bits(1.1), 0, 0], [double_bits(3.7), 0, 0]],
                [[double_bits(1.0), 0, 0], [double_bits(4.0), 0, 0]]
            ),
            slow!(
                "multiply_64",
                "imul rax, r8, 77",
                [[0xffff_ffff_ffff_fff1, 0, 0], [0x7234_5678_9abc_def1, 0, 0]],
                [[0, 0, 0], [1, 0, 0]]
            ),
            slow!(
                "multiply_double",
                "movaps xmm4, xmm2; mulsd xmm4, xmm3",
                [[double_bits(1.1), 0, double_bits(3.7)], [double_bits(1.7), 0, double_bits(5.3)]],
                [[double_bits(1.0), 0, double_bits(1.0)], [double_bits(0.0), 0, double_bits(1.0)]]
            ),
            TestRow::new(
                "extract_64",
                1,
                1.0,
                &slow!(
                    "pext rax, r8, rsi",
                    [[0x7234_5678_9abc_def1, 0, u64::MAX], [0x1234_5678_9abc_def1, 0, u64::MAX]],
                    [[0x7234_5678_9abc_def1, 0, 0], [0x1234_5678_9abc_def1, 0, 0]]
                ),
            )
            .requiring(&[BMI2]),
        ],
        tolerance: 0.3,
        tolerance_share: 0.2,
    }),
};
