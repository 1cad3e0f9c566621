//! How copies of a snippet run in a loop, so that each iteration begins like the first.
//!
//! A loop needs a register for its counter, and DEC writes all flags but CF. A snippet may leave no
//! register free, or carry a flag from one copy to the next. Then it has no loop. Nor has one that
//! changes an address: after many iterations it would leave its memory, or find other lines.
//!
//! Code of 32 bits has few registers. If a snippet uses all of them, its loop counts in the context.
//! An iteration then takes no less than a store and a load of the counter, which a longer body hides.
//! Code of 64 bits does not, because the checks of ring 0 rely on a register that
//! a snippet can't write.
//!
//! The analysis reads the instructions once, in the order of the text. It does not know what
//! called code outside the snippet does, except that it preserves the registers of the System V
//! ABI. It does not follow addresses through memory.

use crate::asm::{CodeMode, Emitter};
use crate::context::ProgramContext;
use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
    Register, RflagsBits,
};
use std::fmt;
use std::mem::offset_of;

/// A loop around copies of a snippet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopPlan {
    counter: LoopCounter,
    /// Whether the iteration begins with `test rsp, rsp`, which sets the flags as at entry.
    sets_flags: bool,
}

/// What counts the iterations of a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LoopCounter {
    /// A register, by its name in 64-bit mode.
    Register(Register),
    /// The context's number of iterations itself.
    Memory,
}

/// Why a snippet has no loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoopObstacle {
    /// It uses all registers that could count.
    NoCounter,
    /// It reads a flag from before it that is not the one of entry, and the counter's DEC would
    /// write it.
    CarriedFlags,
    /// It changes the register, which is part of an address.
    MovingAddress(Register),
    /// It branches to a place that is none of its instructions, nor its end.
    OddBranch,
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
/// The same in 32-bit code, where EBX has the role of R14.
const COUNTERS_32: [Register; 7] =
    [Register::RDX, Register::RCX, Register::RAX, Register::RBP, Register::RBX, Register::RSI, Register::RDI];
/// Registers that a System V function preserves, besides RSP.
const PRESERVED: [Register; 6] =
    [Register::R15, Register::R13, Register::R12, Register::RBX, Register::RBP, Register::R14];
/// The same in 32-bit code (System V ABI, i386, 2.2.2).
const PRESERVED_32: [Register; 4] = [Register::RBX, Register::RBP, Register::RSI, Register::RDI];
/// Flags that DEC writes (Intel SDM vol. 2, DEC).
const WRITTEN_BY_DEC: u32 = RflagsBits::OF | RflagsBits::SF | RflagsBits::ZF | RflagsBits::AF | RflagsBits::PF;
/// Flags that `test rsp, rsp` writes.
const WRITTEN_BY_TEST: u32 = WRITTEN_BY_DEC | RflagsBits::CF;

impl LoopPlan {
    /// A loop that R15 counts, or EBP in 32-bit code, around code that neither uses it nor depends on
    /// flags from before.
    pub const PLAIN: LoopPlan = LoopPlan::counted_by(Register::R15);

    /// The same with another counter.
    pub const fn counted_by(counter: Register) -> LoopPlan {
        LoopPlan { counter: LoopCounter::Register(counter), sets_flags: false }
    }

    /// Plans the loop around copies of a snippet, which `init` precedes, for any number of
    /// iterations.
    ///
    /// # Errors
    ///
    /// Fails if an iteration can't begin like the first one.
    pub fn from_code(snippet: &[u8], init: &[u8], mode: CodeMode) -> Result<LoopPlan, LoopObstacle> {
        let walk = SnippetWalk::follow_code(snippet, init, mode)?;
        match walk.find_moving_address() {
            Some(register) => Err(LoopObstacle::MovingAddress(register)),
            None => walk.plan_loop(),
        }
    }

    /// Like [`from_code`](LoopPlan::from_code), for so few iterations that the snippet may move its
    /// addresses.
    ///
    /// # Errors
    ///
    /// As for [`from_code`](LoopPlan::from_code), except for moving addresses.
    pub fn from_code_with_moves(snippet: &[u8], init: &[u8], mode: CodeMode) -> Result<LoopPlan, LoopObstacle> {
        SnippetWalk::follow_code(snippet, init, mode)?.plan_loop()
    }

    /// The register that counts the iterations, by its name in 64-bit mode. `None` if memory does.
    pub fn counter(&self) -> Option<Register> {
        match self.counter {
            LoopCounter::Register(register) => Some(register),
            LoopCounter::Memory => None,
        }
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
    ///     dec  r15                   ; or dec [loop_count]
    ///     jnz  start
    /// ```
    pub(super) fn emit_end(&self, emitter: &mut Emitter, start: usize) {
        emitter.push_without_operands(Code::Nopd);
        match self.counter {
            LoopCounter::Register(register) => emitter.push_on_register(Code::Dec_rm64, register),
            LoopCounter::Memory => emitter.push_on_field(Code::Dec_rm64, offset_of!(ProgramContext, loop_count)),
        }
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
                write!(formatter, "the snippet reads flags from before it, which a loop's counter changes")
            }
            LoopObstacle::MovingAddress(register) => {
                let register = format!("{register:?}").to_uppercase();
                write!(formatter, "the snippet changes {register}, which is part of an address")
            }
            LoopObstacle::OddBranch => write!(formatter, "the snippet branches to a place between its instructions"),
            LoopObstacle::NotDecoded => write!(formatter, "the snippet contains bytes that are not instructions"),
        }
    }
}

/// Whether the instruction after this one may be another than the next in the text.
fn leaves_straight_line(instruction: &Instruction) -> bool {
    !matches!(instruction.flow_control(), FlowControl::Next | FlowControl::Exception | FlowControl::Interrupt)
}

/// Whether an instruction is a branch that does not depend on data.
pub(crate) fn is_always_taken(instruction: &Instruction) -> bool {
    use FlowControl::{Call, IndirectCall, Return, UnconditionalBranch};
    matches!(instruction.flow_control(), Call | IndirectCall | Return | UnconditionalBranch)
}

/// The value of a general register after some instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TrackedValue {
    /// The value of a register at the snippet's start plus a constant.
    Moved(usize, i64),
    /// Read from memory, such as the next pointer of a ring.
    Loaded,
    /// Any other value, from these registers at the start (one bit each).
    Computed(u16),
}

impl TrackedValue {
    /// The registers at the start that it comes from, as bits.
    fn origins(self) -> u16 {
        match self {
            TrackedValue::Moved(register, _) => 1 << register,
            TrackedValue::Loaded => 0,
            TrackedValue::Computed(origins) => origins,
        }
    }
}

/// What the instructions of a snippet do, in the order of the text.
struct SnippetWalk {
    mode: CodeMode,
    /// Registers that occur, by number.
    used: [bool; 16],
    /// Registers that are written, as bits.
    written: u16,
    values: [TrackedValue; 16],
    /// Registers whose value at the start is part of an address, as bits.
    addresses: u16,
    /// Flags that are read before they are written.
    flags_read: u32,
    flags_written: u32,
    /// Flags that every path has written so far.
    flags_certain: u32,
    /// Whether all instructions run in the order of the text.
    straight: bool,
    /// Whether a branch depends on flags or registers.
    conditional: bool,
    branched: bool,
    /// Whether code outside the snippet may run.
    calls_out: bool,
}

fn general_number(register: Register) -> Option<usize> {
    register.is_gpr().then(|| register.full_register().number())
}

fn writes(access: OpAccess) -> bool {
    use OpAccess::{CondWrite, ReadCondWrite, ReadWrite, Write};
    matches!(access, Write | CondWrite | ReadWrite | ReadCondWrite)
}

impl SnippetWalk {
    fn follow_code(snippet: &[u8], init: &[u8], mode: CodeMode) -> Result<SnippetWalk, LoopObstacle> {
        let decode =
            |code| Decoder::new(mode.bits(), code, DecoderOptions::NONE).into_iter().collect::<Vec<Instruction>>();
        let (instructions, init) = (decode(snippet), decode(init));
        if instructions.iter().any(Instruction::is_invalid) {
            return Err(LoopObstacle::NotDecoded);
        }
        let ends_or_begins = |target: u64| {
            target == snippet.len() as u64 || instructions.iter().any(|instruction| instruction.ip() == target)
        };
        let is_odd = |instruction: &Instruction| {
            let near =
                matches!(instruction.op0_kind(), OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64);
            near && !ends_or_begins(instruction.near_branch_target())
        };
        if instructions.iter().any(is_odd) {
            return Err(LoopObstacle::OddBranch);
        }
        let mut branches = instructions.iter().filter(|instruction| leaves_straight_line(instruction)).peekable();
        let mut walk = SnippetWalk {
            mode,
            used: [false; 16],
            written: 0,
            values: std::array::from_fn(|register| TrackedValue::Moved(register, 0)),
            addresses: 0,
            flags_read: 0,
            flags_written: init.iter().fold(0, |flags, instruction| flags | instruction.rflags_modified()),
            flags_certain: 0,
            straight: branches.peek().is_none(),
            conditional: branches.any(|instruction| !is_always_taken(instruction)),
            branched: false,
            calls_out: false,
        };
        let mut factory = InstructionInfoFactory::new();
        instructions.iter().for_each(|instruction| walk.follow_instruction(instruction, &mut factory));
        Ok(walk)
    }

    fn follow_instruction(&mut self, instruction: &Instruction, factory: &mut InstructionInfoFactory) {
        self.flags_read |= instruction.rflags_read() & !self.flags_certain;
        self.flags_written |= instruction.rflags_modified();
        // A shift by a count of zero leaves the flags.
        let last = instruction.op_count().max(1) - 1;
        let may_keep = instruction.op_kind(last) == OpKind::Register && instruction.op_register(last) == Register::CL;
        if !self.branched && !may_keep {
            self.flags_certain |= instruction.rflags_modified();
        }
        self.branched |= leaves_straight_line(instruction);
        let leaves_by_register =
            matches!(instruction.flow_control(), FlowControl::IndirectBranch | FlowControl::IndirectCall);
        self.calls_out |= leaves_by_register || instruction.mnemonic() == Mnemonic::Syscall;
        let info = factory.info(instruction);
        self.note_addresses(instruction, info.used_memory());
        let reads_memory = info.used_memory().iter().any(|memory| memory.access() == OpAccess::Read);
        let read: u16 = (info.used_registers().iter())
            .filter(|used| used.access() != OpAccess::Write)
            .filter_map(|used| general_number(used.register()))
            .fold(0, |origins, number| origins | self.values[number].origins());
        let before = self.values;
        for used in info.used_registers() {
            let Some(number) = general_number(used.register()) else { continue };
            self.used[number] = true;
            if writes(used.access()) {
                self.written |= 1 << number;
                self.values[number] = match (constant_step(instruction, number, self.mode), before[number]) {
                    (Some(step), TrackedValue::Moved(origin, so_far)) => {
                        TrackedValue::Moved(origin, so_far.wrapping_add(step))
                    }
                    (Some(_), other) => other,
                    (None, _) if reads_memory && loads_only(instruction) => TrackedValue::Loaded,
                    (None, _) => match copied_register(instruction, self.mode) {
                        Some(source) => before[source],
                        None => TrackedValue::Computed(read),
                    },
                };
            }
        }
    }

    /// Notes which registers at the start are part of the instruction's addresses.
    fn note_addresses(&mut self, instruction: &Instruction, memory: &[iced_x86::UsedMemory]) {
        let named = [instruction.memory_base(), instruction.memory_index()];
        let is_address = !matches!(instruction.mnemonic(), Mnemonic::Lea | Mnemonic::Nop);
        let used = memory.iter().flat_map(|memory| [memory.base(), memory.index()]);
        let registers = used.chain(named.into_iter().filter(|_| is_address));
        // The bit offset of BT and its kin reaches beyond the operand.
        let bit_string = matches!(instruction.mnemonic(), Mnemonic::Bt | Mnemonic::Btc | Mnemonic::Btr | Mnemonic::Bts)
            && instruction.op0_kind() == OpKind::Memory
            && instruction.op1_kind() == OpKind::Register;
        let offset = bit_string.then(|| instruction.op1_register());
        for number in registers.chain(offset).filter_map(general_number) {
            // A branch may have skipped what wrote the register.
            let unwritten = if self.conditional { 1 << number } else { 0 };
            self.addresses |= self.values[number].origins() | unwritten;
        }
    }

    fn is_free(&self, register: Register) -> bool {
        let preserved = match self.mode {
            CodeMode::Bits64 => &PRESERVED[..],
            CodeMode::Bits32 => &PRESERVED_32,
        };
        !self.used[register.number()] && (!self.calls_out || preserved.contains(&register))
    }

    /// The first register that is part of an address and does not return to its value.
    fn find_moving_address(&self) -> Option<Register> {
        let stays = |number: usize| match self.values[number] {
            // Without a branch that depends on data, calls and returns are balanced.
            TrackedValue::Moved(origin, 0) => {
                let is_balanced_stack = number == Register::RSP.number() && !self.conditional;
                let is_written = self.written & 1 << number != 0;
                origin == number && (!is_written || self.straight || is_balanced_stack)
            }
            TrackedValue::Loaded => self.straight,
            TrackedValue::Moved(..) | TrackedValue::Computed(_) => false,
        };
        let moving =
            (0..self.mode.general_registers()).find(|number| self.addresses & 1 << number != 0 && !stays(*number));
        moving.map(|number| self.mode.general_register(number))
    }

    fn plan_loop(&self) -> Result<LoopPlan, LoopObstacle> {
        let from_before = self.flags_read & WRITTEN_BY_DEC;
        let sets_flags = from_before != 0;
        // What TEST writes is the state of entry, unless some code wrote other flags.
        if sets_flags && self.flags_written & self.flags_read & WRITTEN_BY_TEST != 0 {
            return Err(LoopObstacle::CarriedFlags);
        }
        let counters = match self.mode {
            CodeMode::Bits64 => &COUNTERS[..],
            CodeMode::Bits32 => &COUNTERS_32,
        };
        let counter = match counters.iter().copied().find(|register| self.is_free(*register)) {
            Some(register) => LoopCounter::Register(register),
            None if self.mode == CodeMode::Bits32 => LoopCounter::Memory,
            None => return Err(LoopObstacle::NoCounter),
        };
        Ok(LoopPlan { counter, sets_flags })
    }
}

/// The constant that an instruction adds to a general register, if it does only that.
fn constant_step(instruction: &Instruction, number: usize, mode: CodeMode) -> Option<i64> {
    if number == Register::RSP.number() && instruction.flow_control() == FlowControl::IndirectCall {
        // The called code returns.
        return Some(0);
    }
    if number == Register::RSP.number() && instruction.is_stack_instruction() {
        let sets_it = matches!(instruction.mnemonic(), Mnemonic::Leave | Mnemonic::Enter)
            || (instruction.mnemonic() == Mnemonic::Pop && instruction.op0_register().full_register() == Register::RSP);
        return (!sets_it).then(|| i64::from(instruction.stack_pointer_increment()));
    }
    let destination = instruction.op0_register();
    let is_destination = instruction.op_count() > 0 && destination == mode.general_register(number);
    match instruction.mnemonic() {
        Mnemonic::Inc if is_destination => Some(1),
        Mnemonic::Dec if is_destination => Some(-1),
        Mnemonic::Add | Mnemonic::Sub if is_destination && is_immediate(instruction.op1_kind()) => {
            let step = sign_extend(instruction.immediate(1), mode);
            Some(if instruction.mnemonic() == Mnemonic::Sub { step.wrapping_neg() } else { step })
        }
        Mnemonic::Lea
            if is_destination
                && instruction.memory_base() == destination
                && instruction.memory_index() == Register::None =>
        {
            Some(sign_extend(instruction.memory_displacement64(), mode))
        }
        _ => None,
    }
}

/// A displacement or an immediate as a number; 32-bit code wraps at 4 GiB.
fn sign_extend(displacement: u64, mode: CodeMode) -> i64 {
    match mode {
        CodeMode::Bits64 => displacement as i64,
        CodeMode::Bits32 => i64::from(displacement as i32),
    }
}

fn loads_only(instruction: &Instruction) -> bool {
    matches!(instruction.mnemonic(), Mnemonic::Mov | Mnemonic::Pop)
}

/// The register that a `mov` of a whole register copies.
fn copied_register(instruction: &Instruction, mode: CodeMode) -> Option<usize> {
    let is_whole = |register: Register| register.is_gpr() && register == mode.general_register(register.number());
    let is_move = instruction.mnemonic() == Mnemonic::Mov && is_whole(instruction.op0_register());
    (is_move && is_whole(instruction.op1_register())).then(|| instruction.op1_register().number())
}

fn is_immediate(kind: OpKind) -> bool {
    use OpKind::{Immediate8, Immediate8to32, Immediate8to64, Immediate16, Immediate32, Immediate32to64, Immediate64};
    matches!(
        kind,
        Immediate8 | Immediate8to32 | Immediate8to64 | Immediate16 | Immediate32 | Immediate32to64 | Immediate64
    )
}

#[cfg(test)]
mod tests;
