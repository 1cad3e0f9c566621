//! Tests of whole programs, by their instructions.

use super::*;
use crate::asm::{CodeMode, NOMINAL_CONTEXT};
use crate::clock::Clock;
use crate::context::ProgramContext;
use iced_x86::{Code, Register};
use std::mem::offset_of;

/// The instructions of a program in the loop of its snippet, and the index of its body's first.
fn looped_instructions(snippet: &str) -> (Vec<iced_x86::Instruction>, usize) {
    let snippet = crate::asm::parse_assembly(snippet).unwrap();
    let clock = Clock::find_named("rdtscp-lfence").unwrap();
    let looped = Some(LoopPlan::from_code(snippet.bytes(), &[], CodeMode::Bits64).unwrap());
    let recipe = ProgramRecipe { snippet: snippet.bytes(), copies: 3, looped, ..ProgramRecipe::empty(clock) };
    let program = recipe.build();
    let decoder = iced_x86::Decoder::new(64, program.code(), iced_x86::DecoderOptions::NONE);
    let instructions: Vec<_> = decoder.into_iter().collect();
    let body = program.body_range().start as u64;
    let first = instructions.iter().position(|instruction| instruction.ip() == body).unwrap();
    (instructions, first)
}

#[test]
fn a_program_that_copies_gets_the_address_of_the_function() {
    let clock = Clock::find_named("rdtscp-lfence").unwrap();
    let program = |calls_memcpy| ProgramRecipe { calls_memcpy, ..ProgramRecipe::empty(clock) }.build();
    let [with, without] = [true, false].map(program);
    assert_eq!((with.calls_library(), without.calls_library()), (true, false));
    let decoder = iced_x86::Decoder::new(64, with.code(), iced_x86::DecoderOptions::NONE);
    let loads: Vec<_> = decoder.into_iter().filter(|one| one.op0_register() == Register::R13).collect();
    // The pushes and pops of R13 have no memory operand of the context.
    let field = NOMINAL_CONTEXT as u64 + offset_of!(ProgramContext, memcpy) as u64;
    assert!(loads.iter().any(|load| load.code() == Code::Mov_r64_rm64 && load.ip_rel_memory_address() == field));
    assert_eq!(with.len(), without.len() + 7, "nothing else differs");
}

#[test]
fn the_counter_is_loaded_before_the_body_and_counts_at_its_end() {
    let (instructions, first) = looped_instructions("add r15, rax; adc r13, rax");
    let count = NOMINAL_CONTEXT as u64 + offset_of!(ProgramContext, loop_count) as u64;
    let loads = instructions[..first]
        .iter()
        .filter(|instruction| instruction.is_ip_rel_memory_operand() && instruction.ip_rel_memory_address() == count);
    let loaded: Vec<Register> = loads.map(|instruction| instruction.op0_register()).collect();
    assert_eq!(loaded, [Register::R12]);
    let [.., decrement, branch] = &instructions[..first + 9] else { panic!("the loop has an end") };
    assert_eq!((decrement.code(), decrement.op0_register()), (Code::Dec_rm64, Register::R12));
    assert_eq!(branch.near_branch_target(), instructions[first].ip());
}

#[test]
fn each_iteration_sets_flags_that_the_snippet_only_reads() {
    let starts_with_test = |snippet: &str| {
        let (instructions, first) = looped_instructions(snippet);
        let back = instructions.iter().find(|instruction| instruction.code() == Code::Jne_rel8_64).unwrap();
        assert_eq!(back.near_branch_target(), instructions[first].ip());
        instructions[first].code() == Code::Test_rm64_r64
    };
    assert!(starts_with_test("cmovz rax, rbx") && !starts_with_test("imul rax, rbx"));
}

#[test]
fn each_copy_has_its_offset() {
    let snippet = crate::asm::parse_assembly("cmovz rax, rbx").unwrap();
    let clock = Clock::find_named("rdtscp-lfence").unwrap();
    for looped in [None, Some(LoopPlan::from_code(snippet.bytes(), &[], CodeMode::Bits64).unwrap())] {
        let recipe = ProgramRecipe { snippet: snippet.bytes(), copies: 3, looped, ..ProgramRecipe::empty(clock) };
        let program = recipe.build();
        let offsets: Vec<usize> = program.copy_offsets().collect();
        assert_eq!(offsets.len(), 3);
        assert!(offsets.iter().all(|at| program.code()[*at..].starts_with(snippet.bytes())));
        assert_eq!(offsets[0] > program.body_range().start, looped.is_some());
    }
}

#[test]
fn a_program_of_32_bit_code_reaches_its_context_by_address() {
    let world = EntryState { mode: CodeMode::Bits32, vectors: VectorSetup::Legacy, ..EntryState::default() };
    let clock = Clock::find_named("rdtscp-lfence").unwrap();
    let looped = Some(LoopPlan::PLAIN);
    let recipe = ProgramRecipe { world, snippet: &[0x40], copies: 300, looped, ..ProgramRecipe::empty(clock) };
    let program = recipe.build();
    let (code, context) = (0x1234_0000, 0xe000_0200);
    let mut bytes = vec![0; program.len()];
    program.relocate_into(code, context, &mut bytes);
    let decoder = iced_x86::Decoder::new(32, &bytes, iced_x86::DecoderOptions::NONE);
    let instructions: Vec<_> = decoder.into_iter().collect();
    assert!(instructions.iter().all(|instruction| !instruction.is_invalid()));
    assert_eq!(instructions.last().map(|last| last.code()), Some(Code::Retfd));
    let in_context = |instruction: &&iced_x86::Instruction| {
        let address = instruction.memory_displacement64();
        instruction.memory_base() == Register::None
            && (context..context + size_of::<ProgramContext>() as u64).contains(&address)
    };
    assert_eq!(instructions.iter().filter(in_context).count(), program.relocations().len());
    let names = [Register::EAX, Register::EBP, Register::ESP, Register::XMM7];
    assert!(names.iter().all(|name| instructions.iter().any(|one| one.op0_register() == *name)));
}

#[test]
fn a_loop_without_a_free_register_counts_in_the_context() {
    let snippet = [0x60, 0x61]; // pusha; popa
    let looped = Some(LoopPlan::from_code(&snippet, &[], CodeMode::Bits32).expect("a loop"));
    let world = EntryState { mode: CodeMode::Bits32, ..EntryState::default() };
    let clock = Clock::find_named("rdtscp-lfence").unwrap();
    let recipe = ProgramRecipe { world, snippet: &snippet, copies: 3, looped, ..ProgramRecipe::empty(clock) };
    let program = recipe.build();
    let context = 0xe000_0200;
    let mut bytes = vec![0; program.len()];
    program.relocate_into(0x1234_0000, context, &mut bytes);
    let decoder = iced_x86::Decoder::new(32, &bytes, iced_x86::DecoderOptions::NONE);
    let instructions: Vec<_> = decoder.into_iter().collect();
    let decrement = instructions.iter().find(|one| one.code() == Code::Dec_rm32).expect("it counts");
    let count = context + offset_of!(ProgramContext, loop_count) as u64;
    assert_eq!((decrement.memory_base(), decrement.memory_displacement64()), (Register::None, count));
}

#[test]
fn the_tail_reaches_the_context_after_any_body() {
    let clock = Clock::find_named("rdtscp-lfence").unwrap();
    let recipe = ProgramRecipe::empty(clock);
    let targets = |copies: usize| {
        let program = recipe.build_frame().build_program(&[0x90], copies);
        let decoder = iced_x86::Decoder::new(64, program.code(), iced_x86::DecoderOptions::NONE);
        let context = decoder.into_iter().filter(|instruction| instruction.is_ip_rel_memory_operand());
        context.map(|instruction| instruction.ip_rel_memory_address()).collect::<Vec<_>>()
    };
    assert_eq!(targets(0), targets(1000));
    assert!(targets(1000).iter().all(|target| {
        (NOMINAL_CONTEXT as u64..NOMINAL_CONTEXT as u64 + size_of::<ProgramContext>() as u64).contains(target)
    }));
}
