//! Selects concrete registers, addresses and immediates for a form.

use super::CodeMode;
use super::instruction_builder::InstructionBuilder;
use super::instruction_form::{AddressShape, EvexMasking, EvexRounding, FormPrefix, InstructionForm, OperandVariant};
use super::operand_slot::{ImmediateEncoding, OperandSlot, RegisterClass, list_slots};
use iced_x86::{
    Decoder, DecoderOptions, Encoder, EncodingKind, Instruction, InstructionInfoFactory, OpKind, Register,
    RoundingControl,
};

/// Registers, addresses and immediates for a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OperandChoice {
    /// Rotates through the registers. Adjacent seeds give disjoint choices if there are enough
    /// registers.
    pub seed: u32,
    /// Register with the address of memory operands.
    pub base: Register,
    /// Displacement from the base register.
    pub displacement: i32,
    /// The immediate, truncated to its width. `None` selects one that fills its width.
    pub immediate: Option<i64>,
}

impl Default for OperandChoice {
    fn default() -> Self {
        OperandChoice { seed: 0, base: Register::RDI, displacement: 0, immediate: None }
    }
}

/// Default address of a 64-bit absolute operand.
const ABSOLUTE_ADDRESS: u64 = 0x1122_3344_5566_7788;

/// General registers that an instruction may have; those without a special role in the entry state
/// come first.
const GENERAL_REGISTER_ORDER: [u32; 14] = [3, 8, 9, 10, 11, 12, 13, 6, 7, 0, 1, 2, 14, 5];
/// The same in 32-bit code.
const GENERAL_REGISTER_ORDER_32: [u32; 7] = [6, 7, 0, 1, 2, 3, 5];

impl InstructionForm {
    /// A legal instruction of this form. `None` if it does not exist with that choice, such as a
    /// high-byte register together with an address in r14.
    ///
    /// Registers are distinct, if possible also from the registers that the instruction implies.
    /// Branches go to address 0.
    pub fn build_instruction(&self, choice: &OperandChoice) -> Option<Instruction> {
        // Some registers turn a reserved no-operation into an instruction (0F 1C /0 is CLDEMOTE).
        let tries = if self.code.op_code().is_reserved_nop() { 8 } else { 1 };
        (0..tries).find_map(|n| self.try_choice(&OperandChoice { seed: choice.seed.wrapping_add(n), ..*choice }))
    }

    fn try_choice(&self, choice: &OperandChoice) -> Option<Instruction> {
        let mut instruction = OperandPicker::new(self, choice).pick_instruction()?;
        match self.prefix {
            FormPrefix::None => {}
            FormPrefix::Lock => instruction.set_has_lock_prefix(true),
            FormPrefix::Rep => instruction.set_has_rep_prefix(true),
            FormPrefix::Repne => instruction.set_has_repne_prefix(true),
        }
        as_encoded(&instruction)
    }
}

/// The instruction as its machine code decodes. `None` if it cannot be encoded, or if the code
/// means a different instruction.
pub fn as_encoded(instruction: &Instruction) -> Option<Instruction> {
    let bits = CodeMode::from_instruction(instruction).bits();
    let mut encoder = Encoder::new(bits);
    encoder.encode(instruction, 0).ok()?;
    let bytes = encoder.take_buffer();
    let decoded = Decoder::with_ip(bits, &bytes, 0, DecoderOptions::NONE).decode();
    (decoded.code() == instruction.code()).then_some(decoded)
}

struct OperandPicker<'a> {
    form: &'a InstructionForm,
    choice: &'a OperandChoice,
    placing: InstructionBuilder,
    /// Full registers already in use.
    taken: Vec<Register>,
}

impl<'a> OperandPicker<'a> {
    fn new(form: &'a InstructionForm, choice: &'a OperandChoice) -> OperandPicker<'a> {
        let mut taken = Vec::new();
        for slot in list_slots(form.code) {
            if let OperandSlot::Fixed(register) = slot {
                taken.push(register.full_register());
            }
        }
        OperandPicker { form, choice, placing: InstructionBuilder::new(form.code, form.mode), taken }
    }

    fn pick_instruction(mut self) -> Option<Instruction> {
        let slots: Vec<OperandSlot> = list_slots(self.form.code).collect();
        self.avoid_implied_registers(&slots);
        let memory = self.form.variants.iter().any(|v| matches!(v, OperandVariant::Memory | OperandVariant::Broadcast));
        if memory || slots.iter().any(|s| matches!(s, OperandSlot::Mem | OperandSlot::Vsib(..))) {
            self.taken.push(self.form.mode.register(self.choice.base).full_register());
        }
        for (index, slot) in (0..).zip(&slots) {
            self.pick_operand(index, *slot, self.form.variants[index as usize])?;
        }
        if self.form.masking != EvexMasking::None {
            let mask = self.pick_register(RegisterClass::Mask)?;
            self.placing.instruction.set_op_mask(mask);
            self.placing.instruction.set_zeroing_masking(self.form.masking == EvexMasking::Zero);
        }
        match self.form.rounding {
            EvexRounding::None => {}
            EvexRounding::Embedded => self.placing.instruction.set_rounding_control(RoundingControl::RoundToNearest),
            EvexRounding::Suppressed => self.placing.instruction.set_suppress_all_exceptions(true),
        }
        Some(self.placing.instruction)
    }

    /// Keeps registers free that the instruction reads or writes implicitly.
    fn avoid_implied_registers(&mut self, slots: &[OperandSlot]) {
        let register = |slot: &OperandSlot| match slot {
            // Numbers that no instruction implies.
            OperandSlot::RegMem(class) | OperandSlot::Reg(class) => match class.name() {
                "r8" | "r16" | "r32" | "r64" => Some(class.nth_register(11)),
                _ => Some(class.nth_register(3)),
            },
            _ => None,
        };
        let mut sample = InstructionBuilder::new(self.form.code, self.form.mode);
        for (index, slot) in (0..).zip(slots) {
            match (slot, register(slot)) {
                (_, Some(register)) => sample.set_register(index, register),
                (OperandSlot::Imm(imm), _) => sample.set_immediate(index, *imm, 1),
                (OperandSlot::Mem, _) => {
                    sample.instruction.set_op_kind(index, OpKind::Memory);
                    sample.instruction.set_memory_base(self.form.mode.register(self.choice.base));
                }
                _ => return,
            }
        }
        let mut factory = InstructionInfoFactory::new();
        let named: Vec<Register> = slots.iter().filter_map(register).map(Register::full_register).collect();
        let used = factory.info(&sample.instruction).used_registers().iter();
        let implied = used.map(|u| u.register().full_register()).filter(|r| !named.contains(r));
        self.taken.extend(implied);
    }

    fn pick_operand(&mut self, index: u32, slot: OperandSlot, variant: OperandVariant) -> Option<()> {
        match (slot, variant) {
            (_, OperandVariant::HighByte) => {
                let high = [Register::BH, Register::CH, Register::DH, Register::AH];
                let register = self.take_first_free(&high)?;
                self.placing.set_register(index, register);
            }
            (OperandSlot::Mem, _) | (_, OperandVariant::Memory | OperandVariant::Broadcast) => {
                self.placing.instruction.set_op_kind(index, OpKind::Memory);
                self.placing.instruction.set_is_broadcast(variant == OperandVariant::Broadcast);
                self.pick_address()?;
            }
            (OperandSlot::Vsib(class, _), _) => {
                self.placing.instruction.set_op_kind(index, OpKind::Memory);
                self.set_base_register();
                let vector = self.pick_register(class)?;
                self.placing.instruction.set_memory_index(vector);
            }
            (OperandSlot::Reg(class) | OperandSlot::RegMem(class), _) => {
                let register = self.pick_register(class)?;
                self.placing.set_register(index, register);
            }
            (OperandSlot::Group(class, count), _) => {
                // The group starts at a multiple of its size.
                let first = class.nth_register(if count == 4 { 4 + 4 * (self.choice.seed % 3) } else { 2 });
                self.taken.extend((0..count).map(|n| (first + n).full_register()));
                self.placing.set_register(index, first);
            }
            (OperandSlot::Imm(imm), _) => self.pick_immediate(index, imm),
            (OperandSlot::Branch(_), _) => self.placing.instruction.set_op_kind(index, self.form.mode.branch_kind()),
            (OperandSlot::Absolute, _) => {
                let i = &mut self.placing.instruction;
                i.set_op_kind(index, OpKind::Memory);
                i.set_memory_displ_size(self.form.mode.bits() / 8);
                i.set_memory_displacement64(match self.form.mode {
                    CodeMode::Bits64 => ABSOLUTE_ADDRESS,
                    CodeMode::Bits32 => ABSOLUTE_ADDRESS & 0xffff_ffff,
                });
            }
            _ => return self.placing.set_omitted_operand(index, slot).then_some(()),
        }
        Some(())
    }

    fn pick_immediate(&mut self, index: u32, imm: ImmediateEncoding) {
        let full: i64 = match imm.stored_bits() {
            4 => 2,
            8 => 0x12,
            16 => 0x1234,
            32 => 0x1234_5678,
            _ => 0x1234_5678_9abc_def0,
        };
        let bits = 64 - imm.stored_bits();
        let value = match (imm, self.choice.immediate) {
            (ImmediateEncoding::One, _) => 1,
            (ImmediateEncoding::Nibble, Some(value)) => value & 3,
            (_, Some(value)) => (value << bits) >> bits,
            (_, None) => full,
        };
        self.placing.set_immediate(index, imm, value);
    }

    fn set_base_register(&mut self) {
        let i = &mut self.placing.instruction;
        i.set_memory_base(self.form.mode.register(self.choice.base));
        i.set_memory_index_scale(1);
        i.set_memory_displacement64(self.form.mode.truncate(self.choice.displacement.into()));
        i.set_memory_displ_size(u32::from(self.choice.displacement != 0));
    }

    fn pick_address(&mut self) -> Option<()> {
        self.set_base_register();
        let (index, scale, displacement) = match self.form.address {
            AddressShape::Base => return Some(()),
            AddressShape::Rip if self.form.mode == CodeMode::Bits32 => return None,
            AddressShape::Rip => {
                let i = &mut self.placing.instruction;
                i.set_memory_base(Register::RIP);
                i.set_memory_displ_size(8);
                i.set_memory_displacement64(0);
                return Some(());
            }
            AddressShape::BaseDisp8 => (false, 1, 0x12),
            AddressShape::BaseDisp32 => (false, 1, 0x1234),
            AddressShape::BaseIndex => (true, 1, 0),
            AddressShape::BaseIndexScale => (true, 4, 0),
            AddressShape::BaseIndexDisp8 => (true, 1, 0x12),
            AddressShape::BaseIndexDisp32 => (true, 1, 0x1234),
            AddressShape::BaseIndexScaleDisp8 => (true, 4, 0x12),
            AddressShape::BaseIndexScaleDisp32 | AddressShape::IndexScaleDisp32 => (true, 4, 0x1234),
        };
        let wide = match self.form.mode {
            CodeMode::Bits64 => RegisterClass::Gpr64,
            CodeMode::Bits32 => RegisterClass::Gpr32,
        };
        let index = if index { self.pick_register(wide)? } else { Register::None };
        let i = &mut self.placing.instruction;
        i.set_memory_index(index);
        i.set_memory_index_scale(scale);
        i.set_memory_displacement64(displacement);
        i.set_memory_displ_size(u32::from(displacement != 0));
        if self.form.address == AddressShape::IndexScaleDisp32 {
            i.set_memory_base(Register::None);
            i.set_memory_displ_size(self.form.mode.bits() / 8);
        }
        Some(())
    }

    fn pick_register(&mut self, class: RegisterClass) -> Option<Register> {
        let registers: Vec<Register> = match class {
            // ah to bh exclude every register that needs a REX prefix.
            RegisterClass::Gpr8 | RegisterClass::Gpr16 | RegisterClass::Gpr32 | RegisterClass::Gpr64
                if self.form.variants.contains(&OperandVariant::HighByte) =>
            {
                [3, 1, 2, 0].map(|n| class.nth_register(n)).to_vec()
            }
            RegisterClass::Gpr8 | RegisterClass::Gpr16 | RegisterClass::Gpr32 | RegisterClass::Gpr64 => {
                let order = match self.form.mode {
                    CodeMode::Bits64 => &GENERAL_REGISTER_ORDER[..],
                    CodeMode::Bits32 => &GENERAL_REGISTER_ORDER_32,
                };
                let exists = |r: &Register| self.form.mode.has_register(*r);
                order.iter().map(|n| class.nth_register(*n)).filter(exists).collect()
            }
            RegisterClass::Segment => [Register::FS, Register::GS, Register::ES, Register::DS, Register::SS].to_vec(),
            RegisterClass::Control => {
                let exists = |r: &Register| self.form.mode.has_register(*r);
                [0, 2, 3, 4, 8].map(|n| class.nth_register(n)).into_iter().filter(exists).collect()
            }
            RegisterClass::Mask | RegisterClass::St => (1..8).map(|n| class.nth_register(n)).collect(),
            RegisterClass::Xmm | RegisterClass::Ymm | RegisterClass::Zmm => {
                self.vector_numbers().map(|n| class.nth_register(n)).collect()
            }
            RegisterClass::Bound => (0..4).map(|n| class.nth_register(n)).collect(),
            RegisterClass::Mmx | RegisterClass::Debug | RegisterClass::Test | RegisterClass::Tile => {
                (0..8).map(|n| class.nth_register(n)).collect()
            }
        };
        let mut registers = registers;
        let turn = (self.choice.seed as usize).wrapping_mul(5) % registers.len();
        registers.rotate_left(turn);
        self.take_first_free(&registers)
    }

    /// EVEX forms use registers that no other encoding has, so that their text is unambiguous.
    fn vector_numbers(&self) -> std::ops::Range<u32> {
        let evex = self.form.code.op_code().encoding() == EncodingKind::EVEX;
        let groups = list_slots(self.form.code).any(|s| matches!(s, OperandSlot::Group(..)));
        match self.form.mode {
            CodeMode::Bits64 if evex && !groups => 16..32,
            CodeMode::Bits64 => 0..16,
            CodeMode::Bits32 => 0..8,
        }
    }

    fn take_first_free(&mut self, registers: &[Register]) -> Option<Register> {
        let found = registers.iter().find(|r| !self.taken.contains(&r.full_register()))?;
        self.taken.push(found.full_register());
        Some(*found)
    }
}
