//! Text of `go tool objdump` and of delve: Go's names of instructions, or usual ones, with their
//! bytes.
//!
//! ```text
//! TEXT main.Sum(SB) main.go
//!   main.go:3  0x47a745  31c9  XORL CX, CX
//! ```

use crate::pasted::instruction_text::begins_with_instruction;
use crate::pasted::listing_line::{CodeLine, ListingFormat, ListingLine, take_address, take_byte_word};

pub(super) const FORMAT: ListingFormat = ListingFormat { name: "go tool objdump", read: read_lines };

fn read_lines<'a>(lines: &[&'a str]) -> Vec<ListingLine<'a>> {
    let is_go = lines.iter().any(|line| line.contains("(SB)")) || lines.iter().any(|line| line.contains(".go:"));
    let parse = |line: &&'a str| if is_go { parse_line(line) } else { ListingLine::Unknown };
    lines.iter().map(parse).collect()
}

fn parse_line(line: &str) -> ListingLine<'_> {
    // delve marks the current line, and breakpoints.
    let trimmed = line.trim().trim_start_matches("=>").trim_start();
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
    // `-S` prints source lines in front of code, and no names of files.
    let rest = match line[..end].rsplit_once(':') {
        Some((file, number)) if file.contains('.') && number.bytes().all(|digit| digit.is_ascii_digit()) => {
            line[end..].trim_start()
        }
        Some(_) => return None,
        None => line,
    };
    let (address, rest) = take_address(rest).filter(|_| rest.starts_with("0x"))?;
    let rest = rest.strip_prefix('*').unwrap_or(rest);
    let (bytes, text) = take_byte_word(rest.trim_start())?;
    // Go writes names in capital letters; its dumps have digits here.
    if !(text.trim_start().starts_with(|c: char| c.is_ascii_uppercase() || c == '?') || begins_with_instruction(text)) {
        return None;
    }
    Some(ListingLine::Code(CodeLine { address: Some(address), bytes, text: text.trim(), ..CodeLine::default() }))
}
