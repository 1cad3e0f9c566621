//! Numbers that slow operations down: subnormal, infinite, not a number, or with many bits.

use crate::spec::*;
use iced_x86::CpuidFeature::{AVX, BMI2, FMA};

/// Each pair of registers holds a number as a double and as a single. XMM2 and XMM4: subnormal;
/// XMM3 and XMM5: 1.5; XMM6 and XMM7: the smallest normal number; XMM8 and XMM9: 0.5. XMM10 holds a
/// double that is subnormal as a single. `{a}` is MXCSR.
const SUBNORMALS: AsmLoop = AsmLoop {
    before: "mov dword ptr [r14], {a}; ldmxcsr [r14]; \
             mov rsi, 0x10000000000; movq xmm2, rsi; mov esi, 0x10000; movd xmm4, esi; \
             mov rsi, 0x3ff8000000000000; movq xmm3, rsi; mov esi, 0x3fc00000; movd xmm5, esi; \
             mov rsi, 0x10000000000000; movq xmm6, rsi; mov esi, 0x800000; movd xmm7, esi; \
             mov rsi, 0x3fe0000000000000; movq xmm8, rsi; mov esi, 0x3f000000; movd xmm9, esi; \
             mov rsi, 0x37a16c262777579c; movq xmm10, rsi",
    following: "mov dword ptr [r14], 0x1f80; ldmxcsr [r14]",
    ..AsmLoop::SLOW
};
/// All exceptions are masked; subnormal numbers stay subnormal.
const AS_THEY_ARE: AsmLoop = SUBNORMALS.with(["0x1f80", "", "", ""]);
/// Subnormal operands and results become zero.
const AS_ZERO: AsmLoop = SUBNORMALS.with(["0x9fc0", "", "", ""]);

/// A computation with subnormal numbers, less the same computation with them treated as zero.
const fn subnormal(text: &'static str) -> ProgramVariant {
    AS_THEY_ARE.asm(text).less_in(AS_ZERO)
}

/// R14 points to a number, which is also on top of the x87 stack, above 1.0. `{a}` is its first
/// eight bytes, and `{b}` the two that follow.
const ON_X87: AsmLoop = AsmLoop {
    before: "mov rsi, {a}; mov [r14], rsi; mov word ptr [r14 + 8], {b}; fld1; fld tbyte ptr [r14]",
    ..AsmLoop::SLOW
};
const SUBNORMAL_DOUBLE: Texts = ["0x10000000000", "0x0", "SUBNORMAL_DOUBLE", ""];
const NORMAL_DOUBLE: Texts = ["0x3ff8000000000000", "0x0", "", ""];
const SUBNORMAL_SINGLE: Texts = ["0x10000", "0x0", "SUBNORMAL_SINGLE", ""];
const NORMAL_SINGLE: Texts = ["0x3fc00000", "0x0", "", ""];
const SUBNORMAL: Texts = ["0x10000000000", "0x0", "SUBNORMAL", ""];
const OTHER_SUBNORMAL: Texts = ["0xc000000000000", "0x0", "OTHER_SUBNORMAL", ""];
/// 1.5 in ten bytes.
const NORMAL: Texts = ["0xc000000000000000", "0x3fff", "", ""];
/// About 2^-1026 and 2^-130: normal in ten bytes, and subnormal as a double and as a single.
const SMALL_DOUBLE: Texts = ["0xc000000000000000", "0x3bfd", "SMALL_DOUBLE", ""];
const SMALL_SINGLE: Texts = ["0xc000000000000000", "0x3f7d", "SMALL_SINGLE", ""];

/// A text with one number, less the same text with another number.
const fn x87(text: &'static str, number: Texts, normal: Texts) -> ProgramVariant {
    ON_X87.with(number).asm(text).less_in(ON_X87.with(normal)).label("{text}, {c}")
}

/// XMM2 and XMM3 hold a number as a double and as a single, `{a}` and `{b}`; XMM6 and XMM7 hold
/// 1.5. The x87 stack has the number above 1.5.
const SPECIAL: AsmLoop = AsmLoop {
    before: "mov rsi, 0x3ff8000000000000; movq xmm6, rsi; mov [r14], rsi; fld qword ptr [r14]; \
             mov rsi, {a}; movq xmm2, rsi; mov [r14], rsi; fld qword ptr [r14]; \
             mov esi, 0x3fc00000; movd xmm7, esi; mov esi, {b}; movd xmm3, esi",
    ..AsmLoop::SLOW
};
const ORDINARY: Texts = ["0x3ff8000000000000", "0x3fc00000", "", ""];
const INFINITY: Texts = ["0x7ff0000000000000", "0x7f800000", "", ""];
const NAN: Texts = ["0x7ff8000000000000", "0x7fc00000", "", ""];
const LARGEST: Texts = ["0x7fefffffffffffff", "0x7f7fffff", "", ""];

/// Texts with a number, each less the same text with 1.5.
const fn special(number: Texts, [one, other]: [&'static str; 2]) -> [ProgramVariant; 2] {
    let (with, ordinary) = (SPECIAL.with(number), SPECIAL.with(ORDINARY));
    [with.asm(one).less_in(ordinary), with.asm(other).less_in(ordinary)]
}

const ADD: [&str; 2] = ["movaps xmm0, xmm2; addsd xmm0, xmm6", "movaps xmm1, xmm3; addss xmm1, xmm7"];
const ADD_TWICE: [&str; 2] = ["movaps xmm0, xmm2; addsd xmm0, xmm2", "movaps xmm1, xmm3; addss xmm1, xmm3"];
const MULTIPLY: [&str; 2] = ["movaps xmm0, xmm2; mulsd xmm0, xmm6", "movaps xmm1, xmm3; mulss xmm1, xmm7"];
const X87: [&str; 2] = ["fld st(0); fadd st(0), st(2); fstp st(0)", "fld st(0); fmul st(0), st(2); fstp st(0)"];

/// R8 is `{a}`, R9 `{b}` and RSI `{c}`; XMM2 holds R8 and XMM3 RSI.
const OPERANDS: AsmLoop =
    AsmLoop { before: "mov r8, {a}; mov r9, {b}; mov rsi, {c}; movq xmm2, r8; movq xmm3, rsi", ..AsmLoop::SLOW };

/// Two programs with slow numbers, less the same text with fast ones.
const fn slow(text: &'static str, slow: [Texts; 2], fast: [Texts; 2]) -> [ProgramVariant; 2] {
    let one = OPERANDS.with(slow[0]).asm(text).less_in(OPERANDS.with(fast[0]));
    let other = OPERANDS.with(slow[1]).asm(text).less_in(OPERANDS.with(fast[1]));
    [one.label("{text} of one pair"), other.label("{text} of another pair")]
}

/// 1.1, 1.7, 3.7 and 5.3 as doubles, and numbers of one bit.
const D1_1: &str = "0x3ff199999999999a";
const D1_7: &str = "0x3ffb333333333333";
const D3_7: &str = "0x400d99999999999a";
const D5_3: &str = "0x4015333333333333";
const D0: &str = "0x0";
const D1: &str = "0x3ff0000000000000";
const D2: &str = "0x4000000000000000";
const D4: &str = "0x4010000000000000";

pub(crate) const TESTS: &[TestSpec] = &[
    TestSpec {
        name: "subnormals",
        about: "what operations with subnormal numbers cost",
        definition: "core cycles by which an operation takes longer than where MXCSR makes subnormal operands and \
                     results zero; a square root than that of a normal number",
        source: FOG,
        answers: &["subnormal"],
        part: TestedPart::Execution,
        experiment: Experiment::Contrast(ContrastSpec {
            rows: &[
                TestRow::new(
                    "add_operand",
                    &[
                        subnormal("movaps xmm0, xmm2; addsd xmm0, xmm3"),
                        subnormal("movaps xmm1, xmm4; addss xmm1, xmm5"),
                    ],
                ),
                TestRow::new(
                    "add_result",
                    &[
                        subnormal("movaps xmm0, xmm2; addsd xmm0, xmm2"),
                        subnormal("movaps xmm1, xmm4; addss xmm1, xmm4"),
                    ],
                ),
                TestRow::new(
                    "multiply_operand",
                    &[
                        subnormal("movaps xmm0, xmm2; mulsd xmm0, xmm3"),
                        subnormal("movaps xmm1, xmm4; mulss xmm1, xmm5"),
                    ],
                ),
                TestRow::new(
                    "multiply_result",
                    &[
                        subnormal("movaps xmm0, xmm6; mulsd xmm0, xmm8"),
                        subnormal("movaps xmm1, xmm7; mulss xmm1, xmm9"),
                    ],
                ),
                TestRow::new(
                    "fma_operand",
                    &[
                        subnormal("vmovaps xmm0, xmm2; vfmadd213sd xmm0, xmm3, xmm3").requiring(&[AVX, FMA]),
                        subnormal("vmovaps xmm1, xmm4; vfmadd213ss xmm1, xmm5, xmm5").requiring(&[AVX, FMA]),
                    ],
                ),
                TestRow::new("convert_result", &[subnormal("cvtsd2ss xmm0, xmm10"), subnormal("cvtpd2ps xmm1, xmm10")]),
                TestRow::new(
                    "divide_result",
                    &[
                        subnormal("movaps xmm0, xmm6; divsd xmm0, xmm3"),
                        subnormal("movaps xmm1, xmm7; divss xmm1, xmm5"),
                    ],
                ),
                // The root of zero takes another time than that of a normal number.
                TestRow::new(
                    "square_root_operand",
                    &[
                        AS_THEY_ARE.asm("sqrtsd xmm0, xmm2").less("sqrtsd xmm0, xmm3").label("{text}"),
                        AS_THEY_ARE.asm("sqrtss xmm1, xmm4").less("sqrtss xmm1, xmm5").label("{text}"),
                    ],
                ),
            ],
            tolerance: 2.0,
            tolerance_share: 0.2,
            slot_costs: &[],
        }),
    },
    TestSpec {
        name: "subnormals_x87",
        about: "what x87 operations with subnormal numbers cost",
        definition: "core cycles by which an operation takes longer than with normal numbers: a load or a store of \
                     a double or a single, and sums and products of numbers of ten bytes",
        source: FOG,
        answers: &["subnormal"],
        part: TestedPart::Execution,
        experiment: Experiment::Contrast(ContrastSpec {
            rows: &[
                TestRow::new(
                    "load_double",
                    &[
                        x87("fld qword ptr [r14]; fstp st(0)", SUBNORMAL_DOUBLE, NORMAL_DOUBLE),
                        x87("fld st(0); fld qword ptr [r14]; fstp st(1); fstp st(0)", SUBNORMAL_DOUBLE, NORMAL_DOUBLE),
                    ],
                ),
                TestRow::new(
                    "load_single",
                    &[
                        x87("fld dword ptr [r14]; fstp st(0)", SUBNORMAL_SINGLE, NORMAL_SINGLE),
                        x87("fld st(0); fld dword ptr [r14]; fstp st(1); fstp st(0)", SUBNORMAL_SINGLE, NORMAL_SINGLE),
                    ],
                ),
                TestRow::new(
                    "store_double",
                    &[
                        x87("fst qword ptr [r14 + 64]", SMALL_DOUBLE, NORMAL),
                        x87("fld st(0); fstp qword ptr [r14 + 328]", SMALL_DOUBLE, NORMAL),
                    ],
                ),
                TestRow::new(
                    "store_single",
                    &[
                        x87("fst dword ptr [r14 + 64]", SMALL_SINGLE, NORMAL),
                        x87("fld st(0); fstp dword ptr [r14 + 328]", SMALL_SINGLE, NORMAL),
                    ],
                ),
                TestRow::new(
                    "add_operand",
                    &[
                        x87("fld st(0); fadd st(0), st(2); fstp st(0)", SUBNORMAL, NORMAL),
                        x87("fld st(0); fsub st(0), st(2); fstp st(0)", OTHER_SUBNORMAL, NORMAL),
                    ],
                ),
                TestRow::new(
                    "multiply_operand",
                    &[
                        x87("fld st(0); fmul st(0), st(2); fstp st(0)", SUBNORMAL, NORMAL),
                        x87("fld st(1); fmul st(0), st(1); fstp st(0)", OTHER_SUBNORMAL, NORMAL),
                    ],
                ),
            ],
            tolerance: 2.0,
            tolerance_share: 0.2,
            slot_costs: &[],
        }),
    },
    TestSpec {
        name: "special_numbers",
        about: "what operations with infinities cost, with what is no number, and those that overflow",
        definition: "core cycles by which an operation takes longer than with ordinary numbers, all exceptions masked",
        source: FOG,
        answers: &["subnormal"],
        part: TestedPart::Execution,
        experiment: Experiment::Contrast(ContrastSpec {
            rows: &[
                TestRow::new("add_infinity", &special(INFINITY, ADD)),
                TestRow::new("add_nan", &special(NAN, ADD)),
                TestRow::new("multiply_infinity", &special(INFINITY, MULTIPLY)),
                TestRow::new("multiply_nan", &special(NAN, MULTIPLY)),
                TestRow::new("multiply_overflow", &special(LARGEST, MULTIPLY)),
                TestRow::new("add_overflow", &special(LARGEST, ADD_TWICE)),
                TestRow::new("x87_infinity", &special(INFINITY, X87)),
                TestRow::new("x87_nan", &special(NAN, X87)),
            ],
            tolerance: 2.0,
            tolerance_share: 0.2,
            slot_costs: &[],
        }),
    },
    TestSpec {
        name: "slow_operands",
        about: "what operations cost more with slow operands than with fast ones",
        definition: "core cycles by which an operation takes longer, where none waits for another: of divisions \
                     with a large quotient than with one of one bit, of floating point with a result of all bits \
                     than with one",
        source: "A. Fog, Instruction tables (2024)",
        answers: &[],
        part: TestedPart::Execution,
        experiment: Experiment::Contrast(ContrastSpec {
            rows: &[
                TestRow::new(
                    "divide_32",
                    &slow(
                        "mov eax, r8d; xor edx, edx; div esi",
                        [["0xfffffff1", "0x0", "0x3", ""], ["0xf0000001", "0x0", "0x3", ""]],
                        [["0x5", "0x0", "0x3", ""], ["0x4", "0x0", "0x3", ""]],
                    ),
                ),
                TestRow::new(
                    "divide_64",
                    &slow(
                        "mov rax, r8; xor edx, edx; div rsi",
                        [["0xfffffffffffffff1", "0x0", "0x3", ""], ["0xf000000000000001", "0x0", "0x3", ""]],
                        [["0x5", "0x0", "0x3", ""], ["0x4", "0x0", "0x3", ""]],
                    ),
                ),
                TestRow::new(
                    "divide_128",
                    &slow(
                        "mov rax, r8; mov rdx, r9; div rsi",
                        [
                            ["0x123456789abcdef1", "0x3fffffffffffff01", "0x7ffffffffffffff3", ""],
                            ["0x123456789abcdef1", "0x3f00ffff0fffff01", "0x7fffff0ffffffff3", ""],
                        ],
                        [["0x5", "0x0", "0x3", ""], ["0x4", "0x0", "0x3", ""]],
                    ),
                ),
                TestRow::new(
                    "divide_double",
                    &slow(
                        "movaps xmm4, xmm2; divsd xmm4, xmm3",
                        [[D1_1, "0x0", D3_7, ""], [D1_7, "0x0", D5_3, ""]],
                        [[D1, "0x0", D1, ""], [D2, "0x0", D1, ""]],
                    ),
                ),
                TestRow::new(
                    "square_root_double",
                    &slow(
                        "sqrtsd xmm4, xmm2",
                        [[D1_1, "0x0", "0x0", ""], [D3_7, "0x0", "0x0", ""]],
                        [[D1, "0x0", "0x0", ""], [D4, "0x0", "0x0", ""]],
                    ),
                ),
                TestRow::new(
                    "multiply_64",
                    &slow(
                        "imul rax, r8, 77",
                        [["0xfffffffffffffff1", "0x0", "0x0", ""], ["0x723456789abcdef1", "0x0", "0x0", ""]],
                        [["0x0", "0x0", "0x0", ""], ["0x1", "0x0", "0x0", ""]],
                    ),
                ),
                TestRow::new(
                    "multiply_double",
                    &slow(
                        "movaps xmm4, xmm2; mulsd xmm4, xmm3",
                        [[D1_1, "0x0", D3_7, ""], [D1_7, "0x0", D5_3, ""]],
                        [[D1, "0x0", D1, ""], [D0, "0x0", D1, ""]],
                    ),
                ),
                TestRow::new(
                    "extract_64",
                    &slow(
                        "pext rax, r8, rsi",
                        [
                            ["0x723456789abcdef1", "0x0", "0xffffffffffffffff", ""],
                            ["0x123456789abcdef1", "0x0", "0xffffffffffffffff", ""],
                        ],
                        [["0x723456789abcdef1", "0x0", "0x0", ""], ["0x123456789abcdef1", "0x0", "0x0", ""]],
                    ),
                )
                .requiring(&[BMI2]),
            ],
            tolerance: 0.3,
            tolerance_share: 0.2,
            slot_costs: &[],
        }),
    },
];
