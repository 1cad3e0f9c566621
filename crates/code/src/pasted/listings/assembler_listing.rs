//! Listings of assemblers: `as -al` and `nasm -l`.
//!
//! ```text
//!    2 0000 4801C3     f: addq %rax, %rbx
//! ```

use crate::pasted::listing_line::{CodeLine, ListingFormat, ListingLine, take_address, take_byte_word};

pub(super) const FORMAT: ListingFormat =
    ListingFormat { name: "assembler listing", read: |lines| lines.iter().map(|line| parse_line(line)).collect() };

fn parse_line(line: &str) -> ListingLine<'_> {
    let (number, rest) = split_word(line);
    if number.is_empty() {
        return ListingLine::Frame;
    }
    if !number.bytes().all(|digit| digit.is_ascii_digit()) || !rest.starts_with([' ', '\t']) {
        return ListingLine::Unknown;
    }
    let (offset, after) = split_word(rest);
    if let Some((address, "")) = take_address(offset).filter(|_| matches!(offset.len(), 4 | 8)) {
        let (word, text) = split_word(after);
        return match take_byte_word(word.trim_end_matches('-')) {
            Some((bytes, _)) if !text.trim().is_empty() => {
                ListingLine::Code(CodeLine { address: Some(address), bytes, text: text.trim(), ..CodeLine::default() })
            }
            Some((bytes, _)) => ListingLine::MoreBytes(bytes),
            None if word.contains(['(', '[', '<']) => ListingLine::Relocation,
            None => more_bytes(offset, after),
        };
    }
    more_bytes(offset, after)
}

/// Bytes that follow those of the line before, or a line without code.
fn more_bytes<'a>(word: &str, after: &str) -> ListingLine<'a> {
    match take_byte_word(word) {
        Some((bytes, "")) if after.trim().is_empty() => ListingLine::MoreBytes(bytes),
        _ => ListingLine::Frame,
    }
}

fn split_word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()))
}
