//! Forms that are not tried, by a closed list of reasons.

use super::form_anatomy::{FormAnatomy, encode_instructions};
use super::privileged;
use cyclescope_code::asm::Listing;
use cyclescope_core::error::RunError;
use cyclescope_core::machine::features::CpuFeatures;
use cyclescope_exec::PrivilegeRing;
use cyclescope_exec::kernel::refusal::RefusalReason;
use iced_x86::{Code, CpuidFeature, Instruction, Mnemonic, OpCodeOperandKind};

/// Why a form is not tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SkipReason {
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
    /// Ring 0 would not survive it, or nothing would take back what it changes.
    RefusedInRing0(RefusalReason),
}

impl SkipReason {
    /// All reasons: what results call them, and what they mean.
    pub const ALL: [(&'static str, &'static str); 7] = [
        ("unsupported", "the CPU or the system lacks a feature"),
        ("privileged", "runs in ring 0 only"),
        ("leaves_user_mode", "calls the system or changes the code segment"),
        ("raises_exception", "raises an exception by definition"),
        ("absolute_address", "names an address, which programs do not know"),
        ("needs_state", "needs a processor state that is not set up"),
        ("refused_in_ring_0", "ring 0 would not survive it, or nothing would take back what it changes"),
    ];

    /// What results call it.
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

    /// The reason as a row has it: its code, and more where there is more to say.
    pub fn describe(self) -> String {
        match self {
            SkipReason::RefusedInRing0(reason) => join_reason(self.code(), reason.text()),
            _ => self.code().to_string(),
        }
    }
}

/// A reason with a text of its own behind its code.
pub(crate) fn join_reason(code: &str, text: &str) -> String {
    format!("{code}: {text}")
}

/// Why a form was skipped after all: it is undefined here, although CPUID has the features that it needs.
pub(crate) fn explain_undefined(anatomy: &FormAnatomy, error: &RunError) -> Option<String> {
    let instruction = match error {
        RunError::Fault { signal, instruction, .. } if *signal == "SIGILL" => instruction.as_deref()?,
        RunError::Exception { vector: UNDEFINED_VECTOR, instruction, .. } => instruction.as_deref()?,
        _ => return None,
    };
    let text = Listing::from_bytes(&encode_instructions(&[anatomy.sample])?).text();
    let mnemonic = text.split_whitespace().next()?;
    let own = instruction.starts_with(mnemonic) && instruction.ends_with("in the snippet");
    let what = "raises #UD on this processor, although CPUID has what it needs";
    own.then(|| join_reason(SkipReason::Unsupported.code(), what))
}

/// The vector of an undefined instruction.
const UNDEFINED_VECTOR: u8 = 6;

/// Instructions that are skipped for what they do, by mnemonic.
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
            // UMIP lets the kernel answer these, by an exception.
            Mnemonic::Sgdt,
            Mnemonic::Sidt,
            Mnemonic::Sldt,
            Mnemonic::Smsw,
            Mnemonic::Str,
        ],
    ),
    (
        SkipReason::RaisesException,
        &[Mnemonic::Ud0, Mnemonic::Ud1, Mnemonic::Ud2, Mnemonic::Int1, Mnemonic::Int3, Mnemonic::Into],
    ),
    (
        SkipReason::NeedsState,
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

/// Whether the form is skipped where code runs in this ring, and why.
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
        // Every gate ends the code there.
        Mnemonic::Int => return Some(SkipReason::RaisesException),
        // The frame or the far pointer that names a code segment.
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
    // A stack segment that is not the system's own, or memory below 4 GiB.
    use Code::{Clzerod, Clzerow, Lss_r16_m1616, Lss_r32_m1632, Lss_r64_m1664};
    if matches!(info.code(), Lss_r16_m1616 | Lss_r32_m1632 | Lss_r64_m1664 | Clzerow | Clzerod) {
        return Some(SkipReason::NeedsState);
    }
    let tiles = (0..sample.op_count()).any(|operand| sample.op_register(operand).is_tmm());
    let tile_features = [CpuidFeature::AMX_TILE, CpuidFeature::AMX_INT8, CpuidFeature::AMX_BF16];
    let needs = |feature: &CpuidFeature| tile_features.contains(feature);
    (tiles || sample.cpuid_features().iter().any(needs)).then_some(SkipReason::NeedsState)
}

fn skip_by_mnemonic(mnemonic: Mnemonic) -> Option<SkipReason> {
    SKIPPED_MNEMONICS.iter().find(|(_, list)| list.contains(&mnemonic)).map(|(skip, _)| *skip)
}

fn is_far(sample: &Instruction) -> bool {
    sample.is_call_far_indirect() || sample.is_jmp_far_indirect()
}
