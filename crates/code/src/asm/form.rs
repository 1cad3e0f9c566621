//! One form of an instruction: a Code with one kind of operand in each place, and how tables write it.

use super::kinds::{Class, Imm, Slot, slots};
use iced_x86::{Code, EncodingKind, Instruction};

/// Kind of a register-or-memory operand in a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Variant {
    /// A register, or the only kind that the operand can have.
    Plain,
    /// One of ah, bh, ch, dh.
    HighByte,
    /// Memory.
    Memory,
    /// One element in memory, repeated.
    Broadcast,
}

/// Masking of an EVEX form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Masking {
    /// Not at all.
    None,
    /// `{k}`: masked-off elements stay.
    Merge,
    /// `{k}{z}`: masked-off elements become zero.
    Zero,
}

/// Embedded rounding of an EVEX form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rounding {
    /// By MXCSR.
    None,
    /// `{er}`: in the instruction.
    Embedded,
    /// `{sae}`: exceptions are suppressed.
    Suppressed,
}

/// The shape of LEA's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Address {
    /// `[b]`, and the shape of all other instructions' addresses.
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
    /// `[b+i*s+d8]`
    BaseIndexScaleDisp8,
    /// `[b+i*s+d32]`
    BaseIndexScaleDisp32,
    /// `[i*s+d32]`
    IndexScaleDisp32,
    /// `[rip+d32]`
    Rip,
}

impl Address {
    pub(super) const LEA: [(Address, &'static str); 10] = [
        (Address::Base, "[b]"),
        (Address::BaseDisp8, "[b+d8]"),
        (Address::BaseDisp32, "[b+d32]"),
        (Address::BaseIndex, "[b+i]"),
        (Address::BaseIndexScale, "[b+i*s]"),
        (Address::BaseIndexDisp8, "[b+i+d8]"),
        (Address::BaseIndexScaleDisp8, "[b+i*s+d8]"),
        (Address::BaseIndexScaleDisp32, "[b+i*s+d32]"),
        (Address::IndexScaleDisp32, "[i*s+d32]"),
        (Address::Rip, "[rip+d32]"),
    ];

    fn name(self) -> &'static str {
        Self::LEA.iter().find(|(shape, _)| *shape == self).map_or("", |(_, name)| name)
    }
}

/// A prefix that changes what an instruction does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Prefix {
    /// None.
    None,
    /// LOCK.
    Lock,
    /// REP, or REPE where the instruction compares.
    Rep,
    /// REPNE.
    Repne,
}

impl Prefix {
    /// Its name before a mnemonic.
    fn name(self, compares: bool) -> &'static str {
        match self {
            Prefix::None => "",
            Prefix::Lock => "lock ",
            Prefix::Rep if compares => "repe ",
            Prefix::Rep => "rep ",
            Prefix::Repne => "repne ",
        }
    }
}

/// One form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Form {
    /// The instruction.
    pub code: Code,
    /// Kind of each operand.
    pub variants: [Variant; 5],
    /// Masking.
    pub masking: Masking,
    /// Embedded rounding.
    pub rounding: Rounding,
    /// Shape of the address.
    pub address: Address,
    /// Prefix.
    pub prefix: Prefix,
}

impl Form {
    /// The mnemonic in lower case, after its prefix.
    pub fn mnemonic(&self) -> String {
        let prefix = self.prefix.name(compares(self.code));
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

    /// The explicit operands as instruction tables write them, such as `zmm{k}{z}, zmm, m32{1to16}`.
    pub fn operands(&self) -> String {
        let mut names: Vec<String> = slots(self.code)
            .zip(self.variants)
            .map(|(slot, variant)| self.operand(slot, variant))
            .filter(|name| !name.is_empty())
            .collect();
        let masking = match self.masking {
            Masking::None => "",
            Masking::Merge => "{k}",
            Masking::Zero => "{k}{z}",
        };
        if let Some(first) = names.first_mut() {
            first.push_str(masking);
        }
        let rounding = match self.rounding {
            Rounding::None => "",
            Rounding::Embedded => "{er}",
            Rounding::Suppressed => "{sae}",
        };
        if let Some(last) = names.iter_mut().rfind(|name| !name.starts_with("imm")) {
            last.push_str(rounding);
        }
        let prefix = match self.prefix {
            Prefix::None => "",
            Prefix::Lock => "{lock}",
            Prefix::Rep => "{rep}",
            Prefix::Repne => "{repne}",
        };
        match names.first_mut() {
            Some(first) => first.push_str(prefix),
            None if prefix.is_empty() => {}
            None => names.push(prefix.to_string()),
        }
        names.join(", ")
    }

    /// Bits of the largest register operand; of a form without one, of its memory operand. `None` where it has neither.
    pub fn register_bits(&self) -> Option<usize> {
        let registers =
            slots(self.code).zip(self.variants).filter_map(|(slot, variant)| match (slot, variant) {
                (_, Variant::Memory | Variant::Broadcast) => None,
                (Slot::Reg(class) | Slot::RegMem(class) | Slot::Group(class, _), _) => {
                    Some(class.register(0).size())
                }
                (Slot::Fixed(register), _) => Some(register.size()),
                _ => None,
            });
        let memory = self.code.op_code().memory_size().size();
        registers.max().or((memory > 0).then_some(memory)).map(|bytes| 8 * bytes)
    }

    fn operand(&self, slot: Slot, variant: Variant) -> String {
        let info = self.code.op_code();
        let memory = |bytes: usize| if bytes == 0 { String::from("m") } else { format!("m{}", bytes * 8) };
        match (slot, variant) {
            (_, Variant::HighByte) => String::from("r8h"),
            (_, Variant::Broadcast) => {
                let element = info.broadcast_memory_size().size();
                format!("{}{{1to{}}}", memory(element), info.memory_size().size() / element.max(1))
            }
            (Slot::Mem, _) if is_lea(self.code) => self.address.name().to_string(),
            (Slot::Mem, _) | (_, Variant::Memory) => memory(info.memory_size().size()),
            (Slot::Reg(class) | Slot::RegMem(class) | Slot::Group(class, _), _) => class.name().to_string(),
            (Slot::Fixed(register), _) => match Class::of(register) {
                Some(Class::St) => String::from("st"),
                _ => format!("{register:?}").to_lowercase(),
            },
            (Slot::Vsib(class, bits), _) => format!("vm{bits}{}", &class.name()[..1]),
            (Slot::Absolute, _) => format!("moffs{}", info.memory_size().size() * 8),
            (Slot::Imm(Imm::One), _) => String::from("1"),
            (Slot::Imm(imm), _) => format!("imm{}", imm.stored()),
            (Slot::Branch(bits), _) => format!("rel{bits}"),
            (Slot::Source | Slot::Destination | Slot::MaskedStore | Slot::Table | Slot::Unusable, _) => {
                String::new()
            }
        }
    }
}

/// Whether the form is a string instruction.
pub(super) fn repeats(code: Code) -> bool {
    slots(code).any(|slot| matches!(slot, Slot::Source | Slot::Destination))
}

/// Whether the form is a string instruction that REPE and REPNE can end.
pub(super) fn compares(code: Code) -> bool {
    repeats(code) && code.op_code().op_kinds().len() == 2 && {
        let mut instruction = Instruction::default();
        instruction.set_code(code);
        instruction.rflags_written() != 0
    }
}

/// Whether a Code is one of the three LEA.
pub(super) fn is_lea(code: Code) -> bool {
    matches!(code, Code::Lea_r16_m | Code::Lea_r32_m | Code::Lea_r64_m)
}
