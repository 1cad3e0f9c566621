//! Builds the machine code that times a snippet: prologue, clock, copies of the snippet, clock,
//! epilogue.
//!
//! A program is a function `fn()`. One call makes one sample: two raw readings in the
//! [`ProgramContext`] next to it. Only the distance to its context depends on where it runs, or its
//! context's address in 32-bit code; [`Program::relocate_into`] fills that in.
//!
//! A program of 32-bit code is called from 64-bit code, by a far call with a 32-bit return address.
//! Its caller keeps the registers that functions preserve.

pub mod chains;
mod cold_start;
mod counted_code;
mod entry_state;
mod function_code;
mod function_counters;
mod function_probe;
mod loop_plan;
pub mod memory;
mod placement_policy;
mod state_probe;
mod watch_point;

pub use cold_start::ColdStart;
pub use entry_state::{EntryState, VectorSetup};
pub use function_code::{FunctionCode, INSTRUCTIONS_MOST, MemoryReader};
pub use function_counters::{DivisionCount, FunctionCounters};
pub use function_probe::{COUNTERS_BYTES, CountComparison, CountedCall, FunctionCall};
pub(crate) use loop_plan::is_always_taken;
pub use loop_plan::{LoopObstacle, LoopPlan};
pub use placement_policy::PlacementPolicy;
pub use state_probe::ENDLESS_COPY;
pub use watch_point::{WatchPoint, WatchedSnippet, WatchedState};

use crate::asm::{CodeMode, Emitter, Listing, NOMINAL_CONTEXT};
use crate::clock::{Clock, ClockSide, StepEdit};
use crate::context::ProgramContext;
use cyclescope_core::unit::Unit;
use iced_x86::{Code, Register};
use std::mem::offset_of;

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

/// Machine code that makes one sample per call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    mode: CodeMode,
    bytes: Vec<u8>,
    relocations: Vec<u32>,
    body: std::ops::Range<usize>,
    init: Vec<u8>,
    snippet: Vec<u8>,
    copies: usize,
    looped: Option<LoopPlan>,
    lead: usize,
    following: Vec<u8>,
    library: bool,
    counts: Unit,
}

/// Registers that a System V function must preserve.
const CALLEE_SAVED: [Register; 6] =
    [Register::RBX, Register::RBP, Register::R12, Register::R13, Register::R14, Register::R15];

/// `lea r15, [r15]`: it keeps the loop's counter and the flags.
const LEAD_INSTRUCTION: [u8; 4] = [0x4d, 0x8d, 0x7f, 0];
/// The same in 32-bit code: `lea ebp, [ebp]`.
const LEAD_INSTRUCTION_32: [u8; 3] = [0x8d, 0x6d, 0];

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

    fn emit_entry(&self, emitter: &mut Emitter) {
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

/// All of a program except its body. Built once, it serves programs of one snippet in many lengths.
#[derive(Debug, Clone)]
pub struct ProgramFrame {
    mode: CodeMode,
    head: Vec<u8>,
    head_relocations: Vec<u32>,
    /// Encoded as if it began at the program's first byte.
    tail: Vec<u8>,
    tail_relocations: Vec<u32>,
    init: Vec<u8>,
    looped: Option<LoopPlan>,
    lead: usize,
    cold: ColdStart,
    following: Vec<u8>,
    library: bool,
    counts: Unit,
}

impl ProgramFrame {
    /// Builds the program with this number of copies of a snippet.
    pub fn build_program(&self, snippet: &[u8], copies: usize) -> Program {
        let start = self.head.len();
        let loop_ends = 24;
        let mut bytes = Vec::with_capacity(start + snippet.len() * copies + loop_ends + self.tail.len());
        bytes.extend(&self.head);
        if let Some(looped) = self.looped {
            let mut emitter = Emitter::starting_at(bytes.len(), self.mode);
            looped.emit_start(&mut emitter);
            bytes.extend(emitter.finish().0);
        }
        append_copies(&mut bytes, snippet, copies);
        append_nops(&mut bytes, self.cold.padding_bytes(snippet.len() * copies));
        let mut relocations = self.head_relocations.clone();
        if let Some(looped) = self.looped {
            let mut emitter = Emitter::starting_at(bytes.len(), self.mode);
            looped.emit_end(&mut emitter, start);
            let (loop_end, own_relocations) = emitter.finish();
            bytes.extend(loop_end);
            relocations.extend(own_relocations);
        }
        let body = start..bytes.len();
        bytes.extend(&self.tail);
        for offset in &self.tail_relocations {
            let offset = body.end + *offset as usize;
            if self.mode == CodeMode::Bits64 {
                shift_displacement(&mut bytes[offset..], -(body.end as i32));
            }
            relocations.push(offset as u32);
        }
        Program {
            mode: self.mode,
            bytes,
            relocations,
            body,
            init: self.init.clone(),
            snippet: snippet.to_vec(),
            copies,
            looped: self.looped,
            lead: self.lead,
            following: self.following.clone(),
            library: self.library,
            counts: self.counts,
        }
    }
}

/// Appends copies of some bytes, in a few large pieces.
fn append_copies(into: &mut Vec<u8>, piece: &[u8], copies: usize) {
    let start = into.len();
    let end = start + piece.len() * copies;
    if copies > 0 {
        into.extend(piece);
    }
    while into.len() < end {
        let more = (into.len() - start).min(end - into.len());
        into.extend_from_within(start..start + more);
    }
}

/// Appends this number of bytes of NOPs, longest first (Intel SDM vol. 2, NOP).
pub fn append_nops(into: &mut Vec<u8>, mut bytes: usize) {
    const LONGEST: [u8; 9] = [0x66, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0];
    while bytes >= LONGEST.len() {
        into.extend(LONGEST);
        bytes -= LONGEST.len();
    }
    into.extend(std::iter::repeat_n(0x90, bytes));
}

/// Adds to the displacement at the start of some code.
fn shift_displacement(code: &mut [u8], by: i32) {
    let field = &mut code[..4];
    let displacement = i32::from_le_bytes(field.try_into().expect("four bytes"));
    field.copy_from_slice(&displacement.wrapping_add(by).to_le_bytes());
}

/// Encoding number of RSP.
const RSP_NUMBER: usize = 4;

fn emit_exit(emitter: &mut Emitter) {
    emitter.load_field(Code::Mov_r64_rm64, Register::RSP, offset_of!(ProgramContext, return_rsp));
    emitter.push_without_operands(Code::Cld);
    if emitter.mode() == CodeMode::Bits64 {
        for register in CALLEE_SAVED.into_iter().rev() {
            emitter.push_on_register(Code::Pop_r64, register);
        }
    }
    emitter.push_without_operands(Code::Retnq);
}

impl Program {
    /// The mode that its code runs in.
    pub fn mode(&self) -> CodeMode {
        self.mode
    }

    /// The code's length in bytes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there is no code; a program always has some.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Number of instructions in front of the loop: see [`ProgramRecipe::lead`].
    pub fn lead(&self) -> usize {
        self.lead
    }

    /// Range of the body in the code.
    pub fn body_range(&self) -> std::ops::Range<usize> {
        self.body.clone()
    }

    /// Offset in the code of each copy of the snippet.
    pub fn copy_offsets(&self) -> impl Iterator<Item = usize> + '_ {
        let mut loop_start = Emitter::starting_at(self.body.start, self.mode);
        if let Some(looped) = self.looped {
            looped.emit_start(&mut loop_start);
        }
        let first = self.body.start + loop_start.finish().0.len();
        (0..self.copies).map(move |copy| first + copy * self.snippet.len())
    }

    /// The code before relocation: references to the context are not filled in.
    pub fn code(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether it calls a function of the C library, or its clock does.
    pub fn calls_library(&self) -> bool {
        self.library
    }

    /// Unit of its readings.
    pub fn counts(&self) -> Unit {
        self.counts
    }

    /// All code given to the recipe, as one value. Programs with different values may do different
    /// things.
    pub fn foreign_code(&self) -> Vec<u8> {
        let parts = [&self.init, &self.snippet, &self.following];
        let length = |part: &&Vec<u8>| part.len().to_le_bytes();
        let lengths = parts.iter().flat_map(length);
        lengths.chain(parts.iter().copied().flatten().copied()).collect()
    }

    /// The init code in the recipe.
    pub fn init(&self) -> &[u8] {
        &self.init
    }

    /// The snippet in the recipe.
    pub fn snippet(&self) -> &[u8] {
        &self.snippet
    }

    /// Number of copies of the snippet in the body.
    pub fn copies(&self) -> usize {
        self.copies
    }

    /// The loop that the body runs in.
    pub fn loop_plan(&self) -> Option<LoopPlan> {
        self.looped
    }

    /// Whether the body runs in a loop.
    pub fn is_looped(&self) -> bool {
        self.looped.is_some()
    }

    /// The code that runs once after the last reading.
    pub fn following_code(&self) -> &[u8] {
        &self.following
    }

    /// Offsets in the code of displacements to its context, or of addresses in it, in bytes.
    pub fn relocations(&self) -> &[u32] {
        &self.relocations
    }

    /// Writes the code for one address, with its context at another. The two must be at most 2 GiB
    /// apart; for 32-bit code both lie below 4 GiB.
    pub fn relocate_into(&self, code: u64, context: u64, into: &mut [u8]) {
        into[..self.bytes.len()].copy_from_slice(&self.bytes);
        let distance = match self.mode {
            CodeMode::Bits64 => {
                let distance = context.wrapping_sub(code) as i64 - NOMINAL_CONTEXT;
                i32::try_from(distance).expect("code and context are within 2 GiB")
            }
            CodeMode::Bits32 => {
                let context = u32::try_from(context).expect("32-bit code has its context below 4 GiB");
                context.wrapping_sub(NOMINAL_CONTEXT as u32) as i32
            }
        };
        for offset in &self.relocations {
            shift_displacement(&mut into[*offset as usize..], distance);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_appended_exactly() {
        for copies in [0, 1, 2, 3, 7, 100] {
            let mut bytes = vec![9];
            append_copies(&mut bytes, &[1, 2, 3], copies);
            assert_eq!(bytes, [vec![9], [1, 2, 3].repeat(copies)].concat());
        }
        let mut bytes = Vec::new();
        append_copies(&mut bytes, &[], 5);
        assert!(bytes.is_empty());
    }

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
        let loads = instructions[..first].iter().filter(|instruction| {
            instruction.is_ip_rel_memory_operand() && instruction.ip_rel_memory_address() == count
        });
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
}
