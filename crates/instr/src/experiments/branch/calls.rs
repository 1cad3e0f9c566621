//! Calls and returns, in pairs.
//!
//! ```text
//!     jmp 1f
//! f:  ret             ; one for all calls, or several in turn
//! 1:  lea rcx, [f]    ; if a call goes through a register or memory
//!     mov [r14], rcx
//!     call f
//!     call f
//!     …
//! ```

use super::branch_body::{BODY_COPIES, BranchDescription, NearBranchBody, SPACINGS};
use crate::experiments::experiment::FormExperiment;
use cyclescope_code::asm::CodeMode;
use iced_x86::{Code, Instruction, MemoryOperand, OpKind, Register};

/// Numbers of functions that the calls alternate between, limited by the address registers.
const FUNCTION_COUNTS: [usize; 2] = [1, 4];
/// Registers for the functions' addresses.
const FUNCTION_REGISTERS: [Register; 4] = [Register::RCX, Register::RSI, Register::RDI, Register::RDX];

/// The arrangement of a body's calls.
#[derive(Debug, Clone, Copy)]
struct CallArrangement {
    /// Functions that the calls alternate between.
    functions: usize,
    /// Calls in the body.
    copies: usize,
    /// Minimum bytes from one call to the next.
    bytes: usize,
}

/// Experiments of a call or a return with its counterpart.
pub(super) fn plan_call_pairs(sample: &Instruction) -> Vec<FormExperiment> {
    let mode = CodeMode::from_instruction(sample);
    let Ok(plain) = Instruction::with_branch(Code::Call_rel32_64, 0) else { return Vec::new() };
    let plain = mode.convert_own(&plain);
    // RET imm16 frees nothing: the call pushed no arguments.
    let (call, back) = match sample.code() {
        Code::Retnq | Code::Retnd => (plain, Some(*sample)),
        Code::Retnq_imm16 | Code::Retnd_imm16 => (plain, Instruction::with1(sample.code(), 0).ok()),
        _ => (*sample, Some(Instruction::with(return_code(mode)))),
    };
    let Some(back) = back else { return Vec::new() };
    let pair = if back.op_count() == 0 { "call and ret" } else { "call and ret 0" };
    let mut found = Vec::new();
    for functions in FUNCTION_COUNTS {
        for bytes in [0].into_iter().chain(SPACINGS) {
            for copies in BODY_COPIES {
                let apart = if bytes == 0 { "adjacent".to_string() } else { format!("every {bytes} bytes") };
                let to = if functions == 1 { "one function".to_string() } else { format!("{functions} functions") };
                let recipe = format!("{copies} pairs of {pair} in a loop, {apart}, {to}; the cost is that of a pair");
                let about = BranchDescription::new(recipe, None).mark_burdened();
                found.extend(
                    build_call_body(call, back, CallArrangement { functions, copies, bytes })
                        .map(|body| about.into_experiment(body, copies)),
                );
            }
        }
    }
    found
}

/// The return of a mode.
fn return_code(mode: CodeMode) -> Code {
    match mode {
        CodeMode::Bits64 => Code::Retnq,
        CodeMode::Bits32 => Code::Retnd,
    }
}

fn build_call_body(call: Instruction, back: Instruction, arrangement: CallArrangement) -> Option<NearBranchBody> {
    let CallArrangement { functions, copies, bytes } = arrangement;
    let mode = CodeMode::from_instruction(&call);
    let over = Instruction::with_branch(Code::Jmp_rel32_64, 0).ok()?;
    let mut entries = Vec::new();
    // The functions, and a jump around them. The jump's length is known once it is encoded.
    let mut body = NearBranchBody::new(mode);
    body.push_branch(over, 0)?;
    for _ in 0..functions {
        entries.push(body.len());
        body.push_instruction(back)?;
        body.pad_to(body.len().next_multiple_of(16));
    }
    let end = body.len();
    let mut around = NearBranchBody::new(mode);
    around.push_branch(over, end)?;
    body.period[..around.len()].copy_from_slice(&around.period);
    let in_memory = call.op_kind(0) == OpKind::Memory;
    let place = |function: usize| MemoryOperand::with_base_displ(Register::R14, 8 * function as i64);
    if call.op_kind(0) != mode.branch_kind() {
        for (function, entry) in entries.iter().enumerate() {
            body.push_address(FUNCTION_REGISTERS[function], *entry)?;
            if in_memory {
                body.push_instruction(
                    Instruction::with2(Code::Mov_rm64_r64, place(function), FUNCTION_REGISTERS[function]).ok()?,
                )?;
            }
        }
    }
    for copy in 0..copies {
        let (function, start) = (copy % functions, body.len());
        match call.op_kind(0) {
            kind if kind == mode.branch_kind() => body.push_branch(call, entries[function])?,
            OpKind::Memory => body.push_instruction(Instruction::with1(call.code(), place(function)).ok()?)?,
            _ => body
                .push_instruction(Instruction::with1(call.code(), mode.register(FUNCTION_REGISTERS[function])).ok()?)?,
        }
        // The function returns here, so these NOPs are executed.
        body.pad_to(start + bytes);
    }
    Some(body)
}
