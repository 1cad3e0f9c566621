//! Results that move between kinds of execution units.

use crate::spec::*;
use iced_x86::CpuidFeature::{AVX, AVX512DQ, AVX512F, FMA};

/// All values are zero: no value slows an operation down.
const ZEROS: AsmLoop = AsmLoop {
    before: "xor eax, eax; xor esi, esi; xor edi, edi; pxor xmm2, xmm2; pxor xmm3, xmm3; pxor xmm6, xmm6; pxor \
             xmm7, xmm7",
    iterations: Some(24),
    ..AsmLoop::REPEATED
};

/// Operations of one kind: a chain through XMM2, and one through XMM3.
type Kind = [&'static str; 2];

const INTEGER_ADD: Kind = ["paddd xmm2, xmm6", "psubw xmm3, xmm7"];
const INTEGER_LOGIC: Kind = ["pand xmm2, xmm6", "por xmm3, xmm7"];
const INTEGER_MULTIPLY: Kind = ["pmuludq xmm2, xmm6", "pmaddwd xmm3, xmm7"];
const INTEGER_SHIFT: Kind = ["pslld xmm2, 3", "psrlq xmm3, 5"];
const SHUFFLE: Kind = ["pshufd xmm2, xmm2, 27", "pshufd xmm3, xmm3, 78"];
const FLOAT_LOGIC: Kind = ["andps xmm2, xmm6", "orpd xmm3, xmm7"];
const FLOAT_SHUFFLE: Kind = ["shufps xmm2, xmm6, 27", "shufpd xmm3, xmm7, 1"];
const FLOAT_ADD: Kind = ["addps xmm2, xmm6", "subpd xmm3, xmm7"];
const FLOAT_MULTIPLY: Kind = ["mulps xmm2, xmm6", "mulpd xmm3, xmm7"];

// In VEX, for use with operations that exist only in VEX.
const VEX_INTEGER_ADD: Kind = ["vpaddd xmm2, xmm2, xmm6", "vpsubw xmm3, xmm3, xmm7"];
const VEX_INTEGER_LOGIC: Kind = ["vpand xmm2, xmm2, xmm6", "vpor xmm3, xmm3, xmm7"];
const VEX_SHUFFLE: Kind = ["vpshufd xmm2, xmm2, 27", "vpshufd xmm3, xmm3, 78"];
const VEX_FLOAT_LOGIC: Kind = ["vandps xmm2, xmm2, xmm6", "vorpd xmm3, xmm3, xmm7"];
const VEX_FLOAT_ADD: Kind = ["vaddps xmm2, xmm2, xmm6", "vsubpd xmm3, xmm3, xmm7"];
const VEX_FLOAT_MULTIPLY: Kind = ["vmulps xmm2, xmm2, xmm6", "vmulpd xmm3, xmm3, xmm7"];
const VEX_FMA: Kind = ["vfmadd213ps xmm2, xmm6, xmm7", "vfnmadd213pd xmm3, xmm7, xmm6"];

/// Operations of two kinds in turns, which cross over four times. The control has them in pairs,
/// which cross over twice.
const fn turns(one: Kind, other: Kind) -> [ProgramVariant; 2] {
    [turn(one[0], other[0]), turn(one[1], other[1])]
}

const fn turn(one: &'static str, other: &'static str) -> ProgramVariant {
    ZEROS.with([one, other, "", ""]).asm("{a}; {b}; {a}; {b}").less("{a}; {a}; {b}; {b}")
}

/// Four operations in another kind of register and back, less two. The cost includes the moves
/// between registers.
const fn crossing([out, there, back, here]: Texts) -> ProgramVariant {
    let text = "{a}; {b}; {c}; {d}; {a}; {b}; {c}; {d}";
    ZEROS.with([out, there, back, here]).asm(text).less("{a}; {b}; {b}; {c}; {d}; {d}")
}

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "bypass_delay",
    about: "what a result costs that goes to a unit of another kind, and back",
    definition: "core cycles by which a chain takes longer that crosses over once more and back; how much of it is \
                 in each direction is not known, and an operation that is faster behind its like counts too; \
                 between general registers, vectors and masks the moves are part of it",
    source: FOG,
    answers: &["exec_domain"],
    part: TestedPart::Execution,
    experiment: Experiment::Contrast(ContrastSpec {
        rows: &[
            TestRow::new("integer_add_and_integer_logic", &turns(INTEGER_ADD, INTEGER_LOGIC)),
            TestRow::new("integer_add_and_integer_multiply", &turns(INTEGER_ADD, INTEGER_MULTIPLY)),
            TestRow::new("integer_add_and_integer_shift", &turns(INTEGER_ADD, INTEGER_SHIFT)),
            TestRow::new("integer_add_and_shuffle", &turns(INTEGER_ADD, SHUFFLE)),
            TestRow::new("integer_add_and_float_logic", &turns(INTEGER_ADD, FLOAT_LOGIC)),
            TestRow::new("integer_add_and_float_shuffle", &turns(INTEGER_ADD, FLOAT_SHUFFLE)),
            TestRow::new("integer_add_and_float_add", &turns(INTEGER_ADD, FLOAT_ADD)),
            TestRow::new("integer_add_and_float_multiply", &turns(INTEGER_ADD, FLOAT_MULTIPLY)),
            TestRow::new("integer_logic_and_integer_multiply", &turns(INTEGER_LOGIC, INTEGER_MULTIPLY)),
            TestRow::new("integer_logic_and_integer_shift", &turns(INTEGER_LOGIC, INTEGER_SHIFT)),
            TestRow::new("integer_logic_and_shuffle", &turns(INTEGER_LOGIC, SHUFFLE)),
            TestRow::new("integer_logic_and_float_logic", &turns(INTEGER_LOGIC, FLOAT_LOGIC)),
            TestRow::new("integer_logic_and_float_shuffle", &turns(INTEGER_LOGIC, FLOAT_SHUFFLE)),
            TestRow::new("integer_logic_and_float_add", &turns(INTEGER_LOGIC, FLOAT_ADD)),
            TestRow::new("integer_logic_and_float_multiply", &turns(INTEGER_LOGIC, FLOAT_MULTIPLY)),
            TestRow::new("integer_multiply_and_integer_shift", &turns(INTEGER_MULTIPLY, INTEGER_SHIFT)),
            TestRow::new("integer_multiply_and_shuffle", &turns(INTEGER_MULTIPLY, SHUFFLE)),
            TestRow::new("integer_multiply_and_float_logic", &turns(INTEGER_MULTIPLY, FLOAT_LOGIC)),
            TestRow::new("integer_multiply_and_float_shuffle", &turns(INTEGER_MULTIPLY, FLOAT_SHUFFLE)),
            TestRow::new("integer_multiply_and_float_add", &turns(INTEGER_MULTIPLY, FLOAT_ADD)),
            TestRow::new("integer_multiply_and_float_multiply", &turns(INTEGER_MULTIPLY, FLOAT_MULTIPLY)),
            TestRow::new("integer_shift_and_shuffle", &turns(INTEGER_SHIFT, SHUFFLE)),
            TestRow::new("integer_shift_and_float_logic", &turns(INTEGER_SHIFT, FLOAT_LOGIC)),
            TestRow::new("integer_shift_and_float_shuffle", &turns(INTEGER_SHIFT, FLOAT_SHUFFLE)),
            TestRow::new("integer_shift_and_float_add", &turns(INTEGER_SHIFT, FLOAT_ADD)),
            TestRow::new("integer_shift_and_float_multiply", &turns(INTEGER_SHIFT, FLOAT_MULTIPLY)),
            TestRow::new("shuffle_and_float_logic", &turns(SHUFFLE, FLOAT_LOGIC)),
            TestRow::new("shuffle_and_float_shuffle", &turns(SHUFFLE, FLOAT_SHUFFLE)),
            TestRow::new("shuffle_and_float_add", &turns(SHUFFLE, FLOAT_ADD)),
            TestRow::new("shuffle_and_float_multiply", &turns(SHUFFLE, FLOAT_MULTIPLY)),
            TestRow::new("float_logic_and_float_shuffle", &turns(FLOAT_LOGIC, FLOAT_SHUFFLE)),
            TestRow::new("float_logic_and_float_add", &turns(FLOAT_LOGIC, FLOAT_ADD)),
            TestRow::new("float_logic_and_float_multiply", &turns(FLOAT_LOGIC, FLOAT_MULTIPLY)),
            TestRow::new("float_shuffle_and_float_add", &turns(FLOAT_SHUFFLE, FLOAT_ADD)),
            TestRow::new("float_shuffle_and_float_multiply", &turns(FLOAT_SHUFFLE, FLOAT_MULTIPLY)),
            TestRow::new("float_add_and_float_multiply", &turns(FLOAT_ADD, FLOAT_MULTIPLY)),
            TestRow::new("integer_add_and_fma", &turns(VEX_INTEGER_ADD, VEX_FMA)).requiring(&[AVX, FMA]),
            TestRow::new("integer_logic_and_fma", &turns(VEX_INTEGER_LOGIC, VEX_FMA)).requiring(&[AVX, FMA]),
            TestRow::new("shuffle_and_fma", &turns(VEX_SHUFFLE, VEX_FMA)).requiring(&[AVX, FMA]),
            TestRow::new("float_logic_and_fma", &turns(VEX_FLOAT_LOGIC, VEX_FMA)).requiring(&[AVX, FMA]),
            TestRow::new("float_add_and_fma", &turns(VEX_FLOAT_ADD, VEX_FMA)).requiring(&[AVX, FMA]),
            TestRow::new("float_multiply_and_fma", &turns(VEX_FLOAT_MULTIPLY, VEX_FMA)).requiring(&[AVX, FMA]),
            TestRow::new(
                "general_and_integer_vector",
                &[
                    crossing(["movq xmm2, rax", "paddd xmm2, xmm6", "movq rax, xmm2", "add rax, rdi"]),
                    crossing(["movd xmm3, esi", "psubw xmm3, xmm7", "movd esi, xmm3", "or esi, edi"]),
                ],
            ),
            TestRow::new(
                "general_and_float_vector",
                &[
                    crossing(["movq xmm2, rax", "addps xmm2, xmm6", "movq rax, xmm2", "add rax, rdi"]),
                    crossing(["movd xmm3, esi", "subpd xmm3, xmm7", "movd esi, xmm3", "or esi, edi"]),
                ],
            ),
            TestRow::new(
                "general_and_mask",
                &[
                    crossing(["kmovw k1, eax", "knotw k1, k1", "kmovw eax, k1", "add eax, edi"]),
                    crossing(["kmovw k2, esi", "knotw k2, k2", "kmovw esi, k2", "or esi, edi"]),
                ],
            )
            .requiring(&[AVX512F]),
            TestRow::new(
                "mask_and_vector",
                &[
                    crossing(["vpmovm2d zmm2, k1", "vpaddd zmm2, zmm2, zmm6", "vpmovd2m k1, zmm2", "knotw k1, k1"]),
                    crossing(["vpmovm2q zmm3, k2", "vpsubd zmm3, zmm3, zmm7", "vpmovq2m k2, zmm3", "knotw k2, k2"]),
                ],
            )
            .requiring(&[AVX512F, AVX512DQ]),
            TestRow::new(
                "float_load_and_integer_add",
                &[
                    ZEROS
                        .asm("movaps xmm2, [r14 + rax]; paddd xmm2, xmm6; movq rax, xmm2; and eax, r12d")
                        .less("movdqa xmm2, [r14 + rax]; paddd xmm2, xmm6; movq rax, xmm2; and eax, r12d"),
                    ZEROS
                        .asm("movups xmm3, [r14 + rsi]; psubw xmm3, xmm7; movd esi, xmm3; and esi, r12d")
                        .less("movdqu xmm3, [r14 + rsi]; psubw xmm3, xmm7; movd esi, xmm3; and esi, r12d"),
                ],
            ),
            TestRow::new(
                "integer_load_and_float_add",
                &[
                    ZEROS
                        .asm("movdqa xmm2, [r14 + rax]; addps xmm2, xmm6; movq rax, xmm2; and eax, r12d")
                        .less("movaps xmm2, [r14 + rax]; addps xmm2, xmm6; movq rax, xmm2; and eax, r12d"),
                    ZEROS
                        .asm("movdqu xmm3, [r14 + rsi]; subpd xmm3, xmm7; movd esi, xmm3; and esi, r12d")
                        .less("movups xmm3, [r14 + rsi]; subpd xmm3, xmm7; movd esi, xmm3; and esi, r12d"),
                ],
            ),
        ],
        tolerance: 0.25,
        tolerance_share: 0.1,
        slot_costs: &[],
    }),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_list::find_test;
    use iced_x86::{Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, Register};
    use std::collections::BTreeSet;

    /// Program and control differ only in the order of their instructions, except loads, which are
    /// of another kind.
    #[test]
    fn the_control_has_the_same_instructions_in_another_order() {
        for row in find_test("bypass_delay").rows().iter().filter(|row| !row.name.contains("_load_and_")) {
            for variant in row.variants {
                let decoded = |steps: StepLoop| -> Vec<String> {
                    let all = Decoder::new(64, &steps.body, DecoderOptions::NONE);
                    all.into_iter().map(|instruction| instruction.to_string()).collect()
                };
                let [mut turns, mut pairs] =
                    [variant.family.program(1), variant.family.control(1).expect("it has a control")].map(decoded);
                assert_ne!(turns, pairs, "{}", row.name);
                turns.sort();
                pairs.sort();
                // If moves are part of the row, the program has one more.
                if row.name.starts_with("general_") || row.name.starts_with("mask_") {
                    turns.dedup();
                    pairs.dedup();
                }
                assert_eq!(turns, pairs, "{}", row.name);
            }
        }
    }
    /// Registers except those with contents of their own: pointers, and masks, which are all ones.
    fn known(register: Register) -> bool {
        matches!(register, Register::RSP | Register::R12 | Register::R14) || register.is_k()
    }

    #[test]
    fn all_read_values_are_zero_at_first() {
        let mut factory = InstructionInfoFactory::new();
        for row in find_test("bypass_delay").rows() {
            for variant in row.variants {
                let steps = variant.family.program(1);
                let decode = |code| Decoder::new(64, code, DecoderOptions::NONE).into_iter();
                let zeroes = |instruction: &Instruction| {
                    matches!(instruction.mnemonic(), Mnemonic::Xor | Mnemonic::Pxor)
                        && instruction.op0_register() == instruction.op1_register()
                };
                let zeroed =
                    decode(&steps.init).filter(zeroes).map(|instruction| instruction.op0_register().full_register());
                let mut written: BTreeSet<Register> = zeroed.collect();
                for instruction in decode(&steps.body) {
                    let used = factory.info(&instruction).used_registers();
                    for (register, access) in used.iter().map(|used| (used.register(), used.access())) {
                        let register = register.full_register();
                        let reads = matches!(access, OpAccess::Read | OpAccess::ReadWrite);
                        let own = !known(register) && !written.contains(&register);
                        assert!(
                            !(reads && own),
                            "{}, {}: {instruction} reads {register:?}",
                            row.name,
                            variant.family.label()
                        );
                    }
                    written.extend(used.iter().map(|used| used.register().full_register()));
                }
            }
        }
    }
}
