//! Regions whose listing has the bytes: the bytes are the code, and the text must agree.

use super::dialect::CodeDialect;
use super::functions::{
    CALL_BYTES, RETURN_DROPPED, call_function, is_padding_after_end, is_plain_return, middle_return_error,
};
use super::listing_line::CodeLine;
use super::other_machine::{NARROW_CODE, NARROW_PUSH, is_narrow_push};
use super::pasted_text::{DroppedLine, RegionCode};
use super::runtime_text::mark_hexadecimal;
use super::text_words::position_in;
use crate::asm::{self, CodeMode, Listing, TextPosition};
use cyclescope_core::error::BadSnippet;
use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind, Register};

/// Longest branch with an 8-bit displacement, with a prefix.
const SHORT_BRANCH_BYTES: usize = 3;

/// An instruction of a listing with its place in the text.
#[derive(Debug, Clone)]
pub(super) struct PlacedCode<'a> {
    /// Its line, from 1.
    pub(super) line: u32,
    /// The whole line.
    pub(super) whole: &'a str,
    /// What the line says.
    pub(super) code: CodeLine<'a>,
}

impl PlacedCode<'_> {
    /// Where its text begins.
    pub(super) fn at(&self) -> TextPosition {
        position_in(self.line, self.whole, self.code.text)
    }

    /// Its text, with a prefix from the line before.
    pub(super) fn full_text(&self) -> String {
        match self.code.prefix {
            Some(prefix) => format!("{prefix} {}", self.code.text),
            None => self.code.text.to_string(),
        }
    }
}

/// A line with its decoded instructions.
struct DecodedLine<'a> {
    placed: &'a PlacedCode<'a>,
    instructions: Vec<Instruction>,
}

/// Builds the code of a region from its bytes.
pub(super) fn build_from_bytes(
    lines: &[PlacedCode],
    dialect: CodeDialect,
    dropped: &mut Vec<DroppedLine>,
) -> Result<RegionCode, BadSnippet> {
    check_addresses(lines)?;
    let mut decoded = decode_lines(lines, dialect)?;
    for line in &decoded {
        check_text(line, dialect)?;
    }
    let called_for = find_early_return(&decoded);
    drop_end(&mut decoded, called_for.is_some(), dropped);
    check_flow(&decoded, called_for.is_some())?;
    let start = decoded.first().map_or(0, |line| line.instructions[0].ip());
    let bytes: Vec<u8> = decoded.iter().flat_map(|line| line.placed.code.bytes.iter().copied()).collect();
    let (bytes, before) = if called_for.is_some() { (call_function(&bytes), CALL_BYTES as u64) } else { (bytes, 0) };
    let place = |line: &DecodedLine| (before + line.instructions[0].ip().wrapping_sub(start), line.placed.at());
    let mut places: Vec<(u64, TextPosition)> = decoded.iter().map(place).collect();
    if let Some(first) = places.first_mut() {
        first.0 = 0;
    }
    let listing = Listing::from_parts(bytes, &places, dialect.mode);
    let text = listing.text();
    let address = lines.first().and_then(|line| line.code.address).map(|address| address.wrapping_sub(before));
    Ok(RegionCode { listing, text, address, called_for, ..RegionCode::default() })
}

/// Fails if bytes are missing between two lines.
fn check_addresses(lines: &[PlacedCode]) -> Result<(), BadSnippet> {
    for pair in lines.windows(2) {
        let (Some(address), Some(next)) = (pair[0].code.address, pair[1].code.address) else { continue };
        let end = address.wrapping_add(pair[0].code.bytes.len() as u64);
        if end != next {
            let message = format!("line {} ends at {end:#x}, and this one is at {next:#x}", pair[0].line);
            let remedy = "paste the code without gaps, or each part on its own";
            return Err(pair[1].at().error_expecting(message, remedy));
        }
    }
    Ok(())
}

fn decode_lines<'a>(lines: &'a [PlacedCode<'a>], dialect: CodeDialect) -> Result<Vec<DecodedLine<'a>>, BadSnippet> {
    let mut decoded = Vec::with_capacity(lines.len());
    let mut ip = lines.first().and_then(|line| line.code.address).unwrap_or(0);
    for placed in lines {
        let bytes = &placed.code.bytes;
        let mut decoder = dialect.decode_at(bytes, ip);
        let mut instructions = Vec::new();
        while decoder.can_decode() {
            let instruction = decoder.decode();
            if instruction.is_invalid() {
                let bits = dialect.mode.bits();
                let message = format!("`{}` is not a {bits}-bit x86 instruction", asm::to_hex(bytes));
                let remedy = match dialect.mode {
                    CodeMode::Bits64 => "paste x86-64 code from the start of an instruction, without data",
                    CodeMode::Bits32 => "paste 32-bit code from the start of an instruction, without data",
                };
                return Err(placed.at().error_expecting(message, remedy));
            }
            instructions.push(instruction);
        }
        ip = ip.wrapping_add(bytes.len() as u64);
        decoded.push(DecodedLine { placed, instructions });
    }
    Ok(decoded)
}

/// Fails if the text assembles to another instruction than the bytes hold.
fn check_text(line: &DecodedLine, dialect: CodeDialect) -> Result<(), BadSnippet> {
    let [instruction] = line.instructions[..] else { return Ok(()) };
    if instruction.flow_control() != FlowControl::Next || instruction.is_ip_rel_memory_operand() {
        return Ok(());
    }
    let text = &line.placed.full_text();
    if dialect.mode == CodeMode::Bits64 && is_narrow_push(text.trim()) {
        return Err(line.placed.at().error_expecting(NARROW_PUSH, NARROW_CODE));
    }
    let read = dialect.assemble(text);
    // Disassemblers have names of their own for some instructions.
    let Ok(listing) = read else { return Ok(()) };
    let [written] = listing.instructions() else { return Ok(()) };
    let [says, holds] = [written, &instruction].map(describe_instruction);
    if says == holds || are_both_idle(written, &instruction) || says_in_hexadecimal(text, &holds, dialect.mode) {
        return Ok(());
    }
    let message = format!("the bytes are `{holds}`, but the text is `{says}`");
    let remedy = "correct one of them: paste the bytes alone, or the instructions without bytes";
    Err(line.placed.at().error_expecting(message, remedy))
}

/// Whether a text is this instruction if its numbers are hexadecimal without a mark, as x64dbg
/// writes them.
fn says_in_hexadecimal(text: &str, holds: &str, mode: CodeMode) -> bool {
    let marked = mark_hexadecimal(text);
    let read = if marked == text { None } else { asm::parse_for_mode(&marked, mode, None).ok() };
    read.is_some_and(|listing| match listing.instructions() {
        [written] => describe_instruction(written) == holds,
        _ => false,
    })
}

/// Text of an instruction that is the same for all of its encodings.
fn describe_instruction(instruction: &Instruction) -> String {
    let mut text = asm::format_instruction(instruction);
    for hint in
        ["{vex} ", "{vex3} ", "{evex} ", "{load} ", "{store} ", "{disp8} ", "{disp32} ", "cs ", "ds ", "es ", "ss "]
    {
        text = text.replace(hint, "");
    }
    name_comparison(&text).unwrap_or(text)
}

/// The name that disassemblers give an EVEX comparison of integers whose predicate has a name in
/// older encodings.
fn name_comparison(text: &str) -> Option<String> {
    const PREDICATES: [(&str, &str); 2] = [(", 0", "eq"), (", 6", "gt")];
    let rest = text.strip_prefix("vpcmp")?;
    let (size, operands) = rest.split_once(' ')?;
    let (operands, name) = PREDICATES.iter().find_map(|(end, name)| Some((operands.strip_suffix(end)?, *name)))?;
    let element = size.trim_start_matches('u');
    let is_known = matches!(element, "b" | "w" | "d" | "q") && (name == "eq" || element == size);
    is_known.then(|| format!("vpcmp{name}{element} {operands}"))
}

/// Whether both do nothing: there are many encodings of that, and disassemblers shorten their
/// names.
fn are_both_idle(one: &Instruction, other: &Instruction) -> bool {
    let is_idle = |instruction: &Instruction| {
        let exchanges =
            instruction.mnemonic() == Mnemonic::Xchg && instruction.op0_register() == instruction.op1_register();
        instruction.mnemonic() == Mnemonic::Nop || exchanges
    };
    is_idle(one) && is_idle(other)
}

/// Number of lines before what fills the space up to the next function.
fn count_code(decoded: &[DecodedLine]) -> usize {
    let is_padding = |line: &DecodedLine| line.instructions.iter().all(is_padding_after_end);
    decoded.len() - decoded.iter().rev().take_while(|line| is_padding(line)).count()
}

/// The line of the first return of a function with several, if the code is one whole function: each
/// path ends with a usual return, and all code is on a path.
fn find_early_return(decoded: &[DecodedLine]) -> Option<u32> {
    let code = &decoded[..count_code(decoded)];
    let returns = |line: &&DecodedLine| line.instructions.iter().any(is_plain_return);
    let first = code.split_last()?.1.iter().find(returns)?;
    let instructions: Vec<&Instruction> = code.iter().flat_map(|line| &line.instructions).collect();
    is_whole_function(&instructions).then_some(first.placed.line)
}

/// Whether all paths through these instructions end with a usual return, and all instructions are on
/// a path, except those that fill space.
fn is_whole_function(instructions: &[&Instruction]) -> bool {
    let mut seen = vec![false; instructions.len()];
    let mut open = vec![0];
    while let Some(at) = open.pop() {
        let Some(instruction) = instructions.get(at) else { return false };
        if std::mem::replace(&mut seen[at], true) {
            continue;
        }
        let target = instruction.near_branch_target();
        let target = instructions.binary_search_by_key(&target, |other| other.ip());
        match (instruction.flow_control(), target) {
            (FlowControl::Return, _) if is_plain_return(instruction) => {}
            (FlowControl::UnconditionalBranch, Ok(target)) => open.push(target),
            (FlowControl::ConditionalBranch, Ok(target)) => open.extend([target, at + 1]),
            (FlowControl::Next, _) => open.push(at + 1),
            _ => return false,
        }
    }
    seen.iter().zip(instructions).all(|(is_seen, instruction)| *is_seen || is_padding_after_end(instruction))
}

/// Drops the return at the end, unless it is kept, and what fills the space up to the next function.
fn drop_end(decoded: &mut Vec<DecodedLine>, keeps_return: bool, dropped: &mut Vec<DroppedLine>) {
    let code = count_code(decoded);
    let ends = |line: &DecodedLine| {
        let flow = line.instructions.last().map(Instruction::flow_control);
        matches!(flow, Some(FlowControl::Return | FlowControl::UnconditionalBranch | FlowControl::IndirectBranch))
    };
    let Some(last) = code.checked_sub(1).map(|last| &decoded[last]).filter(|last| ends(last)) else { return };
    let returns = is_return(&last.instructions) && !keeps_return;
    if returns {
        dropped.push(DroppedLine::new_code(last.placed.line, last.placed.code.text, RETURN_DROPPED));
    }
    for line in &decoded[code..] {
        dropped.push(DroppedLine::new_noise(
            line.placed.line,
            line.placed.code.text,
            "it fills the space after the code",
        ));
    }
    decoded.truncate(if returns { code - 1 } else { code });
}

fn is_return(instructions: &[Instruction]) -> bool {
    instructions.last().is_some_and(|last| last.flow_control() == FlowControl::Return)
}

/// Whether an instruction of 32-bit code uses data at a constant address, which the program had.
pub(super) fn is_absolute_datum(instruction: &Instruction) -> bool {
    let has_memory = (0..instruction.op_count()).any(|operand| instruction.op_kind(operand) == OpKind::Memory);
    let is_plain = instruction.memory_base() == Register::None && instruction.memory_index() == Register::None;
    let is_of_thread = matches!(instruction.memory_segment(), Register::FS | Register::GS);
    CodeMode::from_instruction(instruction) == CodeMode::Bits32
        && has_memory
        && is_plain
        && !is_of_thread
        && instruction.mnemonic() != Mnemonic::Lea
}

/// Fails if the code leaves the region, or uses what isn't in it. Code that is called must not run
/// beyond its end.
fn check_flow(decoded: &[DecodedLine], is_called: bool) -> Result<(), BadSnippet> {
    let Some(start) = decoded.first().map(|line| line.instructions[0].ip()) else { return Ok(()) };
    let mut places: Vec<u64> = decoded.iter().flat_map(|line| line.instructions.iter().map(Instruction::ip)).collect();
    let end = decoded.last().and_then(|line| line.instructions.last()).map_or(start, Instruction::next_ip);
    if !is_called {
        places.push(end);
    }
    let is_place = |address: u64| places.binary_search(&address).is_ok();
    for DecodedLine { placed, instructions } in decoded {
        for instruction in instructions {
            let at = placed.at();
            let text = placed.code.text.trim();
            if instruction.is_ip_rel_memory_operand() || is_absolute_datum(instruction) {
                return Err(refuse_data(at, text));
            }
            match instruction.flow_control() {
                FlowControl::Return if is_called && is_plain_return(instruction) => {}
                FlowControl::Return => return Err(middle_return_error(at)),
                FlowControl::Call => return Err(refuse_call(at, text)),
                FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch
                    if matches!(instruction.op0_kind(), OpKind::NearBranch32 | OpKind::NearBranch64) =>
                {
                    let target = instruction.near_branch_target();
                    // An object file's branch to another function, before the linker fills it in.
                    if target == instruction.next_ip() && instruction.len() > SHORT_BRANCH_BYTES {
                        return Err(refuse_call(at, text));
                    }
                    if !is_place(target) {
                        let inside = (start..end).contains(&target);
                        return Err(refuse_target(at, text, inside));
                    }
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// Error for a branch out of the region, or into an instruction.
pub(super) fn refuse_target(at: TextPosition, text: &str, is_inside: bool) -> BadSnippet {
    match is_inside {
        true => at.error_expecting(format!("`{text}` leads into an instruction"), "paste the code from its start"),
        false => at.error_expecting(
            format!("`{text}` leaves the pasted code"),
            "paste the lines up to its target too, or leave this line out",
        ),
    }
}

/// Error for a call of code that isn't in the region.
pub(super) fn refuse_call(at: TextPosition, text: &str) -> BadSnippet {
    at.error_expecting(
        format!("`{text}` calls a function"),
        "measure the whole function with --elf FILE --call NAME, or leave this line out",
    )
}

/// Error for data that isn't in the region.
pub(super) fn refuse_data(at: TextPosition, text: &str) -> BadSnippet {
    at.error_expecting(
        format!("`{text}` uses data of the program that is not in the text"),
        "measure the function with --elf FILE --call NAME, or write the operand as memory at R14",
    )
}
