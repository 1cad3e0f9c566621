//! Loops around snippets of each kind.

use super::*;
use crate::asm;

fn plan(text: &str) -> Result<LoopPlan, LoopObstacle> {
    plan_after("", text)
}

fn plan_after(init: &str, text: &str) -> Result<LoopPlan, LoopObstacle> {
    let bytes = |text: &str| match text.is_empty() {
        true => Vec::new(),
        false => asm::parse_assembly(text).unwrap().bytes().to_vec(),
    };
    LoopPlan::from_code(&bytes(text), &bytes(init))
}

fn moves(text: &str) -> Vec<(Register, i32)> {
    let plan = plan(text).unwrap();
    let steps = plan.moves.iter().enumerate().filter(|(_, step)| **step != 0);
    steps.map(|(number, step)| (Register::RAX + number as u32, *step)).collect()
}

#[test]
fn a_free_register_counts() {
    assert_eq!(plan("imul rax, rax"), Ok(LoopPlan::PLAIN));
    assert_eq!(plan("add r15d, eax").unwrap().counter(), Register::R13);
    assert_eq!(plan("add r15b, al; mov [r13], r12").unwrap().counter(), Register::RBX);
    let all = "add rax, rbx; add rcx, rdx; add rsi, rdi; add rbp, r8; add r9, r10; add r11, r12; add r13, r14; neg r15";
    assert_eq!(plan(all), Err(LoopObstacle::NoCounter));
}

#[test]
fn called_code_may_change_registers_that_a_function_need_not_preserve() {
    let used = "mov r15, r13; mov r12, rbx; mov rbp, r14";
    assert_eq!(plan(used).unwrap().counter(), Register::R11);
    assert_eq!(plan(&format!("{used}; call rax")), Err(LoopObstacle::NoCounter));
}

#[test]
fn carried_flags_prevent_a_loop() {
    // DEC leaves CF alone.
    assert_eq!(plan("adc rax, rbx"), Ok(LoopPlan::PLAIN));
    assert_eq!(plan("cmovz rax, rbx; cmp rax, rcx"), Err(LoopObstacle::CarriedFlags));
    assert_eq!(plan("cmovz rax, rbx; adc rcx, 1"), Err(LoopObstacle::CarriedFlags));
    assert_eq!(plan("cmp rax, rcx; cmovz rax, rbx"), Ok(LoopPlan::PLAIN));
    assert_eq!(plan("shl rax, cl; cmovz rax, rbx"), Err(LoopObstacle::CarriedFlags));
    assert_eq!(plan("jz 1f; cmp rax, rcx; 1: cmovz rax, rbx"), Err(LoopObstacle::CarriedFlags));
}

#[test]
fn flags_that_nothing_writes_are_set_as_at_entry() {
    let plan = plan("cmovz rax, rbx").unwrap();
    assert!(plan.sets_flags && plan.counter() == Register::R15);
    // The init code's flags are not those of entry.
    assert_eq!(plan_after("cmp rax, rax", "cmovz rax, rbx"), Err(LoopObstacle::CarriedFlags));
    assert_eq!(plan_after("stc", "adc rax, rbx"), Ok(LoopPlan::PLAIN));
}

#[test]
fn moved_pointers_return() {
    assert_eq!(moves("mov rax, [rdi]; add rdi, 8"), [(Register::RDI, 8)]);
    assert_eq!(moves("mov rax, [rdi]; lea rdi, [rdi+16]; dec rdi"), [(Register::RDI, 15)]);
    assert_eq!(moves("mov rax, [rsi+rcx*8]; sub rcx, -128"), [(Register::RCX, 128)]);
    assert_eq!(moves("push rax"), [(Register::RSP, -8)]);
    assert_eq!(moves("lodsd; movsb"), [(Register::RSI, 5), (Register::RDI, 1)]);
    // No address, no memory to leave.
    assert_eq!(moves("add rdi, 8"), []);
    assert_eq!(moves("push rax; pop rbx"), []);
    assert_eq!(moves("call 1f; jmp 2f; 1: ret; 2: nop"), []);
    // A ring returns by itself.
    assert_eq!(moves("mov rax, [rax]"), []);
}

#[test]
fn pointers_that_move_by_unknown_amounts_prevent_a_loop() {
    let moving = |register| Err(LoopObstacle::MovingAddress(register));
    assert_eq!(plan("mov rax, [rdi]; add rdi, rax"), moving(Register::RDI));
    assert_eq!(plan("rep movsb"), moving(Register::RSI));
    assert_eq!(plan("mov eax, [rdi]; add edi, 4"), moving(Register::RDI));
    assert_eq!(plan("std; lodsb"), moving(Register::RSI));
    assert_eq!(plan("test rax, rax; jz 1f; mov rbx, [rdi]; add rdi, 8; 1: nop"), moving(Register::RDI));
}

#[test]
fn undecodable_bytes_prevent_a_loop() {
    assert_eq!(LoopPlan::from_code(&[0x06], &[]), Err(LoopObstacle::NotDecoded));
}

#[test]
fn the_end_moves_pointers_back_by_all_copies() {
    let plan = plan("mov rax, [rdi]; add rdi, 8").unwrap();
    let mut emitter = Emitter::starting_at(0);
    plan.emit_end(&mut emitter, 0, 10);
    let bytes = emitter.finish().0;
    let instructions: Vec<Instruction> = Decoder::new(64, &bytes, DecoderOptions::NONE).into_iter().collect();
    assert_eq!(instructions[1].memory_displacement64() as i64, -80);
    assert_eq!(instructions[2].op0_register(), Register::R15);
    assert_eq!(instructions[3].near_branch_target(), 0);
    assert_eq!(plan.longest_step(), 8);
    // Farther than one displacement reaches.
    let mut emitter = Emitter::starting_at(0);
    self::plan("mov rax, [rdi]; add rdi, 0x40000000").unwrap().emit_end(&mut emitter, 0, 3);
    let moved: i64 = Decoder::new(64, &emitter.finish().0, DecoderOptions::NONE)
        .into_iter()
        .filter(|instruction| instruction.mnemonic() == Mnemonic::Lea)
        .map(|instruction| instruction.memory_displacement64() as i64)
        .sum();
    assert_eq!(moved, -3 << 30);
}
