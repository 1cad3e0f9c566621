//! Results that go from one kind of unit to another.

use crate::spec::program_family::StepLoop;
use crate::spec::rate::{ContrastSpec, ProgramVariant, TestRow};
use crate::spec::text_loop::repeat_text;
use crate::spec::{Experiment, TestSpec, TestedPart};
use iced_x86::CpuidFeature::{self, AVX, AVX512DQ, AVX512F, FMA};

/// No value of which an operation would take longer.
const BEFORE: &str =
    "xor eax, eax; xor esi, esi; xor edi, edi; pxor xmm2, xmm2; pxor xmm3, xmm3; pxor xmm6, xmm6; pxor xmm7, xmm7";

/// Iterations of the shorter call.
const ITERATIONS: u64 = 24;

/// An operation of a kind in a chain through XMM2, or another one through XMM3; in VEX beside operations that have no other encoding.
macro_rules! of {
    (integer_add one) => {
        "paddd xmm2, xmm6"
    };
    (integer_add other) => {
        "psubw xmm3, xmm7"
    };
    (integer_logic one) => {
        "pand xmm2, xmm6"
    };
    (integer_logic other) => {
        "por xmm3, xmm7"
    };
    (integer_multiply one) => {
        "pmuludq xmm2, xmm6"
    };
    (integer_multiply other) => {
        "pmaddwd xmm3, xmm7"
    };
    (integer_shift one) => {
        "pslld xmm2, 3"
    };
    (integer_shift other) => {
        "psrlq xmm3, 5"
    };
    (shuffle one) => {
        "pshufd xmm2, xmm2, 27"
    };
    (shuffle other) => {
        "pshufd xmm3, xmm3, 78"
    };
    (float_logic one) => {
        "andps xmm2, xmm6"
    };
    (float_logic other) => {
        "orpd xmm3, xmm7"
    };
    (float_shuffle one) => {
        "shufps xmm2, xmm6, 27"
    };
    (float_shuffle other) => {
        "shufpd xmm3, xmm7, 1"
    };
    (float_add one) => {
        "addps xmm2, xmm6"
    };
    (float_add other) => {
        "subpd xmm3, xmm7"
    };
    (float_multiply one) => {
        "mulps xmm2, xmm6"
    };
    (float_multiply other) => {
        "mulpd xmm3, xmm7"
    };
    (integer_add vex_one) => {
        "vpaddd xmm2, xmm2, xmm6"
    };
    (integer_add vex_other) => {
        "vpsubw xmm3, xmm3, xmm7"
    };
    (integer_logic vex_one) => {
        "vpand xmm2, xmm2, xmm6"
    };
    (integer_logic vex_other) => {
        "vpor xmm3, xmm3, xmm7"
    };
    (shuffle vex_one) => {
        "vpshufd xmm2, xmm2, 27"
    };
    (shuffle vex_other) => {
        "vpshufd xmm3, xmm3, 78"
    };
    (float_logic vex_one) => {
        "vandps xmm2, xmm2, xmm6"
    };
    (float_logic vex_other) => {
        "vorpd xmm3, xmm3, xmm7"
    };
    (float_add vex_one) => {
        "vaddps xmm2, xmm2, xmm6"
    };
    (float_add vex_other) => {
        "vsubpd xmm3, xmm3, xmm7"
    };
    (float_multiply vex_one) => {
        "vmulps xmm2, xmm2, xmm6"
    };
    (float_multiply vex_other) => {
        "vmulpd xmm3, xmm3, xmm7"
    };
    (fma vex_one) => {
        "vfmadd213ps xmm2, xmm6, xmm7"
    };
    (fma vex_other) => {
        "vfnmadd213pd xmm3, xmm7, xmm6"
    };
}

/// A loop over a text.
fn crossing_loop(text: &str) -> StepLoop {
    StepLoop { iterations: ITERATIONS, ..repeat_text(BEFORE, text) }
}

/// A program less another one.
macro_rules! with_control {
    ($text:expr, $control:expr) => {
        ProgramVariant::with_control(
            concat!($text, ", less ", $control),
            |_| crossing_loop($text),
            |_| crossing_loop($control),
        )
    };
}

/// In turns they cross over four times, and in pairs twice. Both programs have the same instructions.
macro_rules! turns {
    ($one:expr, $other:expr) => {
        with_control!(
            concat!($one, "; ", $other, "; ", $one, "; ", $other),
            concat!($one, "; ", $one, "; ", $other, "; ", $other)
        )
    };
}

/// One operation in each other register, and back, four times and twice: the moves over are in the cost.
macro_rules! crossing_row {
    ($name:literal, $needs:expr, $([$out:literal $there:literal $back:literal $here:literal]),+) => {
        TestRow::new(
            $name,
            1,
            1.0,
            &[$(
                with_control!(
                    concat!($out, "; ", $there, "; ", $back, "; ", $here, "; ", $out, "; ", $there, "; ", $back, "; ", $here),
                    concat!($out, "; ", $there, "; ", $there, "; ", $back, "; ", $here, "; ", $here)
                )
            ),+],
        )
        .requiring($needs)
    };
}

/// The rows of pairs of kinds, and others.
macro_rules! rows {
    ([$($one:ident $other:ident),+ $(,)?] [fma $($fused:ident),+] $($more:expr),+ $(,)?) => {
        &[
            $(
                TestRow::new(
                    concat!(stringify!($one), "_and_", stringify!($other)),
                    1,
                    1.0,
                    &[turns!(of!($one one), of!($other one)), turns!(of!($one other), of!($other other))],
                ),
            )+
            $(
                TestRow::new(
                    concat!(stringify!($fused), "_and_fma"),
                    1,
                    1.0,
                    &[
                        turns!(of!($fused vex_one), of!(fma vex_one)),
                        turns!(of!($fused vex_other), of!(fma vex_other)),
                    ],
                )
                .requiring(&[AVX, FMA]),
            )+
            $($more),+
        ]
    };
}

const NONE: &[CpuidFeature] = &[];

pub(crate) const TEST: TestSpec = TestSpec {
    name: "bypass_delay",
    about: "what a result costs that goes to a unit of another kind, and back",
    definition: "core cycles by which a chain takes longer that crosses over once more and back; how much of it is in each direction is not known, and an operation that is faster behind its like counts too; between general registers, vectors and masks the moves are part of it",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    part: TestedPart::Execution,
    experiment: Experiment::Contrast(ContrastSpec {
        rows: rows! {
            [
                integer_add integer_logic,
                integer_add integer_multiply,
                integer_add integer_shift,
                integer_add shuffle,
                integer_add float_logic,
                integer_add float_shuffle,
                integer_add float_add,
                integer_add float_multiply,
                integer_logic integer_multiply,
                integer_logic integer_shift,
                integer_logic shuffle,
                integer_logic float_logic,
                integer_logic float_shuffle,
                integer_logic float_add,
                integer_logic float_multiply,
                integer_multiply integer_shift,
                integer_multiply shuffle,
                integer_multiply float_logic,
                integer_multiply float_shuffle,
                integer_multiply float_add,
                integer_multiply float_multiply,
                integer_shift shuffle,
                integer_shift float_logic,
                integer_shift float_shuffle,
                integer_shift float_add,
                integer_shift float_multiply,
                shuffle float_logic,
                shuffle float_shuffle,
                shuffle float_add,
                shuffle float_multiply,
                float_logic float_shuffle,
                float_logic float_add,
                float_logic float_multiply,
                float_shuffle float_add,
                float_shuffle float_multiply,
                float_add float_multiply,
            ]
            [fma integer_add, integer_logic, shuffle, float_logic, float_add, float_multiply]
            crossing_row!(
                "general_and_integer_vector", NONE,
                ["movq xmm2, rax" "paddd xmm2, xmm6" "movq rax, xmm2" "add rax, rdi"],
                ["movd xmm3, esi" "psubw xmm3, xmm7" "movd esi, xmm3" "or esi, edi"]
            ),
            crossing_row!(
                "general_and_float_vector", NONE,
                ["movq xmm2, rax" "addps xmm2, xmm6" "movq rax, xmm2" "add rax, rdi"],
                ["movd xmm3, esi" "subpd xmm3, xmm7" "movd esi, xmm3" "or esi, edi"]
            ),
            crossing_row!(
                "general_and_mask", &[AVX512F],
                ["kmovw k1, eax" "knotw k1, k1" "kmovw eax, k1" "add eax, edi"],
                ["kmovw k2, esi" "knotw k2, k2" "kmovw esi, k2" "or esi, edi"]
            ),
            crossing_row!(
                "mask_and_vector", &[AVX512F, AVX512DQ],
                ["vpmovm2d zmm2, k1" "vpaddd zmm2, zmm2, zmm6" "vpmovd2m k1, zmm2" "knotw k1, k1"],
                ["vpmovm2q zmm3, k2" "vpsubd zmm3, zmm3, zmm7" "vpmovq2m k2, zmm3" "knotw k2, k2"]
            ),
            TestRow::new(
                "float_load_and_integer_add",
                1,
                1.0,
                &[
                    with_control!("movaps xmm2, [r14 + rax]; paddd xmm2, xmm6; movq rax, xmm2; and eax, r12d", "movdqa xmm2, [r14 + rax]; paddd xmm2, xmm6; movq rax, xmm2; and eax, r12d"),
                    with_control!("movups xmm3, [r14 + rsi]; psubw xmm3, xmm7; movd esi, xmm3; and esi, r12d", "movdqu xmm3, [r14 + rsi]; psubw xmm3, xmm7; movd esi, xmm3; and esi, r12d"),
                ],
            ),
            TestRow::new(
                "integer_load_and_float_add",
                1,
                1.0,
                &[
                    with_control!("movdqa xmm2, [r14 + rax]; addps xmm2, xmm6; movq rax, xmm2; and eax, r12d", "movaps xmm2, [r14 + rax]; addps xmm2, xmm6; movq rax, xmm2; and eax, r12d"),
                    with_control!("movdqu xmm3, [r14 + rsi]; subpd xmm3, xmm7; movd esi, xmm3; and esi, r12d", "movups xmm3, [r14 + rsi]; subpd xmm3, xmm7; movd esi, xmm3; and esi, r12d"),
                ],
            ),
        },
        tolerance: 0.25,
        tolerance_share: 0.1,
    }),
};

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, Register};
    use std::collections::BTreeSet;

    /// Programs differ in the order of their instructions alone, but of loads, which are of another kind.
    #[test]
    fn the_control_has_the_same_instructions_in_another_order() {
        for row in TEST.rows().iter().filter(|row| !row.name.contains("_load_and_")) {
            for way in row.variants {
                let decoded = |steps: StepLoop| -> Vec<String> {
                    let all = Decoder::new(64, &steps.body, DecoderOptions::NONE);
                    all.into_iter().map(|one| one.to_string()).collect()
                };
                let [mut turns, mut pairs] =
                    [(way.family.program)(1), way.family.control.expect("it has a control")(1)].map(decoded);
                assert_ne!(turns, pairs, "{}", row.name);
                turns.sort();
                pairs.sort();
                // Where moves are part of it, they come once more.
                if row.name.starts_with("general_") || row.name.starts_with("mask_") {
                    turns.dedup();
                    pairs.dedup();
                }
                assert_eq!(turns, pairs, "{}", row.name);
            }
        }
    }
    /// Registers without what is their own: those of pointers, and masks, which are all ones.
    fn known(register: Register) -> bool {
        matches!(register, Register::RSP | Register::R12 | Register::R14) || register.is_k()
    }

    #[test]
    fn every_value_that_an_operation_reads_is_zero_at_first() {
        let mut factory = InstructionInfoFactory::new();
        for row in TEST.rows() {
            for way in row.variants {
                let steps = (way.family.program)(1);
                let decode = |code| Decoder::new(64, code, DecoderOptions::NONE).into_iter();
                let zeroes = |one: &Instruction| {
                    matches!(one.mnemonic(), Mnemonic::Xor | Mnemonic::Pxor) && one.op0_register() == one.op1_register()
                };
                let zeroed = decode(&steps.init).filter(zeroes).map(|one| one.op0_register().full_register());
                let mut written: BTreeSet<Register> = zeroed.collect();
                for one in decode(&steps.body) {
                    let used = factory.info(&one).used_registers();
                    for (register, access) in used.iter().map(|used| (used.register(), used.access())) {
                        let register = register.full_register();
                        let reads = matches!(access, OpAccess::Read | OpAccess::ReadWrite);
                        let own = !known(register) && !written.contains(&register);
                        assert!(!(reads && own), "{}, {}: {one} reads {register:?}", row.name, way.family.name);
                    }
                    written.extend(used.iter().map(|used| used.register().full_register()));
                }
            }
        }
    }
}
