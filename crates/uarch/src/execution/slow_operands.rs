//! Operations that take longer with some operands than with others.

use crate::test::rate::{Contrast, Row, Way};
use crate::test::text::{ITERATIONS_SLOW, repeated};
use crate::test::walk::Steps;
use crate::test::{Look, Part, Test};
use iced_x86::CpuidFeature::BMI2;

/// A loop over a text, with numbers in R8, R9, RSI, XMM2 and XMM3 that it works with.
fn with(numbers: [u64; 3], text: &str) -> Steps {
    let [one, other, by] = numbers;
    let before =
        format!("mov r8, {one:#x}; mov r9, {other:#x}; mov rsi, {by:#x}; movq xmm2, r8; movq xmm3, rsi");
    Steps { iterations: ITERATIONS_SLOW, ..repeated(&before, text) }
}

/// Two programs of numbers that are slow, less the same instructions with numbers that are fast.
macro_rules! slow {
    ($name:literal, $text:literal, $slow:expr, $fast:expr) => {
        Row::new($name, 1, 1.0, &slow!($text, $slow, $fast))
    };
    ($text:literal, $slow:expr, $fast:expr) => {
        [
            Way::less(concat!($text, " of one pair"), |_| with($slow[0], $text), |_| with($fast[0], $text)),
            Way::less(
                concat!($text, " of another pair"),
                |_| with($slow[1], $text),
                |_| with($fast[1], $text),
            ),
        ]
    };
}

const fn of(number: f64) -> u64 {
    number.to_bits()
}

pub(crate) const TEST: Test = Test {
    name: "slow_operands",
    about: "what operations cost more with slow operands than with fast ones",
    definition: "core cycles by which an operation takes longer, where none waits for another: of divisions with a large quotient than with one of one bit, of floating point with a result of all bits than with one",
    source: "A. Fog, Instruction tables (2024)",
    part: Part::Execution,
    look: Look::Contrast(Contrast {
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
                [[of(1.1), 0, of(3.7)], [of(1.7), 0, of(5.3)]],
                [[of(1.0), 0, of(1.0)], [of(2.0), 0, of(1.0)]]
            ),
            slow!(
                "square_root_double",
                "sqrtsd xmm4, xmm2",
                [[of(1.1), 0, 0], [of(3.7), 0, 0]],
                [[of(1.0), 0, 0], [of(4.0), 0, 0]]
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
                [[of(1.1), 0, of(3.7)], [of(1.7), 0, of(5.3)]],
                [[of(1.0), 0, of(1.0)], [of(0.0), 0, of(1.0)]]
            ),
            Row::new(
                "extract_64",
                1,
                1.0,
                &slow!(
                    "pext rax, r8, rsi",
                    [[0x7234_5678_9abc_def1, 0, u64::MAX], [0x1234_5678_9abc_def1, 0, u64::MAX]],
                    [[0x7234_5678_9abc_def1, 0, 0], [0x1234_5678_9abc_def1, 0, 0]]
                ),
            )
            .needing(&[BMI2]),
        ],
        apart: 0.3,
        apart_share: 0.2,
    }),
};
