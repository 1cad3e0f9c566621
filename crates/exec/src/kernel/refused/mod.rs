//! Code that ring 0 would not survive, refused before it runs.
//!
//! The kernel module runs code in page tables of its own, where an exception or interrupt ends it and the
//! processor's state is restored. This check finds what that does not cover: instructions whose effect persists, or
//! that do harm without a fault. It follows every direct branch, into the middle of instructions too, and the few
//! register facts that make some privileged instructions harmless. If an indirect branch is reachable, every offset
//! counts. Its limits: it trusts the program's own code around the snippet, and that memory areas and stack cannot be
//! executed.

mod decode;
mod facts;
mod flow;
mod hidden;
mod instruction;
mod lists;
mod reason;
#[cfg(test)]
mod tests;

pub use reason::Reason;

use cyclescope_code::asm::text;
use cyclescope_code::program::Program;
use cyclescope_core::error::RunError;
use facts::{COUNTER, Facts};
use flow::{At, Flow};
use iced_x86::{Decoder, DecoderOptions};
use std::fmt;

/// A piece of code that was not made by this library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// What runs before the first reading.
    Init,
    /// What is measured.
    Snippet,
    /// What runs after the last reading.
    Following,
}

impl Part {
    /// Name in messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Part::Init => "init code",
            Part::Snippet => "snippet",
            Part::Following => "following code",
        }
    }
}

/// An instruction that code is refused for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Which piece of code it is in.
    pub part: Part,
    /// Where in that piece, in bytes.
    pub offset: usize,
    /// The instruction as Intel-syntax text; bytes that are none as hexadecimal digits.
    pub instruction: String,
    /// Why it is refused.
    pub reason: Reason,
    /// Whether only an indirect branch may lead to it.
    pub hidden: bool,
}

/// The surroundings of the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rules {
    /// There is no second CPU, so that nothing can end an endless loop.
    pub lone_cpu: bool,
}

/// The code that is judged.
#[derive(Debug, Clone, Copy)]
pub struct Judged<'a> {
    /// What runs before the first reading.
    pub init: &'a [u8],
    /// What is measured.
    pub snippet: &'a [u8],
    /// How many copies of it follow each other.
    pub copies: usize,
    /// Whether they run in a loop counted by R15.
    pub looped: bool,
    /// What runs after the last reading.
    pub following: &'a [u8],
}

impl<'a> From<&'a Program> for Judged<'a> {
    fn from(program: &'a Program) -> Judged<'a> {
        Judged {
            init: program.init(),
            snippet: program.snippet(),
            copies: program.copies(),
            looped: program.looped(),
            following: program.following(),
        }
    }
}

/// Number of copies whose verdict holds for any number: facts about ECX are the same from the second copy on, facts
/// that depend on it (XGETBV's result) from the third.
const ENOUGH: usize = 4;

/// Checks whether code may run in ring 0; the error is the first refused instruction.
pub fn judge<'a>(code: impl Into<Judged<'a>>, rules: Rules) -> Result<(), Refusal> {
    let code = code.into();
    let closed = Flow::through(code.snippet, false, Facts::default()).is_closed();
    let copies = if closed { code.copies.min(ENOUGH) } else { code.copies };
    code.judge(rules, copies, code.copies.min(decode::LONGEST.div_ceil(code.snippet.len().max(1)) + 1))
}

impl Judged<'_> {
    /// The check with the numbers of copies whose flow is followed, and of copies whose offsets are all checked.
    fn judge(&self, rules: Rules, flowing: usize, looked_at: usize) -> Result<(), Refusal> {
        let init = Flow::through(self.init, false, Facts::default());
        let mut entry = init.exit();
        if self.looped {
            entry.forget(COUNTER);
        }
        let body = self.snippet.repeat(flowing);
        let flows = [
            (Part::Init, init),
            (Part::Snippet, Flow::through(&body, self.looped, entry)),
            // The last reading leaves its result in registers.
            (Part::Following, Flow::through(self.following, false, Facts::default())),
        ];
        for (part, flow) in &flows {
            if let Some(at) = flow.refused(rules.lone_cpu) {
                return Err(self.refusal(*part, at, false));
            }
        }
        if flows.iter().any(|(_, flow)| flow.is_indirect()) {
            return self.judge_every_offset(looked_at);
        }
        Ok(())
    }

    fn judge_every_offset(&self, copies: usize) -> Result<(), Refusal> {
        let body = self.snippet.repeat(copies);
        let pieces = [(Part::Init, self.init), (Part::Snippet, &body[..]), (Part::Following, self.following)];
        for (part, bytes) in pieces {
            if let Some(at) = hidden::refused(bytes) {
                return Err(self.refusal(part, at, true));
            }
        }
        Ok(())
    }

    fn refusal(&self, part: Part, at: At, hidden: bool) -> Refusal {
        let body = self.snippet.repeat(self.copies.min(decode::LONGEST + 1));
        let (bytes, offset) = match part {
            Part::Init => (self.init, at.offset),
            Part::Snippet => (&body[..], at.offset % self.snippet.len().max(1)),
            Part::Following => (self.following, at.offset),
        };
        let rest = &bytes[offset..bytes.len().min(offset + decode::LONGEST)];
        let decoded = Decoder::with_ip(64, rest, offset as u64, DecoderOptions::NO_INVALID_CHECK).decode();
        let instruction = match decoded.is_invalid() {
            true => rest.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" "),
            false => text(&decoded),
        };
        Refusal { part, offset, instruction, reason: at.reason, hidden }
    }
}

impl Refusal {
    /// What the user can do about it.
    pub(crate) fn remedy(&self) -> &'static str {
        match self.hidden {
            true => {
                "avoid indirect branches and returns, or choose other constants, or measure it in user mode"
            }
            false => self.reason.remedy(),
        }
    }

    /// The failure of a run that did not begin.
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

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.clone().into_error().fmt(f)
    }
}
