//! Text of perf's browser and of `perf annotate --stdio2`, which has labels instead of addresses.
//!
//! ```text
//!          10:   mov  (%rdi),%rax
//!  60.84         lea  (%rax,%rax,2),%rax
//!              ↑ jne  10
//! ```

use crate::pasted::instruction_text::begins_with_instruction;
use crate::pasted::listing_line::{CodeLine, ListingFormat, ListingLine, parse_header, take_address, take_byte_pairs};

pub(super) const FORMAT: ListingFormat = ListingFormat { name: "perf annotate", read: read_lines };

/// Whether a character is a mark in front of an instruction: an arrow, or a line to a target.
fn is_mark(c: char) -> bool {
    !c.is_ascii() || c.is_whitespace()
}

fn read_lines<'a>(lines: &[&'a str]) -> Vec<ListingLine<'a>> {
    // Julia draws bars in comments.
    let has_bar = |line: &str| line.contains('\u{2502}') && !line.trim_start().starts_with([';', '#']);
    let is_browser = |line: &&str| line.starts_with("Percent ") || line.trim() == "Percent" || has_bar(line);
    if !lines.iter().any(is_browser) {
        return vec![ListingLine::Unknown; lines.len()];
    }
    lines.iter().map(|line| parse_line(line)).collect()
}

fn parse_line(line: &str) -> ListingLine<'_> {
    let trimmed = line.trim();
    if trimmed.is_empty() || trimmed.starts_with("Percent") || trimmed.starts_with("Disassembly of section") {
        return ListingLine::Frame;
    }
    let rest = skip_share(trimmed);
    if rest.is_empty() || rest.starts_with("Disassembly of section") {
        return ListingLine::Frame;
    }
    if let Some(header) = parse_header(rest) {
        return header;
    }
    let (label, text) = match take_address(rest) {
        Some((_, after))
            if after == ":" || after.starts_with(':') && !after[1..].starts_with(|c: char| c.is_ascii_graphic()) =>
        {
            (Some(&rest[..rest.len() - after.len()]), after[1..].trim_start())
        }
        _ => (None, rest),
    };
    let text = text.trim_start_matches(is_mark).trim();
    // `--asm-raw` has the bytes.
    let (bytes, text) = take_byte_pairs(text);
    let text = text.trim_start_matches(is_mark).trim();
    match begins_with_instruction(text) {
        true => ListingLine::Code(CodeLine { bytes, text, label, ..CodeLine::default() }),
        false => ListingLine::Unknown,
    }
}

/// Skips `60.84 │`, with a share of each event; both parts may be missing.
fn skip_share(line: &str) -> &str {
    const EVENTS_MOST: usize = 8;
    let mut rest = line;
    for _ in 0..EVENTS_MOST {
        let after = skip_one_share(rest);
        if after.len() == rest.len() {
            break;
        }
        rest = after;
    }
    rest
}

fn skip_one_share(line: &str) -> &str {
    let end = line.find(char::is_whitespace).unwrap_or(line.len());
    let is_percentage = line[..end].contains('.') && line[..end].parse::<f64>().is_ok();
    let is_count =
        line[..end].bytes().all(|digit| digit.is_ascii_digit()) && line[end..].trim_start().starts_with('\u{2502}');
    let is_share = is_percentage || is_count;
    let rest = if is_share { &line[end..] } else { line };
    rest.trim_start().trim_start_matches('\u{2502}').trim()
}
