//! Code that ring 0 would not survive, refused before it runs.
//!
//! The kernel module runs code in page tables of its own. An exception or interrupt ends it there,
//! and the processor's state is restored. This check finds the rest: instructions with a lasting
//! effect, or that do harm without a fault.
//!
//! It follows every direct branch, also into the middle of instructions, and the few register facts
//! that make some privileged instructions harmless. If an indirect branch is reachable, every
//! offset counts. Its limits: it trusts the program's own code around the snippet, and assumes that
//! memory areas and stack cannot be executed.

mod decode;
mod flow;
mod indirect_code;
mod instruction;
mod lists;
mod reason;
mod register_facts;
#[cfg(test)]
mod tests;

pub use reason::RefusalReason;

use cyclescope_code::asm::format_instruction;
use cyclescope_code::program::{LoopPlan, Program};
use cyclescope_core::error::RunError;
use flow::{CodeFlow, RefusedOffset};
use iced_x86::{Decoder, DecoderOptions};
use register_facts::RegisterFacts;
use std::fmt;

/// A piece of code that did not come from this library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JudgedPart {
    /// Code that runs before the first reading.
    Init,
    /// Measured code.
    Snippet,
    /// Code that runs after the last reading.
    Following,
}

impl JudgedPart {
    /// Name in messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            JudgedPart::Init => "init code",
            JudgedPart::Snippet => "snippet",
            JudgedPart::Following => "following code",
        }
    }
}

/// The first refused instruction of some code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeRefusal {
    /// The piece of code that contains it.
    pub part: JudgedPart,
    /// Its offset in that piece, in bytes.
    pub offset: usize,
    /// The instruction as Intel-syntax text; undecodable bytes as hexadecimal digits.
    pub instruction: String,
    /// Why it is refused.
    pub reason: RefusalReason,
    /// Whether only an indirect branch may lead to it.
    pub hidden: bool,
}

/// Properties of the machine that decide on refusals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RefusalRules {
    /// The machine has no second CPU, so that nothing can end an endless loop.
    pub lone_cpu: bool,
}

/// The judged code.
#[derive(Debug, Clone, Copy)]
pub struct JudgedCode<'a> {
    /// Code that runs before the first reading.
    pub init: &'a [u8],
    /// Measured code.
    pub snippet: &'a [u8],
    /// Number of consecutive copies of the snippet.
    pub copies: usize,
    /// The loop that they run in; `None` without a loop.
    pub looped: Option<LoopPlan>,
    /// Code that runs after the last reading.
    pub following: &'a [u8],
}

impl<'a> From<&'a Program> for JudgedCode<'a> {
    fn from(program: &'a Program) -> JudgedCode<'a> {
        JudgedCode {
            init: program.init(),
            snippet: program.snippet(),
            copies: program.copies(),
            looped: program.loop_plan(),
            following: program.following_code(),
        }
    }
}

/// Number of copies whose verdict holds for any number. Facts about ECX are the same from the
/// second copy on; facts that depend on it (XGETBV's result) from the third.
const DECISIVE_COPIES: usize = 4;

/// Checks whether code may run in ring 0; the error is the first refused instruction.
pub fn judge_code<'a>(code: impl Into<JudgedCode<'a>>, rules: RefusalRules) -> Result<(), CodeRefusal> {
    let code = code.into();
    let closed = CodeFlow::follow_paths(code.snippet, None, RegisterFacts::default()).is_closed();
    let copies = if closed { code.copies.min(DECISIVE_COPIES) } else { code.copies };
    code.judge_copies(
        rules,
        copies,
        code.copies.min(decode::LONGEST_INSTRUCTION.div_ceil(code.snippet.len().max(1)) + 1),
    )
}

impl JudgedCode<'_> {
    /// Follows the flow of `flowing` copies, and checks every offset of `looked_at` copies.
    fn judge_copies(&self, rules: RefusalRules, flowing: usize, looked_at: usize) -> Result<(), CodeRefusal> {
        let init = CodeFlow::follow_paths(self.init, None, RegisterFacts::default());
        let mut entry = init.facts_at_end();
        if let Some(counter) = self.looped.and_then(|looped| looped.counter()) {
            entry.forget_register(counter.number());
        }
        let body = self.snippet.repeat(flowing);
        let flows = [
            (JudgedPart::Init, init),
            (JudgedPart::Snippet, CodeFlow::follow_paths(&body, self.looped, entry)),
            // The last reading leaves its result in registers.
            (JudgedPart::Following, CodeFlow::follow_paths(self.following, None, RegisterFacts::default())),
        ];
        for (part, flow) in &flows {
            if let Some(at) = flow.find_refused_offset(rules.lone_cpu) {
                return Err(self.build_refusal(*part, at, false));
            }
        }
        if flows.iter().any(|(_, flow)| flow.has_indirect_branch()) {
            return self.judge_every_offset(looked_at);
        }
        Ok(())
    }

    fn judge_every_offset(&self, copies: usize) -> Result<(), CodeRefusal> {
        let body = self.snippet.repeat(copies);
        let pieces =
            [(JudgedPart::Init, self.init), (JudgedPart::Snippet, &body[..]), (JudgedPart::Following, self.following)];
        for (part, bytes) in pieces {
            if let Some(at) = indirect_code::find_hidden_refusal(bytes) {
                return Err(self.build_refusal(part, at, true));
            }
        }
        Ok(())
    }

    fn build_refusal(&self, part: JudgedPart, at: RefusedOffset, hidden: bool) -> CodeRefusal {
        let body = self.snippet.repeat(self.copies.min(decode::LONGEST_INSTRUCTION + 1));
        let (bytes, offset) = match part {
            JudgedPart::Init => (self.init, at.offset),
            JudgedPart::Snippet => (&body[..], at.offset % self.snippet.len().max(1)),
            JudgedPart::Following => (self.following, at.offset),
        };
        let rest = &bytes[offset..bytes.len().min(offset + decode::LONGEST_INSTRUCTION)];
        let decoded = Decoder::with_ip(64, rest, offset as u64, DecoderOptions::NO_INVALID_CHECK).decode();
        let instruction = match decoded.is_invalid() {
            true => rest.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" "),
            false => format_instruction(&decoded),
        };
        CodeRefusal { part, offset, instruction, reason: at.reason, hidden }
    }
}

impl CodeRefusal {
    /// What the user can do about it.
    pub(crate) fn remedy(&self) -> &'static str {
        match self.hidden {
            true => "avoid indirect branches and returns, or choose other constants, or measure it in user mode",
            false => self.reason.remedy(),
        }
    }

    /// The error of a run that did not begin.
    pub(crate) fn into_error(self) -> RunError {
        RunError::Refused {
            part: self.part.name(),
            offset: self.offset,
            why: self.reason.text(),
            remedy: self.remedy(),
            instruction: self.instruction,
            hidden: self.hidden,
        }
    }
}

impl fmt::Display for CodeRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.clone().into_error().fmt(f)
    }
}
