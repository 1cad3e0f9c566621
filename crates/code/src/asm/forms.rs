//! Every form of every instruction that 64-bit mode has: a Code with one kind of operand in each place.
//!
//! A form fixes what an instruction table has a row for (register or memory, masking, broadcast, rounding,
//! high byte registers, the shape of LEA's address); which registers it uses is a [`Choice`]. Forms are
//! enumerated from the instruction database, and only those exist whose encoding decodes to the same Code.

use super::form::{compares, is_lea, repeats};
use super::kinds::{Class, Slot, slots};
use super::mnemonic::usable;
use iced_x86::{Code, EncodingKind, Mnemonic};
use std::sync::LazyLock;

pub use super::choice::Choice;
pub use super::form::{Address, Form, Masking, Prefix, Rounding, Variant};

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

fn multiply(forms: &mut Vec<Form>, more: impl Fn(Form) -> Vec<Form>) {
    *forms = forms.iter().flat_map(|form| more(*form)).collect();
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
