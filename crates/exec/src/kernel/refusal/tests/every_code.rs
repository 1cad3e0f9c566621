//! Tests with all instructions of the database.

use super::super::instruction::find_general_reason;
use super::super::lists::{ALLOWED_PRIVILEGED, REFUSED_INSTRUCTIONS};
use super::*;
use iced_x86::{Code, CpuidFeature, Mnemonic};

/// Extensions whose instructions have an effect beyond the code, privileged or not.
const GROUPS: [CpuidFeature; 38] = [
    CpuidFeature::VMX,
    CpuidFeature::INVEPT,
    CpuidFeature::INVVPID,
    CpuidFeature::SVM,
    CpuidFeature::SKINIT,
    CpuidFeature::SKINIT_or_SVM,
    CpuidFeature::SMX,
    CpuidFeature::SMM,
    CpuidFeature::SGX1,
    CpuidFeature::OSS,
    CpuidFeature::TDX,
    CpuidFeature::SEV_ES,
    CpuidFeature::SEV_SNP,
    CpuidFeature::RMPQUERY,
    CpuidFeature::PCONFIG,
    CpuidFeature::TSE,
    CpuidFeature::KL,
    CpuidFeature::FRED,
    CpuidFeature::LKGS,
    CpuidFeature::UINTR,
    CpuidFeature::MONITOR,
    CpuidFeature::MONITORX,
    CpuidFeature::HRESET,
    CpuidFeature::INVLPGB,
    CpuidFeature::MSRLIST,
    CpuidFeature::WRMSRNS,
    CpuidFeature::LWP,
    CpuidFeature::UDBG,
    CpuidFeature::PADLOCK_ACE,
    CpuidFeature::PADLOCK_PHE,
    CpuidFeature::PADLOCK_PMM,
    CpuidFeature::PADLOCK_RNG,
    CpuidFeature::PADLOCK_GMI,
    CpuidFeature::CYRIX_DDI,
    CpuidFeature::CYRIX_DMI,
    CpuidFeature::CYRIX_SMM,
    CpuidFeature::CYRIX_SMINT,
    CpuidFeature::CYRIX_SHR,
];

fn is_refused(mnemonic: Mnemonic) -> bool {
    REFUSED_INSTRUCTIONS.iter().any(|(_, list)| list.contains(&mnemonic))
}

#[test]
fn every_privileged_instruction_is_listed() {
    let mut privileged: Vec<Mnemonic> = Vec::new();
    for code in Code::values() {
        let info = code.op_code();
        let mnemonic = code.mnemonic();
        let special = info.is_privileged() || !info.cpl3() || info.is_input_output();
        if special && !is_refused(mnemonic) {
            assert!(ALLOWED_PRIVILEGED.contains(&mnemonic), "{code:?} is on no list");
            if !privileged.contains(&mnemonic) {
                privileged.push(mnemonic);
            }
        }
        let group = code.cpuid_features().iter().any(|feature| GROUPS.contains(feature));
        assert!(!group || is_refused(mnemonic), "{code:?} is not refused");
        let shadow_stack = code.cpuid_features().contains(&CpuidFeature::CET_SS);
        let reads = [Mnemonic::Rdsspd, Mnemonic::Rdsspq].contains(&mnemonic);
        assert_eq!(shadow_stack && !reads, shadow_stack && is_refused(mnemonic), "{code:?}");
    }
    privileged.sort();
    let mut allowed = ALLOWED_PRIVILEGED.to_vec();
    allowed.sort();
    assert_eq!(privileged, allowed);
}

#[test]
fn no_mnemonic_is_listed_twice() {
    let mut all: Vec<Mnemonic> =
        REFUSED_INSTRUCTIONS.iter().flat_map(|(_, list)| *list).chain(ALLOWED_PRIVILEGED).copied().collect();
    let count = all.len();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), count);
}

#[test]
fn each_instruction_is_judged_as_listed() {
    for code in Code::values() {
        let mut instruction = iced_x86::Instruction::new();
        instruction.set_code(code);
        let refused = find_general_reason(&instruction, &register_facts::RegisterFacts::default());
        let asks_for_facts = [Mnemonic::Rdmsr, Mnemonic::Wrmsr, Mnemonic::Xsetbv].contains(&code.mnemonic());
        // Unset operands are not control registers.
        assert_eq!(refused.is_some(), is_refused(code.mnemonic()) || asks_for_facts, "{code:?}: {refused:?}");
    }
}

/// Opcode, and whether a ModRM byte makes it refused.
type Encoding = (&'static [u8], fn(u8) -> bool);

#[test]
fn no_prefix_and_no_modrm_byte_hides_an_instruction() {
    let table: [Encoding; 8] = [
        // CR2 may be written.
        (&[0x0f, 0x22], |modrm| (modrm >> 3) & 7 != 2),
        (&[0x0f, 0x23], |modrm| matches!((modrm >> 3) & 7, 5 | 7)),
        (&[0x0f, 0x00], |modrm| matches!((modrm >> 3) & 7, 2 | 3)),
        // LGDT and LIDT take a memory operand, LMSW any operand.
        (&[0x0f, 0x01], |modrm| (matches!((modrm >> 3) & 7, 2 | 3) && modrm < 0xc0) || (modrm >> 3) & 7 == 6),
        (&[0x0f, 0x08], |_| true),
        (&[0x0f, 0x30], |_| true),
        (&[0x0f, 0x32], |_| true),
        (&[0xf4], |_| true),
    ];
    let prefixes: [&[u8]; 13] = [
        &[],
        &[0x66],
        &[0x67],
        &[0xf2],
        &[0xf3],
        &[0xf0],
        &[0x2e],
        &[0x65],
        &[0x66, 0xf3],
        &[0x48],
        &[0x41],
        &[0x43, 0x66],
        &[0xf2, 0x49],
    ];
    for (opcode, refused) in table {
        for prefix in prefixes {
            for modrm in 0..=255u8 {
                let code = [prefix, opcode, &[modrm], &[0x90; 10]].concat();
                let judged = judge_code(snippet(&code), RefusalRules::default());
                assert!(!refused(modrm) || judged.is_err(), "{code:x?}");
            }
        }
    }
}
