//! Every form of every instruction that 64-bit mode has: a Code with one kind of operand in each place.
//!
//! A form fixes what an instruction table has a row for (register or memory, masking, broadcast, rounding,
//! high byte registers, the shape of LEA's address); which registers it uses is a [`Choice`]. Forms are
//! enumerated from the instruction database, and only those exist whose encoding decodes to the same Code.

use super::choice::{Picker, is_lea};
use super::kinds::{Class, Imm, Slot};
use super::mnemonic::{slots, usable};
use iced_x86::{Code, Decoder, DecoderOptions, Encoder, EncodingKind, Instruction, Mnemonic};
use std::sync::LazyLock;

pub use super::choice::Choice;

/// What a register-or-memory operand is in a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Variant {
    /// A register, or whatever else the operand always is.
    Plain,
    /// One of ah, bh, ch, dh.
    HighByte,
    /// Memory.
    Memory,
    /// One element in memory, repeated.
    Broadcast,
}

/// How an EVEX form is masked.
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
    /// As MXCSR says.
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
    const LEA: [(Address, &'static str); 10] = [
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
    /// What each operand is.
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

static ALL: LazyLock<Vec<Form>> = LazyLock::new(|| {
    let codes = Code::values().filter(|code| usable(*code) && !code.op_code().fwait());
    codes.flat_map(of).filter(|form| form.instruction(&Choice::default()).is_some()).collect()
});

/// All forms, in the order of the instruction database.
pub fn all() -> impl Iterator<Item = Form> {
    ALL.iter().copied()
}

/// All combinations for one Code; some of them do not exist.
fn of(code: Code) -> Vec<Form> {
    let info = code.op_code();
    let plain = Form {
        code,
        variants: [Variant::Plain; 5],
        masking: Masking::None,
        rounding: Rounding::None,
        address: Address::Base,
        prefix: Prefix::None,
    };
    let mut forms = vec![plain];
    for (operand, slot) in slots(code).enumerate() {
        let others: &[Variant] = match slot {
            Slot::RegMem(Class::Gpr8) if info.encoding() == EncodingKind::Legacy => {
                &[Variant::HighByte, Variant::Memory]
            }
            Slot::Reg(Class::Gpr8) if info.encoding() == EncodingKind::Legacy => &[Variant::HighByte],
            Slot::RegMem(_) if info.can_broadcast() => &[Variant::Memory, Variant::Broadcast],
            Slot::RegMem(_) => &[Variant::Memory],
            Slot::Mem if info.can_broadcast() => &[Variant::Broadcast],
            _ => &[],
        };
        let before = forms.clone();
        for variant in others {
            forms.extend(before.iter().map(|form| {
                let mut form = *form;
                form.variants[operand] = *variant;
                form
            }));
        }
    }
    multiply(&mut forms, |form| {
        let masked = info.can_use_op_mask_register();
        let zeroed = info.can_use_zeroing_masking();
        let none = (!info.require_op_mask_register()).then_some(Masking::None);
        let kinds =
            none.into_iter().chain(masked.then_some(Masking::Merge)).chain(zeroed.then_some(Masking::Zero));
        kinds.map(|masking| Form { masking, ..form }).collect()
    });
    multiply(&mut forms, |form| {
        let registers = form.variants.iter().all(|v| *v == Variant::Plain);
        let rounding = match (info.can_use_rounding_control(), info.can_suppress_all_exceptions()) {
            (true, _) if registers => Some(Rounding::Embedded),
            (false, true) if registers => Some(Rounding::Suppressed),
            _ => None,
        };
        let kinds = std::iter::once(Rounding::None).chain(rounding);
        kinds.map(|rounding| Form { rounding, ..form }).collect()
    });
    multiply(&mut forms, |form| {
        let lock = info.can_use_lock_prefix() && form.variants[0] == Variant::Memory;
        // XCHG with memory locks without the prefix too.
        let lock = lock && code.mnemonic() != Mnemonic::Xchg;
        let kinds = [
            (Prefix::None, true),
            (Prefix::Lock, lock),
            (Prefix::Rep, info.can_use_rep_prefix() && repeats(code)),
            (Prefix::Repne, info.can_use_repne_prefix() && compares(code)),
        ];
        kinds
            .iter()
            .filter(|(_, exists)| *exists)
            .map(|(prefix, _)| Form { prefix: *prefix, ..form })
            .collect()
    });
    if is_lea(code) {
        multiply(&mut forms, |form| {
            Address::LEA.iter().map(|(address, _)| Form { address: *address, ..form }).collect()
        });
    }
    forms
}

/// Whether it is a string instruction.
fn repeats(code: Code) -> bool {
    slots(code).any(|slot| matches!(slot, Slot::Source | Slot::Destination))
}

/// Whether it is a string instruction that REPE and REPNE can end.
fn compares(code: Code) -> bool {
    repeats(code) && code.op_code().op_kinds().len() == 2 && {
        let mut instruction = Instruction::default();
        instruction.set_code(code);
        instruction.rflags_written() != 0
    }
}

fn multiply(forms: &mut Vec<Form>, more: impl Fn(Form) -> Vec<Form>) {
    *forms = forms.iter().flat_map(|form| more(*form)).collect();
}

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
        let mut encoder = Encoder::new(64);
        encoder.encode(&instruction, 0).ok()?;
        let bytes = encoder.take_buffer();
        let decoded = Decoder::with_ip(64, &bytes, 0, DecoderOptions::NONE).decode();
        (decoded.code() == self.code).then_some(decoded)
    }

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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{HashMap, HashSet};

    #[test]
    fn code_and_operands_name_one_form() {
        let mut seen = HashMap::new();
        for form in all() {
            if let Some(other) = seen.insert((form.code, form.operands()), form) {
                panic!("{form:?} and {other:?} are both `{} {}`", form.mnemonic(), form.operands());
            }
        }
    }

    #[test]
    fn operands_are_written_as_tables_write_them() {
        let names: HashSet<String> =
            all().map(|form| format!("{:?} {}", form.code, form.operands()).trim().to_string()).collect();
        for name in [
            "Add_rm64_r64 r64, r64",
            "Add_rm64_r64 m64, r64",
            "Add_rm8_r8 r8h, r8",
            "Movsb_m8_m8",
            "Shl_rm32_CL r32, cl",
            "Fadd_st0_sti st, st",
            "Add_rm64_r64 m64{lock}, r64",
            "Movsb_m8_m8 {rep}",
            "Scasb_AL_m8 al{repne}",
            "Imul_r64_rm64_imm8 r64, r64, imm8",
            "Jne_rel8_64 rel8",
            "Lea_r64_m r64, [b+i*s+d8]",
            "Addps_xmm_xmmm128 xmm, m128",
            "EVEX_Vaddps_zmm_k1z_zmm_zmmm512b32_er zmm{k}{z}, zmm, zmm",
            "EVEX_Vaddps_zmm_k1z_zmm_zmmm512b32_er zmm, zmm, m32{1to16}",
            "EVEX_Vaddps_zmm_k1z_zmm_zmmm512b32_er zmm, zmm, zmm{er}",
            "EVEX_Vcmpps_kr_k1_zmm_zmmm512b32_imm8_sae k{k}, zmm, zmm{sae}, imm8",
            "EVEX_Vpgatherdd_zmm_k1_vm32z zmm{k}, vm32z",
        ] {
            assert!(names.contains(name), "{name}");
        }
    }

    #[test]
    fn choices_change_registers_and_addresses() {
        let form = all().find(|f| f.code == Code::Add_rm64_r64 && f.variants[0] == Variant::Memory).unwrap();
        let choice = Choice { base: iced_x86::Register::R14, displacement: 0x40, ..Choice::default() };
        let instruction = form.instruction(&choice).unwrap();
        assert_eq!(instruction.memory_base(), iced_x86::Register::R14);
        assert_eq!(instruction.memory_displacement64(), 0x40);
        let next = form.instruction(&Choice { seed: 1, ..choice }).unwrap();
        assert_ne!(instruction.op1_register(), next.op1_register());
        let high = all().find(|f| f.code == Code::Add_rm8_r8 && f.variants[0] == Variant::HighByte).unwrap();
        assert!(high.instruction(&choice).is_some());
        let both = all()
            .find(|f| f.code == Code::Add_rm8_r8 && f.variants[..2] == [Variant::Memory, Variant::HighByte]);
        assert!(both.unwrap().instruction(&choice).is_none(), "r14 takes a REX prefix");
    }

    #[test]
    fn registers_of_a_form_are_distinct() {
        for seed in 0..7 {
            for form in all() {
                let Some(instruction) = form.instruction(&Choice { seed, ..Choice::default() }) else {
                    panic!("{form:?} does not exist with seed {seed}");
                };
                let mut seen = HashSet::new();
                for n in 0..instruction.op_count() {
                    let register = instruction.op_register(n).full_register();
                    let named = register != iced_x86::Register::None;
                    assert!(!named || seen.insert(register), "{form:?}, seed {seed}: {register:?} twice");
                }
            }
        }
    }
}
