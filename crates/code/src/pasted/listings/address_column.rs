//! Text of disassemblers that write an address, bytes and an instruction in columns: ndisasm,
//! WinDbg, Visual Studio, Ghidra, radare2.
//!
//! ```text
//! 00000000  4801D8            add rax,rbx
//! 00007FF6B2B11000 0F AF C9             imul        ecx,ecx
//! ```

use crate::pasted::foreign_text::begins_with_instruction;
use crate::pasted::listing_line::{
    CodeLine, ListingFormat, ListingLine, take_address, take_byte_pairs, take_byte_word,
};

pub(super) const FORMAT: ListingFormat =
    ListingFormat { name: "listing with addresses", read: |lines| lines.iter().map(|line| parse_line(line)).collect() };

/// Fewest digits of an address.
const ADDRESS_DIGITS: usize = 8;

fn parse_line(line: &str) -> ListingLine<'_> {
    let trimmed = line.trim();
    if trimmed.is_empty() {
        return ListingLine::Frame;
    }
    // ndisasm writes the bytes after the eighth into a line of their own.
    if let Some((bytes, "")) = trimmed.strip_prefix('-').and_then(take_byte_word) {
        return ListingLine::MoreBytes(bytes);
    }
    // WinDbg: `program!function+0x10:`.
    if let Some((_, name)) = trimmed.strip_suffix(':').and_then(|line| line.split_once('!')) {
        return ListingLine::Header { name };
    }
    // radare2 draws boxes and arrows in front of addresses.
    let code = trimmed.trim_start_matches(|c: char| !c.is_ascii() || " <>|`=,-".contains(c));
    parse_code(code).unwrap_or(ListingLine::Unknown)
}

fn parse_code(line: &str) -> Option<ListingLine<'_>> {
    let end = line.find(char::is_whitespace)?;
    let (address, rest) = take_address(line).filter(|(_, rest)| rest.len() == line.len() - end)?;
    if line[..end].trim_start_matches("0x").len() < ADDRESS_DIGITS {
        return None;
    }
    let columns = rest.trim_start();
    let (bytes, text) = match (take_byte_pairs(columns), take_byte_word(columns)) {
        ((pairs, text), _) if !pairs.is_empty() => (pairs, text),
        (_, Some((bytes, text))) => (bytes, text),
        (_, None) => (Vec::new(), columns),
    };
    let text = text.trim();
    begins_with_instruction(text)
        .then(|| ListingLine::Code(CodeLine { address: Some(address), bytes, text, ..CodeLine::default() }))
}
