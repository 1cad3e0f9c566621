//! A snippet: the machine code to be measured, and its static properties.

use crate::asm;
use crate::context::FloatElement;
use crate::program::{EntryState, VectorSetup};
use cyclescope_core::error::BadSnippet;
use iced_x86::{
    Decoder, DecoderOptions, EncodingKind, Instruction, InstructionInfoFactory, MemorySize, OpAccess, Register,
    UsedMemory,
};

/// Machine code to measure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snippet {
    code: Vec<u8>,
    init: Vec<u8>,
    text: String,
}

/// Static properties of the instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SnippetOutline {
    /// Number of instructions in the snippet.
    pub instructions: usize,
    /// Number of instructions that access memory.
    pub memory_accesses: usize,
    /// Whether it or its init code accesses memory.
    pub touches_memory: bool,
    /// Number of instructions of the init code that write memory, such as the links of a list.
    pub prepared: usize,
    /// The processor state that it needs.
    pub world: EntryState,
    /// Whether it names R15, which counts the loop of a looped body.
    pub uses_r15: bool,
}

impl Snippet {
    /// A snippet from position-independent machine code. `text` is what reports show.
    pub fn new(code: Vec<u8>, init: Vec<u8>, text: impl Into<String>) -> Snippet {
        Snippet { code, init, text: text.into() }
    }

    /// A snippet from Intel-syntax text, without init code.
    ///
    /// # Errors
    ///
    /// What does not fit, with its line and column.
    pub fn parse(text: &str) -> Result<Snippet, BadSnippet> {
        Ok(Snippet::new(asm::parse_assembly(text)?.bytes().to_vec(), Vec::new(), text))
    }

    /// The machine code of one copy.
    pub fn code(&self) -> &[u8] {
        &self.code
    }

    /// The machine code that runs once before the first reading.
    pub fn init(&self) -> &[u8] {
        &self.init
    }

    /// How reports show the snippet.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Reads the instructions of snippet and init code.
    pub fn outline(&self, avx: bool) -> SnippetOutline {
        let mut outline = SnippetOutline::default();
        let mut elements = FloatElementUse::default();
        let mut factory = InstructionInfoFactory::new();
        for (code, counted) in [(&self.init, false), (&self.code, true)] {
            for instruction in Decoder::new(64, code, DecoderOptions::NONE) {
                let info = factory.info(&instruction);
                let touches = info.used_memory().iter().any(|memory| memory.access() != OpAccess::None);
                outline.touches_memory |= touches;
                if counted {
                    outline.instructions += 1;
                    outline.memory_accesses += usize::from(touches);
                } else {
                    outline.prepared += usize::from(info.used_memory().iter().any(writes_memory));
                }
                for register in info.used_registers() {
                    outline.note_register(register.register());
                }
                outline.note_encoding(&instruction, info.used_registers());
                elements.note_instruction(&instruction);
            }
        }
        outline.world.element = elements.common_element();
        outline.world.avx = avx;
        outline
    }
}

fn writes_memory(memory: &UsedMemory) -> bool {
    use OpAccess::{CondWrite, ReadCondWrite, ReadWrite, Write};
    matches!(memory.access(), Write | CondWrite | ReadWrite | ReadCondWrite)
}

impl SnippetOutline {
    fn note_register(&mut self, register: Register) {
        self.uses_r15 |= register.full_register() == Register::R15;
        self.world.masks |= register.is_k();
        self.world.x87 |= register.is_st() || register.is_mm();
    }

    fn note_encoding(&mut self, instruction: &Instruction, registers: &[iced_x86::UsedRegister]) {
        if !registers.iter().any(|used| used.register().is_vector_register()) {
            return;
        }
        let vectors = match instruction.code().op_code().encoding() {
            EncodingKind::Legacy | EncodingKind::D3NOW => VectorSetup::Legacy,
            EncodingKind::VEX | EncodingKind::XOP => VectorSetup::Ymm,
            _ if names_zmm(instruction) => VectorSetup::Zmm,
            _ => VectorSetup::Evex,
        };
        self.world.vectors = self.world.vectors.max(vectors);
        // Masks are all ones by default; an EVEX snippet may name them only as a decorator.
        self.world.masks |= vectors >= VectorSetup::Evex;
    }
}

/// Whether an operand is a ZMM register. (A written register is reported as the whole one, since the instruction
/// clears the rest.)
fn names_zmm(instruction: &Instruction) -> bool {
    let operands = (0..instruction.op_count()).map(|operand| instruction.op_register(operand));
    operands.chain([instruction.memory_index()]).any(|register| register.is_zmm())
}

/// Which floating point elements the instructions work on.
#[derive(Debug, Default)]
struct FloatElementUse {
    f64: bool,
    f32: bool,
    f16: bool,
}

impl FloatElementUse {
    fn note_instruction(&mut self, instruction: &Instruction) {
        // The memory size belongs to the opcode, also where this instruction has a register in its place.
        match instruction.code().op_code().memory_size().element_type() {
            MemorySize::Float64 => self.f64 = true,
            MemorySize::Float32 => self.f32 = true,
            MemorySize::Float16 => self.f16 = true,
            _ => {}
        }
    }

    fn common_element(&self) -> FloatElement {
        match (self.f64, self.f32, self.f16) {
            (false, true, _) => FloatElement::F32,
            (false, false, true) => FloatElement::F16,
            _ => FloatElement::F64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outline(code: &[u8]) -> SnippetOutline {
        Snippet::new(code.to_vec(), Vec::new(), "").outline(true)
    }

    #[test]
    fn general_purpose_code_needs_no_vectors() {
        // imul rax, rax
        let outline = outline(&[0x48, 0x0f, 0xaf, 0xc0]);
        assert_eq!((outline.instructions, outline.memory_accesses), (1, 0));
        assert_eq!(outline.world.vectors, VectorSetup::None);
        assert!(!outline.uses_r15);
    }

    #[test]
    fn vectors_and_elements_follow_the_encoding() {
        // addps xmm0, xmm1
        let legacy = outline(&[0x0f, 0x58, 0xc1]).world;
        assert_eq!((legacy.vectors, legacy.element), (VectorSetup::Legacy, FloatElement::F32));
        // vmulpd ymm0, ymm1, ymm2
        let vex = outline(&[0xc5, 0xf5, 0x59, 0xc2]).world;
        assert_eq!((vex.vectors, vex.element), (VectorSetup::Ymm, FloatElement::F64));
        // vaddps zmm0{k1}, zmm1, zmm2
        let evex = outline(&[0x62, 0xf1, 0x74, 0x49, 0x58, 0xc2]).world;
        assert_eq!((evex.vectors, evex.element, evex.masks), (VectorSetup::Zmm, FloatElement::F32, true));
        // vaddps xmm16, xmm1, xmm2
        let narrow = outline(&[0x62, 0xe1, 0x74, 0x08, 0x58, 0xc2]).world;
        assert_eq!((narrow.vectors, narrow.masks), (VectorSetup::Evex, true));
    }

    #[test]
    fn memory_accesses_are_counted_but_not_addresses() {
        // mov rax, [r14]; lea rax, [r14]; nop [r14]
        let outline = outline(&[0x49, 0x8b, 0x06, 0x49, 0x8d, 0x06, 0x41, 0x0f, 0x1f, 0x06]);
        assert_eq!((outline.instructions, outline.memory_accesses), (3, 1));
        assert!(outline.touches_memory);
    }

    #[test]
    fn the_stack_and_init_code_touch_memory_too() {
        let touches =
            |code: &[u8], init: &[u8]| Snippet::new(code.to_vec(), init.to_vec(), "").outline(true).touches_memory;
        // push rax; add rax, rax; mov [r14], rax
        assert!(touches(&[0x50], &[]));
        assert!(!touches(&[0x48, 0x01, 0xc0], &[]));
        assert!(touches(&[0x48, 0x01, 0xc0], &[0x49, 0x89, 0x06]));
    }

    #[test]
    fn what_init_code_writes_is_counted() {
        // mov rax, [r14]; mov [r14], rax; lea rax, [r14]; add [r14], rax
        let init = [0x49, 0x8b, 0x06, 0x49, 0x89, 0x06, 0x49, 0x8d, 0x06, 0x49, 0x01, 0x06];
        let prepared = |code: &[u8], init: &[u8]| Snippet::new(code.to_vec(), init.to_vec(), "").outline(true).prepared;
        assert_eq!((prepared(&[0x90], &init), prepared(&init, &[])), (2, 0));
    }

    #[test]
    fn r15_is_seen_in_every_width() {
        // add r15b, al
        assert!(outline(&[0x41, 0x00, 0xc7]).uses_r15);
    }

    #[test]
    fn x87_is_seen() {
        // fadd st0, st1
        assert!(outline(&[0xd8, 0xc1]).world.x87);
    }
}
