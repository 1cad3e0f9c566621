//! Fault reports: the instruction and the program that faulted.

use super::layout::Layout;
use cyclescope_code::program::Program;
use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter, Mnemonic};

/// Details of a fault in addition to [`cyclescope_core::error::RunError::Fault`] or, in ring 0,
/// [`cyclescope_core::error::RunError::Exception`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaultReport {
    /// The signal's usual name. Empty in ring 0, which has no signals: see the exception's name in
    /// `RunError::Exception`.
    pub signal: &'static str,
    /// The signal's `si_code`; in ring 0 the vector.
    pub code: i32,
    /// The accessed address, if the processor reports it; otherwise the instruction's own.
    pub address: u64,
    /// The instruction pointer that the processor saved. For some exceptions it lies after the
    /// instruction.
    pub rip: u64,
    /// The number of the refused system call; always `None` in ring 0.
    pub system_call: Option<i32>,
    /// The program that faulted, by its index in the batch; `None` if control had left every
    /// program.
    pub program: Option<usize>,
    /// The offset of the instruction in that program, in bytes; `None` if `program` is.
    pub offset: Option<usize>,
    /// The instruction as text, with its place; `None` if `program` is.
    pub instruction: Option<String>,
}

/// Position of the saved instruction pointer relative to the instruction, by the kind of exception.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SavedIpPosition {
    /// At the instruction: a fault (Intel SDM vol. 3A, 6.5; AMD APM vol. 2, 8.1).
    AtInstruction,
    /// After the instruction: a trap such as INT3, INT n and a single step, and a refused system
    /// call.
    Behind,
    /// INT1, the debug exception other than a single step.
    ///
    /// Both manuals call it a trap (Intel SDM vol. 2, INT1; AMD APM vol. 3, INT1), but a guest of
    /// KVM on Zen 5 (family 26, model 2) finds the address of INT1 itself. Only the code at the
    /// saved address shows what the machine does.
    AroundInt1,
}

/// Finds the program in which an exception happened, the start of its code, and the start of the
/// instruction that raised it.
///
/// `at` is the saved instruction pointer; it and both starts are offsets in the arena. `None` if
/// control had left every program.
///
/// If an INT1 lies on each side of the saved instruction pointer, the first one raised the
/// exception: control reaches the second only through it. A jump between the two is not seen.
pub(super) fn locate_fault(
    at: usize,
    saved: SavedIpPosition,
    programs: &[Program],
    layouts: &[Layout],
) -> Option<(usize, u32, usize)> {
    let inside = |byte: usize| {
        layouts.iter().flat_map(|layout| &layout.code).find_map(|place| {
            let offset = byte.checked_sub(place.offset as usize)?;
            (offset < programs[place.program].len()).then_some((place.program, place.offset, offset))
        })
    };
    let this = || inside(at);
    let previous = || {
        let (program, code, offset) = inside(at.checked_sub(1)?)?;
        Some((program, code, instruction_before(&programs[program], offset + 1)))
    };
    let is_int1 = |(program, _, offset): &(usize, u32, usize)| {
        let code = &programs[*program].code()[*offset..];
        let bits = programs[*program].mode().bits();
        Decoder::new(bits, code, DecoderOptions::NONE).decode().mnemonic() == Mnemonic::Int1
    };
    let (program, code, offset) = match saved {
        SavedIpPosition::AtInstruction => this(),
        SavedIpPosition::Behind => previous(),
        SavedIpPosition::AroundInt1 => previous().filter(is_int1).or_else(|| this().filter(is_int1)).or_else(previous),
    }?;
    Some((program, code, code as usize + offset))
}

/// Finds the part of a program around an offset: its start and its name.
fn find_program_part(program: &Program, offset: usize) -> (usize, &'static str) {
    let body = program.body_range();
    let copies = body.start + program.snippet().len() * program.copies();
    if offset >= copies {
        (copies, "after the snippet")
    } else if offset >= body.start {
        let copy = (offset - body.start) / program.snippet().len();
        (body.start + copy * program.snippet().len(), "in the snippet")
    } else {
        (0, "before the snippet")
    }
}

/// The start of the instruction that ends at an offset.
fn instruction_before(program: &Program, end: usize) -> usize {
    let (start, _) = find_program_part(program, end - 1);
    let mut decoder = Decoder::new(program.mode().bits(), &program.code()[start..], DecoderOptions::NONE);
    while decoder.can_decode() {
        let at = start + decoder.position();
        let instruction = decoder.decode();
        if at + instruction.len() >= end {
            return at;
        }
    }
    end - 1
}

/// The instruction at an offset in a program, as text, with a remark and its place.
pub(super) fn describe_instruction(program: &Program, offset: usize, more: &str) -> Option<String> {
    let (start, called) = find_program_part(program, offset);
    let bytes = program.code().get(offset..)?;
    let mut decoder = Decoder::with_ip(program.mode().bits(), bytes, (offset - start) as u64, DecoderOptions::NONE);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PlacedProgram;
    use cyclescope_code::clock::Clock;
    use cyclescope_code::program::ProgramRecipe;

    /// The place of a program in the arena.
    const PLACE: usize = 4096;

    /// The offset in the snippet of the instruction that is reported for an address saved `at`
    /// bytes after its start.
    fn named(snippet: &[u8], at: usize, saved: SavedIpPosition) -> usize {
        let clock = Clock::find_named("lfence-rdtsc-lfence").unwrap();
        let program = ProgramRecipe { snippet, copies: 2, ..ProgramRecipe::empty(clock) }.build();
        let body = PLACE + program.body_range().start;
        let code = vec![PlacedProgram { program: 0, offset: PLACE as u32 }];
        let layouts = [Layout { code, round: Vec::new(), data: Default::default(), seed: 0 }];
        let (program, place, start) = locate_fault(body + at, saved, &[program], &layouts).unwrap();
        assert_eq!((program, place as usize), (0, PLACE));
        start - body
    }

    #[test]
    fn int1_is_named_wherever_its_address_was_saved() {
        let both = |snippet: &[u8], this, next| [this, next].map(|at| named(snippet, at, SavedIpPosition::AroundInt1));
        // nop; int1; nop
        assert_eq!(both(&[0x90, 0xf1, 0x90], 1, 2), [1, 1]);
        // nop; int1: the next instruction belongs to the next copy.
        assert_eq!(both(&[0x90, 0xf1], 1, 2), [1, 1]);
        // nop; 66 int1; ud2
        assert_eq!(both(&[0x90, 0x66, 0xf1, 0x0f, 0x0b], 1, 3), [1, 1]);
        // int1; int1; nop: control reaches the first one first.
        assert_eq!(both(&[0xf1, 0xf1, 0x90], 0, 1), [0, 0]);
        // mov al, 0xf1; int1: the byte before is not an instruction.
        assert_eq!(both(&[0xb0, 0xf1, 0xf1], 2, 3), [2, 2]);
        // int1; mov al, 0xf1
        assert_eq!(both(&[0xf1, 0xb0, 0xf1], 0, 1), [0, 0]);
        // Without an INT1 it is a trap, as in the manuals.
        assert_eq!(named(&[0x90, 0x31, 0xc0], 1, SavedIpPosition::AroundInt1), 0);
    }

    #[test]
    fn traps_blame_the_previous_instruction_and_faults_the_one_at_the_address() {
        // nop; int3; nop
        assert_eq!(named(&[0x90, 0xcc, 0x90], 2, SavedIpPosition::Behind), 1);
        // mov eax, 4; syscall
        assert_eq!(named(&[0xb8, 4, 0, 0, 0, 0x0f, 0x05], 7, SavedIpPosition::Behind), 5);
        // nop; int1: a single step that ends before INT1 is the step of the NOP.
        assert_eq!(named(&[0x90, 0xf1], 1, SavedIpPosition::Behind), 0);
        // int1; ud2: a fault after an INT1 that something jumped over.
        assert_eq!(named(&[0xf1, 0x0f, 0x0b], 1, SavedIpPosition::AtInstruction), 1);
    }
}
