//! Reasons to skip a form: a closed list.

use super::form_anatomy::FormAnatomy;
use super::privileged;
use cyclescope_code::asm::{CodeMode, Listing};
use cyclescope_core::error::RunError;
use cyclescope_core::machine::features::CpuFeatures;
use cyclescope_exec::PrivilegeRing;
use cyclescope_exec::kernel::refusal::RefusalReason;
use iced_x86::{Code, CpuidFeature, FlowControl, Instruction, Mnemonic, OpCodeOperandKind, OpKind};

/// Why a form is skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SkipReason {
    /// The CPU or the system lacks a required feature.
    Unsupported,
    /// It runs only in ring 0.
    Privileged,
    /// It calls the system or changes the privilege level or code segment.
    LeavesUserMode,
    /// It raises an exception by definition.
    RaisesException,
    /// Its address is a 64-bit constant, and programs don't know addresses.
    AbsoluteAddress,
    /// It needs a processor state that programs don't set up.
    NeedsState,
    /// Ring 0 would not survive it, or its changes could not be undone.
    RefusedInRing0(RefusalReason),
}

impl SkipReason {
    /// The code and meaning of each reason.
    pub const ALL: [(&'static str, &'static str); 7] = [
        ("unsupported", "the CPU or the system lacks a feature"),
        ("privileged", "runs in ring 0 only"),
        ("leaves_user_mode", "calls the system or changes the code segment"),
        ("raises_exception", "raises an exception by definition"),
        ("absolute_address", "names an address, which programs do not know"),
        ("needs_state", "needs a processor state that is not set up"),
        ("refused_in_ring_0", "ring 0 would not survive it, or nothing would take back what it changes"),
    ];

    /// The reason's code in results.
    pub fn code(self) -> &'static str {
        let index = match self {
            SkipReason::Unsupported => 0,
            SkipReason::Privileged => 1,
            SkipReason::LeavesUserMode => 2,
            SkipReason::RaisesException => 3,
            SkipReason::AbsoluteAddress => 4,
            SkipReason::NeedsState => 5,
            SkipReason::RefusedInRing0(_) => 6,
        };
        SkipReason::ALL[index].0
    }

    /// The reason as shown in a row: its code, with details if available.
    pub fn describe(self) -> String {
        match self {
            SkipReason::RefusedInRing0(reason) => join_reason(self.code(), reason.text()),
            _ => self.code().to_string(),
        }
    }
}

/// Joins a code and details.
pub(crate) fn join_reason(code: &str, text: &str) -> String {
    format!("{code}: {text}")
}

/// Why a form is skipped after a trial: it raises #UD although CPUID has its features.
pub(crate) fn explain_undefined(anatomy: &FormAnatomy, error: &RunError) -> Option<String> {
    let instruction = match error {
        RunError::Fault { signal, instruction, .. } if *signal == "SIGILL" => instruction.as_deref()?,
        RunError::Exception { vector: UNDEFINED_VECTOR, instruction, .. } => instruction.as_deref()?,
        _ => return None,
    };
    let text = Listing::from_code(&anatomy.encode(&[anatomy.sample])?, anatomy.mode()).text();
    let mnemonic = text.split_whitespace().next()?;
    let own = instruction.starts_with(mnemonic) && instruction.ends_with("in the snippet");
    let what = "raises #UD on this processor, although CPUID has what it needs";
    own.then(|| join_reason(SkipReason::Unsupported.code(), what))
}

/// Vector of the invalid-opcode exception, #UD.
const UNDEFINED_VECTOR: u8 = 6;

/// Mnemonics that are skipped because of their effect.
const SKIPPED_MNEMONICS: &[(SkipReason, &[Mnemonic])] = &[
    (
        SkipReason::LeavesUserMode,
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
            // With UMIP, these raise an exception and the kernel emulates them.
            Mnemonic::Sgdt,
            Mnemonic::Sidt,
            Mnemonic::Sldt,
            Mnemonic::Smsw,
            Mnemonic::Str,
        ],
    ),
    (SkipReason::RaisesException, &[Mnemonic::Ud0, Mnemonic::Ud1, Mnemonic::Ud2, Mnemonic::Int1, Mnemonic::Int3]),
    (
        SkipReason::NeedsState,
        &[
            // Needs a transaction, shadow stack, configured tile, loaded key, or permission to read
            // counters.
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

/// Why the form is skipped in this ring, if it is.
pub fn find_skip(anatomy: &FormAnatomy, features: &CpuFeatures, ring: PrivilegeRing) -> Option<SkipReason> {
    let sample = &anatomy.sample;
    if !features.find_missing(sample.cpuid_features()).is_empty() {
        return Some(SkipReason::Unsupported);
    }
    let own = if ring == PrivilegeRing::Zero { skip_in_ring_0(anatomy) } else { skip_in_user_mode(sample) };
    own.or_else(|| skip_in_any_mode(sample))
}

fn skip_in_user_mode(sample: &Instruction) -> Option<SkipReason> {
    if privileged::is_privileged(sample) {
        return Some(SkipReason::Privileged);
    }
    skip_by_mnemonic(sample.mnemonic()).or_else(|| is_far(sample).then_some(SkipReason::LeavesUserMode))
}

fn skip_in_ring_0(anatomy: &FormAnatomy) -> Option<SkipReason> {
    let sample = &anatomy.sample;
    let mnemonic = sample.mnemonic();
    match mnemonic {
        // Every gate ends the code.
        Mnemonic::Int => return Some(SkipReason::RaisesException),
        // Needs a frame or far pointer with a code segment.
        Mnemonic::Iret | Mnemonic::Iretd | Mnemonic::Iretq | Mnemonic::Retf => {
            return Some(SkipReason::NeedsState);
        }
        _ if is_far(sample) => return Some(SkipReason::NeedsState),
        _ => {}
    }
    let refused = || privileged::find_refusal(anatomy).map(SkipReason::RefusedInRing0);
    let waits = || skip_by_mnemonic(mnemonic).filter(|_| !privileged::is_user_restricted(mnemonic));
    refused().or_else(waits)
}

fn skip_in_any_mode(sample: &Instruction) -> Option<SkipReason> {
    let info = sample.op_code();
    if info.op_kinds().contains(&OpCodeOperandKind::mem_offs) {
        return Some(SkipReason::AbsoluteAddress);
    }
    // Needs a stack segment other than the system's, or memory below 4 GiB or 64 KiB.
    use Code::{Clzerod, Clzerow, Lss_r16_m1616, Lss_r32_m1632, Lss_r64_m1664};
    let unset = match CodeMode::from_instruction(sample) {
        CodeMode::Bits64 => {
            matches!(info.code(), Lss_r16_m1616 | Lss_r32_m1632 | Lss_r64_m1664 | Clzerow | Clzerod)
        }
        CodeMode::Bits32 => info.code() == Clzerow || is_short_jump_target(sample),
    };
    if unset {
        return Some(SkipReason::NeedsState);
    }
    let tiles = (0..sample.op_count()).any(|operand| sample.op_register(operand).is_tmm());
    let tile_features = [CpuidFeature::AMX_TILE, CpuidFeature::AMX_INT8, CpuidFeature::AMX_BF16];
    let needs = |feature: &CpuidFeature| tile_features.contains(feature);
    (tiles || sample.cpuid_features().iter().any(needs)).then_some(SkipReason::NeedsState)
}

/// Whether a near branch leads to a 16-bit address, where no code is.
fn is_short_jump_target(sample: &Instruction) -> bool {
    let is_branch = sample.flow_control() != FlowControl::Next && sample.op_kind(0) != OpKind::NearBranch32;
    is_branch && sample.op_code().operand_size() == 16
}

fn skip_by_mnemonic(mnemonic: Mnemonic) -> Option<SkipReason> {
    SKIPPED_MNEMONICS.iter().find(|(_, list)| list.contains(&mnemonic)).map(|(skip, _)| *skip)
}

fn is_far(sample: &Instruction) -> bool {
    sample.is_call_far_indirect() || sample.is_jmp_far_indirect()
}
