//! Regions whose listing has no bytes: the text is assembled, and must agree with the addresses.

use super::dialect::CodeDialect;
use super::foreign_text::{GO_REMEDY, GO_TEXT, is_go_instruction};
use super::functions::{RETURN_DROPPED, is_end_text, is_padding_text, is_return_text, middle_return_error};
use super::instruction_text::instruction_of;
use super::machine_code::{PlacedCode, is_absolute_datum, refuse_data};
use super::other_machine::{NARROW_CODE, NARROW_PUSH, is_narrow_push};
use super::pasted_text::{DroppedLine, RegionCode};
use super::place_labels::PlaceLabels;
use super::placed_text::PlacedText;
use super::text_words::{line_start, names_in, position_in};
use crate::asm::{CodeMode, Listing};
use cyclescope_core::error::BadSnippet;
use std::collections::HashMap;

/// Assembles the text of a region, with its addresses as labels. Lines and columns are those of the
/// whole text.
pub(super) fn build_from_text(
    code: &[PlacedCode],
    dialect: CodeDialect,
    dropped: &mut Vec<DroppedLine>,
) -> Result<RegionCode, BadSnippet> {
    if let Some(placed) = code.iter().find(|placed| !placed.code.bytes.is_empty()) {
        let what = "this line has bytes, and others of the same code have none";
        return Err(placed.at().error_expecting(what, "paste all lines with bytes, or all without them"));
    }
    let (code, end) = drop_end_text(code, dropped);
    if let Some(placed) = code.iter().find(|placed| is_return_text(placed.code.text)) {
        return Err(middle_return_error(placed.at()));
    }
    let narrow_push = code.iter().find(|placed| is_narrow_push(placed.code.text.trim()));
    if let Some(placed) = narrow_push.filter(|_| dialect.mode == CodeMode::Bits64) {
        return Err(placed.at().error_expecting(NARROW_PUSH, NARROW_CODE));
    }
    let names_no_index = |placed: &&PlacedCode| names_in(placed.code.text).any(|name| matches!(name, "eiz" | "riz"));
    if let Some(placed) = code.iter().find(names_no_index) {
        let what = "eiz and riz are no registers, and the text does not show how they are encoded";
        return Err(placed.at().error_expecting(what, "paste the listing with its bytes"));
    }
    if let Some(placed) = code.iter().find(|placed| is_go_instruction(instruction_of(placed.code.text))) {
        return Err(placed.at().error_expecting(GO_TEXT, GO_REMEDY));
    }
    let places = PlaceLabels::new(code, end);
    let mut written = PlacedText::default();
    for placed in code {
        let text = places.rewrite_target(placed)?;
        let label = places.label_of(&placed.code).map_or(String::new(), |label| format!("{label}: "));
        let column = position_in(placed.line, placed.whole, placed.code.text).column as usize - 1;
        let blanks = column.saturating_sub(label.chars().count());
        *written.line_mut(placed.line) = format!("{}{label}{text}", " ".repeat(blanks));
    }
    if let Some((placed, label)) = end.and_then(|end| Some((end, places.label_of(&end.code)?))) {
        *written.line_mut(placed.line) = format!("{label}:");
    }
    let mut listing = written.assemble(dialect)?;
    let lengths = listed_lengths(code, end);
    if fit_lengths(&mut written, &listing, &lengths, dialect) {
        listing = written.assemble(dialect)?;
    }
    let found = line_lengths(&listing);
    refuse_gaps(code, &lengths, &found)?;
    let reencoded = lengths.iter().filter(|(line, length)| found.get(line) != Some(length));
    let reencoded = reencoded.map(|(line, _)| *line).collect();
    for (index, instruction) in listing.instructions().iter().enumerate() {
        if instruction.is_ip_rel_memory_operand() || is_absolute_datum(instruction) {
            let at = listing.position(index).unwrap_or(line_start(1));
            let text = code.iter().find(|placed| placed.line == at.line).map_or("", |placed| placed.code.text);
            return Err(refuse_data(at, text));
        }
    }
    let address = code.first().and_then(|placed| placed.code.address);
    Ok(RegionCode { text: written.to_clean_text(), listing, address, reencoded, ..RegionCode::default() })
}

/// Refuses code whose addresses leave room behind an instruction: a line may be missing there. Code
/// that only jumps reach may be apart, and fillers have many encodings.
fn refuse_gaps(code: &[PlacedCode], lengths: &[(u32, u64)], found: &HashMap<u32, u64>) -> Result<(), BadSnippet> {
    for &(line, length) in lengths {
        let own = found.get(&line).copied().unwrap_or(length);
        let Some(placed) = code.iter().find(|placed| placed.line == line).filter(|_| own < length) else { continue };
        if is_padding_text(placed.code.text) || is_end_text(placed.code.text) {
            continue;
        }
        let what = format!(
            "this instruction has {own} bytes, and the next address is {length} bytes further: a line may be missing"
        );
        return Err(placed.at().error_expecting(what, "paste all lines, or a listing that has the bytes"));
    }
    Ok(())
}

/// Lengths of instructions by the addresses of a listing, each with its line.
fn listed_lengths(code: &[PlacedCode], end: Option<&PlacedCode>) -> Vec<(u32, u64)> {
    let all: Vec<&PlacedCode> = code.iter().chain(end).collect();
    let length = |pair: &[&PlacedCode]| Some((pair[0].line, pair[1].code.address?.checked_sub(pair[0].code.address?)?));
    all.windows(2).filter_map(length).collect()
}

/// Number of bytes that each line became.
fn line_lengths(listing: &Listing) -> HashMap<u32, u64> {
    let mut lengths = HashMap::new();
    for (index, instruction) in listing.instructions().iter().enumerate() {
        let line = listing.position(index).map_or(0, |at| at.line);
        *lengths.entry(line).or_default() += instruction.len() as u64;
    }
    lengths
}

/// Adds hints to instructions whose encoding has another length than in the listing. Returns
/// whether there are any.
fn fit_lengths(written: &mut PlacedText, listing: &Listing, lengths: &[(u32, u64)], dialect: CodeDialect) -> bool {
    const HINTS: [&str; 4] = ["{disp8}", "{disp32}", "data16", "{vex3}"];
    let mut is_changed = false;
    let found = line_lengths(listing);
    for &(line, length) in lengths {
        if found.get(&line) == Some(&length) {
            continue;
        }
        let text = written.line_mut(line);
        let code = text.trim_start();
        let code = code.split_once(": ").map_or(code, |(_, code)| code);
        let label = &text[..text.len() - code.len()];
        let mut hinted = HINTS.iter().map(|hint| format!("{hint} {code}"));
        let fits = |hinted: &String| {
            let mut alone = PlacedText::default();
            alone.line_mut(line).push_str(hinted);
            alone.assemble(dialect).is_ok_and(|listing| listing.bytes().len() as u64 == length)
        };
        if let Some(hinted) = hinted.find(fits) {
            *text = format!("{label}{hinted}");
            is_changed = true;
        }
    }
    is_changed
}

/// Drops the return at the end, and what fills the space up to the next function. Also returns the
/// first dropped line, where the code ends.
fn drop_end_text<'a, 'b>(
    code: &'b [PlacedCode<'a>],
    dropped: &mut Vec<DroppedLine>,
) -> (&'b [PlacedCode<'a>], Option<&'b PlacedCode<'a>>) {
    let padding = code.iter().rev().take_while(|placed| is_padding_text(placed.code.text)).count();
    let (before, after) = code.split_at(code.len() - padding);
    let Some(last) = before.last().filter(|last| is_end_text(last.code.text)) else {
        return (code, None);
    };
    for placed in after {
        dropped.push(DroppedLine::new_noise(placed.line, placed.code.text, "it fills the space after the code"));
    }
    if !is_return_text(last.code.text) {
        return (before, after.first());
    }
    dropped.push(DroppedLine::new_code(last.line, last.code.text, RETURN_DROPPED));
    (&before[..before.len() - 1], Some(last))
}
