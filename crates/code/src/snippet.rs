//! A snippet: machine code to measure, and its static properties.

use crate::asm::{self, CodeMode};
use crate::context::FloatElement;
use crate::program::{EntryState, LoopObstacle, LoopPlan, VectorSetup, is_always_taken};
use cyclescope_core::error::BadSnippet;
use iced_x86::{
    Code, Decoder, DecoderOptions, EncodingKind, Instruction, InstructionInfoFactory, MemorySize, OpAccess, Register,
    UsedMemory,
};

/// Machine code to measure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snippet {
    mode: CodeMode,
    code: Vec<u8>,
    init: Vec<u8>,
    text: String,
    setup: Option<SnippetSetup>,
}

/// Machine code that runs before each copy of a snippet, and whose cost is subtracted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnippetSetup {
    /// The machine code.
    pub code: Vec<u8>,
    /// Text that reports show.
    pub text: String,
}

/// Static properties of a snippet's instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SnippetOutline {
    /// Number of instructions in the snippet.
    pub instructions: usize,
    /// Number of jumps, calls and returns in the snippet that are always taken.
    pub taken_branches: usize,
    /// Number of instructions that access memory.
    pub memory_accesses: usize,
    /// Whether the snippet or its init code accesses memory.
    pub touches_memory: bool,
    /// Number of init-code instructions that write registers to memory, such as those that link a
    /// list.
    pub prepared: usize,
    /// Processor state that it needs.
    pub world: EntryState,
    /// Whether it uses the register that counts the iterations of a plain loop: R15, or EBP in 32-bit
    /// code.
    pub uses_counter: bool,
}

impl Snippet {
    /// Creates a snippet from position-independent machine code. Reports show `text`.
    pub fn new(code: Vec<u8>, init: Vec<u8>, text: impl Into<String>) -> Snippet {
        Snippet { mode: CodeMode::default(), code, init, text: text.into(), setup: None }
    }

    /// Sets the mode that its code runs in.
    pub fn with_mode(self, mode: CodeMode) -> Snippet {
        Snippet { mode, ..self }
    }

    /// The mode that its code runs in.
    pub fn mode(&self) -> CodeMode {
        self.mode
    }

    /// Sets the machine code that runs before each copy, and whose cost is subtracted.
    pub fn with_setup(self, setup: Option<SnippetSetup>) -> Snippet {
        Snippet { setup: setup.filter(|setup| !setup.code.is_empty()), ..self }
    }

    /// Creates a snippet from Intel-syntax text, without init code.
    ///
    /// # Errors
    ///
    /// Fails on text that is not assembly, with line and column.
    pub fn parse(text: &str) -> Result<Snippet, BadSnippet> {
        Ok(Snippet::new(asm::parse_assembly(text)?.bytes().to_vec(), Vec::new(), text))
    }

    /// Machine code of one copy.
    pub fn code(&self) -> &[u8] {
        &self.code
    }

    /// Machine code that runs once before the first reading.
    pub fn init(&self) -> &[u8] {
        &self.init
    }

    /// Text that reports show.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Code that runs before each copy, and whose cost is subtracted.
    pub fn setup(&self) -> Option<&SnippetSetup> {
        self.setup.as_ref()
    }

    /// Setup and snippet as the code of one copy.
    pub fn join_setup(&self) -> Snippet {
        let setup = self.setup.as_ref().map_or(&[][..], |setup| &setup.code);
        Snippet::new([setup, &self.code].concat(), self.init.clone(), self.text.clone()).with_mode(self.mode)
    }

    /// The setup alone as a snippet, if there is one.
    pub fn isolate_setup(&self) -> Option<Snippet> {
        let SnippetSetup { code, text } = self.setup.clone()?;
        Some(Snippet::new(code, self.init.clone(), text).with_mode(self.mode))
    }

    /// The loop that copies of the snippet can run in for any number of iterations.
    ///
    /// # Errors
    ///
    /// Fails if an iteration can't begin like the first one.
    pub fn loop_plan(&self) -> Result<LoopPlan, LoopObstacle> {
        LoopPlan::from_code(&self.code, &self.init, self.mode)
    }

    /// The loop that copies of the snippet can run in for some iterations: it may move its
    /// addresses.
    ///
    /// # Errors
    ///
    /// As for [`loop_plan`](Snippet::loop_plan), except for moving addresses.
    pub fn loop_plan_with_moves(&self) -> Result<LoopPlan, LoopObstacle> {
        LoopPlan::from_code_with_moves(&self.code, &self.init, self.mode)
    }

    /// Analyses the instructions of the snippet and its init code.
    pub fn outline(&self, avx: bool) -> SnippetOutline {
        let mut outline = SnippetOutline::default();
        outline.world.mode = self.mode;
        let mut elements = FloatElementUse::default();
        let mut factory = InstructionInfoFactory::new();
        for (code, counted) in [(&self.init, false), (&self.code, true)] {
            for instruction in Decoder::new(self.mode.bits(), code, DecoderOptions::NONE) {
                let info = factory.info(&instruction);
                let touches = info.used_memory().iter().any(|memory| memory.access() != OpAccess::None);
                outline.touches_memory |= touches;
                if counted {
                    outline.instructions += 1;
                    outline.taken_branches += usize::from(is_always_taken(&instruction));
                    outline.memory_accesses += usize::from(touches);
                } else {
                    let is_constant = instruction.code() == Code::Mov_rm32_imm32;
                    outline.prepared += usize::from(!is_constant && info.used_memory().iter().any(writes_memory));
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
        self.uses_counter |= register.full_register() == self.world.mode.choose([Register::R15, Register::RBP]);
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

/// Whether an operand is a ZMM register. The used registers do not show it: a written register
/// counts as a whole, because the instruction clears the rest.
fn names_zmm(instruction: &Instruction) -> bool {
    let operands = (0..instruction.op_count()).map(|operand| instruction.op_register(operand));
    operands.chain([instruction.memory_index()]).any(|register| register.is_zmm())
}

/// Floating-point elements that the instructions use.
#[derive(Debug, Default)]
struct FloatElementUse {
    f64: bool,
    f32: bool,
    f16: bool,
}

impl FloatElementUse {
    fn note_instruction(&mut self, instruction: &Instruction) {
        // The memory size belongs to the opcode, even if this instruction has a register instead.
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
    fn general_purpose_code_needs_no_vector_registers() {
        // imul rax, rax
        let outline = outline(&[0x48, 0x0f, 0xaf, 0xc0]);
        assert_eq!((outline.instructions, outline.memory_accesses), (1, 0));
        assert_eq!(outline.world.vectors, VectorSetup::None);
        assert!(!outline.uses_counter);
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
    fn stack_instructions_and_init_code_touch_memory() {
        let touches =
            |code: &[u8], init: &[u8]| Snippet::new(code.to_vec(), init.to_vec(), "").outline(true).touches_memory;
        // push rax; add rax, rax; mov [r14], rax
        assert!(touches(&[0x50], &[]));
        assert!(!touches(&[0x48, 0x01, 0xc0], &[]));
        assert!(touches(&[0x48, 0x01, 0xc0], &[0x49, 0x89, 0x06]));
    }

    #[test]
    fn memory_writes_of_init_code_are_counted() {
        // mov rax, [r14]; mov [r14], rax; lea rax, [r14]; add [r14], rax
        let init = [0x49, 0x8b, 0x06, 0x49, 0x89, 0x06, 0x49, 0x8d, 0x06, 0x49, 0x01, 0x06];
        let prepared = |code: &[u8], init: &[u8]| Snippet::new(code.to_vec(), init.to_vec(), "").outline(true).prepared;
        assert_eq!((prepared(&[0x90], &init), prepared(&init, &[])), (2, 0));
        // mov dword ptr [r14], 1: data, and no link.
        assert_eq!(prepared(&[0x90], &[0x41, 0xc7, 0x06, 1, 0, 0, 0]), 0);
    }

    #[test]
    fn the_plain_loops_counter_is_detected_in_every_width() {
        // add r15b, al
        assert!(outline(&[0x41, 0x00, 0xc7]).uses_counter);
        // inc ebp
        let narrow =
            |code: &[u8]| Snippet::new(code.to_vec(), Vec::new(), "").with_mode(CodeMode::Bits32).outline(false);
        assert!(narrow(&[0x45]).uses_counter && !narrow(&[0x41]).uses_counter);
    }

    #[test]
    fn x87_is_detected() {
        // fadd st0, st1
        assert!(outline(&[0xd8, 0xc1]).world.x87);
    }
}
