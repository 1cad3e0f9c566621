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
    LoopPlan::from_code(&bytes(text), &bytes(init), CodeMode::Bits64)
}

#[test]
fn a_free_register_counts() {
    assert_eq!(plan("imul rax, rax"), Ok(LoopPlan::PLAIN));
    assert_eq!(plan("add r15d, eax").unwrap().counter(), Some(Register::R13));
    assert_eq!(plan("add r15b, al; mov [r13], r12").unwrap().counter(), Some(Register::RBX));
    let all = "add rax, rbx; add rcx, rdx; add rsi, rdi; add rbp, r8; add r9, r10; add r11, r12; add r13, r14; neg r15";
    assert_eq!(plan(all), Err(LoopObstacle::NoCounter));
}

#[test]
fn called_code_may_change_registers_that_a_function_need_not_preserve() {
    let used = "mov r15, r13; mov r12, rbx; mov rbp, r14";
    assert_eq!(plan(used).unwrap().counter(), Some(Register::R11));
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
    assert!(plan.sets_flags && plan.counter() == Some(Register::R15));
    // The init code's flags are not those of entry.
    assert_eq!(plan_after("cmp rax, rax", "cmovz rax, rbx"), Err(LoopObstacle::CarriedFlags));
    assert_eq!(plan_after("stc", "adc rax, rbx"), Ok(LoopPlan::PLAIN));
}

fn assert_moving(text: &str, register: Register) {
    assert_eq!(plan(text), Err(LoopObstacle::MovingAddress(register)), "{text}");
}

fn assert_plain(text: &str) {
    assert!(plan(text).is_ok(), "{text}: {:?}", plan(text));
}

#[test]
fn addresses_that_move_prevent_a_loop() {
    let moving = [
        ("mov rax, [rdi]; add rdi, 8", Register::RDI),
        ("add rdi, rcx; mov rax, [rdi]", Register::RDI),
        ("lea rdi, [rdi+rcx*8]; mov rax, [rdi]", Register::RDI),
        ("mov rax, rdi; mov rbx, [rax]; inc rdi", Register::RDI),
        ("mov rax, [rsi+rcx*8]; sub rcx, -128", Register::RCX),
        ("xchg rdi, rsi; mov rax, [rdi]", Register::RSI),
        ("prefetcht0 [rdi]; add rdi, 64", Register::RDI),
        ("bt [rdi], rcx; add rcx, 512", Register::RCX),
        ("push rax", Register::RSP),
        ("lodsd", Register::RSI),
        ("rep movsb", Register::RSI),
        ("mov eax, [rdi]; add edi, 4", Register::RDI),
        ("mov ecx, 5; 1: add rdi, 8; mov rax, [rdi]; dec ecx; jnz 1b; sub rdi, 8", Register::RDI),
        ("test rsp, rsp; jz 1f; push rax; 1: pop rax", Register::RSP),
        ("test rax, rax; jnz 1f; mov rdi, [rsi]; 1: add rdi, 64; mov rax, [rdi]", Register::RDI),
    ];
    moving.into_iter().for_each(|(text, register)| assert_moving(text, register));
    // A given number of iterations may be few enough.
    let snippet = asm::parse_assembly("mov rax, [rdi]; add rdi, 8").unwrap();
    assert_eq!(LoopPlan::from_code_with_moves(snippet.bytes(), &[], CodeMode::Bits64), Ok(LoopPlan::PLAIN));
}

#[test]
fn addresses_that_return_allow_a_loop() {
    assert_plain("mov rax, [rdi]; add rdi, 8; sub rdi, 8");
    assert_plain("push rax; pop rbx");
    assert_plain("call 1f; jmp 2f; 1: ret; 2: nop");
    // No address, no memory to leave.
    assert_plain("add rdi, 8");
    assert_plain("lea rax, [rdi+8]; add rdi, 8");
    assert_plain("mov rdi, rsi; mov rax, [rdi]; add rdi, 8");
    // A ring returns by itself.
    assert_plain("mov rax, [rax]");
    assert_plain("mov rbx, [rax]; mov rax, rbx");
}

#[test]
fn branches_into_instructions_prevent_a_loop() {
    // jmp over the first two bytes of a MOV, and beyond the snippet.
    let inside = [0xeb, 0x02, 0x48, 0xb8, 0x49, 0xff, 0xc7, 0x90, 0x90, 0x90, 0x90, 0x90];
    assert_eq!(LoopPlan::from_code(&inside, &[], CodeMode::Bits64), Err(LoopObstacle::OddBranch));
    assert_eq!(LoopPlan::from_code(&[0xeb, 0x02], &[], CodeMode::Bits64), Err(LoopObstacle::OddBranch));
    assert_plain("jmp 1f; nop; 1:");
}

#[test]
fn undecodable_bytes_prevent_a_loop() {
    assert_eq!(LoopPlan::from_code(&[0x06], &[], CodeMode::Bits64), Err(LoopObstacle::NotDecoded));
}

#[test]
fn code_of_32_bits_has_its_own_counters_and_addresses() {
    let plan = |text: &str| {
        let listing = crate::asm::parse_for_mode(text, CodeMode::Bits32, None).expect("assembly");
        LoopPlan::from_code(listing.bytes(), &[], CodeMode::Bits32)
    };
    assert_eq!(plan("imul eax, eax").map(|plan| plan.counter()), Ok(Some(Register::RDX)));
    assert_eq!(plan("mul ecx").map(|plan| plan.counter()), Ok(Some(Register::RBP)));
    assert_eq!(plan("pusha; popa").map(|plan| plan.counter()), Ok(None), "memory counts");
    assert_eq!(plan("mov eax, [esi]; add esi, 64"), Err(LoopObstacle::MovingAddress(Register::ESI)));
    assert_eq!(
        plan("lea esi, [esi-8]; mov eax, [esi]; add esi, 8").map(|plan| plan.counter()),
        Ok(Some(Register::RDX))
    );
}
