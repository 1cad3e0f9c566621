//! How copies of a snippet run in a loop, so that each iteration begins like the first.
//!
//! A loop needs a register for its counter, and DEC writes all flags but CF. A snippet may leave no
//! register free, or carry a flag from one copy to the next. Then it has no loop.
//!
//! Copies that move a pointer, such as `add rdi, 8`, would leave the memory after many iterations.
//! At the end of each iteration the loop moves such a pointer back by `lea rdi, [rdi-8*copies]`.
//! This keeps the dependency on the pointer, unlike a new value.
//!
//! The analysis reads the instructions once, in the order of the text. It does not know what
//! called code outside the snippet does, except that it preserves the registers of the System V
//! ABI.

use crate::asm::Emitter;
use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, MemoryOperand, Mnemonic, OpAccess,
    OpKind, Register, RflagsBits, UsedRegister,
};
use std::fmt;

/// A loop around copies of a snippet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopPlan {
    counter: Register,
    /// Bytes by which a copy moves each general register that holds an address.
    moves: [i32; 16],
    /// Whether the iteration begins with `test rsp, rsp`, which sets the flags as at entry.
    sets_flags: bool,
}

/// Why a snippet has no loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoopObstacle {
    /// It uses all registers that could count.
    NoCounter,
    /// A copy reads a flag that the copy before it left, and the counter's DEC would write it.
    CarriedFlags,
    /// It changes the register, which holds an address, by an amount that differs between copies.
    MovingAddress(Register),
    /// Its bytes are not instructions.
    NotDecoded,
}

/// Registers that may count, best first. The executor's memory pointers come last.
const COUNTERS: [Register; 15] = [
    Register::R15,
    Register::R13,
    Register::R12,
    Register::RBX,
    Register::R11,
    Register::R10,
    Register::R9,
    Register::R8,
    Register::RDX,
    Register::RCX,
    Register::RAX,
    Register::RBP,
    Register::R14,
    Register::RSI,
    Register::RDI,
];
/// Registers that a System V function preserves, besides RSP.
const PRESERVED: [Register; 6] =
    [Register::R15, Register::R13, Register::R12, Register::RBX, Register::RBP, Register::R14];
/// Flags that DEC writes (Intel SDM vol. 2, DEC).
const WRITTEN_BY_DEC: u32 = RflagsBits::OF | RflagsBits::SF | RflagsBits::ZF | RflagsBits::AF | RflagsBits::PF;
/// Flags that `test rsp, rsp` writes.
const WRITTEN_BY_TEST: u32 = WRITTEN_BY_DEC | RflagsBits::CF;

impl LoopPlan {
    /// A loop that R15 counts, around code that neither uses it nor depends on flags from before.
    pub const PLAIN: LoopPlan = LoopPlan { counter: Register::R15, moves: [0; 16], sets_flags: false };

    /// Plans the loop around copies of a snippet, which `init` precedes.
    ///
    /// # Errors
    ///
    /// Fails if an iteration can't begin like the first one.
    pub fn from_code(snippet: &[u8], init: &[u8]) -> Result<LoopPlan, LoopObstacle> {
        let mut walk = SnippetWalk::default();
        let mut factory = InstructionInfoFactory::new();
        let instructions: Vec<Instruction> = Decoder::new(64, snippet, DecoderOptions::NONE).into_iter().collect();
        if instructions.iter().any(Instruction::is_invalid) {
            return Err(LoopObstacle::NotDecoded);
        }
        let init: Vec<Instruction> = Decoder::new(64, init, DecoderOptions::NONE).into_iter().collect();
        let moves_down = init.iter().chain(&instructions).any(|instruction| instruction.mnemonic() == Mnemonic::Std);
        walk.straight = !moves_down && !instructions.iter().any(leaves_straight_line);
        instructions.iter().for_each(|instruction| walk.follow_instruction(instruction, &mut factory));
        let init_flags = init.iter().fold(0, |flags, instruction| flags | instruction.rflags_modified());
        let from_before = walk.flags_read & WRITTEN_BY_DEC;
        // The values that DEC and TEST write are those of entry, unless some code wrote others.
        let written = walk.flags_written | init_flags;
        let sets_flags = from_before != 0;
        if sets_flags && (written & from_before != 0 || written & walk.flags_read & WRITTEN_BY_TEST != 0) {
            return Err(LoopObstacle::CarriedFlags);
        }
        let counter = COUNTERS.into_iter().find(|register| walk.is_free(*register)).ok_or(LoopObstacle::NoCounter)?;
        Ok(LoopPlan { counter, moves: walk.find_moves()?, sets_flags })
    }

    /// The register that counts the iterations.
    pub fn counter(&self) -> Register {
        self.counter
    }

    /// The most bytes by which a copy moves a pointer, up or down.
    pub fn longest_step(&self) -> usize {
        self.moves.iter().map(|step| step.unsigned_abs() as usize).max().unwrap_or(0)
    }

    /// Encoding numbers of the registers that the loop changes.
    pub fn changed_registers(&self) -> impl Iterator<Item = usize> + '_ {
        (0..16).filter(|number| *number == self.counter.number() || self.moves[*number] != 0)
    }

    /// Emits the start of an iteration: `test rsp, rsp` if flags have to be set.
    pub(super) fn emit_start(&self, emitter: &mut Emitter) {
        if self.sets_flags {
            emitter.push_on_registers(Code::Test_rm64_r64, Register::RSP, Register::RSP);
        }
    }

    /// Emits the end of an iteration, and the branch to its start.
    ///
    /// ```text
    ///     nop                        ; keeps the snippet from fusing with the counter
    ///     lea  rdi, [rdi-8*copies]   ; each moved pointer
    ///     dec  r15
    ///     jnz  start
    /// ```
    pub(super) fn emit_end(&self, emitter: &mut Emitter, start: usize, copies: usize) {
        emitter.push_without_operands(Code::Nopd);
        for (number, step) in self.moves.iter().enumerate().filter(|(_, step)| **step != 0) {
            let register = Register::RAX + number as u32;
            let mut back = -(copies as i64 * i64::from(*step));
            // A displacement has 32 bits.
            while back != 0 {
                let part = back.clamp(i64::from(i32::MIN), i64::from(i32::MAX));
                let place = MemoryOperand::with_base_displ(register, part);
                emitter.push(Instruction::with2(Code::Lea_r64_m, register, place));
                back -= part;
            }
        }
        emitter.push_on_register(Code::Dec_rm64, self.counter);
        // A short branch reaches 128 bytes back from its own end.
        let short = emitter.len() + 2 - start <= 128;
        emitter.push_branch(if short { Code::Jne_rel8_64 } else { Code::Jne_rel32_64 }, start);
    }
}

impl fmt::Display for LoopObstacle {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            LoopObstacle::NoCounter => write!(formatter, "the snippet leaves no register free to count iterations"),
            LoopObstacle::CarriedFlags => {
                write!(formatter, "the snippet reads flags from the copy before it, which a loop's counter changes")
            }
            LoopObstacle::MovingAddress(register) => {
                let register = format!("{register:?}").to_uppercase();
                write!(formatter, "the snippet changes the address in {register} by amounts that are not known")
            }
            LoopObstacle::NotDecoded => write!(formatter, "the snippet contains bytes that are not instructions"),
        }
    }
}

/// Whether the instruction after this one may be another than the next in the text.
pub(crate) fn leaves_straight_line(instruction: &Instruction) -> bool {
    !matches!(instruction.flow_control(), FlowControl::Next | FlowControl::Exception | FlowControl::Interrupt)
}

/// The value of a general register after some instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TrackedValue {
    /// The value at the snippet's start plus a constant.
    Moved(i64),
    /// Read from memory, such as the next pointer of a ring.
    Loaded,
    /// Any other value.
    Computed,
}

/// What the instructions of a snippet do, in the order of the text.
struct SnippetWalk {
    /// Registers that occur, by number.
    used: [bool; 16],
    values: [TrackedValue; 16],
    /// Registers whose value at the start is part of an address.
    addresses: [bool; 16],
    /// Flags that are read before they are written.
    flags_read: u32,
    flags_written: u32,
    /// Flags that every path has written so far.
    flags_certain: u32,
    /// Whether all instructions run in the order of the text, and strings upwards.
    straight: bool,
    branched: bool,
    /// Whether code outside the snippet may run.
    calls_out: bool,
}

impl Default for SnippetWalk {
    fn default() -> SnippetWalk {
        SnippetWalk {
            used: [false; 16],
            values: [TrackedValue::Moved(0); 16],
            addresses: [false; 16],
            flags_read: 0,
            flags_written: 0,
            flags_certain: 0,
            straight: true,
            branched: false,
            calls_out: false,
        }
    }
}

fn general_number(register: Register) -> Option<usize> {
    register.is_gpr().then(|| register.full_register().number())
}

fn writes(access: OpAccess) -> bool {
    use OpAccess::{CondWrite, ReadCondWrite, ReadWrite, Write};
    matches!(access, Write | CondWrite | ReadWrite | ReadCondWrite)
}

impl SnippetWalk {
    fn follow_instruction(&mut self, instruction: &Instruction, factory: &mut InstructionInfoFactory) {
        self.flags_read |= instruction.rflags_read() & !self.flags_certain;
        self.flags_written |= instruction.rflags_modified();
        if !self.branched {
            // A shift by a count of zero leaves the flags.
            let kept = matches!(instruction.op_kind(instruction.op_count().max(1) - 1), OpKind::Register)
                && instruction.op_register(instruction.op_count().max(1) - 1) == Register::CL;
            self.flags_certain |= if kept { 0 } else { instruction.rflags_modified() };
        }
        self.branched |= leaves_straight_line(instruction);
        let leaves_by_register =
            matches!(instruction.flow_control(), FlowControl::IndirectBranch | FlowControl::IndirectCall);
        self.calls_out |= leaves_by_register || instruction.mnemonic() == Mnemonic::Syscall;
        let info = factory.info(instruction);
        for memory in info.used_memory().iter().filter(|memory| memory.access() != OpAccess::None) {
            for number in [memory.base(), memory.index()].into_iter().filter_map(general_number) {
                self.addresses[number] |= matches!(self.values[number], TrackedValue::Moved(_));
            }
        }
        let loads = info.used_memory().iter().any(|memory| matches!(memory.access(), OpAccess::Read));
        let before = self.values;
        for used in info.used_registers() {
            self.note_register(used, instruction, &before, loads);
        }
    }

    fn note_register(
        &mut self,
        used: &UsedRegister,
        instruction: &Instruction,
        before: &[TrackedValue; 16],
        loads: bool,
    ) {
        let Some(number) = general_number(used.register()) else { return };
        self.used[number] = true;
        if writes(used.access()) {
            self.values[number] = match constant_step(instruction, number) {
                Some(step) => match before[number] {
                    TrackedValue::Moved(so_far) => TrackedValue::Moved(so_far.wrapping_add(step)),
                    other => other,
                },
                None if loads && instruction.mnemonic() == Mnemonic::Mov => TrackedValue::Loaded,
                None => TrackedValue::Computed,
            };
        }
    }

    fn is_free(&self, register: Register) -> bool {
        !self.used[register.number()] && (!self.calls_out || PRESERVED.contains(&register))
    }

    /// The step of each address from copy to copy.
    fn find_moves(&self) -> Result<[i32; 16], LoopObstacle> {
        let mut moves = [0; 16];
        for number in (0..16).filter(|number| self.addresses[*number]) {
            let obstacle = LoopObstacle::MovingAddress(Register::RAX + number as u32);
            moves[number] = match self.values[number] {
                TrackedValue::Moved(0) | TrackedValue::Loaded => 0,
                // Calls and returns of a snippet are balanced in the order of the text, or not at all.
                TrackedValue::Moved(step) if self.straight => i32::try_from(step).map_err(|_| obstacle)?,
                TrackedValue::Moved(_) | TrackedValue::Computed => return Err(obstacle),
            };
        }
        Ok(moves)
    }
}

/// The constant that an instruction adds to a general register, if it does only that.
fn constant_step(instruction: &Instruction, number: usize) -> Option<i64> {
    if number == Register::RSP.number()
        && instruction.is_stack_instruction()
        && instruction.mnemonic() != Mnemonic::Leave
    {
        let pops_it = instruction.mnemonic() == Mnemonic::Pop && instruction.op0_register() == Register::RSP;
        return (!pops_it && instruction.mnemonic() != Mnemonic::Enter)
            .then(|| i64::from(instruction.stack_pointer_increment()));
    }
    let destination = instruction.op0_register();
    let is_destination = instruction.op_count() > 0 && destination.is_gpr64() && destination.number() == number;
    match instruction.mnemonic() {
        Mnemonic::Inc if is_destination => Some(1),
        Mnemonic::Dec if is_destination => Some(-1),
        Mnemonic::Add | Mnemonic::Sub if is_destination && is_immediate(instruction.op1_kind()) => {
            let step = instruction.immediate(1) as i64;
            Some(if instruction.mnemonic() == Mnemonic::Sub { step.wrapping_neg() } else { step })
        }
        Mnemonic::Lea
            if is_destination
                && instruction.memory_base() == destination
                && instruction.memory_index() == Register::None =>
        {
            Some(instruction.memory_displacement64() as i64)
        }
        _ if instruction.is_string_instruction()
            && !instruction.has_rep_prefix()
            && !instruction.has_repne_prefix() =>
        {
            // With DF clear, as at entry, RSI and RDI move up by the element's size.
            let moves = [Register::RSI, Register::RDI].iter().any(|register| register.number() == number);
            moves.then(|| instruction.memory_size().size() as i64)
        }
        _ => None,
    }
}

fn is_immediate(kind: OpKind) -> bool {
    use OpKind::{Immediate8, Immediate8to64, Immediate16, Immediate32, Immediate32to64, Immediate64};
    matches!(kind, Immediate8 | Immediate8to64 | Immediate16 | Immediate32 | Immediate32to64 | Immediate64)
}

#[cfg(test)]
mod tests;
