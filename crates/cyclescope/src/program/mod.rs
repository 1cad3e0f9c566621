//! From a snippet to machine code that times it: prologue, clock, copies of the snippet, clock, epilogue.
//!
//! A program is a function `fn()` of position-independent code. One call makes one sample: two raw readings
//! in the [`Context`] beside it. It knows no address; [`Program::place`] fills in the one thing that depends
//! on where it runs, the distance to its context.

mod cold;
mod emitter;
mod world;

pub use cold::Cold;
pub use emitter::Emitter;
pub use world::{Vectors, World};

use crate::clock::Clock;
use crate::context::Context;
use emitter::NOMINAL_CONTEXT;
use iced_x86::{Code, Register};
use std::mem::offset_of;

/// What a program is made from.
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
    /// How many copies of the snippet the body holds.
    pub copies: usize,
    /// Whether the body runs in a loop counted by R15.
    pub looped: bool,
    /// What is cold when the body begins.
    pub cold: Cold,
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
}

/// Registers that a System V function must preserve.
const CALLEE_SAVED: [Register; 6] =
    [Register::RBX, Register::RBP, Register::R12, Register::R13, Register::R14, Register::R15];

impl Recipe<'_> {
    /// Writes the program.
    ///
    /// ```text
    ///     push rbx … r15
    ///     mov  [return_rsp], rsp
    ///     (vector, mask and x87 state of the world)
    ///     test rsp, rsp              ; CF, OF and ZF clear
    ///     mov  rax … r15, [gpr]      ; the snippet's registers; RSP last
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
    ///     mov  rsp, [return_rsp]
    ///     cld
    ///     pop  r15 … rbx
    ///     ret
    /// ```
    pub fn build(&self) -> Program {
        let mut emitter = Emitter::new();
        self.emit_entry(&mut emitter);
        let mut clobbers = self.clock.clobbers();
        if self.cold.is_any() {
            clobbers
                .extend(cold::CLOBBERS.iter().filter(|register| !self.clock.clobbers().contains(register)));
        }
        let spill = |index: usize| offset_of!(Context, spill) + 8 * index;
        for (index, register) in clobbers.iter().enumerate() {
            emitter.store(Code::Mov_rm64_r64, spill(index), *register);
        }
        if self.cold.is_any() {
            self.cold.emit(&mut emitter, self.snippet.len() * self.copies);
        }
        self.clock.emit_start(&mut emitter);
        for (index, register) in clobbers.iter().enumerate() {
            emitter.load(Code::Mov_r64_rm64, *register, spill(index));
        }
        let body = self.emit_body(&mut emitter);
        self.clock.emit_end(&mut emitter);
        emit_exit(&mut emitter);
        let (bytes, relocations) = emitter.finish();
        Program {
            bytes,
            relocations,
            body,
            init: self.init.to_vec(),
            snippet: self.snippet.to_vec(),
            copies: self.copies,
            looped: self.looped,
        }
    }

    fn emit_entry(&self, emitter: &mut Emitter) {
        for register in CALLEE_SAVED {
            emitter.register(Code::Push_r64, register);
        }
        emitter.store(Code::Mov_rm64_r64, offset_of!(Context, return_rsp), Register::RSP);
        self.world.emit(emitter);
        emitter.registers(Code::Test_rm64_r64, Register::RSP, Register::RSP);
        for number in (0..16).filter(|number| *number != RSP).chain([RSP]) {
            let register = Register::RAX + number as u32;
            emitter.load(Code::Mov_r64_rm64, register, offset_of!(Context, gpr) + 8 * number);
        }
        emitter.bytes(self.init);
        if self.looped {
            emitter.load(Code::Mov_r64_rm64, Register::R15, offset_of!(Context, loop_count));
        }
    }

    fn emit_body(&self, emitter: &mut Emitter) -> std::ops::Range<usize> {
        emitter.begin_body();
        let start = emitter.len();
        for _ in 0..self.copies {
            emitter.bytes(self.snippet);
        }
        fill(emitter, self.cold.filling(emitter.len() - start));
        if self.looped {
            emitter.plain(Code::Nopd);
            emitter.register(Code::Dec_rm64, Register::R15);
            // A short branch reaches 128 bytes back from its own end.
            let short = emitter.len() + 2 - start <= 128;
            emitter.branch(if short { Code::Jne_rel8_64 } else { Code::Jne_rel32_64 }, start);
        }
        start..emitter.len()
    }
}

/// Emits so many bytes of NOPs, the longest first (Intel SDM vol. 2, NOP).
fn fill(emitter: &mut Emitter, mut bytes: usize) {
    const LONGEST: [u8; 9] = [0x66, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0];
    while bytes >= LONGEST.len() {
        emitter.bytes(&LONGEST);
        bytes -= LONGEST.len();
    }
    emitter.bytes(&[0x90; LONGEST.len()][..bytes]);
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

    /// Where the body stands in the code.
    pub fn body(&self) -> std::ops::Range<usize> {
        self.body.clone()
    }

    /// The code before it is placed: references to the context are not filled in.
    pub fn code(&self) -> &[u8] {
        &self.bytes
    }

    /// The init code that it was made with.
    pub fn init(&self) -> &[u8] {
        &self.init
    }

    /// The snippet that it was made from.
    pub fn snippet(&self) -> &[u8] {
        &self.snippet
    }

    /// How many copies of the snippet the body holds.
    pub fn copies(&self) -> usize {
        self.copies
    }

    /// Whether the body runs in a loop counted by R15.
    pub fn looped(&self) -> bool {
        self.looped
    }

    /// The code for one address, its context at another; the two are at most 2 GiB apart.
    pub fn place(&self, code: u64, context: u64, into: &mut [u8]) {
        into[..self.bytes.len()].copy_from_slice(&self.bytes);
        let shift = context.wrapping_sub(code) as i64 - NOMINAL_CONTEXT;
        let shift = i32::try_from(shift).expect("code and context are within 2 GiB");
        for offset in &self.relocations {
            let field = &mut into[*offset as usize..*offset as usize + 4];
            let nominal = i32::from_le_bytes(field.try_into().expect("four bytes"));
            field.copy_from_slice(&nominal.wrapping_add(shift).to_le_bytes());
        }
    }
}
