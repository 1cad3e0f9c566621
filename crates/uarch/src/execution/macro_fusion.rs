//! Instructions that fuse with the conditional branch behind them.
//!
//! An instruction between the two keeps them apart. Both programs have the same instructions. In
//! the control, the branch is directly behind the instruction that sets its flags. In the other
//! program, one of many cheap instructions is between them. The cheap instructions fill the core in
//! each cycle, and a fused pair leaves room for one more of them. The bottleneck depends on the
//! core: execution units, which branches may not need, or slots, which every instruction takes. So
//! some cheap instructions need units and others need none. Two programs that show the effect are
//! enough.

use crate::spec::*;

/// Bytes of a step. No branch crosses a line or the end of a 32-byte block, where some cores do not
/// cache decoded instructions.
const BLOCK: usize = 32;
/// Steps per iteration.
const STEPS: usize = 32;
/// Bytes of a cheap instruction.
const CHEAP: usize = 3;
/// The segment prefix of CS, without effect in 64-bit mode.
const CS: u8 = 0x2e;

/// Registers that neither the instruction nor the branch uses.
const REGISTERS: [&str; 9] = ["rbx", "rcx", "rdx", "rbp", "r8", "r9", "r10", "r11", "r12"];

/// The cheap instruction of a place, by the name of its kind. It neither reads nor writes flags.
fn cheap_instruction(kind: &str, place: usize) -> Vec<u8> {
    let register = REGISTERS[place % REGISTERS.len()];
    match kind {
        "not" => assemble(&format!("not {register}")),
        // It takes no unit. Some cores pack several of them.
        "nop" => assemble("nop dword ptr [rax]"),
        // Many cores execute it without a unit, but in a slot of its own, unlike a no-operation.
        "mov" => assemble(&format!("mov {register}, rdi")),
        // It takes a unit, and waits for no other one of its kind.
        "movsxd" => assemble(&format!("movsxd {register}, edi")),
        _ if place.is_multiple_of(2) => cheap_instruction("not", place / 2),
        _ => cheap_instruction("nop", place),
    }
}

/// An instruction, `{a}`, and a branch to the next instruction, `{b}`. Cheap instructions, `{c}`,
/// fill the step up to `bytes`. With `apart`, the first of them is between the two; otherwise all
/// are behind both.
fn build_step(bytes: usize, [instruction, branch, kind, _]: Texts, apart: bool) -> Vec<u8> {
    let [setting, branch] = [assemble(instruction), assemble(&format!("{branch} x; x:"))];
    let room = bytes - setting.len() - branch.len();
    let mut others: Vec<Vec<u8>> = (0..room / CHEAP).map(|place| cheap_instruction(kind, place)).collect();
    others.last_mut().expect("a step has room for many").splice(..0, vec![CS; room % CHEAP]);
    let first = others.remove(0);
    let [one, other] = if apart { [first, branch] } else { [branch, first] };
    [setting, one, other, others.concat()].concat()
}

/// The first number: whether the two are apart. The second: whether each instruction ends a line.
fn branch_loop(_: usize, inputs: &Inputs) -> StepLoop {
    let Inputs { texts, numbers: [apart, across_lines, ..] } = *inputs;
    let mut body = build_step(if across_lines == 1 { LINE } else { BLOCK }, texts, apart == 1).repeat(STEPS);
    if across_lines == 1 {
        body.rotate_left(assemble(texts[0]).len());
    }
    let init = assemble("mov qword ptr [r14], 0; xor eax, eax; xor edi, edi; xor esi, esi");
    StepLoop { init, ..loop_in_pages(body, STEPS, 1) }
}

/// An instruction and a branch apart, less both together, among cheap instructions of one kind.
const fn fused(
    instruction: &'static str,
    branch: &'static str,
    kind: &'static str,
    across_lines: usize,
) -> ProgramVariant {
    let texts = [instruction, branch, kind, ""];
    let label = "{a} and branch apart, less together, among {c}";
    ProgramVariant::built(label, branch_loop, texts, [1, across_lines, 0, 0]).less_built(texts, [0, across_lines, 0, 0])
}

/// The same among each kind of cheap instructions.
const fn pairs(instruction: &'static str, branch: &'static str) -> [ProgramVariant; 5] {
    pairs_by_lines(instruction, branch, 0)
}

const fn pairs_by_lines(instruction: &'static str, branch: &'static str, across_lines: usize) -> [ProgramVariant; 5] {
    [
        fused(instruction, branch, "not", across_lines),
        fused(instruction, branch, "not and nop", across_lines),
        fused(instruction, branch, "nop", across_lines),
        fused(instruction, branch, "mov", across_lines),
        fused(instruction, branch, "movsxd", across_lines),
    ]
}

const fn pair(name: &'static str, variants: &'static [ProgramVariant]) -> TestRow {
    TestRow::new(name, variants).allow_hidden()
}

pub(crate) const TESTS: &[TestSpec] = &[TestSpec {
    name: "macro_fusion",
    about: "which instructions become one with the conditional branch behind them",
    definition: "core cycles by which both take longer with a cheap instruction between them than with it behind \
                 them, where the core is busy with such instructions: what it gains by taking both as one",
    source: FOG,
    answers: &["fused_branch"],
    part: TestedPart::Execution,
    experiment: Experiment::Contrast(ContrastSpec {
        rows: &[
            pair("cmp_equal", &pairs("cmp rax, rdi", "jne")),
            pair("cmp_equal_across_lines", &pairs_by_lines("cmp rax, rdi", "jne", 1)),
            pair("cmp_carry", &pairs("cmp rax, rdi", "jc")),
            pair("cmp_less", &pairs("cmp rax, rdi", "jl")),
            pair("cmp_sign", &pairs("cmp rax, rdi", "js")),
            pair("cmp_overflow", &pairs("cmp rax, rdi", "jo")),
            pair("cmp_parity", &pairs("cmp rax, rdi", "jnp")),
            pair("test_equal", &pairs("test rax, rdi", "jne")),
            pair("test_sign", &pairs("test rax, rdi", "js")),
            pair("add_equal", &pairs("add rax, rdi", "jne")),
            pair("add_sign", &pairs("add rax, rdi", "js")),
            pair("sub_carry", &pairs("sub rax, rdi", "jc")),
            pair("and_equal", &pairs("and rax, rdi", "jne")),
            pair("or_equal", &pairs("or rax, rdi", "jne")),
            pair("xor_equal", &pairs("xor rax, rdi", "jne")),
            pair("inc_equal", &pairs("inc rsi", "je")),
            pair("inc_carry", &pairs("inc rsi", "jc")),
            pair("dec_equal", &pairs("dec rsi", "je")),
            pair("dec_carry", &pairs("dec rsi", "jc")),
            pair("neg_equal", &pairs("neg rax", "jne")),
            pair("bt_carry", &pairs("bt rax, 1", "jc")),
            pair("cmp_immediate", &pairs("cmp eax, 5", "je")),
            pair("cmp_load", &pairs("cmp rdi, [r14]", "jne")),
            pair("cmp_memory", &pairs("cmp [r14], rdi", "jne")),
            pair("cmp_memory_immediate", &pairs("cmp dword ptr [r14], 5", "je")),
        ],
        // No core has more than six units for cheap instructions, so a fused pair gains a sixth of a
        // cycle at least. Another order of instructions that stay apart gains less: 0.15 for inc and jc
        // (Turin, family 26, model 2).
        tolerance: 0.16,
        tolerance_share: 0.7,
        slot_costs: &[],
    }),
}];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_list::find_test;
    use iced_x86::{Decoder, DecoderOptions, FlowControl};

    /// Program and control differ only in the order of their instructions. In the control, the
    /// branch is behind the instruction that sets its flags.
    #[test]
    fn the_control_has_the_same_instructions_in_another_order() {
        for row in find_test("macro_fusion").rows() {
            for variant in row.variants {
                let decoded = |steps: StepLoop| -> Vec<String> {
                    let all = Decoder::new(64, &steps.body, DecoderOptions::NONE);
                    let branch = FlowControl::ConditionalBranch;
                    let text = |instruction: iced_x86::Instruction| match instruction.flow_control() == branch {
                        true => {
                            assert_eq!(instruction.near_branch_target(), instruction.next_ip());
                            format!("{:?}", instruction.mnemonic())
                        }
                        false => instruction.to_string(),
                    };
                    all.into_iter().map(text).collect()
                };
                let [mut apart, mut together] =
                    [variant.family.program(1), variant.family.control(1).expect("it has a control")].map(decoded);
                assert_ne!(apart, together, "{}", variant.family.label());
                apart.sort();
                together.sort();
                assert_eq!(apart, together, "{}", variant.family.label());
            }
        }
    }
}
