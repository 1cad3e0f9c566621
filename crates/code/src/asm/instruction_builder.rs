//! Puts written operands into the slots of one instruction, or explains why they do not fit.

use super::CodeMode;
use super::lexer::TextPosition;
use super::operand::{MemoryReference, Operand, OperandValue, SymbolicConstant};
use super::operand_slot::{ImmediateEncoding, OperandSlot, RegisterClass};
use iced_x86::{Code, Instruction, MemorySize, OpCodeInfo, OpKind, Register};

/// Why an operand does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum MismatchReason {
    /// The immediate has the right kind but is too large. Holds the bits, and whether only a
    /// sign-extended value fits.
    Range(u32, bool),
    /// The displacement exceeds 32 bits.
    Displacement,
    /// The memory operand must have this size in bytes.
    Size(u32),
    /// The broadcast must have this many elements.
    Broadcast(u32),
    /// Broadcast is impossible here.
    NoBroadcast,
    /// The index must be a vector register of this class.
    Index(&'static str),
    /// The decorator does not fit the instruction.
    Decorator,
    /// The prefix or hint does not fit the instruction.
    Prefix,
    /// The instruction needs a mask.
    NeedsMask,
    /// `far` is missing, or wrong here.
    Far,
    /// The encoder rejects the combination.
    Encoding(&'static str),
    /// The operand has the wrong kind.
    Kind,
    /// Too few operands.
    TooFew,
    /// Too many operands.
    TooMany,
}

impl MismatchReason {
    /// Rank by usefulness to the writer, most useful first.
    pub(super) fn rank(&self) -> u32 {
        match self {
            MismatchReason::Range(..) => 0,
            MismatchReason::Displacement => 1,
            MismatchReason::Size(_) | MismatchReason::Broadcast(_) | MismatchReason::Index(_) => 2,
            MismatchReason::NoBroadcast | MismatchReason::NeedsMask => 3,
            MismatchReason::Encoding(_) => 4,
            MismatchReason::Decorator | MismatchReason::Prefix => 5,
            MismatchReason::Far => 6,
            MismatchReason::Kind => 7,
            MismatchReason::TooFew | MismatchReason::TooMany => 8,
        }
    }
}

/// Where and why a pattern does not fit.
#[derive(Debug, Clone)]
pub(super) struct PatternMismatch {
    /// Number of operands before it that fit.
    pub(super) depth: usize,
    pub(super) why: MismatchReason,
    pub(super) at: TextPosition,
}

/// Part of an instruction that the layout must fill in.
#[derive(Debug, Clone)]
pub(super) enum LabelFixup {
    /// Nothing.
    None,
    /// Branch target.
    Branch(SymbolicConstant),
    /// Target of a RIP-relative operand.
    Relative(SymbolicConstant),
    /// Displacement of an operand with an index.
    Data(SymbolicConstant),
}

/// An instruction under construction.
pub(super) struct InstructionBuilder {
    pub(super) mode: CodeMode,
    pub(super) instruction: Instruction,
    pub(super) info: &'static OpCodeInfo,
    pub(super) fixup: LabelFixup,
    /// Bytes of a memory operand whose size the text does not name.
    pub(super) unsized_memory: Option<(u32, TextPosition)>,
    /// Bytes of displacement that a hint requests.
    pub(super) displacement: Option<u32>,
    pub(super) immediates: u32,
    pub(super) broadcast: Option<u32>,
}

impl InstructionBuilder {
    pub(super) fn new(code: Code, mode: CodeMode) -> InstructionBuilder {
        let mut instruction = Instruction::default();
        instruction.set_code(code);
        instruction.set_code_size(mode.code_size());
        InstructionBuilder {
            mode,
            instruction,
            info: code.op_code(),
            fixup: LabelFixup::None,
            unsized_memory: None,
            displacement: None,
            immediates: 0,
            broadcast: None,
        }
    }

    /// Puts an operand into slot `index`.
    pub(super) fn put_operand(
        &mut self,
        index: u32,
        slot: OperandSlot,
        operand: &Operand,
    ) -> Result<(), (MismatchReason, TextPosition)> {
        let kind = (MismatchReason::Kind, operand.at);
        match (&operand.value, slot) {
            (
                OperandValue::Register(r),
                OperandSlot::Reg(class) | OperandSlot::RegMem(class) | OperandSlot::Group(class, _),
            ) if RegisterClass::from_register(*r) == Some(class) => {
                self.set_register(index, *r);
            }
            (OperandValue::Group(r, others), OperandSlot::Group(class, count))
                if RegisterClass::from_register(*r) == Some(class) && others + 1 == count =>
            {
                self.set_register(index, *r);
            }
            (OperandValue::Register(r), OperandSlot::Fixed(fixed)) if *r == fixed => self.set_register(index, *r),
            (OperandValue::Constant(place), OperandSlot::Imm(imm))
                if place.symbol.is_none() && place.width.is_none() =>
            {
                let value = imm.encode_value(place.constant).ok_or_else(|| {
                    (MismatchReason::Range(imm.stored_bits(), imm.stored_bits() < imm.width()), operand.at)
                })?;
                self.set_immediate(index, imm, value);
            }
            (OperandValue::Constant(place), OperandSlot::Branch(width)) => {
                if place.width.is_some_and(|wanted| wanted != width) {
                    return Err(kind);
                }
                self.instruction.set_op_kind(index, self.mode.branch_kind());
                self.fixup = LabelFixup::Branch(place.clone());
            }
            (OperandValue::Memory(memory), _) => return self.set_memory(index, slot, memory, operand),
            _ => return Err(kind),
        }
        Ok(())
    }

    pub(super) fn set_register(&mut self, index: u32, register: Register) {
        self.instruction.set_op_kind(index, OpKind::Register);
        self.instruction.set_op_register(index, register);
    }

    pub(super) fn set_immediate(&mut self, index: u32, imm: ImmediateEncoding, value: i64) {
        let kind = match imm {
            ImmediateEncoding::Nibble | ImmediateEncoding::One | ImmediateEncoding::Byte if self.immediates > 0 => {
                OpKind::Immediate8_2nd
            }
            ImmediateEncoding::Nibble
            | ImmediateEncoding::One
            | ImmediateEncoding::Byte
            | ImmediateEncoding::Bits(8) => OpKind::Immediate8,
            ImmediateEncoding::ByteTo(16) => OpKind::Immediate8to16,
            ImmediateEncoding::ByteTo(32) => OpKind::Immediate8to32,
            ImmediateEncoding::ByteTo(_) => OpKind::Immediate8to64,
            ImmediateEncoding::Bits(16) => OpKind::Immediate16,
            ImmediateEncoding::Bits(32) => OpKind::Immediate32,
            ImmediateEncoding::Bits(_) => OpKind::Immediate64,
            ImmediateEncoding::DwordTo64 => OpKind::Immediate32to64,
        };
        self.immediates += 1;
        self.instruction.set_op_kind(index, kind);
        self.instruction.set_immediate_i64(index, value);
    }

    fn set_memory(
        &mut self,
        index: u32,
        slot: OperandSlot,
        memory: &MemoryReference,
        operand: &Operand,
    ) -> Result<(), (MismatchReason, TextPosition)> {
        let vector = RegisterClass::from_register(memory.index).filter(|_| memory.index.is_vector_register());
        match slot {
            OperandSlot::Mem | OperandSlot::RegMem(_) if vector.is_none() => {}
            OperandSlot::Vsib(class, _) if vector == Some(class) => {}
            OperandSlot::Vsib(class, _) => return Err((MismatchReason::Index(class.name()), operand.at)),
            OperandSlot::Source | OperandSlot::Destination | OperandSlot::MaskedStore | OperandSlot::Table => {
                return self.set_implied_memory(index, slot, memory, operand);
            }
            OperandSlot::Absolute => return self.set_absolute_address(index, memory, operand),
            _ => return Err((MismatchReason::Kind, operand.at)),
        }
        self.instruction.set_op_kind(index, OpKind::Memory);
        self.check_size(memory, operand)?;
        self.set_address(memory, operand)
    }

    fn set_address(
        &mut self,
        memory: &MemoryReference,
        operand: &Operand,
    ) -> Result<(), (MismatchReason, TextPosition)> {
        let i = &mut self.instruction;
        i.set_memory_base(memory.base);
        i.set_memory_index(memory.index);
        i.set_memory_index_scale(memory.scale);
        let of_stack = matches!(memory.base, Register::RSP | Register::RBP | Register::ESP | Register::EBP);
        let default = if of_stack { Register::SS } else { Register::DS };
        if memory.segment != Register::None && memory.segment != default {
            i.set_segment_prefix(memory.segment);
        }
        if memory.base.is_ip() {
            i.set_memory_displ_size(8);
            self.fixup = LabelFixup::Relative(memory.place.clone());
            return Ok(());
        }
        let has_whole_index = self.mode == CodeMode::Bits32 || !memory.index.is_gpr32();
        if memory.names_data && memory.base == Register::None && has_whole_index {
            i.set_memory_displ_size(self.mode.bits() / 8);
            self.fixup = LabelFixup::Data(memory.place.clone());
            return Ok(());
        }
        if let Some((_, at)) = memory.place.symbol {
            return Err((MismatchReason::Encoding("an address in the snippet is written [rip+label]"), at));
        }
        if memory.base.is_gpr16() || memory.index.is_gpr16() {
            return self.set_short_displacement(memory, operand);
        }
        let narrow = self.mode == CodeMode::Bits32 || memory.base.is_gpr32() || memory.index.is_gpr32();
        let width = if narrow { 32 } else { 64 };
        let displacement =
            ImmediateEncoding::Bits(width).encode_value(memory.place.constant).and_then(|d| i32::try_from(d).ok());
        let displacement = displacement.ok_or((MismatchReason::Displacement, operand.at))?;
        let i = &mut self.instruction;
        i.set_memory_displacement64(if narrow { displacement as u32 as u64 } else { displacement as u64 });
        let full = if narrow { 4 } else { 8 };
        i.set_memory_displ_size(match self.displacement {
            _ if memory.base == Register::None => full,
            Some(4) => full,
            Some(_) => 1,
            None => u32::from(displacement != 0),
        });
        Ok(())
    }

    /// Sets the displacement of a 16-bit address, whose base has one unless it is zero. `[bp]` has
    /// one of a byte.
    fn set_short_displacement(
        &mut self,
        memory: &MemoryReference,
        operand: &Operand,
    ) -> Result<(), (MismatchReason, TextPosition)> {
        let value = ImmediateEncoding::Bits(16).encode_value(memory.place.constant);
        let value = value.ok_or((MismatchReason::Displacement, operand.at))? as i16;
        let is_bare_bp = memory.base == Register::BP && memory.index == Register::None;
        self.instruction.set_memory_displacement64(u64::from(value as u16));
        self.instruction.set_memory_displ_size(match self.displacement {
            Some(4) => 2,
            None if value == 0 && !is_bare_bp => 0,
            Some(_) | None if i8::try_from(value).is_ok() => 1,
            _ => 2,
        });
        Ok(())
    }

    /// Sets `[rsi]` and `[rdi]` of string instructions and similar operands, written explicitly.
    fn set_implied_memory(
        &mut self,
        index: u32,
        slot: OperandSlot,
        memory: &MemoryReference,
        operand: &Operand,
    ) -> Result<(), (MismatchReason, TextPosition)> {
        let kind = Err((MismatchReason::Kind, operand.at));
        if memory.place.constant != 0 || memory.place.symbol.is_some() {
            return kind;
        }
        self.check_size(memory, operand)?;
        let segment_fixed = slot == OperandSlot::Destination;
        if segment_fixed && !matches!(memory.segment, Register::None | Register::ES) {
            return kind;
        }
        if !segment_fixed && !matches!(memory.segment, Register::None | Register::DS) {
            self.instruction.set_segment_prefix(memory.segment);
        }
        let op_kind = match (slot, memory.base, memory.index) {
            (OperandSlot::Source, Register::RSI, Register::None) => OpKind::MemorySegRSI,
            (OperandSlot::Source, Register::ESI, Register::None) => OpKind::MemorySegESI,
            (OperandSlot::Destination, Register::RDI, Register::None) => OpKind::MemoryESRDI,
            (OperandSlot::Destination, Register::EDI, Register::None) => OpKind::MemoryESEDI,
            (OperandSlot::MaskedStore, Register::RDI, Register::None) => OpKind::MemorySegRDI,
            (OperandSlot::MaskedStore, Register::EDI, Register::None) => OpKind::MemorySegEDI,
            (OperandSlot::Table, base @ (Register::RBX | Register::EBX), Register::AL | Register::None) => {
                self.set_table_lookup(index, base);
                return Ok(());
            }
            _ => return kind,
        };
        self.instruction.set_op_kind(index, op_kind);
        Ok(())
    }

    fn set_table_lookup(&mut self, index: u32, base: Register) {
        self.instruction.set_op_kind(index, OpKind::Memory);
        self.instruction.set_memory_base(base);
        self.instruction.set_memory_index(Register::AL);
    }

    /// Sets an operand that is not written.
    pub(super) fn set_omitted_operand(&mut self, index: u32, slot: OperandSlot) -> bool {
        match slot {
            OperandSlot::Fixed(register) => self.set_register(index, register),
            OperandSlot::Imm(ImmediateEncoding::One) => self.set_immediate(index, ImmediateEncoding::One, 1),
            OperandSlot::Reg(RegisterClass::St) => self.set_register(index, Register::ST1),
            OperandSlot::Source => self.instruction.set_op_kind(index, self.mode.source_kind()),
            OperandSlot::Destination => self.instruction.set_op_kind(index, self.mode.destination_kind()),
            OperandSlot::MaskedStore => self.instruction.set_op_kind(index, self.mode.masked_store_kind()),
            OperandSlot::Table => self.set_table_lookup(index, self.mode.general_register(3)),
            // `imul rax, 5` multiplies rax itself.
            OperandSlot::RegMem(_) if self.instruction.op0_kind() == OpKind::Register => {
                self.set_register(index, self.instruction.op0_register());
            }
            _ => return false,
        }
        true
    }

    fn set_absolute_address(
        &mut self,
        index: u32,
        memory: &MemoryReference,
        operand: &Operand,
    ) -> Result<(), (MismatchReason, TextPosition)> {
        if memory.base != Register::None || memory.index != Register::None || memory.place.symbol.is_some() {
            return Err((MismatchReason::Kind, operand.at));
        }
        self.check_size(memory, operand)?;
        let i = &mut self.instruction;
        i.set_op_kind(index, OpKind::Memory);
        i.set_memory_displ_size(self.mode.bits() / 8);
        i.set_memory_displacement64(memory.place.constant as u64);
        if !matches!(memory.segment, Register::None | Register::DS) {
            i.set_segment_prefix(memory.segment);
        }
        Ok(())
    }

    fn check_size(
        &mut self,
        memory: &MemoryReference,
        operand: &Operand,
    ) -> Result<(), (MismatchReason, TextPosition)> {
        let far = matches!(self.info.code(), Code::Jmp_m1616 | Code::Jmp_m1632 | Code::Jmp_m1664)
            || matches!(self.info.code(), Code::Call_m1616 | Code::Call_m1632 | Code::Call_m1664);
        if far != memory.far {
            return Err((MismatchReason::Far, operand.at));
        }
        let asked = operand.decorators.iter().find(|(text, _)| text.starts_with("1to"));
        if memory.broadcast || asked.is_some() {
            let at = asked.map_or(operand.at, |(_, at)| *at);
            return self.check_broadcast(memory, asked.map(|(text, _)| text.as_str()), at);
        }
        let size = self.info.memory_size().size() as u32;
        let named = super::operand::size_name(size).is_some();
        match memory.size {
            // Descriptor tables have 10 bytes in 64-bit mode, but are still called fword.
            Some(6) if self.info.memory_size() == MemorySize::Fword10 => Ok(()),
            Some(wanted) if named && wanted != size => Err((MismatchReason::Size(size), operand.at)),
            Some(_) => Ok(()),
            None => {
                self.unsized_memory = Some((size, operand.at));
                Ok(())
            }
        }
    }

    fn check_broadcast(
        &mut self,
        memory: &MemoryReference,
        asked: Option<&str>,
        at: TextPosition,
    ) -> Result<(), (MismatchReason, TextPosition)> {
        if !self.info.can_broadcast() {
            return Err((MismatchReason::NoBroadcast, at));
        }
        let element = self.info.broadcast_memory_size().size() as u32;
        let count = self.info.memory_size().size() as u32 / element.max(1);
        if asked.is_some_and(|text| text.strip_prefix("1to") != Some(count.to_string().as_str())) {
            return Err((MismatchReason::Broadcast(count), at));
        }
        if memory.size.is_some_and(|size| size != element) {
            return Err((MismatchReason::Size(element), at));
        }
        if asked.is_none() {
            self.unsized_memory = Some((element * count, at));
        }
        self.broadcast = Some(count);
        self.instruction.set_is_broadcast(true);
        Ok(())
    }
}
