//! Numbers that are too small to be normal, on the x87 stack.

use crate::spec::program_family::StepLoop;
use crate::spec::rate::{ContrastSpec, ProgramVariant, TestRow};
use crate::spec::text_loop::{ITERATIONS_SLOW, repeat_text};
use crate::spec::{Experiment, TestSpec, TestedPart};

/// Numbers as memory has them, each a program's own: its first eight bytes, and two more where it has ten.
type X87Bits = (u64, u16);

const SUBNORMAL_DOUBLE: X87Bits = (1 << 40, 0);
const NORMAL_DOUBLE: X87Bits = (1.5f64.to_bits(), 0);
const SUBNORMAL_SINGLE: X87Bits = (1 << 16, 0);
const NORMAL_SINGLE: X87Bits = (1.5f32.to_bits() as u64, 0);
const SUBNORMAL: X87Bits = (1 << 40, 0);
const OTHER_SUBNORMAL: X87Bits = (3 << 50, 0);
/// One and a half.
const NORMAL: X87Bits = (3 << 62, 0x3fff);
/// About 2^-1026 and 2^-130: normal with ten bytes, and subnormal as a double and as a single.
const SMALL_DOUBLE: X87Bits = (3 << 62, 0x3fff - 1026);
const SMALL_SINGLE: X87Bits = (3 << 62, 0x3fff - 130);

/// A loop over a text, where R14 points to this number, and it is, as one of ten bytes, on top of the stack, with one below.
fn loop_with_x87_number((mantissa, exponent): X87Bits, text: &str) -> StepLoop {
    let before = format!(
        "mov rsi, {mantissa:#x}; mov [r14], rsi; mov word ptr [r14 + 8], {exponent:#x}; fld1; fld tbyte ptr [r14]"
    );
    StepLoop { iterations: ITERATIONS_SLOW, ..repeat_text(&before, text) }
}

/// A text with one number, less the same with another one.
macro_rules! with_control {
    ($text:literal, $one:ident, $other:ident) => {
        ProgramVariant::with_control(
            concat!($text, ", ", stringify!($one)),
            |_| loop_with_x87_number($one, $text),
            |_| loop_with_x87_number($other, $text),
        )
    };
}

pub(crate) const TEST: TestSpec = TestSpec {
    name: "subnormals_x87",
    about: "what x87 operations with subnormal numbers cost",
    definition: "core cycles by which an operation takes longer than with normal numbers: a load or a store of a double or a single, and sums and products of numbers of ten bytes",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    part: TestedPart::Execution,
    experiment: Experiment::Contrast(ContrastSpec {
        rows: &[
            TestRow::new(
                "load_double",
                1,
                1.0,
                &[
                    with_control!("fld qword ptr [r14]; fstp st(0)", SUBNORMAL_DOUBLE, NORMAL_DOUBLE),
                    with_control!(
                        "fld st(0); fld qword ptr [r14]; fstp st(1); fstp st(0)",
                        SUBNORMAL_DOUBLE,
                        NORMAL_DOUBLE
                    ),
                ],
            ),
            TestRow::new(
                "load_single",
                1,
                1.0,
                &[
                    with_control!("fld dword ptr [r14]; fstp st(0)", SUBNORMAL_SINGLE, NORMAL_SINGLE),
                    with_control!(
                        "fld st(0); fld dword ptr [r14]; fstp st(1); fstp st(0)",
                        SUBNORMAL_SINGLE,
                        NORMAL_SINGLE
                    ),
                ],
            ),
            TestRow::new(
                "store_double",
                1,
                1.0,
                &[
                    with_control!("fst qword ptr [r14 + 64]", SMALL_DOUBLE, NORMAL),
                    with_control!("fld st(0); fstp qword ptr [r14 + 328]", SMALL_DOUBLE, NORMAL),
                ],
            ),
            TestRow::new(
                "store_single",
                1,
                1.0,
                &[
                    with_control!("fst dword ptr [r14 + 64]", SMALL_SINGLE, NORMAL),
                    with_control!("fld st(0); fstp dword ptr [r14 + 328]", SMALL_SINGLE, NORMAL),
                ],
            ),
            TestRow::new(
                "add_operand",
                1,
                1.0,
                &[
                    with_control!("fld st(0); fadd st(0), st(2); fstp st(0)", SUBNORMAL, NORMAL),
                    with_control!("fld st(0); fsub st(0), st(2); fstp st(0)", OTHER_SUBNORMAL, NORMAL),
                ],
            ),
            TestRow::new(
                "multiply_operand",
                1,
                1.0,
                &[
                    with_control!("fld st(0); fmul st(0), st(2); fstp st(0)", SUBNORMAL, NORMAL),
                    with_control!("fld st(1); fmul st(0), st(1); fstp st(0)", OTHER_SUBNORMAL, NORMAL),
                ],
            ),
        ],
        tolerance: 2.0,
        tolerance_share: 0.2,
    }),
};
