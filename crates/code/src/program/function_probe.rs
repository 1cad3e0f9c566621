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

use super::function_code::{FunctionCode, continues};
use super::state_probe::ProbeCode;
use super::watch_point::is_conditional;
use super::{Program, ProgramRecipe, emit_exit};
use crate::asm::{CodeMode, Emitter, context_operand, parse_assembly};
use crate::context::ProgramContext;
use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, IcedError, Instruction, InstructionInfoFactory, MemoryOperand,
    Mnemonic, OpKind, Register,
};
use std::mem::offset_of;

/// Most counters of a function: enough for 8 192 instructions, a quarter of them branches.
const COUNTERS_MOST: usize = 16_384;
/// Bytes of the memory area with the counters of the first call, those of a later one, and the last
/// direction of each branch.
pub const COUNTERS_BYTES: u64 = 3 * TABLE_BYTES as u64;
const TABLE_BYTES: usize = 8 * COUNTERS_MOST;

/// Fields of the context that no clock uses in these programs.
const SCRATCH: usize = offset_of!(ProgramContext, spill);
const SECOND_SCRATCH: usize = SCRATCH + 8;
/// Address of the counters.
const TABLE: usize = SCRATCH + 16;
/// Target of an indirect branch.
const TARGET: usize = SCRATCH + 24;
/// The last target that is not followed.
const UNKNOWN: usize = SCRATCH + 32;
/// A register whose place an address takes, and RCX before a repeated instruction.
const REPLACED: usize = SCRATCH + 40;
const SUM: usize = SCRATCH + 48;
/// Address of the last directions: 0, or 8 if the branch was taken.
const DIRECTIONS: usize = SCRATCH + 56;
/// Counters of a branch.
const DIRECTION_PAIRS: usize = 4;
/// Denormal operand and underflow, in MXCSR as in the x87 status word (Intel SDM vol. 1, 8.1.3 and
/// 10.2.3).
const DENORMAL_FLAGS: i32 = 0x12;
/// All exception flags of MXCSR.
const EXCEPTION_FLAGS: i32 = 0x3f;
/// A division's counter has the number of divisions in the upper half, and the bits in the lower one.
const ONE_DIVISION: u64 = 1 << 32;
const WORDS: [usize; 2] = [offset_of!(ProgramContext, start), offset_of!(ProgramContext, end)];

/// Registers that may hold an address in place of RIP. None needs another encoding.
const ADDRESS_REGISTERS: [Register; 8] = [
    Register::RAX,
    Register::RCX,
    Register::RDX,
    Register::RBX,
    Register::RSI,
    Register::RDI,
    Register::R8,
    Register::R9,
];

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

/// Divisions of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DivisionCount {
    /// Their number.
    pub divisions: u64,
    /// Significant bits of all quotients together, each less one. Of floating-point divisions the
    /// number of short results.
    pub bits: u64,
}

impl DivisionCount {
    /// Reads a word of [`CountComparison::Divisions`].
    pub fn from_word(word: u64) -> DivisionCount {
        DivisionCount { divisions: word / ONE_DIVISION, bits: word % ONE_DIVISION }
    }
}

/// Where a probe counts: the counters of a function's blocks, then those of its branches, of its
/// repeated instructions, of its divisions, and of its floating-point divisions.
#[derive(Debug, Clone)]
pub struct FunctionCounters {
    /// Addresses of the blocks, branches, repeated instructions and divisions.
    places: Vec<u64>,
    /// Number of the blocks' counters, and of those before each further kind.
    ends: [usize; 4],
}

impl FunctionCounters {
    /// The counters of a function. `None` if there are too many.
    pub fn from_code(code: &FunctionCode) -> Option<FunctionCounters> {
        let mut places: Vec<u64> = code.blocks().into_keys().collect();
        let blocks = places.len();
        for branch in code.instructions().filter(|one| is_conditional(one)) {
            places.extend([branch.ip(); DIRECTION_PAIRS]);
        }
        let branches = places.len();
        places.extend(code.instructions().filter(|one| is_repeated(one)).map(Instruction::ip));
        let counted = places.len();
        places.extend(code.instructions().filter(|one| is_division(one)).map(Instruction::ip));
        let ends = [blocks, branches, counted, places.len()];
        places.extend(code.instructions().filter(|one| find_float_division(one).is_some()).map(Instruction::ip));
        (places.len() <= COUNTERS_MOST).then_some(FunctionCounters { places, ends })
    }

    /// The address that a counter belongs to.
    pub fn place(&self, counter: u64) -> Option<u64> {
        self.places.get(counter as usize).copied()
    }
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

/// A copy of a function with counting instructions.
#[derive(Default)]
struct CountedCode {
    probe: ProbeCode,
    /// The next address for targets of its own. No code has one of the first pages.
    label: u64,
    taken: Vec<TakenBranch>,
}

/// The way of a conditional branch that is taken.
struct TakenBranch {
    label: u64,
    number: usize,
    target: u64,
}

impl CountedCode {
    fn translate(code: &FunctionCode, counters: &FunctionCounters) -> Result<ProbeCode, IcedError> {
        let mut counted = CountedCode { label: 1, ..CountedCode::default() };
        counted.push(Instruction::with_branch(Code::Jmp_rel32_64, code.entry()))?;
        let blocks = code.blocks();
        let [first_branch, mut repeated_number, mut division_number, mut float_number] = counters.ends;
        let (mut block_number, mut branch_number) = (0, 0);
        let mut expected = None;
        for instruction in code.instructions() {
            if let Some(next) = expected.filter(|next| *next != instruction.ip()) {
                counted.push(Instruction::with_branch(Code::Jmp_rel32_64, next))?;
            }
            counted.probe.set_label(instruction.ip());
            if let Some(length) = blocks.get(&instruction.ip()) {
                counted.add_number(block_number, *length)?;
                block_number += 1;
            }
            let counts_repeats = is_repeated(instruction);
            if counts_repeats {
                counted.probe.store_general(REPLACED, Register::RCX)?;
            }
            if is_conditional(instruction) {
                let label = counted.new_label();
                let mut copy = *instruction;
                copy.set_near_branch64(label);
                counted.probe.push(copy);
                counted.add_direction(first_branch, branch_number, 0)?;
                let target = instruction.near_branch_target();
                counted.taken.push(TakenBranch { label, number: branch_number, target });
                branch_number += 1;
            } else {
                counted.push_copy(instruction, code)?;
            }
            if counts_repeats {
                counted.add_repeats(repeated_number)?;
                repeated_number += 1;
            }
            if is_division(instruction) {
                counted.add_division(division_number, instruction)?;
                division_number += 1;
            }
            if let Some(float) = find_float_division(instruction) {
                counted.add_float_division(float_number, float)?;
                float_number += 1;
            }
            expected = continues(instruction).then(|| instruction.next_ip());
        }
        if let Some(next) = expected {
            counted.push(Instruction::with_branch(Code::Jmp_rel32_64, next))?;
        }
        for TakenBranch { label, number, target } in std::mem::take(&mut counted.taken) {
            counted.probe.set_label(label);
            counted.add_direction(first_branch, number, 1)?;
            counted.push(Instruction::with_branch(Code::Jmp_rel32_64, target))?;
        }
        for address in code.left_out() {
            counted.probe.set_label(address);
            counted.set_target(address)?;
            counted.push(Instruction::with1(Code::Jmp_rm64, context_operand(TARGET)))?;
        }
        Ok(counted.probe)
    }

    fn push(&mut self, instruction: Result<Instruction, IcedError>) -> Result<(), IcedError> {
        self.probe.push(instruction?);
        Ok(())
    }

    fn new_label(&mut self) -> u64 {
        self.label += 1;
        self.label
    }

    /// The instruction, or what does the same at another place.
    fn push_copy(&mut self, instruction: &Instruction, code: &FunctionCode) -> Result<(), IcedError> {
        match instruction.code() {
            Code::Call_rm64 | Code::Jmp_rm64 => self.dispatch(instruction, &code.possible_targets(instruction)),
            _ if instruction.is_ip_rel_memory_operand() => self.push_with_address(instruction),
            _ => {
                self.probe.push(*instruction);
                Ok(())
            }
        }
    }

    /// An instruction with an operand at an address relative to its own.
    fn push_with_address(&mut self, instruction: &Instruction) -> Result<(), IcedError> {
        let mut factory = InstructionInfoFactory::new();
        let used = factory.info(instruction).used_registers();
        let is_free = |register: &Register| used.iter().all(|used| used.register().full_register() != *register);
        let register = ADDRESS_REGISTERS.into_iter().find(is_free).expect("no instruction uses eight registers");
        self.probe.store_general(REPLACED, register)?;
        self.push(Instruction::with2(Code::Mov_r64_imm64, register, instruction.ip_rel_memory_address()))?;
        let mut copy = *instruction;
        copy.set_memory_base(register);
        copy.set_memory_displacement64(0);
        copy.set_memory_displ_size(0);
        self.probe.push(copy);
        self.probe.load(register, REPLACED)
    }

    /// A branch or call whose target is only known when it runs. It reaches the copy of the target,
    /// or the target itself if that is not followed.
    ///
    /// ```text
    ///     mov  [scratch], rcx
    ///     mov  rcx, operand
    ///     mov  [target], rcx
    ///     mov  [second], rdx
    ///     mov  rdx, [target]     ; for each known target
    ///     mov  rcx, -known
    ///     lea  rcx, [rcx + rdx]
    ///     jrcxz found
    ///     mov  rcx, [target]
    ///     mov  [unknown], rcx
    ///     (restore RCX and RDX)
    ///     call [target]
    ///     jmp  after
    /// found:
    ///     (restore RCX and RDX)
    ///     call known
    ///     jmp  after
    /// after:
    /// ```
    fn dispatch(&mut self, instruction: &Instruction, targets: &[u64]) -> Result<(), IcedError> {
        let is_call = instruction.code() == Code::Call_rm64;
        let counter = Register::RCX;
        self.probe.store_general(SCRATCH, counter)?;
        match instruction.op0_kind() {
            OpKind::Register => {
                self.push(Instruction::with2(Code::Mov_r64_rm64, counter, instruction.op0_register()))?;
            }
            _ => {
                let mut load = *instruction;
                load.set_code(Code::Mov_r64_rm64);
                load.set_op1_kind(OpKind::Memory);
                load.set_op0_kind(OpKind::Register);
                load.set_op0_register(counter);
                match load.is_ip_rel_memory_operand() {
                    true => self.push_with_address(&load)?,
                    false => self.probe.push(load),
                }
            }
        }
        self.probe.store_general(TARGET, counter)?;
        self.probe.store_general(SECOND_SCRATCH, Register::RDX)?;
        self.probe.load(Register::RDX, TARGET)?;
        let found: Vec<u64> = targets.iter().map(|_| self.new_label()).collect();
        let after = self.new_label();
        for (target, label) in targets.iter().zip(&found) {
            self.push(Instruction::with2(Code::Mov_r64_imm64, counter, target.wrapping_neg()))?;
            let sum = MemoryOperand::with_base_index(counter, Register::RDX);
            self.push(Instruction::with2(Code::Lea_r64_m, counter, sum))?;
            self.push(Instruction::with_branch(Code::Jrcxz_rel8_64, *label))?;
        }
        self.probe.load(counter, TARGET)?;
        self.probe.store_general(UNKNOWN, counter)?;
        self.restore()?;
        let leave = if is_call { Code::Call_rm64 } else { Code::Jmp_rm64 };
        self.push(Instruction::with1(leave, context_operand(TARGET)))?;
        let return_to = |counted: &mut CountedCode| match is_call {
            true => counted.push(Instruction::with_branch(Code::Jmp_rel32_64, after)),
            false => Ok(()),
        };
        return_to(self)?;
        let enter = if is_call { Code::Call_rel32_64 } else { Code::Jmp_rel32_64 };
        for (target, label) in targets.iter().zip(found) {
            self.probe.set_label(label);
            self.restore()?;
            self.push(Instruction::with_branch(enter, *target))?;
            return_to(self)?;
        }
        if is_call {
            self.probe.set_label(after);
        }
        Ok(())
    }

    /// Leads to an address that is not followed.
    fn set_target(&mut self, address: u64) -> Result<(), IcedError> {
        self.probe.store_general(SCRATCH, Register::RCX)?;
        self.push(Instruction::with2(Code::Mov_r64_imm64, Register::RCX, address))?;
        self.probe.store_general(TARGET, Register::RCX)?;
        self.probe.store_general(UNKNOWN, Register::RCX)?;
        self.probe.load(Register::RCX, SCRATCH)
    }

    fn restore(&mut self) -> Result<(), IcedError> {
        self.probe.load(Register::RDX, SECOND_SCRATCH)?;
        self.probe.load(Register::RCX, SCRATCH)
    }

    /// Adds a number to a counter.
    ///
    /// ```text
    ///     mov  [scratch], rcx
    ///     mov  [second], rdx
    ///     mov  rcx, [table]
    ///     mov  rdx, [rcx + 8 * counter]
    ///     lea  rdx, [rdx + number]
    ///     mov  [rcx + 8 * counter], rdx
    ///     (restore RCX and RDX)
    /// ```
    fn add_number(&mut self, counter: usize, number: u64) -> Result<(), IcedError> {
        self.probe.store_general(SCRATCH, Register::RCX)?;
        self.probe.store_general(SECOND_SCRATCH, Register::RDX)?;
        self.load_counter(counter)?;
        let sum = MemoryOperand::with_base_displ(Register::RDX, number as i64);
        self.push(Instruction::with2(Code::Lea_r64_m, Register::RDX, sum))?;
        self.store_counter(counter)
    }

    /// Adds the iterations of a repeated instruction: RCX before it, less RCX now.
    ///
    /// ```text
    ///     mov  [scratch], rcx
    ///     mov  [second], rdx
    ///     mov  rdx, [before]
    ///     not  rcx
    ///     lea  rdx, [rdx + rcx + 1]
    ///     mov  [sum], rdx
    ///     mov  rcx, [table]
    ///     mov  rdx, [rcx + 8 * counter]
    ///     mov  rcx, [sum]
    ///     lea  rdx, [rdx + rcx]
    ///     mov  rcx, [table]
    ///     mov  [rcx + 8 * counter], rdx
    ///     (restore RCX and RDX)
    /// ```
    fn add_repeats(&mut self, counter: usize) -> Result<(), IcedError> {
        let (rcx, rdx) = (Register::RCX, Register::RDX);
        self.probe.store_general(SCRATCH, rcx)?;
        self.probe.store_general(SECOND_SCRATCH, rdx)?;
        self.probe.load(rdx, REPLACED)?;
        self.push(Instruction::with1(Code::Not_rm64, rcx))?;
        let difference = MemoryOperand::with_base_index_scale_displ_size(rdx, rcx, 1, 1, 1);
        self.push(Instruction::with2(Code::Lea_r64_m, rdx, difference))?;
        self.probe.store_general(SUM, rdx)?;
        self.load_counter(counter)?;
        self.probe.load(rcx, SUM)?;
        self.push(Instruction::with2(Code::Lea_r64_m, rdx, MemoryOperand::with_base_index(rdx, rcx)))?;
        self.probe.load(rcx, TABLE)?;
        self.store_counter(counter)
    }

    /// Adds a division, and the significant bits of its quotient less one.
    ///
    /// ```text
    ///     mov  [scratch], rcx
    ///     mov  [second], rdx
    ///     mov  rcx, rax           ; ECX and EAX, or MOVSXD, for 32 bits
    ///     mov  rdx, rcx           ; if signed
    ///     sar  rdx, 63
    ///     xor  rcx, rdx
    ///     or   rcx, 1
    ///     bsr  rcx, rcx
    ///     mov  [sum], rcx
    ///     mov  rcx, [table]
    ///     mov  rdx, [rcx + 8 * counter]
    ///     mov  rcx, [sum]
    ///     lea  rdx, [rdx + rcx]
    ///     mov  rcx, one division
    ///     lea  rdx, [rdx + rcx]
    ///     mov  rcx, [table]
    ///     mov  [rcx + 8 * counter], rdx
    ///     (restore RCX and RDX)
    /// ```
    fn add_division(&mut self, counter: usize, division: &Instruction) -> Result<(), IcedError> {
        let (rcx, rdx) = (Register::RCX, Register::RDX);
        self.probe.store_general(SCRATCH, rcx)?;
        self.probe.store_general(SECOND_SCRATCH, rdx)?;
        self.push(match division.code() {
            Code::Div_rm32 => Instruction::with2(Code::Mov_r32_rm32, Register::ECX, Register::EAX),
            Code::Idiv_rm32 => Instruction::with2(Code::Movsxd_r64_rm32, rcx, Register::EAX),
            _ => Instruction::with2(Code::Mov_r64_rm64, rcx, Register::RAX),
        })?;
        if matches!(division.code(), Code::Idiv_rm32 | Code::Idiv_rm64) {
            self.push(Instruction::with2(Code::Mov_r64_rm64, rdx, rcx))?;
            self.push(Instruction::with2(Code::Sar_rm64_imm8, rdx, 63))?;
            self.push(Instruction::with2(Code::Xor_r64_rm64, rcx, rdx))?;
        }
        self.push(Instruction::with2(Code::Or_rm64_imm8, rcx, 1))?;
        self.push(Instruction::with2(Code::Bsr_r64_rm64, rcx, rcx))?;
        self.probe.store_general(SUM, rcx)?;
        self.load_counter(counter)?;
        let sum = || Instruction::with2(Code::Lea_r64_m, rdx, MemoryOperand::with_base_index(rdx, rcx));
        self.probe.load(rcx, SUM)?;
        self.push(sum())?;
        self.push(Instruction::with2(Code::Mov_r64_imm64, rcx, ONE_DIVISION))?;
        self.push(sum())?;
        self.probe.load(rcx, TABLE)?;
        self.store_counter(counter)
    }

    /// Adds a floating-point division, and whether its result is short.
    ///
    /// ```text
    ///     mov  [scratch], rcx
    ///     mov  [second], rdx
    ///     movsd [sum], xmm
    ///     mov  ecx, [sum]         ; MOVZX of 16 bits for single precision
    ///     jrcxz short
    ///     mov  rcx, one division
    ///     jmp  add
    /// short:
    ///     mov  rcx, one division + 1
    /// add:
    ///     mov  [sum], rcx
    ///     mov  rcx, [table]
    ///     mov  rdx, [rcx + 8 * counter]
    ///     mov  rcx, [sum]
    ///     lea  rdx, [rdx + rcx]
    ///     mov  rcx, [table]
    ///     mov  [rcx + 8 * counter], rdx
    ///     (restore RCX and RDX)
    /// ```
    fn add_float_division(&mut self, counter: usize, float: FloatDivision) -> Result<(), IcedError> {
        let (rcx, rdx) = (Register::RCX, Register::RDX);
        self.probe.store_general(SCRATCH, rcx)?;
        self.probe.store_general(SECOND_SCRATCH, rdx)?;
        self.push(Instruction::with2(Code::Movsd_xmmm64_xmm, context_operand(SUM), float.result))?;
        self.push(match float.is_single {
            true => Instruction::with2(Code::Movzx_r32_rm16, Register::ECX, context_operand(SUM)),
            false => Instruction::with2(Code::Mov_r32_rm32, Register::ECX, context_operand(SUM)),
        })?;
        let [short, add] = [self.new_label(), self.new_label()];
        self.push(Instruction::with_branch(Code::Jrcxz_rel8_64, short))?;
        self.push(Instruction::with2(Code::Mov_r64_imm64, rcx, ONE_DIVISION))?;
        self.push(Instruction::with_branch(Code::Jmp_rel32_64, add))?;
        self.probe.set_label(short);
        self.push(Instruction::with2(Code::Mov_r64_imm64, rcx, ONE_DIVISION + 1))?;
        self.probe.set_label(add);
        self.probe.store_general(SUM, rcx)?;
        self.load_counter(counter)?;
        self.probe.load(rcx, SUM)?;
        self.push(Instruction::with2(Code::Lea_r64_m, rdx, MemoryOperand::with_base_index(rdx, rcx)))?;
        self.probe.load(rcx, TABLE)?;
        self.store_counter(counter)
    }

    /// Counts a direction of a branch, 1 if it is taken, by its direction before.
    ///
    /// ```text
    ///     mov  [scratch], rcx
    ///     mov  [second], rdx
    ///     mov  rcx, [directions]
    ///     mov  rdx, [rcx + 8 * branch]
    ///     mov  qword ptr [rcx + 8 * branch], 8 * direction
    ///     mov  rcx, [table]
    ///     lea  rcx, [rcx + rdx]
    ///     mov  rdx, [rcx + 8 * counter]
    ///     lea  rdx, [rdx + 1]
    ///     mov  [rcx + 8 * counter], rdx
    ///     (restore RCX and RDX)
    /// ```
    fn add_direction(&mut self, first: usize, branch: usize, direction: usize) -> Result<(), IcedError> {
        let (rcx, rdx) = (Register::RCX, Register::RDX);
        let counter = first + DIRECTION_PAIRS * branch + 2 * direction;
        self.probe.store_general(SCRATCH, rcx)?;
        self.probe.store_general(SECOND_SCRATCH, rdx)?;
        self.probe.load(rcx, DIRECTIONS)?;
        self.push(Instruction::with2(Code::Mov_r64_rm64, rdx, counter_operand(branch)))?;
        self.push(Instruction::with2(Code::Mov_rm64_imm32, counter_operand(branch), 8 * direction as i32))?;
        self.probe.load(rcx, TABLE)?;
        self.push(Instruction::with2(Code::Lea_r64_m, rcx, MemoryOperand::with_base_index(rcx, rdx)))?;
        self.push(Instruction::with2(Code::Mov_r64_rm64, rdx, counter_operand(counter)))?;
        self.push(Instruction::with2(Code::Lea_r64_m, rdx, MemoryOperand::with_base_displ(rdx, 1)))?;
        self.store_counter(counter)
    }

    /// Loads a counter into RDX, and the address of all counters into RCX.
    fn load_counter(&mut self, counter: usize) -> Result<(), IcedError> {
        self.probe.load(Register::RCX, TABLE)?;
        self.push(Instruction::with2(Code::Mov_r64_rm64, Register::RDX, counter_operand(counter)))
    }

    fn store_counter(&mut self, counter: usize) -> Result<(), IcedError> {
        self.push(Instruction::with2(Code::Mov_rm64_r64, counter_operand(counter), Register::RDX))?;
        self.restore()
    }
}

/// A counter, if RCX is the address of all.
fn counter_operand(counter: usize) -> MemoryOperand {
    MemoryOperand::with_base_displ(Register::RCX, 8 * counter as i64)
}

fn is_repeated(instruction: &Instruction) -> bool {
    instruction.is_string_instruction() && (instruction.has_rep_prefix() || instruction.has_repne_prefix())
}

/// Whether the time of an instruction depends on the bits of its quotient. Divisions of few bits
/// take about the same time.
fn is_division(instruction: &Instruction) -> bool {
    matches!(instruction.code(), Code::Div_rm32 | Code::Div_rm64 | Code::Idiv_rm32 | Code::Idiv_rm64)
}

/// A floating-point division or square root.
#[derive(Debug, Clone, Copy)]
struct FloatDivision {
    /// The register whose lowest element is its result.
    result: Register,
    is_single: bool,
}

/// The division or square root that an instruction is. One with a mask may leave its result alone.
fn find_float_division(instruction: &Instruction) -> Option<FloatDivision> {
    use Mnemonic::*;
    let is_single = match instruction.mnemonic() {
        Divss | Divps | Sqrtss | Sqrtps | Vdivss | Vdivps | Vsqrtss | Vsqrtps => true,
        Divsd | Divpd | Sqrtsd | Sqrtpd | Vdivsd | Vdivpd | Vsqrtsd | Vsqrtpd => false,
        _ => return None,
    };
    let number = instruction.op0_register().number();
    // Only the lower registers can be stored without EVEX.
    let is_stored = number < 16 && instruction.op_mask() == Register::None;
    is_stored.then(|| FloatDivision { result: Register::XMM0 + number as u32, is_single })
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

    #[test]
    fn counting_keeps_registers_and_flags() {
        use iced_x86::{OpAccess, RflagsBits};
        const FLAGS: u32 = RflagsBits::OF | RflagsBits::SF | RflagsBits::ZF | RflagsBits::CF;
        let text = parse_assembly("1: dec eax; jnz 1b; rep movsb; sqrtsd xmm1, xmm1; vdivps ymm2, ymm3, ymm4; mov eax, [rip + 0x100]; call rbx; ret").unwrap();
        let at = 0x7f00_0000_0000;
        let mut bytes = text.bytes().to_vec();
        bytes.resize(256, 0xcc);
        let code = FunctionCode::discover(at, &[at + 2], &mut |address, length| {
            bytes.get((address.checked_sub(at)?) as usize..)?.get(..length).map(<[u8]>::to_vec)
        });
        let code = code.unwrap();
        let counters = FunctionCounters::from_code(&code).unwrap();
        let probe = CountedCode::translate(&code, &counters).unwrap().encode(0).unwrap();
        let copied: Vec<Code> = text.instructions().iter().map(Instruction::code).collect();
        let mut factory = InstructionInfoFactory::new();
        for one in Decoder::new(64, &probe.bytes, DecoderOptions::NONE) {
            if one.mnemonic() == iced_x86::Mnemonic::Dec || one.is_string_instruction() {
                continue;
            }
            assert_eq!(one.rflags_modified() & FLAGS, 0, "{one:?}");
            let is_own = !copied.contains(&one.code()) && one.flow_control() == FlowControl::Next;
            let written = factory.info(&one).used_registers().iter().filter(|used| used.access() == OpAccess::Write);
            let registers: Vec<Register> = written.map(|used| used.register()).collect();
            let scratch = [Register::RAX, Register::RCX, Register::RDX];
            assert!(!is_own || registers.iter().all(|register| scratch.contains(register)), "{one:?}");
        }
    }
}
