//! Listings of assemblers: `as -al` and `nasm -l`.
//!
//! ```text
//!    2 0000 4801C3     f: addq %rax, %rbx
//! ```

use crate::pasted::directives::Directive;
use crate::pasted::listing_line::{CodeLine, ListingFormat, ListingLine, take_address, take_byte_word};
use std::collections::BTreeSet;

pub(super) const FORMAT: ListingFormat = ListingFormat { name: "assembler listing", read: read_lines };

fn read_lines<'a>(lines: &[&'a str]) -> Vec<ListingLine<'a>> {
    let functions: BTreeSet<&str> = lines.iter().filter_map(|line| declared_function(line)).collect();
    let mut is_data = false;
    let mut read_next = |line: &&'a str| {
        let parsed = match label_of(line).filter(|name| functions.contains(name)) {
            Some(name) => ListingLine::Header { name },
            None => parse_line(line),
        };
        match parsed {
            // The bytes of an alignment are code.
            ListingLine::Code(code) if !matches!(Directive::parse(code.text), None | Some(Directive::Alignment)) => {
                is_data = true;
                ListingLine::Frame
            }
            ListingLine::MoreBytes(_) if is_data => ListingLine::Frame,
            ListingLine::Code(code) => {
                is_data = false;
                ListingLine::Code(code)
            }
            parsed => parsed,
        }
    };
    lines.iter().map(&mut read_next).collect()
}

/// The name in ` 5  .type f, @function`.
fn declared_function(line: &str) -> Option<&str> {
    let (_, text) = line.split_once(".type")?;
    let (name, kind) = text.split_once(',')?;
    kind.contains("function").then_some(name.trim())
}

/// The name in ` 7  f:`, a line without code.
fn label_of(line: &str) -> Option<&str> {
    let (number, rest) = split_word(line);
    let name = rest.trim().strip_suffix(':')?;
    let is_number = !number.is_empty() && number.bytes().all(|digit| digit.is_ascii_digit());
    (is_number && !name.contains(char::is_whitespace)).then_some(name)
}

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
            Some((bytes, _)) if take_full_words(text).1.len() < text.len() => {
                let (more, text) = take_full_words(text);
                let bytes = [bytes, more].concat();
                match text.trim() {
                    "" => ListingLine::MoreBytes(bytes),
                    text => ListingLine::Code(CodeLine { address: Some(address), bytes, text, ..CodeLine::default() }),
                }
            }
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

/// Takes further words of four bytes or less, as `--listing-lhs-width` prints them. GNU as writes
/// digits in capital letters, and names of instructions in small ones.
fn take_full_words(text: &str) -> (Vec<u8>, &str) {
    let (mut bytes, mut rest) = (Vec::new(), text);
    loop {
        let (word, after) = split_word(rest);
        let is_word = word.len() <= 8 && !word.bytes().any(|byte| byte.is_ascii_lowercase());
        match take_byte_word(word).filter(|_| is_word) {
            Some((more, _)) => bytes.extend(more),
            None => return (bytes, rest),
        }
        rest = after;
    }
}

/// Bytes that follow those of the line before, or a line without code.
fn more_bytes<'a>(word: &str, after: &str) -> ListingLine<'a> {
    match take_byte_word(word) {
        Some((bytes, "")) if take_full_words(after).1.trim().is_empty() => {
            ListingLine::MoreBytes([bytes, take_full_words(after).0].concat())
        }
        _ => ListingLine::Frame,
    }
}

fn split_word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()))
}
