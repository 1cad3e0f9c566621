//! Every form of every instruction in a mode: a Code with one kind of operand in each
//! position.
//!
//! A form fixes everything that has its own row in instruction tables: register or memory, masking,
//! broadcast, rounding, high-byte registers, and the shape of LEA's address. An [`OperandChoice`]
//! selects the registers. Forms are enumerated from the instruction database. A form exists only if
//! its encoding decodes to the same Code.

use super::CodeMode;
use super::instruction_form::{is_lea, is_string_comparison, is_string_form};
use super::mnemonic::is_usable;
use super::operand_slot::{OperandSlot, RegisterClass, list_slots};
use iced_x86::{Code, EncodingKind, Mnemonic};
use std::sync::LazyLock;

pub use super::instruction_form::{
    AddressShape, EvexMasking, EvexRounding, FormPrefix, InstructionForm, OperandVariant,
};
pub use super::operand_choice::OperandChoice;

static ALL_FORMS: LazyLock<Vec<InstructionForm>> = LazyLock::new(|| list_forms(CodeMode::Bits64));
static ALL_FORMS_32: LazyLock<Vec<InstructionForm>> = LazyLock::new(|| list_forms(CodeMode::Bits32));

fn list_forms(mode: CodeMode) -> Vec<InstructionForm> {
    let codes = Code::values().filter(|code| is_usable(*code, mode) && !code.op_code().fwait());
    let forms = codes.flat_map(|code| enumerate_forms(code, mode));
    forms.filter(|form| form.build_instruction(&OperandChoice::default()).is_some()).collect()
}

/// All forms in 64-bit mode, in the order of the instruction database.
pub fn all_forms() -> impl Iterator<Item = InstructionForm> {
    all_forms_of(CodeMode::Bits64)
}

/// All forms in a mode.
pub fn all_forms_of(mode: CodeMode) -> impl Iterator<Item = InstructionForm> {
    let forms = match mode {
        CodeMode::Bits64 => &ALL_FORMS,
        CodeMode::Bits32 => &ALL_FORMS_32,
    };
    forms.iter().copied()
}

/// All combinations for one Code, including some that do not exist.
fn enumerate_forms(code: Code, mode: CodeMode) -> Vec<InstructionForm> {
    let info = code.op_code();
    let plain = InstructionForm {
        mode,
        code,
        variants: [OperandVariant::Plain; 5],
        masking: EvexMasking::None,
        rounding: EvexRounding::None,
        address: AddressShape::Base,
        prefix: FormPrefix::None,
    };
    let mut forms = vec![plain];
    for (operand, slot) in list_slots(code).enumerate() {
        let others: &[OperandVariant] = match slot {
            OperandSlot::RegMem(RegisterClass::Gpr8) if info.encoding() == EncodingKind::Legacy => {
                &[OperandVariant::HighByte, OperandVariant::Memory]
            }
            OperandSlot::Reg(RegisterClass::Gpr8) if info.encoding() == EncodingKind::Legacy => {
                &[OperandVariant::HighByte]
            }
            OperandSlot::RegMem(_) if info.can_broadcast() => &[OperandVariant::Memory, OperandVariant::Broadcast],
            OperandSlot::RegMem(_) => &[OperandVariant::Memory],
            OperandSlot::Mem if info.can_broadcast() => &[OperandVariant::Broadcast],
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
    expand_forms(&mut forms, |form| {
        let masked = info.can_use_op_mask_register();
        let zeroed = info.can_use_zeroing_masking();
        let none = (!info.require_op_mask_register()).then_some(EvexMasking::None);
        let kinds =
            none.into_iter().chain(masked.then_some(EvexMasking::Merge)).chain(zeroed.then_some(EvexMasking::Zero));
        kinds.map(|masking| InstructionForm { masking, ..form }).collect()
    });
    expand_forms(&mut forms, |form| {
        let registers = form.variants.iter().all(|v| *v == OperandVariant::Plain);
        let rounding = match (info.can_use_rounding_control(), info.can_suppress_all_exceptions()) {
            (true, _) if registers => Some(EvexRounding::Embedded),
            (false, true) if registers => Some(EvexRounding::Suppressed),
            _ => None,
        };
        let kinds = std::iter::once(EvexRounding::None).chain(rounding);
        kinds.map(|rounding| InstructionForm { rounding, ..form }).collect()
    });
    expand_forms(&mut forms, |form| {
        let lock = info.can_use_lock_prefix() && form.variants[0] == OperandVariant::Memory;
        // XCHG with memory locks even without the prefix.
        let lock = lock && code.mnemonic() != Mnemonic::Xchg;
        let kinds = [
            (FormPrefix::None, true),
            (FormPrefix::Lock, lock),
            (FormPrefix::Rep, info.can_use_rep_prefix() && is_string_form(code)),
            (FormPrefix::Repne, info.can_use_repne_prefix() && is_string_comparison(code)),
        ];
        kinds
            .iter()
            .filter(|(_, exists)| *exists)
            .map(|(prefix, _)| InstructionForm { prefix: *prefix, ..form })
            .collect()
    });
    if is_lea(code) {
        expand_forms(&mut forms, |form| {
            AddressShape::LEA_SHAPES.iter().map(|(address, _)| InstructionForm { address: *address, ..form }).collect()
        });
    }
    forms
}

fn expand_forms(forms: &mut Vec<InstructionForm>, more: impl Fn(InstructionForm) -> Vec<InstructionForm>) {
    *forms = forms.iter().flat_map(|form| more(*form)).collect();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{HashMap, HashSet};

    #[test]
    fn code_and_operands_identify_a_form() {
        let mut seen = HashMap::new();
        for form in all_forms() {
            if let Some(other) = seen.insert((form.code, form.describe_operands()), form) {
                panic!("{form:?} and {other:?} are both `{} {}`", form.mnemonic(), form.describe_operands());
            }
        }
    }

    #[test]
    fn operands_look_as_in_instruction_tables() {
        let names: HashSet<String> = all_forms()
            .map(|form| format!("{:?} {}", form.code, form.describe_operands()).trim().to_string())
            .collect();
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
            "Lea_r64_m r64, [b+i+d32]",
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
    fn a_choice_selects_registers_and_addresses() {
        let form =
            all_forms().find(|f| f.code == Code::Add_rm64_r64 && f.variants[0] == OperandVariant::Memory).unwrap();
        let choice = OperandChoice { base: iced_x86::Register::R14, displacement: 0x40, ..OperandChoice::default() };
        let instruction = form.build_instruction(&choice).unwrap();
        assert_eq!(instruction.memory_base(), iced_x86::Register::R14);
        assert_eq!(instruction.memory_displacement64(), 0x40);
        let next = form.build_instruction(&OperandChoice { seed: 1, ..choice }).unwrap();
        assert_ne!(instruction.op1_register(), next.op1_register());
        let high =
            all_forms().find(|f| f.code == Code::Add_rm8_r8 && f.variants[0] == OperandVariant::HighByte).unwrap();
        assert!(high.build_instruction(&choice).is_some());
        let both = all_forms().find(|f| {
            f.code == Code::Add_rm8_r8 && f.variants[..2] == [OperandVariant::Memory, OperandVariant::HighByte]
        });
        assert!(both.unwrap().build_instruction(&choice).is_none(), "r14 takes a REX prefix");
    }

    #[test]
    fn registers_of_a_form_are_distinct() {
        for seed in 0..7 {
            for form in all_forms() {
                let Some(instruction) = form.build_instruction(&OperandChoice { seed, ..OperandChoice::default() })
                else {
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
