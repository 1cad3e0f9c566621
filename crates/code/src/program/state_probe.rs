//! Programs that read a part of a snippet's state in one of its copies, instead of the clock.
//!
//! A probe runs the snippet's instructions in a loop whose counter is in memory, so that the copies
//! find registers and flags as copies in a row do. Instructions that record a state are inserted
//! between them. They change neither registers nor flags. The two words of the last copy become the
//! sample.

use super::program_recipe::CALLEE_SAVED;
use super::watch_point::{SNIPPET_IP, WatchPoint, WatchedSnippet, WatchedState, is_conditional, vector_store_code};
use super::{Program, ProgramRecipe};
use crate::asm::{CodeMode, Emitter, context_operand};
use crate::context::ProgramContext;
use cyclescope_core::unit::Unit;
use iced_x86::{
    BlockEncoder, BlockEncoderOptions, Code, ConstantOffsets, IcedError, Instruction, InstructionBlock, Register,
};
use std::mem::offset_of;

/// The sample of a probe whose last copy reached more conditional branches than allowed.
pub const ENDLESS_COPY: [u64; 2] = [u64::MAX, u64::MAX - 1];

/// Addresses of the probe's own branch targets; none of the snippet's instructions has them.
const NEXT_COPY: u64 = SNIPPET_IP - 1;
const ENDLESS: u64 = SNIPPET_IP - 2;
const DONE: u64 = SNIPPET_IP - 3;

/// The recorded words. A clock's readings are in the same place.
const WORDS: [usize; 2] = [offset_of!(ProgramContext, start), offset_of!(ProgramContext, end)];
/// Copies that are left.
const COPIES: usize = offset_of!(ProgramContext, loop_count);
/// RCX while the probe uses it.
const SCRATCH: usize = offset_of!(ProgramContext, spill);
/// Conditional branches that the copy may still reach.
const BRANCHES: usize = SCRATCH + 8;

impl ProgramRecipe<'_> {
    /// Builds the program that records a state of the watched snippet in the last of
    /// [`ProgramCall::loop_count`](ProgramContext::loop_count) copies. A copy ends the program after
    /// this number of conditional branches, and the sample is [`ENDLESS_COPY`].
    ///
    /// Of the recipe it uses the state at entry and the init code.
    ///
    /// ```text
    ///     (entry as in a timed program, and init)
    /// next:
    ///     mov  qword ptr [start], 0
    ///     mov  qword ptr [end], 0
    ///     mov  qword ptr [branches], limit
    ///     (the snippet, with recording instructions)
    ///     mov  [scratch], rcx
    ///     mov  rcx, [copies]
    ///     lea  rcx, [rcx - 1]
    ///     mov  [copies], rcx
    ///     jrcxz done
    ///     mov  rcx, [scratch]
    ///     jmp  next
    /// endless:
    ///     (the words of an endless copy)
    /// done:
    ///     (exit as in a timed program)
    /// ```
    ///
    /// # Errors
    ///
    /// Fails if an instruction of the snippet can't be encoded at another place.
    pub fn build_probe(
        &self,
        watched: &WatchedSnippet,
        point: &WatchPoint,
        branches: i32,
    ) -> Result<Program, IcedError> {
        let mut emitter = Emitter::starting_at(0, self.world.mode);
        ProgramRecipe { looped: None, ..*self }.emit_entry(&mut emitter);
        let (mut bytes, mut relocations) = emitter.finish();
        let start = bytes.len();
        let mut code = ProbeCode::for_mode(self.world.mode);
        code.push_copy(watched, point, branches)?;
        code.push_end()?;
        let encoded = code.encode(start)?;
        relocations.extend(&encoded.relocations);
        bytes.extend(&encoded.bytes);
        Ok(self.probe_program(bytes, relocations, start, encoded.bytes))
    }

    /// The program of a probe whose body begins at `start`. `own` is what it measures.
    pub(super) fn probe_program(&self, bytes: Vec<u8>, relocations: Vec<u32>, start: usize, own: Vec<u8>) -> Program {
        Program {
            mode: self.world.mode,
            body: start..bytes.len(),
            bytes,
            relocations,
            init: self.init.to_vec(),
            snippet: own,
            copies: 1,
            looped: None,
            lead: 0,
            following: Vec::new(),
            library: false,
            // The words are a state or counts, no readings of a clock.
            counts: Unit::Count,
        }
    }
}

/// Instructions of a probe. Only targets of branches have an address.
#[derive(Default)]
pub(super) struct ProbeCode {
    mode: CodeMode,
    instructions: Vec<Instruction>,
    /// Whether each instruction refers to the context.
    references: Vec<bool>,
    /// Address of the next instruction, if it has one.
    label: u64,
}

/// Encoded instructions of a probe, and the offsets of their displacements to the context, both from
/// the program's start.
pub(super) struct EncodedProbe {
    pub(super) bytes: Vec<u8>,
    pub(super) relocations: Vec<u32>,
}

impl ProbeCode {
    fn for_mode(mode: CodeMode) -> ProbeCode {
        ProbeCode { mode, ..ProbeCode::default() }
    }

    /// Appends an instruction written for 64-bit mode.
    pub(super) fn push(&mut self, instruction: Instruction) {
        self.references.push(instruction.is_ip_rel_memory_operand());
        self.append(self.mode.convert_own(&instruction));
    }

    /// Appends an instruction of the watched code.
    fn push_watched(&mut self, instruction: Instruction) {
        self.references.push(false);
        self.append(instruction);
    }

    fn append(&mut self, mut instruction: Instruction) {
        instruction.set_ip(std::mem::take(&mut self.label));
        self.instructions.push(instruction);
    }

    /// Gives the next instruction an address.
    pub(super) fn set_label(&mut self, label: u64) {
        if self.label != 0 {
            self.push(Instruction::with(Code::Nopd));
        }
        self.label = label;
    }

    /// Encodes the instructions for this offset in the program.
    pub(super) fn encode(&self, start: usize) -> Result<EncodedProbe, IcedError> {
        let options =
            BlockEncoderOptions::RETURN_NEW_INSTRUCTION_OFFSETS | BlockEncoderOptions::RETURN_CONSTANT_OFFSETS;
        let block = InstructionBlock::new(&self.instructions, start as u64);
        let encoded = BlockEncoder::encode(self.mode.bits(), block, options)?;
        let places = encoded.new_instruction_offsets.iter().zip(&encoded.constant_offsets);
        let mut relocations = Vec::new();
        for (is_reference, (offset, constants)) in self.references.iter().zip(places) {
            if *is_reference {
                let constants: &ConstantOffsets = constants;
                relocations.push(start as u32 + offset + constants.displacement_offset() as u32);
            }
        }
        Ok(EncodedProbe { bytes: encoded.code_buffer, relocations })
    }

    pub(super) fn load(&mut self, register: Register, field: usize) -> Result<(), IcedError> {
        self.push(Instruction::with2(Code::Mov_r64_rm64, register, context_operand(field))?);
        Ok(())
    }

    fn store(&mut self, code: Code, field: usize, register: Register) -> Result<(), IcedError> {
        self.push(Instruction::with2(code, context_operand(field), register)?);
        Ok(())
    }

    pub(super) fn store_general(&mut self, field: usize, register: Register) -> Result<(), IcedError> {
        self.store(Code::Mov_rm64_r64, field, register)
    }

    fn store_number(&mut self, field: usize, number: i32) -> Result<(), IcedError> {
        self.push(Instruction::with2(Code::Mov_rm64_imm32, context_operand(field), number)?);
        if self.mode == CodeMode::Bits32 {
            // The upper half of the field.
            let sign = number >> 31;
            self.push(Instruction::with2(Code::Mov_rm64_imm32, context_operand(field + 4), sign)?);
        }
        Ok(())
    }

    fn access(&mut self, code: Code, field: usize) -> Result<(), IcedError> {
        self.push(Instruction::with1(code, context_operand(field))?);
        Ok(())
    }

    /// Adds to a number in the context. It keeps the flags.
    ///
    /// ```text
    ///     mov  [scratch], rcx
    ///     mov  rcx, [field]
    ///     lea  rcx, [rcx + step]
    ///     mov  [field], rcx
    ///     jrcxz target               ; if there is one
    ///     mov  rcx, [scratch]
    /// ```
    fn add(&mut self, field: usize, step: i64, target_at_zero: Option<u64>) -> Result<(), IcedError> {
        let counter = Register::RCX;
        self.store_general(SCRATCH, counter)?;
        self.load(counter, field)?;
        let sum = iced_x86::MemoryOperand::with_base_displ(counter, step);
        self.push(Instruction::with2(Code::Lea_r64_m, counter, sum)?);
        self.store_general(field, counter)?;
        if let Some(target) = target_at_zero {
            self.push(Instruction::with_branch(Code::Jrcxz_rel8_64, target)?);
        }
        self.load(counter, SCRATCH)
    }

    /// The snippet with recording instructions.
    fn push_copy(&mut self, watched: &WatchedSnippet, point: &WatchPoint, branches: i32) -> Result<(), IcedError> {
        self.label = NEXT_COPY;
        WORDS.iter().try_for_each(|word| self.store_number(*word, 0))?;
        self.store_number(BRANCHES, branches)?;
        if let WatchedState::Entry(register) = point.state {
            self.store_general(WORDS[0], register)?;
        }
        for (index, instruction) in watched.instructions().iter().enumerate() {
            let is_watched = index == point.instruction;
            self.label = instruction.ip();
            if is_conditional(instruction) {
                self.add(BRANCHES, -1, Some(ENDLESS))?;
            }
            if is_watched {
                self.record_before(instruction, point.state)?;
            }
            self.push_watched(*instruction);
            if is_watched {
                self.record_after(instruction, point.state)?;
            }
        }
        self.label = watched.end_ip();
        match point.state {
            WatchedState::FloatFlags => self.access(Code::Stmxcsr_m32, WORDS[0])?,
            WatchedState::StackStatus => self.access(Code::Fnstsw_m2byte, WORDS[0])?,
            _ => {}
        }
        self.add(COPIES, -1, Some(DONE))?;
        self.push(Instruction::with_branch(Code::Jmp_rel32_64, NEXT_COPY)?);
        Ok(())
    }

    fn record_before(&mut self, instruction: &Instruction, state: WatchedState) -> Result<(), IcedError> {
        match state {
            WatchedState::RepeatCount => self.store_general(WORDS[0], Register::RCX),
            WatchedState::ElementMask(mask) if mask.is_k() => self.store(Code::VEX_Kmovq_m64_kr, WORDS[0], mask),
            WatchedState::ElementMask(vector) => self.store_vector(instruction, vector),
            WatchedState::Dividend => self.store_dividend(),
            WatchedState::Branch => self.add(WORDS[0], 1, None),
            WatchedState::BitSelection(register) => self.store_general(WORDS[0], register.full_register()),
            _ => Ok(()),
        }
    }

    fn record_after(&mut self, instruction: &Instruction, state: WatchedState) -> Result<(), IcedError> {
        match state {
            WatchedState::RepeatCount => self.store_general(WORDS[1], Register::RCX),
            WatchedState::Quotient => self.store_dividend(),
            WatchedState::Branch => self.add(WORDS[1], 1, None),
            WatchedState::FloatResult(register) => self.store_vector(instruction, register),
            _ => Ok(()),
        }
    }

    fn store_dividend(&mut self) -> Result<(), IcedError> {
        self.store_general(WORDS[0], Register::RAX)?;
        self.store_general(WORDS[1], Register::RDX)
    }

    /// Stores both words.
    fn store_vector(&mut self, like: &Instruction, register: Register) -> Result<(), IcedError> {
        let low = Register::XMM0 + register.number() as u32;
        self.store(vector_store_code(like), WORDS[0], low)
    }

    /// The words of an endless copy, and the exit.
    fn push_end(&mut self) -> Result<(), IcedError> {
        self.label = ENDLESS;
        self.store_number(WORDS[0], -1)?;
        self.store_number(WORDS[1], -2)?;
        self.label = DONE;
        self.load(Register::RSP, offset_of!(ProgramContext, return_rsp))?;
        self.push(Instruction::with(Code::Cld));
        if self.mode == CodeMode::Bits64 {
            for register in CALLEE_SAVED.into_iter().rev() {
                self.push(Instruction::with1(Code::Pop_r64, register)?);
            }
        }
        self.push(Instruction::with(Code::Retnq));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use iced_x86::{Decoder, DecoderOptions, InstructionInfoFactory, OpAccess, RflagsBits};

    const FLAGS: u32 =
        RflagsBits::OF | RflagsBits::SF | RflagsBits::ZF | RflagsBits::AF | RflagsBits::CF | RflagsBits::PF;

    /// The instructions of a probe's body, with addresses from the program's start.
    fn probe(text: &str, point: impl Fn(&WatchedSnippet) -> WatchPoint) -> Vec<Instruction> {
        let snippet = crate::asm::parse_assembly(text).unwrap();
        let watched = WatchedSnippet::from_code(snippet.bytes(), CodeMode::Bits64).unwrap();
        let clock = Clock::find_named("rdtscp-lfence").unwrap();
        let program = ProgramRecipe::empty(clock).build_probe(&watched, &point(&watched), 5).unwrap();
        let body = program.body_range();
        let code = &program.code()[body.clone()];
        Decoder::with_ip(64, code, body.start as u64, DecoderOptions::NONE).into_iter().collect()
    }

    #[test]
    fn recording_instructions_keep_flags_and_registers() {
        let text = "1: dec rdx; mov [r14], rdx; jnz 1b; fld1; fstp st0; add rax, 1";
        let own = crate::asm::parse_assembly(text).unwrap();
        let codes: Vec<Code> = own.instructions().iter().map(Instruction::code).collect();
        for number in 0..2 {
            let all = probe(text, |watched| watched.points()[number]);
            // The copies end with the first jump that is always taken.
            let copy: Vec<&Instruction> =
                all.iter().take_while(|one| one.mnemonic() != iced_x86::Mnemonic::Jmp).collect();
            let of_snippet = copy.iter().filter(|one| codes.contains(&one.code()) && !one.is_ip_rel_memory_operand());
            let of_snippet: Vec<Code> = of_snippet.map(|one| one.code()).collect();
            assert_eq!(of_snippet, codes);
            let mut factory = InstructionInfoFactory::new();
            for one in
                copy.iter().filter(|one| one.is_ip_rel_memory_operand() || one.mnemonic() == iced_x86::Mnemonic::Lea)
            {
                assert_eq!(one.rflags_modified() & FLAGS, 0, "{one:?}");
                let written = factory.info(one).used_registers().iter().filter(|used| used.access() == OpAccess::Write);
                assert!(written.map(|used| used.register()).all(|register| register == Register::RCX), "{one:?}");
            }
        }
    }

    #[test]
    fn branches_of_the_snippet_reach_the_recording_instructions() {
        let all = probe("1: dec rdx; jnz 1b", |watched| watched.points()[0]);
        let back = all.iter().find(|one| one.code() == Code::Jne_rel8_64 || one.code() == Code::Jne_rel32_64).unwrap();
        let target = all.iter().find(|one| one.ip() == back.near_branch_target()).unwrap();
        assert_eq!(target.code(), Code::Dec_rm64);
    }
}
