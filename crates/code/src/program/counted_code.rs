//! The copy of a function that counts what it executes.
//!
//! `function_probe.rs` says where it counts, and what the inserted instructions leave unchanged.

use super::function_code::{FunctionCode, continues};
use super::function_counters::{
    DIRECTION_PAIRS, FloatDivision, FunctionCounters, ONE_DIVISION, find_float_division, is_division, is_repeated,
};
use super::state_probe::ProbeCode;
use super::watch_point::is_conditional;
use crate::asm::context_operand;
use crate::context::ProgramContext;
use iced_x86::{Code, IcedError, Instruction, InstructionInfoFactory, MemoryOperand, OpKind, Register};
use std::mem::offset_of;

/// Fields of the context that no clock uses in these programs.
const SCRATCH: usize = offset_of!(ProgramContext, spill);
const SECOND_SCRATCH: usize = SCRATCH + 8;
/// Address of the counters.
pub(super) const TABLE: usize = SCRATCH + 16;
/// Target of an indirect branch.
const TARGET: usize = SCRATCH + 24;
/// The last target that is not followed.
pub(super) const UNKNOWN: usize = SCRATCH + 32;
/// A register whose place an address takes, and RCX before a repeated instruction.
pub(super) const REPLACED: usize = SCRATCH + 40;
pub(super) const SUM: usize = SCRATCH + 48;
/// Address of the last directions: 0, or 8 if the branch was taken.
pub(super) const DIRECTIONS: usize = SCRATCH + 56;

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

/// A copy of a function with counting instructions.
#[derive(Default)]
pub(super) struct CountedCode {
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
    /// Translates a function.
    ///
    /// # Errors
    ///
    /// Fails if an instruction can't be encoded at another place.
    pub(super) fn translate(code: &FunctionCode, counters: &FunctionCounters) -> Result<ProbeCode, IcedError> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asm::parse_assembly;
    use iced_x86::{Decoder, DecoderOptions, FlowControl};

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
