//! Picks concrete registers, addresses and immediates for a form.

use super::form::{Address, Form, Masking, Prefix, Rounding, Variant};
use super::kinds::{Class, Imm, Slot, slots};
use super::place::Placing;
use iced_x86::{
    Decoder, DecoderOptions, Encoder, EncodingKind, Instruction, InstructionInfoFactory, OpKind, Register,
    RoundingControl,
};

/// Which registers, addresses and immediates a form gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// Rotates through the registers: neighbours give disjoint choices where there are enough registers.
    pub seed: u32,
    /// The register that holds the address of memory operands.
    pub base: Register,
    /// Added to the base register.
    pub displacement: i32,
    /// The immediate, cut to its width; one that fills its width when absent.
    pub immediate: Option<i64>,
}

impl Default for Choice {
    fn default() -> Self {
        Choice { seed: 0, base: Register::RDI, displacement: 0, immediate: None }
    }
}

/// The default address of a 64-bit absolute operand.
const ABSOLUTE: u64 = 0x1122_3344_5566_7788;

/// General registers that an instruction may have; first those with no special part in the snippet's world.
const GENERAL: [u32; 14] = [3, 8, 9, 10, 11, 12, 13, 6, 7, 0, 1, 2, 14, 5];

impl Form {
    /// A legal instruction of this form, or none where it does not exist with that choice (a high byte
    /// register beside an address in r14, for one).
    ///
    /// Registers are distinct, and distinct from the registers that the instruction implies where that is
    /// possible. Branches go to address 0.
    pub fn instruction(&self, choice: &Choice) -> Option<Instruction> {
        // Some registers turn a reserved no-operation into an instruction (0F 1C /0 is CLDEMOTE).
        let tries = if self.code.op_code().is_reserved_nop() { 8 } else { 1 };
        (0..tries).find_map(|n| self.checked(&Choice { seed: choice.seed.wrapping_add(n), ..*choice }))
    }

    fn checked(&self, choice: &Choice) -> Option<Instruction> {
        let mut instruction = Picker::new(self, choice).build()?;
        match self.prefix {
            Prefix::None => {}
            Prefix::Lock => instruction.set_has_lock_prefix(true),
            Prefix::Rep => instruction.set_has_rep_prefix(true),
            Prefix::Repne => instruction.set_has_repne_prefix(true),
        }
        legal(&instruction)
    }
}

/// The instruction as its machine code has it; none where there is no such code, or where it is another instruction's.
pub fn legal(instruction: &Instruction) -> Option<Instruction> {
    let mut encoder = Encoder::new(64);
    encoder.encode(instruction, 0).ok()?;
    let bytes = encoder.take_buffer();
    let decoded = Decoder::with_ip(64, &bytes, 0, DecoderOptions::NONE).decode();
    (decoded.code() == instruction.code()).then_some(decoded)
}

struct Picker<'a> {
    form: &'a Form,
    choice: &'a Choice,
    placing: Placing,
    /// Full registers that are taken already.
    taken: Vec<Register>,
}

impl<'a> Picker<'a> {
    fn new(form: &'a Form, choice: &'a Choice) -> Picker<'a> {
        let mut taken = Vec::new();
        for slot in slots(form.code) {
            if let Slot::Fixed(register) = slot {
                taken.push(register.full_register());
            }
        }
        Picker { form, choice, placing: Placing::new(form.code), taken }
    }

    fn build(mut self) -> Option<Instruction> {
        let slots: Vec<Slot> = slots(self.form.code).collect();
        self.avoid_implied(&slots);
        let memory = self.form.variants.iter().any(|v| matches!(v, Variant::Memory | Variant::Broadcast));
        if memory || slots.iter().any(|s| matches!(s, Slot::Mem | Slot::Vsib(..))) {
            self.taken.push(self.choice.base.full_register());
        }
        for (index, slot) in (0..).zip(&slots) {
            self.operand(index, *slot, self.form.variants[index as usize])?;
        }
        if self.form.masking != Masking::None {
            let mask = self.pick(Class::Mask)?;
            self.placing.instruction.set_op_mask(mask);
            self.placing.instruction.set_zeroing_masking(self.form.masking == Masking::Zero);
        }
        match self.form.rounding {
            Rounding::None => {}
            Rounding::Embedded => {
                self.placing.instruction.set_rounding_control(RoundingControl::RoundToNearest)
            }
            Rounding::Suppressed => self.placing.instruction.set_suppress_all_exceptions(true),
        }
        Some(self.placing.instruction)
    }

    /// Keeps registers free that the instruction reads or writes without naming them.
    fn avoid_implied(&mut self, slots: &[Slot]) {
        let register = |slot: &Slot| match slot {
            // Numbers that no instruction implies.
            Slot::RegMem(class) | Slot::Reg(class) => match class.name() {
                "r8" | "r16" | "r32" | "r64" => Some(class.register(11)),
                _ => Some(class.register(3)),
            },
            _ => None,
        };
        let mut sample = Placing::new(self.form.code);
        for (index, slot) in (0..).zip(slots) {
            match (slot, register(slot)) {
                (_, Some(register)) => sample.register(index, register),
                (Slot::Imm(imm), _) => sample.immediate(index, *imm, 1),
                (Slot::Mem, _) => {
                    sample.instruction.set_op_kind(index, OpKind::Memory);
                    sample.instruction.set_memory_base(self.choice.base);
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

    fn operand(&mut self, index: u32, slot: Slot, variant: Variant) -> Option<()> {
        match (slot, variant) {
            (_, Variant::HighByte) => {
                let high = [Register::BH, Register::CH, Register::DH, Register::AH];
                let register = self.first_free(&high)?;
                self.placing.register(index, register);
            }
            (Slot::Mem, _) | (_, Variant::Memory | Variant::Broadcast) => {
                self.placing.instruction.set_op_kind(index, OpKind::Memory);
                self.placing.instruction.set_is_broadcast(variant == Variant::Broadcast);
                self.address()?;
            }
            (Slot::Vsib(class, _), _) => {
                self.placing.instruction.set_op_kind(index, OpKind::Memory);
                self.base();
                let vector = self.pick(class)?;
                self.placing.instruction.set_memory_index(vector);
            }
            (Slot::Reg(class) | Slot::RegMem(class), _) => {
                let register = self.pick(class)?;
                self.placing.register(index, register);
            }
            (Slot::Group(class, count), _) => {
                // The group starts at a multiple of its size.
                let first = class.register(if count == 4 { 4 + 4 * (self.choice.seed % 3) } else { 2 });
                self.taken.extend((0..count).map(|n| (first + n).full_register()));
                self.placing.register(index, first);
            }
            (Slot::Imm(imm), _) => self.immediate(index, imm),
            (Slot::Branch(_), _) => self.placing.instruction.set_op_kind(index, OpKind::NearBranch64),
            (Slot::Absolute, _) => {
                let i = &mut self.placing.instruction;
                i.set_op_kind(index, OpKind::Memory);
                i.set_memory_displ_size(8);
                i.set_memory_displacement64(ABSOLUTE);
            }
            _ => return self.placing.default(index, slot).then_some(()),
        }
        Some(())
    }

    fn immediate(&mut self, index: u32, imm: Imm) {
        let full: i64 = match imm.stored() {
            4 => 2,
            8 => 0x12,
            16 => 0x1234,
            32 => 0x1234_5678,
            _ => 0x1234_5678_9abc_def0,
        };
        let bits = 64 - imm.stored();
        let value = match (imm, self.choice.immediate) {
            (Imm::One, _) => 1,
            (Imm::Nibble, Some(value)) => value & 3,
            (_, Some(value)) => (value << bits) >> bits,
            (_, None) => full,
        };
        self.placing.immediate(index, imm, value);
    }

    fn base(&mut self) {
        let i = &mut self.placing.instruction;
        i.set_memory_base(self.choice.base);
        i.set_memory_index_scale(1);
        i.set_memory_displacement64(self.choice.displacement as u64);
        i.set_memory_displ_size(u32::from(self.choice.displacement != 0));
    }

    fn address(&mut self) -> Option<()> {
        self.base();
        let (index, scale, displacement) = match self.form.address {
            Address::Base => return Some(()),
            Address::Rip => {
                let i = &mut self.placing.instruction;
                i.set_memory_base(Register::RIP);
                i.set_memory_displ_size(8);
                i.set_memory_displacement64(0);
                return Some(());
            }
            Address::BaseDisp8 => (false, 1, 0x12),
            Address::BaseDisp32 => (false, 1, 0x1234),
            Address::BaseIndex => (true, 1, 0),
            Address::BaseIndexScale => (true, 4, 0),
            Address::BaseIndexDisp8 => (true, 1, 0x12),
            Address::BaseIndexScaleDisp8 => (true, 4, 0x12),
            Address::BaseIndexScaleDisp32 | Address::IndexScaleDisp32 => (true, 4, 0x1234),
        };
        let index = if index { self.pick(Class::Gpr64)? } else { Register::None };
        let i = &mut self.placing.instruction;
        i.set_memory_index(index);
        i.set_memory_index_scale(scale);
        i.set_memory_displacement64(displacement);
        i.set_memory_displ_size(u32::from(displacement != 0));
        if self.form.address == Address::IndexScaleDisp32 {
            i.set_memory_base(Register::None);
            i.set_memory_displ_size(8);
        }
        Some(())
    }

    fn pick(&mut self, class: Class) -> Option<Register> {
        let registers: Vec<Register> = match class {
            // ah to bh rule out every register that takes a REX prefix.
            Class::Gpr8 | Class::Gpr16 | Class::Gpr32 | Class::Gpr64
                if self.form.variants.contains(&Variant::HighByte) =>
            {
                [3, 1, 2, 0].map(|n| class.register(n)).to_vec()
            }
            Class::Gpr8 | Class::Gpr16 | Class::Gpr32 | Class::Gpr64 => {
                GENERAL.map(|n| class.register(n)).to_vec()
            }
            Class::Segment => [Register::FS, Register::GS, Register::ES, Register::DS, Register::SS].to_vec(),
            Class::Control => [0, 2, 3, 4, 8].map(|n| class.register(n)).to_vec(),
            Class::Mask | Class::St => (1..8).map(|n| class.register(n)).collect(),
            Class::Xmm | Class::Ymm | Class::Zmm => self.vectors().map(|n| class.register(n)).collect(),
            Class::Bound => (0..4).map(|n| class.register(n)).collect(),
            Class::Mmx | Class::Debug | Class::Test | Class::Tile => {
                (0..8).map(|n| class.register(n)).collect()
            }
        };
        let mut registers = registers;
        let turn = (self.choice.seed as usize).wrapping_mul(5) % registers.len();
        registers.rotate_left(turn);
        self.first_free(&registers)
    }

    /// EVEX forms use the registers that no other encoding has, so that their text means them alone.
    fn vectors(&self) -> std::ops::Range<u32> {
        let evex = self.form.code.op_code().encoding() == EncodingKind::EVEX;
        let groups = slots(self.form.code).any(|s| matches!(s, Slot::Group(..)));
        if evex && !groups { 16..32 } else { 0..16 }
    }

    fn first_free(&mut self, registers: &[Register]) -> Option<Register> {
        let found = registers.iter().find(|r| !self.taken.contains(&r.full_register()))?;
        self.taken.push(found.full_register());
        Some(*found)
    }
}
