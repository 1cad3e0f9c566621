//! Decodes the instructions that a processor may execute at one offset of some code.
//!
//! Processors differ in the length of near branches with an operand-size prefix, so that an offset
//! can hold two instructions. Bytes that the decoder does not know do not count as a fault, because
//! a newer processor may know them. APX, for example, gives `d5` a meaning that reaches every
//! instruction of the `0f` map.

use iced_x86::{Code, Decoder, DecoderError, DecoderOptions, Instruction, InstructionInfoFactory, OpAccess};

/// Assumed address of the code: far from the 64 KiB that branches with 16-bit operands reach.
const BASE_ADDRESS: u64 = 0x1000_0000_0000;

/// The longest instruction (Intel SDM vol. 2, 2.3.11).
pub(super) const LONGEST_INSTRUCTION: usize = 15;

/// Opcodes that raise #UD in 64-bit mode on every processor (Intel SDM vol. 2, table A-2; APX
/// leaves them).
const FAULTING_OPCODES: [u8; 19] =
    [0x06, 0x07, 0x0e, 0x16, 0x17, 0x1e, 0x1f, 0x27, 0x2f, 0x37, 0x3f, 0x60, 0x61, 0x82, 0x9a, 0xce, 0xd4, 0xd6, 0xea];

/// Opcodes whose meaning depends on later bytes: maps, VEX, EVEX, XOP, REX2, and the groups with
/// XBEGIN and far branches.
const EXTENSIBLE_OPCODES: [u8; 8] = [0x0f, 0x62, 0xc4, 0xc5, 0x8f, 0xd5, 0xc7, 0xff];

/// An instruction at an offset.
#[derive(Debug, Clone, Copy)]
pub(super) struct DecodedInstruction {
    /// The instruction, its address counted from [`BASE_ADDRESS`].
    pub instruction: Instruction,
    /// Whether these bytes mean the instruction on every processor that has it.
    pub sure: bool,
    /// Whether the instruction has a LOCK prefix, valid or not.
    pub locked: bool,
    /// The general registers that it writes to.
    pub writes: u16,
}

/// The decoded contents of an offset.
#[derive(Debug, Clone)]
pub(super) enum OffsetContents {
    /// One instruction, or two if processors differ; none if all raise a fault.
    Instructions(Vec<DecodedInstruction>),
    /// Bytes that the decoder does not know.
    Unknown,
    /// An instruction that continues past the end of the code.
    Cut,
}

/// Decodes at any offset, always as 64-bit code: a far branch to a smaller code segment faults,
/// since addresses there end below the capsule.
pub(super) struct OffsetDecoder<'a> {
    bytes: &'a [u8],
    factory: InstructionInfoFactory,
}

impl<'a> OffsetDecoder<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> OffsetDecoder<'a> {
        OffsetDecoder { bytes, factory: InstructionInfoFactory::new() }
    }

    /// The contents of an offset inside the code.
    pub(crate) fn decode_at(&mut self, offset: usize) -> OffsetContents {
        let rest = &self.bytes[offset..self.bytes.len().min(offset + LONGEST_INSTRUCTION)];
        let mut instructions: Vec<DecodedInstruction> = Vec::new();
        let mut cut = false;
        for options in [DecoderOptions::NONE, DecoderOptions::AMD] {
            let (instruction, sure, error) = self.decode_with_options(rest, offset, options);
            cut |= error == DecoderError::NoMoreBytes;
            if instruction.is_invalid()
                || instructions.iter().any(|known| is_same_instruction(&known.instruction, &instruction))
            {
                continue;
            }
            let writes = written_registers(&instruction, &mut self.factory);
            let locked = leading_prefixes(rest).contains(&0xf0);
            instructions.push(DecodedInstruction { instruction, sure, locked, writes });
        }
        match instructions.is_empty() {
            _ if cut => OffsetContents::Cut,
            true if self.is_certain_fault(rest) => OffsetContents::Instructions(instructions),
            true => OffsetContents::Unknown,
            false => OffsetContents::Instructions(instructions),
        }
    }

    fn decode_with_options(&self, rest: &[u8], offset: usize, options: u32) -> (Instruction, bool, DecoderError) {
        let ip = BASE_ADDRESS + offset as u64;
        let mut decoder = Decoder::with_ip(64, rest, ip, options);
        let instruction = decoder.decode();
        let error = decoder.last_error();
        if error != DecoderError::InvalidInstruction || self.is_certain_fault(rest) {
            return (instruction, true, error);
        }
        // Later extensions use reserved fields, so the instruction without them is judged.
        let mut decoder = Decoder::with_ip(64, rest, ip, options | DecoderOptions::NO_INVALID_CHECK);
        let instruction = decoder.decode();
        (instruction, false, decoder.last_error())
    }

    fn is_certain_fault(&self, rest: &[u8]) -> bool {
        let opcode = rest.get(leading_prefixes(rest).len());
        opcode.is_some_and(|opcode| FAULTING_OPCODES.contains(opcode))
    }

    /// The instruction that continues past the end, if all its possible completions agree. `None`
    /// if its opcode is incomplete.
    pub(crate) fn decode_cut_off(&mut self, offset: usize) -> Option<OffsetContents> {
        let rest = &self.bytes[offset..];
        let opcode = rest.get(leading_prefixes(rest).len())?;
        if EXTENSIBLE_OPCODES.contains(opcode) {
            return None;
        }
        let mut padded = rest.to_vec();
        padded.resize(LONGEST_INSTRUCTION, 0);
        Some(OffsetDecoder::new(&padded).decode_at(0))
    }
}

/// The target offset of a direct branch, which may be outside the code.
pub(super) fn branch_target(instruction: &Instruction) -> i64 {
    instruction.near_branch_target().wrapping_sub(BASE_ADDRESS) as i64
}

/// The offset of an instruction.
pub(super) fn code_offset(instruction: &Instruction) -> usize {
    (instruction.ip() - BASE_ADDRESS) as usize
}

fn is_same_instruction(one: &Instruction, other: &Instruction) -> bool {
    // Equality ignores addresses and lengths.
    one == other && one.len() == other.len() && one.code() != Code::INVALID
}

/// The prefixes in front of an opcode, including REX.
fn leading_prefixes(rest: &[u8]) -> &[u8] {
    let is_prefix =
        |byte: &u8| matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x40..=0x4f | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3);
    let count = rest.iter().take_while(|byte| is_prefix(byte)).count();
    &rest[..count]
}

/// The general registers that an instruction writes, also in part or on a condition: one bit each.
fn written_registers(instruction: &Instruction, factory: &mut InstructionInfoFactory) -> u16 {
    let mut mask = 0;
    for used in factory.info(instruction).used_registers() {
        let read = matches!(used.access(), OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess);
        let register = used.register().full_register();
        if !read && register.is_gpr64() {
            mask |= 1 << register.number();
        }
    }
    mask
}
