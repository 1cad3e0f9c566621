//! Puts operands as written into the slots of one instruction, or says why they do not fit.

use super::kinds::{Class, Imm, Slot};
use super::lexer::Position;
use super::operand::{Memory, Operand, Place, Value};
use iced_x86::{Code, Instruction, MemorySize, OpCodeInfo, OpKind, Register};

/// Why an operand does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Why {
    /// The immediate has the right kind but is too large; bits, and whether only a sign-extended value fits.
    Range(u32, bool),
    /// The displacement does not fit in 32 bits.
    Displacement,
    /// The memory operand has this size, in bytes.
    Size(u32),
    /// The broadcast has this many elements.
    Broadcast(u32),
    /// No broadcast exists here.
    NoBroadcast,
    /// The index has to be a vector register of this name.
    Index(&'static str),
    /// A decorator that does not go with the instruction.
    Decorator,
    /// A prefix or hint that does not go with the instruction.
    Prefix,
    /// The instruction needs a mask.
    NeedsMask,
    /// `far` missing or too much.
    Far,
    /// The encoder refuses the combination.
    Encoding(&'static str),
    /// Something else was expected there.
    Kind,
    /// Too few operands.
    TooFew,
    /// Too many operands.
    TooMany,
}

impl Why {
    /// The lower, the more useful to the writer.
    pub(super) fn rank(&self) -> u32 {
        match self {
            Why::Range(..) => 0,
            Why::Displacement => 1,
            Why::Size(_) | Why::Broadcast(_) | Why::Index(_) => 2,
            Why::NoBroadcast | Why::NeedsMask => 3,
            Why::Encoding(_) => 4,
            Why::Decorator | Why::Prefix => 5,
            Why::Far => 6,
            Why::Kind => 7,
            Why::TooFew | Why::TooMany => 8,
        }
    }
}

/// Where and why a pattern does not fit.
#[derive(Debug, Clone)]
pub(super) struct Mismatch {
    /// Operands that did fit before.
    pub(super) depth: usize,
    pub(super) why: Why,
    pub(super) at: Position,
}

/// Parts that the layout still has to fill in.
#[derive(Debug, Clone)]
pub(super) enum Fixup {
    /// Nothing.
    None,
    /// The branch target.
    Branch(Place),
    /// The target of a RIP-relative operand.
    Relative(Place),
}

/// An instruction in the making.
pub(super) struct Placing {
    pub(super) instruction: Instruction,
    pub(super) info: &'static OpCodeInfo,
    pub(super) fixup: Fixup,
    /// Bytes of the memory operand where the text does not name its size.
    pub(super) unsized_memory: Option<(u32, Position)>,
    /// Bytes of displacement that a hint asks for.
    pub(super) displacement: Option<u32>,
    pub(super) immediates: u32,
    pub(super) broadcast: Option<u32>,
}

impl Placing {
    pub(super) fn new(code: Code) -> Placing {
        let mut instruction = Instruction::default();
        instruction.set_code(code);
        instruction.set_code_size(iced_x86::CodeSize::Code64);
        Placing {
            instruction,
            info: code.op_code(),
            fixup: Fixup::None,
            unsized_memory: None,
            displacement: None,
            immediates: 0,
            broadcast: None,
        }
    }

    /// Puts an operand into slot number `index`.
    pub(super) fn put(&mut self, index: u32, slot: Slot, operand: &Operand) -> Result<(), (Why, Position)> {
        let kind = (Why::Kind, operand.at);
        match (&operand.value, slot) {
            (Value::Register(r), Slot::Reg(class) | Slot::RegMem(class) | Slot::Group(class, _))
                if Class::of(*r) == Some(class) =>
            {
                self.register(index, *r);
            }
            (Value::Group(r, others), Slot::Group(class, count))
                if Class::of(*r) == Some(class) && others + 1 == count =>
            {
                self.register(index, *r);
            }
            (Value::Register(r), Slot::Fixed(fixed)) if *r == fixed => self.register(index, *r),
            (Value::Constant(place), Slot::Imm(imm)) if place.symbol.is_none() && place.width.is_none() => {
                let value = imm
                    .fit(place.constant)
                    .ok_or_else(|| (Why::Range(imm.stored(), imm.stored() < imm.width()), operand.at))?;
                self.immediate(index, imm, value);
            }
            (Value::Constant(place), Slot::Branch(width)) => {
                if place.width.is_some_and(|wanted| wanted != width) {
                    return Err(kind);
                }
                self.instruction.set_op_kind(index, OpKind::NearBranch64);
                self.fixup = Fixup::Branch(place.clone());
            }
            (Value::Memory(memory), _) => return self.memory(index, slot, memory, operand),
            _ => return Err(kind),
        }
        Ok(())
    }

    pub(super) fn register(&mut self, index: u32, register: Register) {
        self.instruction.set_op_kind(index, OpKind::Register);
        self.instruction.set_op_register(index, register);
    }

    pub(super) fn immediate(&mut self, index: u32, imm: Imm, value: i64) {
        let kind = match imm {
            Imm::Nibble | Imm::One | Imm::Byte if self.immediates > 0 => OpKind::Immediate8_2nd,
            Imm::Nibble | Imm::One | Imm::Byte | Imm::Bits(8) => OpKind::Immediate8,
            Imm::ByteTo(16) => OpKind::Immediate8to16,
            Imm::ByteTo(32) => OpKind::Immediate8to32,
            Imm::ByteTo(_) => OpKind::Immediate8to64,
            Imm::Bits(16) => OpKind::Immediate16,
            Imm::Bits(32) => OpKind::Immediate32,
            Imm::Bits(_) => OpKind::Immediate64,
            Imm::DwordTo64 => OpKind::Immediate32to64,
        };
        self.immediates += 1;
        self.instruction.set_op_kind(index, kind);
        self.instruction.set_immediate_i64(index, value);
    }

    fn memory(
        &mut self,
        index: u32,
        slot: Slot,
        memory: &Memory,
        operand: &Operand,
    ) -> Result<(), (Why, Position)> {
        let vector = Class::of(memory.index).filter(|_| memory.index.is_vector_register());
        match slot {
            Slot::Mem | Slot::RegMem(_) if vector.is_none() => {}
            Slot::Vsib(class, _) if vector == Some(class) => {}
            Slot::Vsib(class, _) => return Err((Why::Index(class.name()), operand.at)),
            Slot::Source | Slot::Destination | Slot::MaskedStore | Slot::Table => {
                return self.implied_memory(index, slot, memory, operand);
            }
            Slot::Absolute => return self.absolute(index, memory, operand),
            _ => return Err((Why::Kind, operand.at)),
        }
        self.instruction.set_op_kind(index, OpKind::Memory);
        self.check_size(memory, operand)?;
        self.address(memory, operand)
    }

    fn address(&mut self, memory: &Memory, operand: &Operand) -> Result<(), (Why, Position)> {
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
            self.fixup = Fixup::Relative(memory.place.clone());
            return Ok(());
        }
        if let Some((_, at)) = memory.place.symbol {
            return Err((Why::Encoding("an address in the snippet is written [rip+label]"), at));
        }
        let narrow = memory.base.is_gpr32() || memory.index.is_gpr32();
        let width = if narrow { 32 } else { 64 };
        let displacement = Imm::Bits(width).fit(memory.place.constant).and_then(|d| i32::try_from(d).ok());
        let displacement = displacement.ok_or((Why::Displacement, operand.at))?;
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

    /// `[rsi]` and `[rdi]` of string instructions and the like, written out.
    fn implied_memory(
        &mut self,
        index: u32,
        slot: Slot,
        memory: &Memory,
        operand: &Operand,
    ) -> Result<(), (Why, Position)> {
        let kind = Err((Why::Kind, operand.at));
        if memory.place.constant != 0 || memory.place.symbol.is_some() {
            return kind;
        }
        self.check_size(memory, operand)?;
        let segment_fixed = slot == Slot::Destination;
        if segment_fixed && !matches!(memory.segment, Register::None | Register::ES) {
            return kind;
        }
        if !segment_fixed && !matches!(memory.segment, Register::None | Register::DS) {
            self.instruction.set_segment_prefix(memory.segment);
        }
        let op_kind = match (slot, memory.base, memory.index) {
            (Slot::Source, Register::RSI, Register::None) => OpKind::MemorySegRSI,
            (Slot::Source, Register::ESI, Register::None) => OpKind::MemorySegESI,
            (Slot::Destination, Register::RDI, Register::None) => OpKind::MemoryESRDI,
            (Slot::Destination, Register::EDI, Register::None) => OpKind::MemoryESEDI,
            (Slot::MaskedStore, Register::RDI, Register::None) => OpKind::MemorySegRDI,
            (Slot::MaskedStore, Register::EDI, Register::None) => OpKind::MemorySegEDI,
            (Slot::Table, base @ (Register::RBX | Register::EBX), Register::AL | Register::None) => {
                self.table(index, base);
                return Ok(());
            }
            _ => return kind,
        };
        self.instruction.set_op_kind(index, op_kind);
        Ok(())
    }

    fn table(&mut self, index: u32, base: Register) {
        self.instruction.set_op_kind(index, OpKind::Memory);
        self.instruction.set_memory_base(base);
        self.instruction.set_memory_index(Register::AL);
    }

    /// The operand that is not written.
    pub(super) fn default(&mut self, index: u32, slot: Slot) -> bool {
        match slot {
            Slot::Fixed(register) => self.register(index, register),
            Slot::Imm(Imm::One) => self.immediate(index, Imm::One, 1),
            Slot::Reg(Class::St) => self.register(index, Register::ST1),
            Slot::Source => self.instruction.set_op_kind(index, OpKind::MemorySegRSI),
            Slot::Destination => self.instruction.set_op_kind(index, OpKind::MemoryESRDI),
            Slot::MaskedStore => self.instruction.set_op_kind(index, OpKind::MemorySegRDI),
            Slot::Table => self.table(index, Register::RBX),
            // `imul rax, 5` multiplies rax itself.
            Slot::RegMem(_) if self.instruction.op0_kind() == OpKind::Register => {
                self.register(index, self.instruction.op0_register());
            }
            _ => return false,
        }
        true
    }

    fn absolute(&mut self, index: u32, memory: &Memory, operand: &Operand) -> Result<(), (Why, Position)> {
        if memory.base != Register::None || memory.index != Register::None || memory.place.symbol.is_some() {
            return Err((Why::Kind, operand.at));
        }
        self.check_size(memory, operand)?;
        let i = &mut self.instruction;
        i.set_op_kind(index, OpKind::Memory);
        i.set_memory_displ_size(8);
        i.set_memory_displacement64(memory.place.constant as u64);
        if !matches!(memory.segment, Register::None | Register::DS) {
            i.set_segment_prefix(memory.segment);
        }
        Ok(())
    }

    fn check_size(&mut self, memory: &Memory, operand: &Operand) -> Result<(), (Why, Position)> {
        let far = matches!(self.info.code(), Code::Jmp_m1616 | Code::Jmp_m1632 | Code::Jmp_m1664)
            || matches!(self.info.code(), Code::Call_m1616 | Code::Call_m1632 | Code::Call_m1664);
        if far != memory.far {
            return Err((Why::Far, operand.at));
        }
        let asked = operand.decorators.iter().find(|(text, _)| text.starts_with("1to"));
        if memory.broadcast || asked.is_some() {
            let at = asked.map_or(operand.at, |(_, at)| *at);
            return self.check_broadcast(memory, asked.map(|(text, _)| text.as_str()), at);
        }
        let size = self.info.memory_size().size() as u32;
        let named = super::operand::size_name(size).is_some();
        match memory.size {
            // Descriptor tables have 10 bytes in 64-bit mode, but are called fword all the same.
            Some(6) if self.info.memory_size() == MemorySize::Fword10 => Ok(()),
            Some(wanted) if named && wanted != size => Err((Why::Size(size), operand.at)),
            Some(_) => Ok(()),
            None => {
                self.unsized_memory = Some((size, operand.at));
                Ok(())
            }
        }
    }

    fn check_broadcast(
        &mut self,
        memory: &Memory,
        asked: Option<&str>,
        at: Position,
    ) -> Result<(), (Why, Position)> {
        if !self.info.can_broadcast() {
            return Err((Why::NoBroadcast, at));
        }
        let element = self.info.broadcast_memory_size().size() as u32;
        let count = self.info.memory_size().size() as u32 / element.max(1);
        if asked.is_some_and(|text| text.strip_prefix("1to") != Some(count.to_string().as_str())) {
            return Err((Why::Broadcast(count), at));
        }
        if memory.size.is_some_and(|size| size != element) {
            return Err((Why::Size(element), at));
        }
        if asked.is_none() {
            self.unsized_memory = Some((element * count, at));
        }
        self.broadcast = Some(count);
        self.instruction.set_is_broadcast(true);
        Ok(())
    }
}
