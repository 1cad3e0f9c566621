//! Programs that call a function and count what it executes, instead of reading the clock.
//!
//! A probe runs a copy of the function's instructions. Inserted instructions add to counters in
//! memory: at the start of each block, after each conditional branch, at each repeated string
//! instruction, and after each division and square root. They change neither registers nor flags, and use no stack.
//! Only the flags after a division, which are undefined, become others. Return addresses differ, so
//! code that reads them fails: unwinding, for example.
//!
//! A branch has four counters: how often it goes the one way or the other, each after the one or the
//! other. Predictors meet another task if these differ, although the instructions are the same.
//!
//! Time also depends on numbers. A division's counter sums the bits of its quotients, as dividers
//! take longer for more. That of a floating-point division or square root has the results whose lower
//! half of the significand is zero, as some dividers then end early. The flags of floating-point exceptions say whether numbers were denormal.
//!
//! One program counts the first call, another one a later call, and others compare both.

use super::counted_code::{CountedCode, DIRECTIONS, REPLACED, SUM, TABLE, UNKNOWN};
use super::function_code::FunctionCode;
use super::function_counters::{COUNTERS_MOST, FunctionCounters};
use super::program_recipe::emit_exit;
use super::{Program, ProgramRecipe};
use crate::asm::{CodeMode, Emitter, context_operand, parse_assembly};
use crate::context::ProgramContext;
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, IcedError, Instruction, MemoryOperand, OpKind, Register};
use std::mem::offset_of;

/// Bytes of the memory area with the counters of the first call, those of a later one, and the last
/// direction of each branch.
pub const COUNTERS_BYTES: u64 = 3 * TABLE_BYTES as u64;
const TABLE_BYTES: usize = 8 * COUNTERS_MOST;
/// Denormal operand and underflow, in MXCSR as in the x87 status word (Intel SDM vol. 1, 8.1.3 and
/// 10.2.3).
const DENORMAL_FLAGS: i32 = 0x12;
/// All exception flags of MXCSR.
const EXCEPTION_FLAGS: i32 = 0x3f;
const WORDS: [usize; 2] = [offset_of!(ProgramContext, start), offset_of!(ProgramContext, end)];

/// A snippet that calls a function, in parts.
#[derive(Debug, Clone, Copy)]
pub struct FunctionCall<'a> {
    /// The code before the call.
    before: &'a [u8],
    /// The code after it.
    after: &'a [u8],
    /// Address of the function.
    pub function: u64,
}

impl<'a> FunctionCall<'a> {
    /// Finds the last call of a snippet, through a register that its init code sets to a number.
    pub fn from_code(snippet: &'a [u8], init: &[u8]) -> Option<FunctionCall<'a>> {
        let decode = |code| Decoder::new(64, code, DecoderOptions::NONE).into_iter();
        let instructions: Vec<Instruction> = decode(snippet).collect();
        let call = instructions.iter().rfind(|one| one.flow_control() == FlowControl::IndirectCall)?;
        if call.op0_kind() != OpKind::Register {
            return None;
        }
        let register = call.op0_register();
        let sets = |one: &Instruction| one.code() == Code::Mov_r64_imm64 && one.op0_register() == register;
        let loads: Vec<Instruction> = decode(init).filter(sets).collect();
        let (before, after) = (&snippet[..call.ip() as usize], &snippet[call.next_ip() as usize..]);
        Some(FunctionCall { before, after, function: loads.last()?.immediate64() })
    }
}

/// The counters that a program uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountedCall {
    /// Those of the first call.
    First,
    /// Those of a later call.
    Later,
}

/// The words that a program returns about the counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountComparison {
    /// How many instructions one of both calls executed and the other did not, and how many the
    /// later call executed.
    Later,
    /// Divisions and the bits of their quotients, in the first call and in the later one.
    Divisions,
    /// Floating-point divisions and square roots, and how many of their results are short, in the
    /// first call and in the later one.
    FloatDivisions,
    /// The number of the counter that differs most, and how many instructions the first call
    /// executed. It also clears the counters of the later call, and the last directions.
    First,
}

impl ProgramRecipe<'_> {
    /// Builds the program that makes a call and counts what it executes. At entry, `register` points
    /// to the area with the counters. The first word of the sample is the last address that is not
    /// followed, or 0. The second one is not 0 if numbers were denormal.
    ///
    /// Of the recipe it uses the state at entry and the init code.
    ///
    /// # Errors
    ///
    /// Fails if an instruction of the function can't be encoded at another place.
    pub fn build_counted_call(
        &self,
        call: &FunctionCall,
        code: &FunctionCode,
        counters: &FunctionCounters,
        counted: CountedCall,
        register: Register,
    ) -> Result<Program, IcedError> {
        let mut emitter = Emitter::starting_at(0, CodeMode::Bits64);
        ProgramRecipe { looped: None, init: &[], ..*self }.emit_entry(&mut emitter);
        let table = if counted == CountedCall::First { 0 } else { TABLE_BYTES };
        for (field, distance) in [(TABLE, table), (DIRECTIONS, 2 * TABLE_BYTES - table)] {
            let next = MemoryOperand::with_base_displ(register, distance as i64);
            emitter.push(Instruction::with2(Code::Lea_r64_m, register, next));
            emitter.store_field(Code::Mov_rm64_r64, field, register);
        }
        emitter.push(Instruction::with2(Code::Mov_rm64_imm32, context_operand(UNKNOWN), 0));
        emitter.push_bytes(self.init);
        emitter.push(Instruction::with1(Code::Stmxcsr_m32, context_operand(SUM)));
        emitter.push(Instruction::with2(Code::And_rm32_imm8, context_operand(SUM), !EXCEPTION_FLAGS));
        emitter.push(Instruction::with1(Code::Ldmxcsr_m32, context_operand(SUM)));
        emitter.push(Ok(Instruction::with(Code::Fnclex)));
        emitter.push_bytes(call.before);
        let start = emitter.len();
        let (mut bytes, mut relocations) = emitter.finish();
        const CALL_BYTES: usize = 5;
        let mut emitter = Emitter::starting_at(start + CALL_BYTES, CodeMode::Bits64);
        emitter.push(Instruction::with1(Code::Stmxcsr_m32, context_operand(SUM)));
        emitter.push(Instruction::with1(Code::Fnstsw_m2byte, context_operand(REPLACED)));
        emitter.push_bytes(call.after);
        emitter.load_field(Code::Mov_r64_rm64, Register::RAX, UNKNOWN);
        emitter.store_field(Code::Mov_rm64_r64, WORDS[0], Register::RAX);
        emitter.load_field(Code::Mov_r32_rm32, Register::EAX, SUM);
        emitter.load_field(Code::Or_r32_rm32, Register::EAX, REPLACED);
        emitter.push(Instruction::with2(Code::And_EAX_imm32, Register::EAX, DENORMAL_FLAGS));
        emitter.store_field(Code::Mov_rm64_r64, WORDS[1], Register::RAX);
        emit_exit(&mut emitter);
        let (tail, tail_relocations) = emitter.finish();
        // `call` to the function, which follows the tail.
        bytes.push(0xe8);
        bytes.extend((tail.len() as i32).to_le_bytes());
        bytes.extend(&tail);
        relocations.extend(tail_relocations);
        let function = bytes.len();
        let encoded = CountedCode::translate(code, counters)?.encode(function)?;
        relocations.extend(&encoded.relocations);
        bytes.extend(&encoded.bytes);
        Ok(self.probe_program(bytes, relocations, function, encoded.bytes))
    }

    /// Builds the program that compares the counters of both calls.
    pub fn build_count_comparison(
        &self,
        counters: &FunctionCounters,
        comparison: CountComparison,
        register: Register,
    ) -> Program {
        let mut emitter = Emitter::starting_at(0, CodeMode::Bits64);
        ProgramRecipe { looped: None, init: &[], ..*self }.emit_entry(&mut emitter);
        let start = emitter.len();
        let [.., counted, divided] = counters.ends;
        let all = counters.places.len();
        let name = format!("{register:?}").to_lowercase();
        // RAX: unlike instructions. RDX: those of the later call. R12: those of the first one. R9:
        // the counter that differs by R8, the most.
        let text = format!(
            "mov rdi, {name}; lea rsi, [rdi + {TABLE_BYTES}]; xor eax, eax; xor edx, edx; xor r12d, r12d; \
             xor r8d, r8d; xor r9d, r9d; xor r10d, r10d; \
             1: mov rbx, [rsi + r10*8]; add rdx, rbx; mov r11, [rdi + r10*8]; add r12, r11; sub r11, rbx; \
             mov rbx, r11; neg rbx; cmovs rbx, r11; add rax, rbx; cmp rbx, r8; jbe 2f; mov r8, rbx; mov r9, r10; \
             2: inc r10; cmp r10, {counted}; jb 1b"
        );
        // RAX: divisions of the first call. RDX: those of the later one.
        let sum_divisions = |from: usize, end: usize| {
            format!(
                "mov rdi, {name}; lea rsi, [rdi + {TABLE_BYTES}]; xor eax, eax; xor edx, edx; mov r10d, {from}; \
                 1: cmp r10, {end}; jae 2f; add rax, [rdi + r10*8]; add rdx, [rsi + r10*8]; inc r10; jmp 1b; 2: nop"
            )
        };
        let mut push = |text: &str| emitter.push_bytes(parse_assembly(text).expect("the text is valid").bytes());
        match comparison {
            CountComparison::Divisions => push(&sum_divisions(counted, divided)),
            CountComparison::FloatDivisions => push(&sum_divisions(divided, all)),
            CountComparison::Later | CountComparison::First => push(&text),
        }
        let words = match comparison {
            CountComparison::Later | CountComparison::Divisions | CountComparison::FloatDivisions => {
                [Register::RAX, Register::RDX]
            }
            CountComparison::First => {
                let cleared = 2 * COUNTERS_MOST;
                push(&format!("xor eax, eax; mov ecx, {cleared}; mov rdi, rsi; cld; rep stosq"));
                [Register::R9, Register::R12]
            }
        };
        for (field, word) in WORDS.into_iter().zip(words) {
            emitter.store_field(Code::Mov_rm64_r64, field, word);
        }
        emit_exit(&mut emitter);
        let (bytes, relocations) = emitter.finish();
        let own = bytes[start..].to_vec();
        self.probe_program(bytes, relocations, start, own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_called_function_is_in_the_register_that_init_sets() {
        let assemble = |text: &str| parse_assembly(text).unwrap().bytes().to_vec();
        let init = assemble("mov r12, 0x123456789abc; xor r13d, r13d");
        let snippet = assemble("call rbp; mov rdi, r14; call r12; fstp st0");
        let call = FunctionCall::from_code(&snippet, &init).unwrap();
        assert_eq!(call.function, 0x1234_5678_9abc);
        assert_eq!((call.before, call.after), (&assemble("call rbp; mov rdi, r14")[..], &assemble("fstp st0")[..]));
        assert!(FunctionCall::from_code(&assemble("call rax"), &init).is_none());
    }
}
