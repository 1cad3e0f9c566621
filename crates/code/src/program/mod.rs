//! From a snippet to machine code that times it: prologue, clock, copies of the snippet, clock, epilogue.
//!
//! A program is a function `fn()` of position-independent code. One call makes one sample: two raw readings
//! in the [`Context`] beside it. It knows no address; [`Program::place`] fills in the one thing that depends
//! on where it runs, the distance to its context.

pub mod chains;
mod cold;
pub mod memory;
mod place;
mod world;

pub use cold::Cold;
pub use place::Place;
pub use world::{Vectors, World};

use crate::asm::{Emitter, Listing, NOMINAL_CONTEXT};
use crate::clock::{Clock, Edit, Side};
use crate::context::Context;
use iced_x86::{Code, Register};
use std::mem::offset_of;

/// The parts of a program.
#[derive(Debug, Clone, Copy)]
pub struct Recipe<'a> {
    /// The timing method.
    pub clock: &'a Clock,
    /// The processor state at the snippet's entry.
    pub world: World,
    /// Machine code that runs once before the first reading.
    pub init: &'a [u8],
    /// The snippet's machine code.
    pub snippet: &'a [u8],
    /// Copies of the snippet in the body.
    pub copies: usize,
    /// Whether the body runs in a loop counted by R15.
    pub looped: bool,
    /// What is cold when the body begins.
    pub cold: Cold,
    /// Machine code that runs once after the last reading.
    pub following: &'a [u8],
    /// A step of the clock that is left out or repeated.
    pub edit: Option<Edit>,
}

/// Machine code that makes one sample a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    bytes: Vec<u8>,
    relocations: Vec<u32>,
    body: std::ops::Range<usize>,
    init: Vec<u8>,
    snippet: Vec<u8>,
    copies: usize,
    looped: bool,
    following: Vec<u8>,
    library: bool,
}

/// Registers that a System V function must preserve.
const CALLEE_SAVED: [Register; 6] =
    [Register::RBX, Register::RBP, Register::R12, Register::R13, Register::R14, Register::R15];

impl Recipe<'_> {
    /// A pair of readings with nothing in between and nothing around.
    pub fn empty(clock: &Clock) -> Recipe<'_> {
        Recipe {
            clock,
            world: World::default(),
            init: &[],
            snippet: &[],
            copies: 0,
            looped: false,
            cold: Cold::default(),
            following: &[],
            edit: None,
        }
    }

    /// A loop over this many copies of some code.
    pub fn looped<'a>(clock: &'a Clock, snippet: &'a [u8], copies: usize) -> Recipe<'a> {
        Recipe { snippet, copies, looped: true, ..Recipe::empty(clock) }
    }

    /// Writes the program.
    ///
    /// ```text
    ///     push rbx … r15
    ///     mov  [return_rsp], rsp
    ///     (vector, mask and x87 state of the world)
    ///     mov  rax … r15, [gpr]      ; the snippet's registers; RSP last
    ///     test rsp, rsp              ; CF, OF and ZF clear
    ///     (init)
    ///     mov  r15, [loop_count]     ; with a loop
    ///     mov  [spill], rax …        ; what the clock clobbers
    ///     (evictions of a cold start)
    ///     (the clock's start)
    ///     mov  rax, [spill] …
    /// body:
    ///     (copies of the snippet)
    ///     (NOPs up to a cache line)  ; where its code is cold
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
        self.frame().program(self.snippet, self.copies)
    }

    /// All of the program but its body. With cold code it fits bodies of this length only.
    pub fn frame(&self) -> Frame {
        let mut emitter = Emitter::at(0);
        self.emit_entry(&mut emitter);
        let mut clobbers = self.clock.clobbers();
        if self.cold.is_any() {
            let known = clobbers.clone();
            clobbers.extend(cold::CLOBBERS.iter().filter(|register| !known.contains(register)));
        }
        for (index, register) in clobbers.iter().enumerate() {
            emitter.store(Code::Mov_rm64_r64, spill(index), *register);
        }
        if self.cold.is_any() {
            self.cold.emit(&mut emitter, self.snippet.len() * self.copies);
        }
        self.emit_start(&clobbers, &mut emitter);
        let (head, head_relocations) = emitter.finish();
        let mut emitter = Emitter::at(0);
        self.clock.emit(Side::End, self.edit, &mut emitter);
        emitter.bytes(self.following);
        emit_exit(&mut emitter);
        let (tail, tail_relocations) = emitter.finish();
        Frame {
            head,
            head_relocations,
            tail,
            tail_relocations,
            init: self.init.to_vec(),
            looped: self.looped,
            cold: self.cold,
            following: self.following.to_vec(),
            library: self.clock.calls(),
        }
    }

    /// The code of an empty pair: both readings, and the registers that are restored between them. References to the
    /// context are those of no address.
    pub fn pair(clock: &Clock) -> Listing {
        let recipe = Recipe::empty(clock);
        let mut emitter = Emitter::at(0);
        recipe.emit_start(&clock.clobbers(), &mut emitter);
        clock.emit(Side::End, None, &mut emitter);
        Listing::from_bytes(&emitter.finish().0)
    }

    /// The clock's start, and the registers as they were before it.
    fn emit_start(&self, clobbers: &[Register], emitter: &mut Emitter) {
        self.clock.emit(Side::Start, self.edit, emitter);
        for (index, register) in clobbers.iter().enumerate() {
            emitter.load(Code::Mov_r64_rm64, *register, spill(index));
        }
    }

    fn emit_entry(&self, emitter: &mut Emitter) {
        for register in CALLEE_SAVED {
            emitter.register(Code::Push_r64, register);
        }
        emitter.store(Code::Mov_rm64_r64, offset_of!(Context, return_rsp), Register::RSP);
        self.world.emit(emitter);
        for number in (0..16).filter(|number| *number != RSP).chain([RSP]) {
            let register = Register::RAX + number as u32;
            emitter.load(Code::Mov_r64_rm64, register, offset_of!(Context, gpr) + 8 * number);
        }
        // After the loads: with flags from before them `cmovz` chains took 2 cycles a link for 1 on Raptor Cove.
        emitter.registers(Code::Test_rm64_r64, Register::RSP, Register::RSP);
        emitter.bytes(self.init);
        if self.looped {
            emitter.load(Code::Mov_r64_rm64, Register::R15, offset_of!(Context, loop_count));
        }
    }
}

/// Where the context keeps a register while the clock starts.
fn spill(index: usize) -> usize {
    offset_of!(Context, spill) + 8 * index
}

/// All of a program but its body: written once, it serves programs of one snippet in many lengths.
#[derive(Debug, Clone)]
pub struct Frame {
    head: Vec<u8>,
    head_relocations: Vec<u32>,
    /// Encoded as if it began at the program's first byte.
    tail: Vec<u8>,
    tail_relocations: Vec<u32>,
    init: Vec<u8>,
    looped: bool,
    cold: Cold,
    following: Vec<u8>,
    library: bool,
}

impl Frame {
    /// The program with this number of copies of a snippet.
    pub fn program(&self, snippet: &[u8], copies: usize) -> Program {
        let start = self.head.len();
        let loop_end = 16;
        let mut bytes = Vec::with_capacity(start + snippet.len() * copies + loop_end + self.tail.len());
        bytes.extend(&self.head);
        repeat(&mut bytes, snippet, copies);
        fill(&mut bytes, self.cold.filling(snippet.len() * copies));
        if self.looped {
            let mut emitter = Emitter::at(bytes.len());
            emit_loop_end(&mut emitter, start);
            bytes.extend(emitter.finish().0);
        }
        let body = start..bytes.len();
        bytes.extend(&self.tail);
        let mut relocations = self.head_relocations.clone();
        for offset in &self.tail_relocations {
            let offset = body.end + *offset as usize;
            shift(&mut bytes[offset..], -(body.end as i32));
            relocations.push(offset as u32);
        }
        Program {
            bytes,
            relocations,
            body,
            init: self.init.clone(),
            snippet: snippet.to_vec(),
            copies,
            looped: self.looped,
            following: self.following.clone(),
            library: self.library,
        }
    }
}

/// Appends copies of some bytes, in few large pieces.
fn repeat(into: &mut Vec<u8>, piece: &[u8], copies: usize) {
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

/// Appends this number of bytes of NOPs, the longest first (Intel SDM vol. 2, NOP).
pub fn fill(into: &mut Vec<u8>, mut bytes: usize) {
    const LONGEST: [u8; 9] = [0x66, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0];
    while bytes >= LONGEST.len() {
        into.extend(LONGEST);
        bytes -= LONGEST.len();
    }
    into.extend(std::iter::repeat_n(0x90, bytes));
}

/// Adds to the displacement at the start of some code.
fn shift(code: &mut [u8], by: i32) {
    let field = &mut code[..4];
    let displacement = i32::from_le_bytes(field.try_into().expect("four bytes"));
    field.copy_from_slice(&displacement.wrapping_add(by).to_le_bytes());
}

fn emit_loop_end(emitter: &mut Emitter, start: usize) {
    emitter.plain(Code::Nopd);
    emitter.register(Code::Dec_rm64, Register::R15);
    // A short branch reaches 128 bytes back from its own end.
    let short = emitter.len() + 2 - start <= 128;
    emitter.branch(if short { Code::Jne_rel8_64 } else { Code::Jne_rel32_64 }, start);
}

/// The encoding number of RSP.
const RSP: usize = 4;

fn emit_exit(emitter: &mut Emitter) {
    emitter.load(Code::Mov_r64_rm64, Register::RSP, offset_of!(Context, return_rsp));
    emitter.plain(Code::Cld);
    for register in CALLEE_SAVED.into_iter().rev() {
        emitter.register(Code::Pop_r64, register);
    }
    emitter.plain(Code::Retnq);
}

impl Program {
    /// The code's length in bytes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there is no code; a program always has some.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The range of the body in the code.
    pub fn body(&self) -> std::ops::Range<usize> {
        self.body.clone()
    }

    /// The code before it is placed: references to the context are not filled in.
    pub fn code(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether its clock calls a function of the C library.
    pub fn calls_library(&self) -> bool {
        self.library
    }

    /// All of its code that it was given, as one value: two programs that differ in it may do different things.
    pub fn foreign_code(&self) -> Vec<u8> {
        let parts = [&self.init, &self.snippet, &self.following];
        let length = |part: &&Vec<u8>| part.len().to_le_bytes();
        let lengths = parts.iter().flat_map(length);
        lengths.chain(parts.iter().copied().flatten().copied()).collect()
    }

    /// The init code that it was made with.
    pub fn init(&self) -> &[u8] {
        &self.init
    }

    /// The snippet that it was made from.
    pub fn snippet(&self) -> &[u8] {
        &self.snippet
    }

    /// Copies of the snippet in the body.
    pub fn copies(&self) -> usize {
        self.copies
    }

    /// Whether the body runs in a loop counted by R15.
    pub fn looped(&self) -> bool {
        self.looped
    }

    /// The code that runs once after the last reading.
    pub fn following(&self) -> &[u8] {
        &self.following
    }

    /// Where the code has displacements to its context, in bytes from its start.
    pub fn relocations(&self) -> &[u32] {
        &self.relocations
    }

    /// The code for one address, its context at another; the two are at most 2 GiB apart.
    pub fn place(&self, code: u64, context: u64, into: &mut [u8]) {
        into[..self.bytes.len()].copy_from_slice(&self.bytes);
        let distance = context.wrapping_sub(code) as i64 - NOMINAL_CONTEXT;
        let distance = i32::try_from(distance).expect("code and context are within 2 GiB");
        for offset in &self.relocations {
            shift(&mut into[*offset as usize..], distance);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_repeated() {
        for copies in [0, 1, 2, 3, 7, 100] {
            let mut bytes = vec![9];
            repeat(&mut bytes, &[1, 2, 3], copies);
            assert_eq!(bytes, [vec![9], [1, 2, 3].repeat(copies)].concat());
        }
        let mut bytes = Vec::new();
        repeat(&mut bytes, &[], 5);
        assert!(bytes.is_empty());
    }

    #[test]
    fn the_tail_finds_the_context_wherever_the_body_ends() {
        let clock = Clock::named("rdtscp-lfence").unwrap();
        let recipe = Recipe::empty(clock);
        let targets = |copies: usize| {
            let program = recipe.frame().program(&[0x90], copies);
            let decoder = iced_x86::Decoder::new(64, program.code(), iced_x86::DecoderOptions::NONE);
            let context = decoder.into_iter().filter(|instruction| instruction.is_ip_rel_memory_operand());
            context.map(|instruction| instruction.ip_rel_memory_address()).collect::<Vec<_>>()
        };
        assert_eq!(targets(0), targets(1000));
        assert!(targets(1000).iter().all(|target| {
            (NOMINAL_CONTEXT as u64..NOMINAL_CONTEXT as u64 + size_of::<Context>() as u64).contains(target)
        }));
    }
}
