//! Numbers that are too small to be normal, on the x87 stack.

use crate::test::rate::{Contrast, Row, Way};
use crate::test::text::{ITERATIONS_SLOW, repeated};
use crate::test::walk::Steps;
use crate::test::{Look, Part, Test};

/// Numbers as memory has them, each a program's own: its first eight bytes, and two more where it has ten.
type Number = (u64, u16);

const SUBNORMAL_DOUBLE: Number = (1 << 40, 0);
const NORMAL_DOUBLE: Number = (1.5f64.to_bits(), 0);
const SUBNORMAL_SINGLE: Number = (1 << 16, 0);
const NORMAL_SINGLE: Number = (1.5f32.to_bits() as u64, 0);
const SUBNORMAL: Number = (1 << 40, 0);
const OTHER_SUBNORMAL: Number = (3 << 50, 0);
/// One and a half.
const NORMAL: Number = (3 << 62, 0x3fff);
/// About 2^-1026 and 2^-130: normal with ten bytes, and subnormal as a double and as a single.
const SMALL_DOUBLE: Number = (3 << 62, 0x3fff - 1026);
const SMALL_SINGLE: Number = (3 << 62, 0x3fff - 130);

/// A loop over a text, where R14 points to this number, and it is, as one of ten bytes, on top of the stack, with one below.
fn computing((mantissa, exponent): Number, text: &str) -> Steps {
    let before = format!(
        "mov rsi, {mantissa:#x}; mov [r14], rsi; mov word ptr [r14 + 8], {exponent:#x}; fld1; fld tbyte ptr [r14]"
    );
    Steps { iterations: ITERATIONS_SLOW, ..repeated(&before, text) }
}

/// A text with one number, less the same with another one.
macro_rules! less {
    ($text:literal, $one:ident, $other:ident) => {
        Way::less(
            concat!($text, ", ", stringify!($one)),
            |_| computing($one, $text),
            |_| computing($other, $text),
        )
    };
}

pub(crate) const TEST: Test = Test {
    name: "subnormals_x87",
    about: "what x87 operations with subnormal numbers cost",
    definition: "core cycles by which an operation takes longer than with normal numbers: a load or a store of a double or a single, and sums and products of numbers of ten bytes",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    part: Part::Execution,
    look: Look::Contrast(Contrast {
        rows: &[
            Row::new(
                "load_double",
                1,
                1.0,
                &[
                    less!("fld qword ptr [r14]; fstp st(0)", SUBNORMAL_DOUBLE, NORMAL_DOUBLE),
                    less!(
                        "fld st(0); fld qword ptr [r14]; fstp st(1); fstp st(0)",
                        SUBNORMAL_DOUBLE,
                        NORMAL_DOUBLE
                    ),
                ],
            ),
            Row::new(
                "load_single",
                1,
                1.0,
                &[
                    less!("fld dword ptr [r14]; fstp st(0)", SUBNORMAL_SINGLE, NORMAL_SINGLE),
                    less!(
                        "fld st(0); fld dword ptr [r14]; fstp st(1); fstp st(0)",
                        SUBNORMAL_SINGLE,
                        NORMAL_SINGLE
                    ),
                ],
            ),
            Row::new(
                "store_double",
                1,
                1.0,
                &[
                    less!("fst qword ptr [r14 + 64]", SMALL_DOUBLE, NORMAL),
                    less!("fld st(0); fstp qword ptr [r14 + 328]", SMALL_DOUBLE, NORMAL),
                ],
            ),
            Row::new(
                "store_single",
                1,
                1.0,
                &[
                    less!("fst dword ptr [r14 + 64]", SMALL_SINGLE, NORMAL),
                    less!("fld st(0); fstp dword ptr [r14 + 328]", SMALL_SINGLE, NORMAL),
                ],
            ),
            Row::new(
                "add_operand",
                1,
                1.0,
                &[
                    less!("fld st(0); fadd st(0), st(2); fstp st(0)", SUBNORMAL, NORMAL),
                    less!("fld st(0); fsub st(0), st(2); fstp st(0)", OTHER_SUBNORMAL, NORMAL),
                ],
            ),
            Row::new(
                "multiply_operand",
                1,
                1.0,
                &[
                    less!("fld st(0); fmul st(0), st(2); fstp st(0)", SUBNORMAL, NORMAL),
                    less!("fld st(1); fmul st(0), st(1); fstp st(0)", OTHER_SUBNORMAL, NORMAL),
                ],
            ),
        ],
        apart: 2.0,
        apart_share: 0.2,
    }),
};
