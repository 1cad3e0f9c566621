//! Text of programs that write an address, bytes and an instruction in columns: ndisasm, WinDbg,
//! Visual Studio, Ghidra, radare2, x64dbg, IDA, XED, V8, HotSpot with JMH, OpenJ9, VTune, MSVC.
//!
//! ```text
//! 00000000  4801D8            add rax,rbx
//! 00007FF6B2B11000 0F AF C9             imul        ecx,ecx
//! 0000000143044B56 | 48:01D8  | add rax,rbx       |
//!   9.27%  │  0x00007fd6f435b124: vmovdqu %ymm0,0x30(%r8,%rdx,4)
//! 0x3f5c20c04210    d0  03ca           addl rcx,rdx
//! ```
//!
//! Columns that are neither bytes nor an instruction are skipped. Addresses and bytes are compared
//! by the reader of all listings.

use crate::pasted::dialect::assembles_in_any_mode;
use crate::pasted::functions::is_return_text;
use crate::pasted::instruction_text::begins_with_instruction;
use crate::pasted::listing_line::{
    CodeLine, ListingFormat, ListingLine, is_name_of, is_one_instruction, take_address, take_byte_pairs, take_byte_word,
};
use crate::pasted::text_words::first_word;

pub(super) const FORMAT: ListingFormat = ListingFormat { name: "listing in columns", read: read_lines };

/// Fewest digits of an address.
const ADDRESS_DIGITS: usize = 8;
/// Digits of an address in a listing of Microsoft's compiler.
const SHORT_ADDRESS_DIGITS: usize = 5;
/// Most columns between the address and the bytes.
const SKIPPED_COLUMNS_MOST: usize = 3;
/// Blanks in front of bytes that continue those of the line before.
const CONTINUATION_BLANKS: usize = 8;

fn read_lines<'a>(lines: &[&'a str]) -> Vec<ListingLine<'a>> {
    let mut parsed: Vec<ListingLine> = lines.iter().map(|line| parse_line(line)).collect();
    // Eight digits may be four bytes. Then other lines have more or fewer.
    let bytes_first: Vec<ListingLine> = lines.iter().map(|line| parse_bytes_line(line)).collect();
    let count = |parsed: &[ListingLine]| parsed.iter().filter(|line| matches!(line, ListingLine::Code(_))).count();
    if count(&bytes_first) > count(&parsed) && has_named_bytes(&bytes_first) {
        return bytes_first;
    }
    if has_source_lines(&parsed) {
        for line in &mut parsed {
            if let ListingLine::Code(code) = line {
                code.bytes.clear();
            }
        }
    }
    parsed
}

/// Whether bytes are the instruction beside them in some line. Otherwise they are addresses.
fn has_named_bytes(parsed: &[ListingLine]) -> bool {
    parsed.iter().any(|line| matches!(line, ListingLine::Code(code) if is_name_of(code.text, &code.bytes)))
}

/// Whether what looks like bytes is the number of a source line, by the addresses: VTune's column.
fn has_source_lines(parsed: &[ListingLine]) -> bool {
    let codes: Vec<&CodeLine> =
        parsed.iter().filter_map(|line| if let ListingLine::Code(code) = line { Some(code) } else { None }).collect();
    let is_number = |code: &&CodeLine| {
        let is_decimal = |byte: &u8| byte >> 4 < 10 && byte & 15 < 10;
        code.bytes.len() <= 2 && code.bytes.iter().all(is_decimal)
    };
    let differs = |pair: &[&CodeLine]| {
        let (from, to) = (pair[0].address.unwrap_or(0), pair[1].address.unwrap_or(0));
        to.checked_sub(from) != Some(pair[0].bytes.len() as u64)
    };
    let has_numbers = codes.iter().any(|code| !code.bytes.is_empty());
    has_numbers && codes.iter().all(is_number) && codes.windows(2).any(differs)
}

/// Parses `488B01      mov      rax, [rcx]`: bytes without an address.
fn parse_bytes_line(line: &str) -> ListingLine<'_> {
    let trimmed = line.trim();
    let code = take_byte_word(trimmed)
        .filter(|(_, rest)| rest.starts_with([' ', '\t']))
        .map(|(bytes, rest)| (bytes, rest.trim()));
    match code {
        None if trimmed.is_empty() => ListingLine::Frame,
        Some((bytes, text)) if begins_with_instruction(text) => {
            ListingLine::Code(CodeLine { bytes, text, ..CodeLine::default() })
        }
        _ => ListingLine::Unknown,
    }
}

fn parse_line(line: &str) -> ListingLine<'_> {
    let trimmed = line.trim();
    if trimmed.is_empty() {
        return ListingLine::Frame;
    }
    // ndisasm writes the bytes after the eighth into a line of their own.
    if let Some((bytes, "")) = trimmed.strip_prefix('-').and_then(take_byte_word) {
        return ListingLine::MoreBytes(bytes);
    }
    // So does Ghidra. Microsoft's compiler writes the text behind the last bytes.
    let (bytes, after) = take_byte_pairs(trimmed);
    let blanks = line.len() - line.trim_start().len();
    let is_continued = line.starts_with('\t') || blanks >= CONTINUATION_BLANKS;
    if !bytes.is_empty() && is_continued && after.trim().is_empty() {
        return ListingLine::MoreBytes(bytes);
    }
    if !bytes.is_empty() && line.starts_with('\t') && begins_with_instruction(after) {
        return ListingLine::Code(CodeLine { bytes, text: after.trim(), ..CodeLine::default() });
    }
    // WinDbg: `program!function+0x10:`, and `program!function [file @ 12]:`.
    if let Some((_, name)) = trimmed.strip_suffix(':').and_then(|line| line.split_once('!')) {
        let name = name.split_once(" [").map_or(name, |(name, _)| name);
        return ListingLine::Header { name };
    }
    if let Some(code) = parse_short_address(trimmed) {
        return code;
    }
    let code = skip_gutter(trimmed);
    if let Some((name, _)) = take_symbol_line(code) {
        return ListingLine::Header { name };
    }
    match parse_code(code) {
        // IDA without bytes names stack variables, which are no addresses.
        Some(ListingLine::Code(CodeLine { bytes, text, .. }))
            if bytes.is_empty() && trimmed.starts_with(['.', '_']) && !is_plain_code(text) =>
        {
            ListingLine::Unknown
        }
        parsed => parsed.unwrap_or(ListingLine::Unknown),
    }
}

/// Whether an instruction of IDA has no names in it.
fn is_plain_code(text: &str) -> bool {
    let code = text.split(';').next().unwrap_or_default();
    let names_place = first_word(code).starts_with('j') && code.contains("loc_");
    assembles_in_any_mode(code) || is_return_text(code.trim()) || names_place
}

/// Skips percentages, boxes, arrows, names of sections and numbers of source lines.
fn skip_gutter(line: &str) -> &str {
    let mut rest = line;
    loop {
        rest = rest.trim_start_matches(|c: char| !c.is_ascii() || " <>|`=,-\\/".contains(c));
        let end = rest.find(|c: char| c.is_whitespace() || c == '\u{2502}').unwrap_or(rest.len());
        let word = &rest[..end];
        let number = word.strip_suffix('%').unwrap_or(word);
        let is_share = number.len() < word.len() && number.parse::<f64>().is_ok();
        let after = rest[end..].trim_start();
        let is_line_number = word.len() < ADDRESS_DIGITS
            && word.bytes().all(|digit| digit.is_ascii_digit())
            && take_wide_address(after).is_some();
        if word.is_empty() || !(is_share || is_line_number) {
            break;
        }
        rest = after;
    }
    // IDA: `.text:0000000000401136`.
    match rest.split_once(':') {
        Some((section, after)) if section.starts_with(['.', '_']) && take_wide_address(after).is_some() => after,
        _ => rest,
    }
}

/// `0000000000401136 <main>:` and nothing else.
fn take_symbol_line(line: &str) -> Option<(&str, &str)> {
    let (_, rest) = take_wide_address(line)?;
    let name = rest.trim().strip_prefix('<')?.strip_suffix(">:")?;
    Some((name, rest))
}

/// Takes an address with a prefix or many digits.
fn take_wide_address(text: &str) -> Option<(u64, &str)> {
    let (address, rest) = take_address(text)?;
    let digits = text.len() - rest.len();
    (text.starts_with("0x") || digits >= ADDRESS_DIGITS).then_some((address, rest))
}

/// Parses `IN0008: 000022 mov      esi, ecx` of .NET's compiler, and `XDIS 401138: …` of XED, whose
/// addresses may be short.
fn parse_short_address(line: &str) -> Option<ListingLine<'_>> {
    let number = line.strip_prefix("IN").and_then(take_address).and_then(|(_, rest)| rest.strip_prefix(": "));
    let (address, rest) = take_address(number.or_else(|| line.strip_prefix("XDIS "))?.trim_start())?;
    let mut columns = rest.strip_prefix(':').unwrap_or(rest).trim_start();
    for _ in 0..=SKIPPED_COLUMNS_MOST {
        if let Some((bytes, text)) = take_code(columns) {
            return Some(ListingLine::Code(CodeLine { address: Some(address), bytes, text, ..CodeLine::default() }));
        }
        let end = columns.find(char::is_whitespace).filter(|end| is_skipped(&columns[..*end]))?;
        columns = columns[end..].trim_start();
    }
    None
}

fn parse_code(line: &str) -> Option<ListingLine<'_>> {
    let (address, rest, is_short) = match take_wide_address(line) {
        Some((address, rest)) => (address, rest, false),
        None => {
            let (address, rest) = take_address(line)?;
            let is_short = line.len() - rest.len() == SHORT_ADDRESS_DIGITS && rest.starts_with('\t');
            (address, rest, is_short)
        }
    };
    if take_wide_address(line).is_none() && !is_short {
        return None;
    }
    let rest = rest.strip_prefix(':').unwrap_or(rest);
    if !rest.starts_with([' ', '\t', '|']) {
        return None;
    }
    if let Some(code) = parse_bars(address, rest) {
        return Some(code);
    }
    let mut columns = rest.trim_start();
    for _ in 0..=SKIPPED_COLUMNS_MOST {
        if let Some((bytes, text)) = take_code(columns) {
            let text = strip_metrics(text);
            return Some(ListingLine::Code(CodeLine { address: Some(address), bytes, text, ..CodeLine::default() }));
        }
        let (pairs, after) = take_byte_pairs(columns);
        // Microsoft's compiler continues the bytes in the next line.
        if is_short && !pairs.is_empty() && after.trim().is_empty() {
            return Some(ListingLine::Code(CodeLine { address: Some(address), bytes: pairs, ..CodeLine::default() }));
        }
        let end = columns.find(char::is_whitespace)?;
        if !is_skipped(&columns[..end]) {
            return None;
        }
        columns = columns[end..].trim_start();
    }
    None
}

/// Whether a column may stand between an address and an instruction: an offset, an address in
/// brackets, or XED's classes.
fn is_skipped(column: &str) -> bool {
    let is_class = column.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
    let is_number = column.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_class || is_number || column.starts_with("[0x") && column.ends_with(']')
}

/// Takes bytes and an instruction, or an instruction alone.
fn take_code(columns: &str) -> Option<(Vec<u8>, &str)> {
    let (bytes, text) = match (take_byte_pairs(columns), take_byte_word(columns)) {
        ((pairs, text), _) if !pairs.is_empty() => (pairs, text),
        (_, Some((bytes, text))) => (bytes, text),
        (_, None) => (Vec::new(), columns),
    };
    let text = text.trim();
    let named = text.strip_prefix("REX.W ").unwrap_or(text);
    // Some disassemblers have names of their own.
    let is_named = text.starts_with(|c: char| c.is_ascii_lowercase()) && is_one_instruction(&bytes);
    (begins_with_instruction(named) || is_named).then_some((bytes, text))
}

/// Parses ` | 48:01D8 | add rax,rbx | comment` of x64dbg.
fn parse_bars(address: u64, rest: &str) -> Option<ListingLine<'_>> {
    let mut columns = rest.trim_start().strip_prefix('|')?.split('|').map(str::trim);
    let (digits, text) = (columns.next()?, columns.next()?);
    let digits: String = digits.chars().filter(|c| !matches!(c, ' ' | ':')).collect();
    let (bytes, _) = take_byte_word(&digits)?;
    begins_with_instruction(text)
        .then(|| ListingLine::Code(CodeLine { address: Some(address), bytes, text, ..CodeLine::default() }))
}

/// Cuts the times and shares that a profiler writes behind an instruction.
fn strip_metrics(text: &str) -> &str {
    let mut text = text.trim_end();
    loop {
        let Some(at) = text.rfind(['\t', ' ']) else { return text };
        let word = text[at..].trim();
        let value = word.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '%');
        let unit = &word[value.len()..];
        let is_value = value.contains('.') && value.parse::<f64>().is_ok();
        if !(is_value && matches!(unit, "" | "s" | "ms" | "us" | "ns" | "%")) {
            return text;
        }
        text = text[..at].trim_end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_found_without_their_headings() {
        for (line, bytes, text) in [
            ("00000000  4801D8            add rax,rbx", vec![0x48, 1, 0xd8], "add rax,rbx"),
            ("   10 00007ff6`1a2b1010 8b01  mov eax,[rcx]", vec![0x8b, 1], "mov eax,[rcx]"),
            ("00007FF6B2B11000 | 48:01D8 | add rax,rbx | sum", vec![0x48, 1, 0xd8], "add rax,rbx"),
            ("  0.79%  \u{2502}\u{2502}  0x00007fd6f435b12b: add %eax,%ecx", vec![], "add %eax,%ecx"),
            ("0x3f5c20c04210    d0  03ca           addl rcx,rdx", vec![3, 0xca], "addl rcx,rdx"),
            (".text:0000000000401138 0F AF C6    imul eax, esi", vec![0xf, 0xaf, 0xc6], "imul eax, esi"),
            ("XDIS 401136: BINARY    BASE       89F8    mov eax, edi", vec![0x89, 0xf8], "mov eax, edi"),
            ("  00002\t0f af c1\t imul\t eax, ecx", vec![0xf, 0xaf, 0xc1], "imul\t eax, ecx"),
            ("0x401a3f\t11\tcmp rax, rdx\t0.004s", vec![0x11], "cmp rax, rdx"),
        ] {
            match parse_line(line) {
                ListingLine::Code(code) => assert_eq!((code.bytes, code.text), (bytes, text), "{line}"),
                _ => assert_eq!(text, "?", "{line}"),
            }
        }
    }
}
