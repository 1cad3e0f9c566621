//! Instructions that go through the core together with the conditional branch behind them.
//!
//! Another instruction between the two keeps them apart. So both programs have the same instructions: in the control the branch
//! is directly behind the instruction that sets its flags, in the other program one of many cheap instructions is between them. These take all that
//! the core has in each cycle, and what is fused leaves room for one more of them. What is full in a cycle depends on the core: units of which branches need
//! none, or places that every instruction takes. So some cheap instructions need units and others none, and two programs are enough that show it.

use crate::spec::data_moves::loop_in_pages;
use crate::spec::program_family::{LINE, StepLoop, assemble};
use crate::spec::rate::{ContrastSpec, ProgramVariant, TestRow};
use crate::spec::{Experiment, TestSpec, TestedPart};

/// Bytes of a step: no branch is in two lines, nor at the end of a block of 32 bytes, where some cores take no decoded instructions.
const BLOCK: usize = 32;
/// Steps of an iteration.
const STEPS: usize = 32;
/// Bytes of a cheap instruction.
const CHEAP: usize = 3;
/// The segment prefix of CS, which does nothing in 64-bit mode.
const CS: u8 = 0x2e;

/// The cheap instruction of a place: neither reads flags nor writes them.
type CheapInstruction = fn(usize) -> Vec<u8>;

/// Registers that no instruction and branch use.
const REGISTERS: [&str; 9] = ["rbx", "rcx", "rdx", "rbp", "r8", "r9", "r10", "r11", "r12"];

/// not of one of nine registers.
fn not_instruction(place: usize) -> Vec<u8> {
    assemble(&format!("not {}", REGISTERS[place % REGISTERS.len()]))
}

/// Nothing, which takes no unit, on some cores several of them as one.
fn nop_instruction(_: usize) -> Vec<u8> {
    assemble("nop dword ptr [rax]")
}

/// A copy of a register, which many cores do without a unit and, unlike a no-operation, always in a place of its own.
fn mov_instruction(place: usize) -> Vec<u8> {
    assemble(&format!("mov {}, rdi", REGISTERS[place % REGISTERS.len()]))
}

/// The first two in turns.
fn not_and_nop(place: usize) -> Vec<u8> {
    if place.is_multiple_of(2) { not_instruction(place / 2) } else { nop_instruction(place) }
}

/// An instruction and a branch by this condition that goes to the next instruction, whether it is taken or not. Cheap
/// instructions fill the step up to `bytes`. With `apart` the first of them stands between the two, else all stand behind both.
fn build_step(bytes: usize, instruction: &str, condition: u8, cheap: CheapInstruction, apart: bool) -> Vec<u8> {
    let setting = assemble(instruction);
    let branch = [0x70 | condition, 0];
    let room = bytes - setting.len() - branch.len();
    let mut others: Vec<Vec<u8>> = (0..room / CHEAP).map(cheap).collect();
    others.last_mut().expect("a step has room for many").splice(..0, vec![CS; room % CHEAP]);
    let first = others.remove(0);
    let [one, other] = if apart { [&first[..], &branch] } else { [&branch[..], &first] };
    [&setting[..], one, other, &others.concat()].concat()
}

fn loop_steps(body: Vec<u8>) -> StepLoop {
    let init = assemble("mov qword ptr [r14], 0; xor eax, eax; xor edi, edi; xor esi, esi");
    StepLoop { init, ..loop_in_pages(body, STEPS, 1) }
}

fn branch_loop(instruction: &str, condition: u8, cheap: CheapInstruction, apart: bool) -> StepLoop {
    loop_steps(build_step(BLOCK, instruction, condition, cheap, apart).repeat(STEPS))
}

/// The same where each instruction is the last one in a line.
fn branch_loop_across_lines(instruction: &str, condition: u8, cheap: CheapInstruction, apart: bool) -> StepLoop {
    let mut body = build_step(LINE, instruction, condition, cheap, apart).repeat(STEPS);
    body.rotate_left(assemble(instruction).len());
    loop_steps(body)
}

/// Conditions, as a branch has them in its first byte.
const O: u8 = 0;
const C: u8 = 2;
const E: u8 = 4;
const NE: u8 = 5;
const S: u8 = 8;
const NP: u8 = 11;
const L: u8 = 12;

/// What is saved by an instruction and a condition, among kinds of cheap instructions.
macro_rules! pair {
    ($among:literal, $instruction:literal, $condition:ident, $program:ident, $cheap:ident) => {
        ProgramVariant::with_control(
            concat!($instruction, " and branch apart, less together, among ", $among),
            |_| $program($instruction, $condition, $cheap, true),
            |_| $program($instruction, $condition, $cheap, false),
        )
    };
    ($name:literal, $instruction:literal, $condition:ident) => {
        pair!($name, $instruction, $condition, branch_loop)
    };
    ($name:literal, $instruction:literal, $condition:ident, $program:ident) => {
        TestRow::new(
            $name,
            1,
            1.0,
            &[
                pair!("not", $instruction, $condition, $program, not_instruction),
                pair!("not and nop", $instruction, $condition, $program, not_and_nop),
                pair!("nop", $instruction, $condition, $program, nop_instruction),
                pair!("mov", $instruction, $condition, $program, mov_instruction),
            ],
        )
        .allow_hidden()
    };
}

pub(crate) const TEST: TestSpec = TestSpec {
    name: "macro_fusion",
    about: "which instructions become one with the conditional branch behind them",
    definition: "core cycles by which both take longer with a cheap instruction between them than with it behind them, where the core is busy with such instructions: what it gains by taking both as one",
    source: "A. Fog, The microarchitecture of Intel, AMD, and VIA CPUs (2024)",
    part: TestedPart::Execution,
    experiment: Experiment::Contrast(ContrastSpec {
        rows: &[
            pair!("cmp_equal", "cmp rax, rdi", NE),
            pair!("cmp_equal_across_lines", "cmp rax, rdi", NE, branch_loop_across_lines),
            pair!("cmp_carry", "cmp rax, rdi", C),
            pair!("cmp_less", "cmp rax, rdi", L),
            pair!("cmp_sign", "cmp rax, rdi", S),
            pair!("cmp_overflow", "cmp rax, rdi", O),
            pair!("cmp_parity", "cmp rax, rdi", NP),
            pair!("test_equal", "test rax, rdi", NE),
            pair!("test_sign", "test rax, rdi", S),
            pair!("add_equal", "add rax, rdi", NE),
            pair!("add_sign", "add rax, rdi", S),
            pair!("sub_carry", "sub rax, rdi", C),
            pair!("and_equal", "and rax, rdi", NE),
            pair!("or_equal", "or rax, rdi", NE),
            pair!("xor_equal", "xor rax, rdi", NE),
            pair!("inc_equal", "inc rsi", E),
            pair!("inc_carry", "inc rsi", C),
            pair!("neg_equal", "neg rax", NE),
            pair!("bt_carry", "bt rax, 1", C),
            pair!("cmp_immediate", "cmp eax, 5", E),
            pair!("cmp_load", "cmp rdi, [r14]", NE),
            pair!("cmp_memory", "cmp [r14], rdi", NE),
            pair!("cmp_memory_immediate", "cmp dword ptr [r14], 5", E),
        ],
        tolerance: 0.08,
        tolerance_share: 0.7,
    }),
};

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, FlowControl};

    /// Programs differ in the order of their instructions alone, and in the control the branch is behind what sets its flags.
    #[test]
    fn the_control_has_the_same_instructions_in_another_order() {
        for row in TEST.rows() {
            for way in row.variants {
                let decoded = |steps: StepLoop| -> Vec<String> {
                    let all = Decoder::new(64, &steps.body, DecoderOptions::NONE);
                    let branch = FlowControl::ConditionalBranch;
                    let text = |one: iced_x86::Instruction| match one.flow_control() == branch {
                        true => {
                            assert_eq!(one.near_branch_target(), one.next_ip());
                            format!("{:?}", one.mnemonic())
                        }
                        false => one.to_string(),
                    };
                    all.into_iter().map(text).collect()
                };
                let [mut apart, mut together] =
                    [(way.family.program)(1), way.family.control.expect("it has a control")(1)].map(decoded);
                assert_ne!(apart, together, "{}", way.family.name);
                apart.sort();
                together.sort();
                assert_eq!(apart, together, "{}", way.family.name);
            }
        }
    }
}
