//! Forms that are not tried, by a closed list of reasons.

use super::operands::Anatomy;
use crate::machine::features::Features;
use iced_x86::{Code, CpuidFeature, Mnemonic, OpCodeOperandKind, Register};

/// Why a form is not tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Skip {
    /// The CPU or the system lacks a feature that it needs.
    Unsupported,
    /// It can run in ring 0 only.
    Privileged,
    /// It hands control to the system, to another privilege level or code segment.
    LeavesUserMode,
    /// It raises an exception by definition.
    RaisesException,
    /// Its address is a 64-bit constant, and programs know no addresses.
    AbsoluteAddress,
    /// It needs a state of the processor that programs do not set up.
    NeedsState,
}

impl Skip {
    /// All reasons: what results call them, and what they mean.
    pub const ALL: [(Skip, &'static str, &'static str); 6] = [
        (Skip::Unsupported, "unsupported", "the CPU or the system lacks a feature"),
        (Skip::Privileged, "privileged", "runs in ring 0 only"),
        (Skip::LeavesUserMode, "leaves_user_mode", "calls the system or changes the code segment"),
        (Skip::RaisesException, "raises_exception", "raises an exception by definition"),
        (Skip::AbsoluteAddress, "absolute_address", "names an address, which programs do not know"),
        (Skip::NeedsState, "needs_state", "needs a processor state that is not set up"),
    ];

    /// What results call it.
    pub fn code(self) -> &'static str {
        Skip::ALL.iter().find(|(skip, ..)| *skip == self).map_or("", |(_, code, _)| code)
    }
}

/// Instructions that are skipped for what they do, by mnemonic.
const BY_MNEMONIC: &[(Skip, &[Mnemonic])] = &[
    (
        Skip::LeavesUserMode,
        &[
            Mnemonic::Syscall,
            Mnemonic::Sysenter,
            Mnemonic::Int,
            Mnemonic::Iret,
            Mnemonic::Iretd,
            Mnemonic::Iretq,
            Mnemonic::Retf,
            Mnemonic::Vmcall,
            Mnemonic::Vmmcall,
            Mnemonic::Vmgexit,
            Mnemonic::Tdcall,
            Mnemonic::Vmfunc,
            Mnemonic::Enclu,
            Mnemonic::Uiret,
            Mnemonic::Senduipi,
            // UMIP lets the kernel answer these, by an exception.
            Mnemonic::Sgdt,
            Mnemonic::Sidt,
            Mnemonic::Sldt,
            Mnemonic::Smsw,
            Mnemonic::Str,
        ],
    ),
    (
        Skip::RaisesException,
        &[Mnemonic::Ud0, Mnemonic::Ud1, Mnemonic::Ud2, Mnemonic::Int1, Mnemonic::Int3, Mnemonic::Into],
    ),
    (
        Skip::NeedsState,
        &[
            // A transaction, a shadow stack, a configured tile, a loaded key, permission to read counters.
            Mnemonic::Xbegin,
            Mnemonic::Xend,
            Mnemonic::Xresldtrk,
            Mnemonic::Rdpmc,
            Mnemonic::Incsspd,
            Mnemonic::Incsspq,
            Mnemonic::Saveprevssp,
            Mnemonic::Rstorssp,
            Mnemonic::Wrussd,
            Mnemonic::Wrussq,
            Mnemonic::Wrssd,
            Mnemonic::Wrssq,
            Mnemonic::Wrpkru,
            Mnemonic::Enqcmd,
            Mnemonic::Mwaitx,
            Mnemonic::Monitorx,
            Mnemonic::Umwait,
            Mnemonic::Llwpcb,
            Mnemonic::Lwpins,
            Mnemonic::Lwpval,
        ],
    ),
];

/// Whether the form is skipped, and why.
pub fn skip(anatomy: &Anatomy, features: &Features) -> Option<Skip> {
    let sample = &anatomy.sample;
    if !features.missing(sample.cpuid_features()).is_empty() {
        return Some(Skip::Unsupported);
    }
    let info = sample.op_code();
    if info.is_privileged() || !info.cpl3() {
        return Some(Skip::Privileged);
    }
    let mnemonic = sample.mnemonic();
    if let Some((skip, _)) = BY_MNEMONIC.iter().find(|(_, list)| list.contains(&mnemonic)) {
        return Some(*skip);
    }
    if sample.is_call_far_indirect() || sample.is_jmp_far_indirect() {
        return Some(Skip::LeavesUserMode);
    }
    let kinds = info.op_kinds();
    if kinds.contains(&OpCodeOperandKind::mem_offs) {
        return Some(Skip::AbsoluteAddress);
    }
    // A stack segment that is not the system's own.
    if matches!(info.code(), Code::Lss_r16_m1616 | Code::Lss_r32_m1632 | Code::Lss_r64_m1664) {
        return Some(Skip::NeedsState);
    }
    let tiles = (0..sample.op_count()).any(|operand| sample.op_register(operand).is_tmm());
    let tile_features = [CpuidFeature::AMX_TILE, CpuidFeature::AMX_INT8, CpuidFeature::AMX_BF16];
    if tiles || sample.cpuid_features().iter().any(|feature| tile_features.contains(feature)) {
        return Some(Skip::NeedsState);
    }
    let control = (0..sample.op_count()).map(|operand| sample.op_register(operand));
    control
        .into_iter()
        .any(|register: Register| register.is_cr() || register.is_dr())
        .then_some(Skip::Privileged)
}
