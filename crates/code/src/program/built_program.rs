//! A program that is built, and how it is placed at an address.

use super::LoopPlan;
use crate::asm::{CodeMode, Emitter, NOMINAL_CONTEXT};
use cyclescope_core::unit::Unit;

/// Machine code that makes one sample per call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    pub(super) mode: CodeMode,
    pub(super) bytes: Vec<u8>,
    pub(super) relocations: Vec<u32>,
    pub(super) body: std::ops::Range<usize>,
    pub(super) init: Vec<u8>,
    pub(super) snippet: Vec<u8>,
    pub(super) copies: usize,
    pub(super) looped: Option<LoopPlan>,
    pub(super) lead: usize,
    pub(super) following: Vec<u8>,
    pub(super) library: bool,
    pub(super) counts: Unit,
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

    /// Number of instructions in front of the loop: see [`super::ProgramRecipe::lead`].
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

/// Adds to the displacement at the start of some code.
pub(super) fn shift_displacement(code: &mut [u8], by: i32) {
    let field = &mut code[..4];
    let displacement = i32::from_le_bytes(field.try_into().expect("four bytes"));
    field.copy_from_slice(&displacement.wrapping_add(by).to_le_bytes());
}
