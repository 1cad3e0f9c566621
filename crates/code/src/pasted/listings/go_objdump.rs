//! Text of `go tool objdump`: Go's names of instructions, with their bytes.
//!
//! ```text
//! TEXT main.Sum(SB) main.go
//!   main.go:3  0x47a745  31c9  XORL CX, CX
//! ```

use crate::pasted::listing_line::{CodeLine, ListingFormat, ListingLine, take_address, take_byte_word};

pub(super) const FORMAT: ListingFormat =
    ListingFormat { name: "go tool objdump", read: |lines| lines.iter().map(|line| parse_line(line)).collect() };

fn parse_line(line: &str) -> ListingLine<'_> {
    let trimmed = line.trim();
    if trimmed.is_empty() {
        return ListingLine::Frame;
    }
    if let Some(name) = trimmed.strip_prefix("TEXT ").and_then(|rest| rest.split_once("(SB)")) {
        return ListingLine::Header { name: name.0 };
    }
    parse_code(trimmed).unwrap_or(ListingLine::Unknown)
}

fn parse_code(line: &str) -> Option<ListingLine<'_>> {
    let end = line.find(char::is_whitespace)?;
    let (file, number) = line[..end].rsplit_once(':')?;
    if !file.contains('.') || !number.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let rest = line[end..].trim_start();
    let (address, rest) = take_address(rest).filter(|_| rest.starts_with("0x"))?;
    let (bytes, text) = take_byte_word(rest.trim_start())?;
    Some(ListingLine::Code(CodeLine { address: Some(address), bytes, text: text.trim(), ..CodeLine::default() }))
}
