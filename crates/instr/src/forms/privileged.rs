//! Instructions that need ring 0, and instructions that ring 0 refuses.

use super::form_anatomy::FormAnatomy;
use super::setting_code;
use cyclescope_code::program::LoopPlan;
use cyclescope_exec::kernel::refusal::{JudgedCode, RefusalReason, RefusalRules, judge_code};
use iced_x86::{Instruction, Mnemonic, OpKind};

/// Instructions that always run in ring 0, but in user mode only if the system permits it.
const USER_RESTRICTED: [Mnemonic; 6] =
    [Mnemonic::Sgdt, Mnemonic::Sidt, Mnemonic::Sldt, Mnemonic::Smsw, Mnemonic::Str, Mnemonic::Rdpmc];

/// Copies to check: enough for all effects of a program's first copies.
const CHECKED_COPIES: usize = 4;

/// Whether an instruction runs only in ring 0.
pub(crate) fn is_privileged(sample: &Instruction) -> bool {
    let info = sample.op_code();
    let registers = (0..sample.op_count()).map(|operand| sample.op_register(operand));
    let control = registers.into_iter().any(|register| register.is_cr() || register.is_dr());
    info.is_privileged() || !info.cpl3() || control
}

/// Whether an unprivileged instruction is skipped in user mode but not in ring 0.
pub(crate) fn is_user_restricted(mnemonic: Mnemonic) -> bool {
    USER_RESTRICTED.contains(&mnemonic)
}

/// Why ring 0 refuses an instance of a form. `None` if it runs.
pub(crate) fn find_refusal(anatomy: &FormAnatomy) -> Option<RefusalReason> {
    // The program decides where a branch leads.
    if is_branch(&anatomy.sample) {
        return None;
    }
    let init = setting_code::build_setting_code(anatomy)?;
    let snippet = anatomy.encode(&[anatomy.sample])?;
    check_ring_0(&init, &snippet, CHECKED_COPIES)
}

/// Why ring 0 refuses `copies` copies of a snippet. `None` if they run.
pub(crate) fn check_ring_0(init: &[u8], snippet: &[u8], copies: usize) -> Option<RefusalReason> {
    let judged = JudgedCode { init, snippet, copies, looped: Some(LoopPlan::PLAIN), following: &[] };
    judge_code(judged, RefusalRules::default()).err().map(|refusal| refusal.reason)
}

/// Whether the instruction is a near branch.
pub(crate) fn is_branch(sample: &Instruction) -> bool {
    let near = [OpKind::NearBranch16, OpKind::NearBranch32, OpKind::NearBranch64];
    near.contains(&sample.op0_kind())
        || sample.is_jmp_near_indirect()
        || sample.is_call_near_indirect()
        || sample.mnemonic() == Mnemonic::Ret
}
