//! One form of an instruction: a Code with one kind of operand in each position, written as in
//! instruction tables.

use super::CodeMode;
use super::operand_slot::{ImmediateEncoding, OperandSlot, RegisterClass, list_slots};
use iced_x86::{Code, EncodingKind, Instruction};

/// Kind of a register-or-memory operand in a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OperandVariant {
    /// A register, or the only possible kind of operand.
    Plain,
    /// One of ah, bh, ch, dh.
    HighByte,
    /// Memory.
    Memory,
    /// One element in memory, repeated to a vector.
    Broadcast,
}

/// Masking of an EVEX form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EvexMasking {
    /// None.
    None,
    /// `{k}`: masked-off elements keep their value.
    Merge,
    /// `{k}{z}`: masked-off elements become zero.
    Zero,
}

/// Embedded rounding of an EVEX form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EvexRounding {
    /// From MXCSR.
    None,
    /// `{er}`: set in the instruction.
    Embedded,
    /// `{sae}`: exceptions are suppressed.
    Suppressed,
}

/// Shape of LEA's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AddressShape {
    /// `[b]`; also the shape of all other instructions' addresses.
    Base,
    /// `[b+d8]`
    BaseDisp8,
    /// `[b+d32]`
    BaseDisp32,
    /// `[b+i]`
    BaseIndex,
    /// `[b+i*s]`
    BaseIndexScale,
    /// `[b+i+d8]`
    BaseIndexDisp8,
    /// `[b+i+d32]`
    BaseIndexDisp32,
    /// `[b+i*s+d8]`
    BaseIndexScaleDisp8,
    /// `[b+i*s+d32]`
    BaseIndexScaleDisp32,
    /// `[i*s+d32]`
    IndexScaleDisp32,
    /// `[rip+d32]`
    Rip,
}

impl AddressShape {
    pub(super) const LEA_SHAPES: [(AddressShape, &'static str); 11] = [
        (AddressShape::Base, "[b]"),
        (AddressShape::BaseDisp8, "[b+d8]"),
        (AddressShape::BaseDisp32, "[b+d32]"),
        (AddressShape::BaseIndex, "[b+i]"),
        (AddressShape::BaseIndexScale, "[b+i*s]"),
        (AddressShape::BaseIndexDisp8, "[b+i+d8]"),
        (AddressShape::BaseIndexDisp32, "[b+i+d32]"),
        (AddressShape::BaseIndexScaleDisp8, "[b+i*s+d8]"),
        (AddressShape::BaseIndexScaleDisp32, "[b+i*s+d32]"),
        (AddressShape::IndexScaleDisp32, "[i*s+d32]"),
        (AddressShape::Rip, "[rip+d32]"),
    ];

    fn name(self) -> &'static str {
        Self::LEA_SHAPES.iter().find(|(shape, _)| *shape == self).map_or("", |(_, name)| name)
    }
}

/// A prefix that changes what an instruction does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FormPrefix {
    /// None.
    None,
    /// LOCK.
    Lock,
    /// REP, or REPE where the instruction compares.
    Rep,
    /// REPNE.
    Repne,
}

impl FormPrefix {
    /// Name before a mnemonic.
    fn name(self, compares: bool) -> &'static str {
        match self {
            FormPrefix::None => "",
            FormPrefix::Lock => "lock ",
            FormPrefix::Rep if compares => "repe ",
            FormPrefix::Rep => "rep ",
            FormPrefix::Repne => "repne ",
        }
    }
}

/// One form of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct InstructionForm {
    /// Mode that it is encoded for.
    pub mode: CodeMode,
    /// Instruction.
    pub code: Code,
    /// Kind of each operand.
    pub variants: [OperandVariant; 5],
    /// Masking.
    pub masking: EvexMasking,
    /// Embedded rounding.
    pub rounding: EvexRounding,
    /// Shape of the address.
    pub address: AddressShape,
    /// Prefix.
    pub prefix: FormPrefix,
}

impl InstructionForm {
    /// Mnemonic in lower case, after its prefix.
    pub fn mnemonic(&self) -> String {
        let prefix = self.prefix.name(is_string_comparison(self.code));
        format!("{prefix}{:?}", self.code.mnemonic()).to_lowercase()
    }

    /// `legacy`, `vex`, `evex`, `xop` or `3dnow`.
    pub fn encoding(&self) -> &'static str {
        match self.code.op_code().encoding() {
            EncodingKind::VEX => "vex",
            EncodingKind::EVEX => "evex",
            EncodingKind::XOP => "xop",
            EncodingKind::D3NOW => "3dnow",
            _ => "legacy",
        }
    }

    /// Explicit operands as in instruction tables, such as `zmm{k}{z}, zmm, m32{1to16}`.
    pub fn describe_operands(&self) -> String {
        let mut names: Vec<String> = list_slots(self.code)
            .zip(self.variants)
            .map(|(slot, variant)| self.describe_operand(slot, variant))
            .filter(|name| !name.is_empty())
            .collect();
        let masking = match self.masking {
            EvexMasking::None => "",
            EvexMasking::Merge => "{k}",
            EvexMasking::Zero => "{k}{z}",
        };
        if let Some(first) = names.first_mut() {
            first.push_str(masking);
        }
        let rounding = match self.rounding {
            EvexRounding::None => "",
            EvexRounding::Embedded => "{er}",
            EvexRounding::Suppressed => "{sae}",
        };
        if let Some(last) = names.iter_mut().rfind(|name| !name.starts_with("imm")) {
            last.push_str(rounding);
        }
        let prefix = match self.prefix {
            FormPrefix::None => "",
            FormPrefix::Lock => "{lock}",
            FormPrefix::Rep => "{rep}",
            FormPrefix::Repne => "{repne}",
        };
        match names.first_mut() {
            Some(first) => first.push_str(prefix),
            None if prefix.is_empty() => {}
            None => names.push(prefix.to_string()),
        }
        names.join(", ")
    }

    /// Bits of the largest register operand, else of the memory operand; `None` without either.
    pub fn register_bits(&self) -> Option<usize> {
        let registers = list_slots(self.code).zip(self.variants).filter_map(|(slot, variant)| match (slot, variant) {
            (_, OperandVariant::Memory | OperandVariant::Broadcast) => None,
            (OperandSlot::Reg(class) | OperandSlot::RegMem(class) | OperandSlot::Group(class, _), _) => {
                Some(class.nth_register(0).size())
            }
            (OperandSlot::Fixed(register), _) => Some(register.size()),
            _ => None,
        });
        let memory = self.code.op_code().memory_size().size();
        registers.max().or((memory > 0).then_some(memory)).map(|bytes| 8 * bytes)
    }

    fn describe_operand(&self, slot: OperandSlot, variant: OperandVariant) -> String {
        let info = self.code.op_code();
        let memory = |bytes: usize| if bytes == 0 { String::from("m") } else { format!("m{}", bytes * 8) };
        match (slot, variant) {
            (_, OperandVariant::HighByte) => String::from("r8h"),
            (_, OperandVariant::Broadcast) => {
                let element = info.broadcast_memory_size().size();
                format!("{}{{1to{}}}", memory(element), info.memory_size().size() / element.max(1))
            }
            (OperandSlot::Mem, _) if is_lea(self.code) => self.address.name().to_string(),
            (OperandSlot::Mem, _) | (_, OperandVariant::Memory) => memory(info.memory_size().size()),
            (OperandSlot::Reg(class) | OperandSlot::RegMem(class) | OperandSlot::Group(class, _), _) => {
                class.name().to_string()
            }
            (OperandSlot::Fixed(register), _) => match RegisterClass::from_register(register) {
                Some(RegisterClass::St) => String::from("st"),
                _ => format!("{register:?}").to_lowercase(),
            },
            (OperandSlot::Vsib(class, bits), _) => format!("vm{bits}{}", &class.name()[..1]),
            (OperandSlot::Absolute, _) => format!("moffs{}", info.memory_size().size() * 8),
            (OperandSlot::Imm(ImmediateEncoding::One), _) => String::from("1"),
            (OperandSlot::Imm(imm), _) => format!("imm{}", imm.stored_bits()),
            (OperandSlot::Branch(bits), _) => format!("rel{bits}"),
            (
                OperandSlot::Source
                | OperandSlot::Destination
                | OperandSlot::MaskedStore
                | OperandSlot::Table
                | OperandSlot::Unusable,
                _,
            ) => String::new(),
        }
    }
}

/// Whether the form is a string instruction.
pub(super) fn is_string_form(code: Code) -> bool {
    list_slots(code).any(|slot| matches!(slot, OperandSlot::Source | OperandSlot::Destination))
}

/// Whether the form is a string instruction that REPE and REPNE can end.
pub(super) fn is_string_comparison(code: Code) -> bool {
    is_string_form(code) && code.op_code().op_kinds().len() == 2 && {
        let mut instruction = Instruction::default();
        instruction.set_code(code);
        instruction.rflags_written() != 0
    }
}

/// Whether a Code is one of the three LEA.
pub(super) fn is_lea(code: Code) -> bool {
    matches!(code, Code::Lea_r16_m | Code::Lea_r32_m | Code::Lea_r64_m)
}
