//! Writes a program's instructions and records their references to the context.
//!
//! References to the context are RIP-relative, and absolute in 32-bit code. While a program is
//! written, the context is at a nominal distance. `Program::relocate_into` corrects each displacement
//! once both addresses are known.
//!
//! Instructions are given as for 64-bit mode, and converted to the program's mode.

use super::CodeMode;
use iced_x86::{Code, Encoder, Instruction, MemoryOperand, Register};

/// Offset of the context from the program's first byte before relocation.
pub(crate) const NOMINAL_CONTEXT: i64 = 0x1000_0000;

/// Assumed distance to the body until it is known.
const NOMINAL_BODY: i64 = 0x1000;

/// Collects machine code.
pub struct Emitter {
    mode: CodeMode,
    encoder: Encoder,
    /// Offsets of 32-bit displacements that refer to the context.
    relocations: Vec<u32>,
    /// Offsets of 32-bit displacements that refer to the body, which follows this code, and the
    /// offsets that each counts from.
    forward: Vec<(usize, usize)>,
    start: usize,
    length: usize,
}

impl Emitter {
    /// Creates an emitter for code that starts at an offset in its program.
    pub(crate) fn starting_at(start: usize, mode: CodeMode) -> Emitter {
        let encoder = Encoder::new(mode.bits());
        Emitter { mode, encoder, relocations: Vec::new(), forward: Vec::new(), start, length: start }
    }

    /// The mode of the code.
    pub(crate) fn mode(&self) -> CodeMode {
        self.mode
    }

    /// Offset of the next byte in the program.
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Appends an instruction built by this library.
    pub(crate) fn push(&mut self, instruction: Result<Instruction, iced_x86::IcedError>) {
        let instruction = instruction.expect("the library's own instructions have fitting operands");
        let at = self.length;
        let converted = self.mode.convert_own(&instruction);
        let length = self.encoder.encode(&converted, at as u64).expect("the library's own instructions can be encoded");
        if instruction.is_ip_rel_memory_operand() {
            let offset = at + self.encoder.get_constant_offsets().displacement_offset();
            self.relocations.push(offset as u32);
        }
        self.length += length;
    }

    /// Appends an instruction without operands.
    pub(crate) fn push_without_operands(&mut self, code: Code) {
        self.push(Ok(Instruction::with(code)));
    }

    /// Appends finished machine code.
    pub(crate) fn push_bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.encoder.write_u8(*byte);
        }
        self.length += bytes.len();
    }

    /// `lea register, [body]`: the address after all of this code. 32-bit code finds its own address
    /// with a call.
    ///
    /// ```text
    ///     call next
    /// next:
    ///     pop  register
    ///     lea  register, [register + ahead]
    /// ```
    pub(crate) fn load_body_address(&mut self, register: Register) {
        if self.mode == CodeMode::Bits32 {
            const CALL_BYTES: usize = 5;
            self.push_branch(Code::Call_rel32_64, self.length + CALL_BYTES);
            let next = self.length;
            self.push_on_register(Code::Pop_r64, register);
            let ahead = MemoryOperand::with_base_displ(register, NOMINAL_BODY);
            self.push(Instruction::with2(Code::Lea_r64_m, register, ahead));
            self.forward.push((self.length - 4, next));
            return;
        }
        let ahead = MemoryOperand::with_base_displ(Register::RIP, self.length as i64 + NOMINAL_BODY);
        self.push(Instruction::with2(Code::Lea_r64_m, register, ahead));
        // This is not a reference to the context.
        let at = self.relocations.pop().expect("the displacement was noted");
        self.forward.push((at as usize, at as usize + 4));
    }

    /// `op register, [context + field]`
    pub(crate) fn load_field(&mut self, code: Code, register: Register, field: usize) {
        self.push(Instruction::with2(code, register, context_operand(field)));
    }

    /// `op [context + field], register`
    pub(crate) fn store_field(&mut self, code: Code, field: usize, register: Register) {
        self.push(Instruction::with2(code, context_operand(field), register));
    }

    /// `op [context + field]`
    pub(crate) fn push_on_field(&mut self, code: Code, field: usize) {
        self.push(Instruction::with1(code, context_operand(field)));
    }

    /// `op to, from`
    pub(crate) fn push_on_registers(&mut self, code: Code, to: Register, from: Register) {
        self.push(Instruction::with2(code, to, from));
    }

    /// `op register`
    pub(crate) fn push_on_register(&mut self, code: Code, register: Register) {
        self.push(Instruction::with1(code, register));
    }

    /// `op register, immediate`
    pub(crate) fn push_with_immediate(&mut self, code: Code, register: Register, value: i32) {
        self.push(Instruction::with2(code, register, value));
    }

    /// Appends a branch to an offset in this program.
    pub(crate) fn push_branch(&mut self, code: Code, target: usize) {
        self.push(Instruction::with_branch(code, target as u64));
    }

    pub(crate) fn finish(mut self) -> (Vec<u8>, Vec<u32>) {
        let mut bytes = self.encoder.take_buffer();
        for (at, from) in self.forward {
            let ahead = (self.length - from) as i32;
            bytes[at - self.start..at - self.start + 4].copy_from_slice(&ahead.to_le_bytes());
        }
        (bytes, self.relocations)
    }
}

/// `[context + field]`
pub(crate) fn context_operand(field: usize) -> MemoryOperand {
    MemoryOperand::with_base_displ(Register::RIP, NOMINAL_CONTEXT + field as i64)
}
