//! Which registers carry values from one copy of a snippet to the next.

use cyclescope_code::asm::CodeMode;
use iced_x86::{
    Decoder, DecoderOptions, Instruction, InstructionInfo, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};

/// Registers as bits, by number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct RegisterBits(u32);

impl RegisterBits {
    fn has(self, number: usize) -> bool {
        self.0 >> number & 1 == 1
    }

    fn add(&mut self, number: usize) {
        self.0 |= 1 << number;
    }
}

/// General and vector registers that some code reads and writes.
#[derive(Debug, Clone, Copy, Default)]
struct CodeAccess {
    /// Read before any instruction wrote them, in the order of the text.
    general_read: RegisterBits,
    general_written: RegisterBits,
    vector_read: RegisterBits,
    vector_written: RegisterBits,
    /// Whether it fills the x87 stack, or writes memory.
    x87_written: bool,
    memory_written: bool,
}

/// How a snippet and its init code use registers.
#[derive(Debug, Clone, Copy)]
pub(super) struct RegisterUse {
    /// Vector registers that code without EVEX can name.
    vectors: usize,
    snippet: CodeAccess,
    init: CodeAccess,
}

fn reads(access: OpAccess) -> bool {
    use OpAccess::{CondRead, Read, ReadCondWrite, ReadWrite};
    matches!(access, CondRead | Read | ReadCondWrite | ReadWrite)
}

fn writes(access: OpAccess) -> bool {
    use OpAccess::{CondWrite, ReadCondWrite, ReadWrite, Write};
    matches!(access, CondWrite | ReadCondWrite | ReadWrite | Write)
}

impl CodeAccess {
    fn from_instructions(instructions: &[Instruction]) -> CodeAccess {
        let mut code = CodeAccess::default();
        let mut factory = InstructionInfoFactory::new();
        for instruction in instructions {
            let info = factory.info(instruction);
            if !clears_register(instruction) {
                code.note_accesses(info, reads);
            }
            code.note_accesses(info, writes);
            code.x87_written |= info.used_registers().iter().any(|used| used.register().is_st());
            code.memory_written |= info.used_memory().iter().any(|memory| writes(memory.access()));
        }
        code
    }

    fn note_accesses(&mut self, info: &InstructionInfo, holds: fn(OpAccess) -> bool) {
        let is_write = holds(OpAccess::Write);
        for used in info.used_registers().iter().filter(|used| holds(used.access())) {
            let register = used.register();
            let (read, written, number) = if register.is_gpr() {
                (&mut self.general_read, &mut self.general_written, register.full_register().number())
            } else if register.is_vector_register() {
                (&mut self.vector_read, &mut self.vector_written, register.number())
            } else {
                continue;
            };
            if is_write {
                written.add(number);
            } else if !written.has(number) {
                read.add(number);
            }
        }
    }
}

/// Whether an instruction sets its register to a value that does not depend on it.
fn clears_register(instruction: &Instruction) -> bool {
    let clears = matches!(
        instruction.mnemonic(),
        Mnemonic::Xor | Mnemonic::Sub | Mnemonic::Pxor | Mnemonic::Xorps | Mnemonic::Xorpd | Mnemonic::Vpxor
    );
    let last = instruction.op_count().max(1) - 1;
    clears
        && instruction.op_kind(last) == OpKind::Register
        && instruction.op_register(last) == instruction.op_register(last - 1)
}

impl RegisterUse {
    pub(super) fn from_code(snippet: &[Instruction], init: &[u8], mode: CodeMode) -> RegisterUse {
        let init: Vec<Instruction> = Decoder::new(mode.bits(), init, DecoderOptions::NONE).into_iter().collect();
        RegisterUse {
            vectors: mode.vector_registers() as usize,
            snippet: CodeAccess::from_instructions(snippet),
            init: CodeAccess::from_instructions(&init),
        }
    }

    /// The general registers that a copy reads as the previous one left them.
    pub(super) fn carried(&self) -> impl Iterator<Item = Register> {
        let CodeAccess { general_read, general_written, .. } = self.snippet;
        let carried = (0..16).filter(move |number| general_read.has(*number) && general_written.has(*number));
        carried.map(|number| Register::RAX + number as u32)
    }

    /// The first vector register that a copy reads as the previous one left it.
    pub(super) fn carried_vector(&self) -> Option<usize> {
        let CodeAccess { vector_read, vector_written, .. } = self.snippet;
        (0..32).find(|number| vector_read.has(*number) && vector_written.has(*number))
    }

    /// A vector register that neither the snippet nor its init code uses.
    pub(super) fn free_vector(&self) -> Option<usize> {
        let is_used = |number: usize| {
            let parts = [self.snippet, self.init];
            parts.iter().any(|part| part.vector_read.has(number) || part.vector_written.has(number))
        };
        (0..self.vectors).rev().find(|number| !is_used(*number))
    }

    pub(super) fn is_carried(&self, register: Register) -> bool {
        self.carried().any(|carried| carried == register.full_register())
    }

    /// Whether the init code writes the general register.
    pub(super) fn is_initialised(&self, register: Register) -> bool {
        register.is_gpr() && self.init.general_written.has(register.full_register().number())
    }

    /// Whether snippet or init code use a general register.
    pub(super) fn is_used(&self, register: Register) -> bool {
        let number = register.full_register().number();
        [self.snippet, self.init].iter().any(|part| part.general_read.has(number) || part.general_written.has(number))
    }

    /// Whether the init code writes the vector register with this number.
    pub(super) fn is_vector_initialised(&self, number: usize) -> bool {
        self.init.vector_written.has(number)
    }

    /// Whether the init code writes memory.
    pub(super) fn init_writes_memory(&self) -> bool {
        self.init.memory_written
    }

    /// Whether the init code sets floating-point numbers: in vector registers, on the x87 stack or
    /// in memory.
    pub(super) fn init_sets_floats(&self) -> bool {
        self.init.vector_written != RegisterBits::default() || self.init.x87_written || self.init.memory_written
    }

    /// Whether the init code or the snippet sets the vector register before it reads it.
    pub(super) fn is_vector_set(&self, number: usize) -> bool {
        self.is_vector_initialised(number) || !self.snippet.vector_read.has(number)
    }
}

/// The registers whose values decide on a branch, best first: those that the instruction reads
/// which writes the branch's flags.
pub(super) fn find_deciding_registers(instructions: &[Instruction], branch: usize) -> Vec<Register> {
    let condition = &instructions[branch];
    if condition.is_loop() || condition.is_loopcc() || condition.is_jcx_short() {
        return vec![Register::RCX];
    }
    let flags = condition.rflags_read();
    let decider = instructions[..branch].iter().rev().find(|earlier| earlier.rflags_modified() & flags != 0);
    let Some(decider) = decider else { return Vec::new() };
    let mut factory = InstructionInfoFactory::new();
    let used = factory.info(decider).used_registers().iter();
    let read = used.filter(|used| reads(used.access()) && used.register().is_gpr());
    read.map(|used| used.register().full_register()).collect()
}
