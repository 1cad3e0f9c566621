//! Forms that are not tried, by a closed list of reasons.

use super::operands::{Anatomy, encode};
use super::privileged;
use cyclescope_code::asm::Listing;
use cyclescope_core::error::RunError;
use cyclescope_core::machine::features::Features;
use cyclescope_exec::Ring;
use cyclescope_exec::kernel::refused::Reason;
use iced_x86::{Code, CpuidFeature, Instruction, Mnemonic, OpCodeOperandKind};

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
    /// Ring 0 would not survive it, or nothing would take back what it changes.
    RefusedInRing0(Reason),
}

impl Skip {
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
            Skip::Unsupported => 0,
            Skip::Privileged => 1,
            Skip::LeavesUserMode => 2,
            Skip::RaisesException => 3,
            Skip::AbsoluteAddress => 4,
            Skip::NeedsState => 5,
            Skip::RefusedInRing0(_) => 6,
        };
        Skip::ALL[index].0
    }

    /// The reason as a row has it: its code, and more where there is more to say.
    pub fn reason(self) -> String {
        match self {
            Skip::RefusedInRing0(reason) => reason_with(self.code(), reason.text()),
            _ => self.code().to_string(),
        }
    }
}

/// A reason with a text of its own behind its code.
pub(crate) fn reason_with(code: &str, text: &str) -> String {
    format!("{code}: {text}")
}

/// Why a form was skipped after all: it is undefined here, although CPUID has the features that it needs.
pub(crate) fn undefined(anatomy: &Anatomy, error: &RunError) -> Option<String> {
    let instruction = match error {
        RunError::Fault { signal, instruction, .. } if *signal == "SIGILL" => instruction.as_deref()?,
        RunError::Exception { vector: UNDEFINED, instruction, .. } => instruction.as_deref()?,
        _ => return None,
    };
    let text = Listing::from_bytes(&encode(&[anatomy.sample])?).text();
    let mnemonic = text.split_whitespace().next()?;
    let own = instruction.starts_with(mnemonic) && instruction.ends_with("in the snippet");
    let what = "raises #UD on this processor, although CPUID has what it needs";
    own.then(|| reason_with(Skip::Unsupported.code(), what))
}

/// The vector of an undefined instruction.
const UNDEFINED: u8 = 6;

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

/// Whether the form is skipped where code runs in this ring, and why.
pub fn skip(anatomy: &Anatomy, features: &Features, ring: Ring) -> Option<Skip> {
    let sample = &anatomy.sample;
    if !features.missing(sample.cpuid_features()).is_empty() {
        return Some(Skip::Unsupported);
    }
    let own = if ring == Ring::Zero { in_ring_0(anatomy) } else { in_user_mode(sample) };
    own.or_else(|| in_any_mode(sample))
}

fn in_user_mode(sample: &Instruction) -> Option<Skip> {
    if privileged::is_privileged(sample) {
        return Some(Skip::Privileged);
    }
    listed(sample.mnemonic()).or_else(|| is_far(sample).then_some(Skip::LeavesUserMode))
}

fn in_ring_0(anatomy: &Anatomy) -> Option<Skip> {
    let sample = &anatomy.sample;
    let mnemonic = sample.mnemonic();
    match mnemonic {
        // Every gate ends the code there.
        Mnemonic::Int => return Some(Skip::RaisesException),
        // The frame or the far pointer that names a code segment.
        Mnemonic::Iret | Mnemonic::Iretd | Mnemonic::Iretq | Mnemonic::Retf => return Some(Skip::NeedsState),
        _ if is_far(sample) => return Some(Skip::NeedsState),
        _ => {}
    }
    let refused = || privileged::refusal(anatomy).map(Skip::RefusedInRing0);
    let waits = || listed(mnemonic).filter(|_| !privileged::is_measured(mnemonic));
    refused().or_else(waits)
}

fn in_any_mode(sample: &Instruction) -> Option<Skip> {
    let info = sample.op_code();
    if info.op_kinds().contains(&OpCodeOperandKind::mem_offs) {
        return Some(Skip::AbsoluteAddress);
    }
    // A stack segment that is not the system's own, or memory below 4 GiB.
    use Code::{Clzerod, Clzerow, Lss_r16_m1616, Lss_r32_m1632, Lss_r64_m1664};
    if matches!(info.code(), Lss_r16_m1616 | Lss_r32_m1632 | Lss_r64_m1664 | Clzerow | Clzerod) {
        return Some(Skip::NeedsState);
    }
    let tiles = (0..sample.op_count()).any(|operand| sample.op_register(operand).is_tmm());
    let tile_features = [CpuidFeature::AMX_TILE, CpuidFeature::AMX_INT8, CpuidFeature::AMX_BF16];
    let needs = |feature: &CpuidFeature| tile_features.contains(feature);
    (tiles || sample.cpuid_features().iter().any(needs)).then_some(Skip::NeedsState)
}

fn listed(mnemonic: Mnemonic) -> Option<Skip> {
    BY_MNEMONIC.iter().find(|(_, list)| list.contains(&mnemonic)).map(|(skip, _)| *skip)
}

fn is_far(sample: &Instruction) -> bool {
    sample.is_call_far_indirect() || sample.is_jmp_far_indirect()
}
