//! Faults: which instruction of which program it was.

use super::Layout;
use crate::program::Program;
use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter};

/// A fault in full: what [`crate::error::RunError::Fault`] says, and where it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultReport {
    /// The signal's usual name; in ring 0 the mnemonic of the exception.
    pub signal: &'static str,
    /// The signal's `si_code`; in ring 0 the vector.
    pub code: i32,
    /// The address that was accessed, if that is told, else that of the instruction.
    pub address: u64,
    /// The instruction pointer.
    pub rip: u64,
    /// The number of the system call that was refused.
    pub system_call: Option<i32>,
    /// The program that it happened in, by its index in the batch; none if control had left every program.
    pub program: Option<usize>,
    /// The offset of the instruction in that program.
    pub offset: Option<usize>,
    /// The instruction as text, with its place.
    pub instruction: Option<String>,
}

/// The program at an offset in the arena, where its code starts, and where the guilty instruction starts: at that
/// offset, or before it where the processor tells the place after the instruction.
pub(super) fn find(
    at: usize,
    after: bool,
    programs: &[Program],
    layouts: &[Layout],
) -> Option<(usize, u32, usize)> {
    let last_byte = if after { at.checked_sub(1)? } else { at };
    for layout in layouts {
        for place in &layout.code {
            let program = &programs[place.program];
            let code = place.offset as usize;
            let inside = last_byte.checked_sub(code).filter(|offset| *offset < program.len());
            if let Some(offset) = inside {
                let start = if after { instruction_before(program, offset + 1) } else { offset };
                return Some((place.program, place.offset, code + start));
            }
        }
    }
    None
}

/// Where the part of a program around an offset starts, and how it is called.
fn part(program: &Program, offset: usize) -> (usize, &'static str) {
    let body = program.body();
    let copies = body.start + program.snippet().len() * program.copies();
    if offset >= copies {
        (copies, "behind the snippet")
    } else if offset >= body.start {
        let copy = (offset - body.start) / program.snippet().len();
        (body.start + copy * program.snippet().len(), "in the snippet")
    } else {
        (0, "before the snippet")
    }
}

/// The start of the instruction that ends at an offset.
fn instruction_before(program: &Program, end: usize) -> usize {
    let (start, _) = part(program, end - 1);
    let mut decoder = Decoder::new(64, &program.code()[start..], DecoderOptions::NONE);
    while decoder.can_decode() {
        let at = start + decoder.position();
        let instruction = decoder.decode();
        if at + instruction.len() >= end {
            return at;
        }
    }
    end - 1
}

/// The instruction at an offset in a program, as text, with more to say of it and its place.
pub(super) fn describe(program: &Program, offset: usize, more: &str) -> Option<String> {
    let (start, called) = part(program, offset);
    let bytes = program.code().get(offset..)?;
    let mut decoder = Decoder::with_ip(64, bytes, (offset - start) as u64, DecoderOptions::NONE);
    let instruction = decoder.decode();
    let mut text = String::new();
    if instruction.is_invalid() {
        text.push_str("invalid bytes");
    } else {
        let mut formatter = IntelFormatter::new();
        formatter.options_mut().set_hex_prefix("0x");
        formatter.options_mut().set_hex_suffix("");
        formatter.options_mut().set_space_after_operand_separator(true);
        formatter.format(&instruction, &mut text);
    }
    Some(format!("{text}{more} at +{:#x} {called}", offset - start))
}
