//! The parts that a program is built from, and the code around its body.

use super::program_frame::ProgramFrame;
use super::{ColdStart, EntryState, LoopPlan, Program, cold_start};
use crate::asm::{CodeMode, Emitter, Listing};
use crate::clock::{Clock, ClockSide, StepEdit};
use crate::context::ProgramContext;
use iced_x86::{Code, Register};
use std::mem::offset_of;

/// Registers that a System V function must preserve.
pub(super) const CALLEE_SAVED: [Register; 6] =
    [Register::RBX, Register::RBP, Register::R12, Register::R13, Register::R14, Register::R15];

/// `lea r15, [r15]`: it keeps the loop's counter and the flags.
const LEAD_INSTRUCTION: [u8; 4] = [0x4d, 0x8d, 0x7f, 0];
/// The same in 32-bit code: `lea ebp, [ebp]`.
const LEAD_INSTRUCTION_32: [u8; 3] = [0x8d, 0x6d, 0];

/// Parts of a program.
#[derive(Debug, Clone, Copy)]
pub struct ProgramRecipe<'a> {
    /// Timing method.
    pub clock: &'a Clock,
    /// Processor state at the snippet's entry.
    pub world: EntryState,
    /// Machine code that runs once before the first reading.
    pub init: &'a [u8],
    /// Machine code of the snippet.
    pub snippet: &'a [u8],
    /// Number of copies of the snippet in the body.
    pub copies: usize,
    /// The loop that the body runs in; `None` without a loop.
    pub looped: Option<LoopPlan>,
    /// What is cold when the body begins.
    pub cold: ColdStart,
    /// Instructions between the clock's start and the loop, each waiting for the one before. They
    /// change the state in which the core meets the loop: its places in the groups that are
    /// dispatched together, and its queues. Their own time is the same for any number of iterations.
    pub lead: usize,
    /// Machine code that runs once after the last reading.
    pub following: &'a [u8],
    /// A clock step to omit or repeat.
    pub edit: Option<StepEdit>,
    /// Whether R13 holds the address of the system's `memcpy` at the snippet's entry.
    pub calls_memcpy: bool,
}

impl ProgramRecipe<'_> {
    /// Recipe for a pair of readings with an empty body and no other code.
    pub fn empty(clock: &Clock) -> ProgramRecipe<'_> {
        ProgramRecipe {
            clock,
            world: EntryState::default(),
            init: &[],
            snippet: &[],
            copies: 0,
            looped: None,
            cold: ColdStart::default(),
            lead: 0,
            following: &[],
            edit: None,
            calls_memcpy: false,
        }
    }

    /// The recipe for code of a mode.
    pub fn for_mode(self, mode: CodeMode) -> Self {
        ProgramRecipe { world: EntryState { mode, ..self.world }, ..self }
    }

    /// Recipe for a plain loop over copies of some code.
    pub fn with_loop<'a>(clock: &'a Clock, snippet: &'a [u8], copies: usize) -> ProgramRecipe<'a> {
        ProgramRecipe { snippet, copies, looped: Some(LoopPlan::PLAIN), ..ProgramRecipe::empty(clock) }
    }

    /// Builds the program. In 32-bit code the registers of functions are not pushed, and `retf` ends
    /// it.
    ///
    /// ```text
    ///     push rbx … r15
    ///     mov  [return_rsp], rsp
    ///     (vector, mask and x87 state at entry)
    ///     mov  rax … r15, [gpr]      ; the snippet's registers; RSP last
    ///     mov  r13, [memcpy]         ; if it calls it
    ///     test rsp, rsp              ; CF, OF and ZF clear
    ///     (init)
    ///     mov  r15, [loop_count]     ; with a loop, which may have another counter, or count in memory
    ///     mov  [spill], rax …        ; registers that the clock clobbers
    ///     (evictions of a cold start)
    ///     (the clock's start)
    ///     mov  rax, [spill] …
    ///     lea  r15, [r15] …          ; the lead of a loop
    /// body:
    ///     test rsp, rsp              ; with a loop, if the snippet reads flags
    ///     (copies of the snippet)
    ///     (NOPs up to a cache line)  ; if its code is cold
    ///     nop                        ; with a loop: keeps the snippet from fusing with the counter
    ///     dec  r15
    ///     jnz  body
    ///     (the clock's end)
    ///     (following code)
    ///     mov  rsp, [return_rsp]
    ///     cld
    ///     pop  r15 … rbx
    ///     ret
    /// ```
    pub fn build(&self) -> Program {
        self.build_frame().build_program(self.snippet, self.copies)
    }

    /// Builds all of the program except its body. With cold code it fits only bodies of this
    /// recipe's length.
    pub fn build_frame(&self) -> ProgramFrame {
        let mode = self.world.mode;
        let mut emitter = Emitter::starting_at(0, mode);
        self.emit_entry(&mut emitter);
        let mut clobbers = self.clock.clobbers();
        if self.cold.is_any() {
            let of_clock = clobbers.clone();
            clobbers.extend(cold_start::EVICTION_CLOBBERS.iter().filter(|register| !of_clock.contains(register)));
        }
        for (index, register) in clobbers.iter().enumerate() {
            emitter.store_field(Code::Mov_rm64_r64, spill_offset(index), *register);
        }
        if self.cold.is_any() {
            self.cold.emit_evictions(&mut emitter, self.snippet.len() * self.copies);
        }
        self.emit_start(&clobbers, &mut emitter);
        if self.looped.is_some() {
            let lead = match mode {
                CodeMode::Bits64 => &LEAD_INSTRUCTION[..],
                CodeMode::Bits32 => &LEAD_INSTRUCTION_32,
            };
            emitter.push_bytes(&lead.repeat(self.lead));
        }
        let (head, head_relocations) = emitter.finish();
        let mut emitter = Emitter::starting_at(0, mode);
        self.clock.emit_side(ClockSide::End, self.edit, &mut emitter);
        emitter.push_bytes(self.following);
        emit_exit(&mut emitter);
        let (tail, tail_relocations) = emitter.finish();
        ProgramFrame {
            mode,
            head,
            head_relocations,
            tail,
            tail_relocations,
            init: self.init.to_vec(),
            looped: self.looped,
            lead: self.lead,
            cold: self.cold,
            following: self.following.to_vec(),
            library: self.clock.calls_system() || self.calls_memcpy,
            counts: self.clock.counts,
        }
    }

    /// Code of an empty pair: both readings, and the restored registers between them. References to
    /// the context are not filled in.
    pub fn list_empty_pair(clock: &Clock, mode: CodeMode) -> Listing {
        let recipe = ProgramRecipe::empty(clock).for_mode(mode);
        let mut emitter = Emitter::starting_at(0, mode);
        recipe.emit_start(&clock.clobbers(), &mut emitter);
        clock.emit_side(ClockSide::End, None, &mut emitter);
        Listing::from_code(&emitter.finish().0, mode)
    }

    /// Emits the clock's start, and restores the registers that it clobbers.
    fn emit_start(&self, clobbers: &[Register], emitter: &mut Emitter) {
        self.clock.emit_side(ClockSide::Start, self.edit, emitter);
        for (index, register) in clobbers.iter().enumerate() {
            emitter.load_field(Code::Mov_r64_rm64, *register, spill_offset(index));
        }
    }

    /// Emits what precedes the clock: saved registers, the state at entry and the init code.
    pub(super) fn emit_entry(&self, emitter: &mut Emitter) {
        if emitter.mode() == CodeMode::Bits64 {
            for register in CALLEE_SAVED {
                emitter.push_on_register(Code::Push_r64, register);
            }
        }
        emitter.store_field(Code::Mov_rm64_r64, offset_of!(ProgramContext, return_rsp), Register::RSP);
        self.world.emit_loads(emitter);
        let registers = 0..emitter.mode().general_registers();
        for number in registers.filter(|number| *number != RSP_NUMBER).chain([RSP_NUMBER]) {
            let register = Register::RAX + number as u32;
            emitter.load_field(Code::Mov_r64_rm64, register, offset_of!(ProgramContext, gpr) + 8 * number);
        }
        if self.calls_memcpy {
            emitter.load_field(Code::Mov_r64_rm64, Register::R13, offset_of!(ProgramContext, memcpy));
        }
        // After the loads. With flags from before them, `cmovz` chains took 2 cycles per link
        // instead of 1 (Raptor Cove).
        emitter.push_on_registers(Code::Test_rm64_r64, Register::RSP, Register::RSP);
        emitter.push_bytes(self.init);
        if let Some(counter) = self.looped.and_then(|looped| looped.counter()) {
            emitter.load_field(Code::Mov_r64_rm64, counter, offset_of!(ProgramContext, loop_count));
        }
    }
}

/// Offset in the context of the register's copy while the clock starts.
fn spill_offset(index: usize) -> usize {
    offset_of!(ProgramContext, spill) + 8 * index
}

/// Encoding number of RSP.
const RSP_NUMBER: usize = 4;

/// Emits the return to the caller.
pub(super) fn emit_exit(emitter: &mut Emitter) {
    emitter.load_field(Code::Mov_r64_rm64, Register::RSP, offset_of!(ProgramContext, return_rsp));
    emitter.push_without_operands(Code::Cld);
    if emitter.mode() == CodeMode::Bits64 {
        for register in CALLEE_SAVED.into_iter().rev() {
            emitter.push_on_register(Code::Pop_r64, register);
        }
    }
    emitter.push_without_operands(Code::Retnq);
}
