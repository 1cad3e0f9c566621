//! Dumps of bytes with their addresses: xxd, `hexdump -C`, `od -tx1`, `objdump -s`, `readelf -x`,
//! `x/xb` of gdb, and the code of HotSpot without a disassembler.
//!
//! ```text
//! 00000010: c775 ed89 d0                             .u...
//! 00000010  c7 75 ed 89 d0                           |.u...|
//! ```
//!
//! The addresses must count the bytes, in hexadecimal or octal. Characters behind the bytes must be
//! those of the bytes. Without either, a text is no dump.

use super::hex_text::new_region;
use super::instruction_text::looks_like_instruction;
use super::listing_line::take_address;
use super::pasted_text::PastedText;
use super::text_words::line_start;
use crate::asm::CodeMode;
use cyclescope_core::error::BadSnippet;
use std::borrow::Cow;

/// A line of a dump.
#[derive(Debug, Clone, PartialEq, Eq)]
struct DumpLine<'a> {
    /// Its line, from 1.
    line: u32,
    /// Digits of its address.
    address: &'a str,
    bytes: Vec<u8>,
    /// Whether something behind the address or the bytes shows that this is a dump.
    is_marked: bool,
    /// Whether the bytes are in words of two, without a mark of their order.
    is_word: bool,
}

/// Fewest digits of an address.
const ADDRESS_DIGITS: usize = 4;
/// Digits of an octal address of od.
const OCTAL_DIGITS: usize = 7;
/// Fewest digits of an address in front of words.
const WORD_ADDRESS_DIGITS: usize = 6;
/// Most groups of digits in a line.
const GROUPS_MOST: usize = 64;

/// Reads a dump; `None` if the text is something else.
pub(super) fn read_byte_dump(lines: &[&str], mode: CodeMode) -> Result<Option<PastedText>, BadSnippet> {
    // WinDbg writes a backtick into addresses, and a `-` between the eighth byte and the ninth.
    let plain: Vec<Cow<str>> = lines.iter().map(|line| plain_windbg_line(line)).collect();
    let mut found = Vec::new();
    for (number, line) in (1..).zip(&plain) {
        // HotSpot's comments.
        let line = line.split(';').next().unwrap_or_default();
        match parse_line(number, line) {
            Some(line) => found.push(line),
            None if line.trim().starts_with("0x") && line.trim_end().ends_with(':') => {}
            None if looks_like_instruction(line) || starts_with_address(line) => return Ok(None),
            None => {}
        }
    }
    let counts = |radix: u32| {
        found.windows(2).all(|pair| {
            let [from, to] = [&pair[0], &pair[1]].map(|line| u64::from_str_radix(line.address, radix).ok());
            from.zip(to).is_some_and(|(from, to)| to.checked_sub(from) == Some(pair[0].bytes.len() as u64))
        })
    };
    let Some(first) = found.iter().find(|line| !line.bytes.is_empty()) else { return Ok(None) };
    let at = line_start(first.line);
    if first.address.len() >= WORD_ADDRESS_DIGITS && found.iter().all(|line| line.is_word || line.bytes.is_empty()) {
        let remedy = "paste the output of `hexdump -C FILE`, `od -tx1 FILE` or `xxd -p FILE`";
        return Err(at.error_expecting("this dump has words, whose bytes are swapped", remedy));
    }
    let is_counted = found.len() > 1 && (counts(16) || first.address.len() == OCTAL_DIGITS && counts(8));
    let is_marked = found.iter().all(|line| line.is_marked || line.bytes.is_empty());
    if !(is_counted || is_marked) {
        return Ok(None);
    }
    if found.len() > 1 && !is_counted {
        let remedy = "paste consecutive lines, or the bytes alone";
        return Err(at.error_expecting("the addresses of this dump do not count its bytes", remedy));
    }
    let bytes: Vec<u8> = found.iter().flat_map(|line| line.bytes.iter().copied()).collect();
    let regions = vec![new_region(String::new(), first.line, bytes, mode)];
    Ok(Some(PastedText { source: "dump of bytes", syntax: None, regions, dropped: Vec::new() }))
}

/// A line of WinDbg's `db` as other programs write it.
fn plain_windbg_line(line: &str) -> Cow<'_, str> {
    let Some((high, rest)) = line.split_once('`') else { return Cow::Borrowed(line) };
    let Some((low, bytes)) = rest.split_once("  ") else { return Cow::Borrowed(line) };
    if ![high.trim(), low].iter().all(|part| part.len() == 8 && part.bytes().all(|digit| digit.is_ascii_hexdigit())) {
        return Cow::Borrowed(line);
    }
    let (bytes, text) = bytes.split_once("  ").unwrap_or((bytes, ""));
    Cow::Owned(format!("{high}{low}  {}  {text}", bytes.replace('-', " ")))
}

/// Whether a line begins with digits that may be an address with something behind it.
fn starts_with_address(line: &str) -> bool {
    let word = line.split_whitespace().next().unwrap_or_default();
    take_address(word.trim_end_matches(':')).is_some_and(|(_, rest)| rest.is_empty())
}

fn parse_line(number: u32, line: &str) -> Option<DumpLine<'_>> {
    let trimmed = line.trim();
    let digits = trimmed.strip_prefix("0x").unwrap_or(trimmed);
    let end = digits.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(digits.len());
    let (address, after) = digits.split_at(end);
    let has_prefix = digits.len() < trimmed.len();
    if address.len() < ADDRESS_DIGITS || !matches!(after.chars().next(), None | Some(' ' | '\t' | ':')) {
        return None;
    }
    // gdb: ` <main+4>:`.
    let (after, is_symbol) = match after.trim_start().strip_prefix('<').and_then(|after| after.split_once(">:")) {
        Some((_, after)) => (after, true),
        None => (after, false),
    };
    let has_colon = is_symbol || after.starts_with(':');
    let columns = after.strip_prefix(':').unwrap_or(after);
    let (bytes, widths, text) = take_groups(columns, trimmed);
    let has_text = !text.is_empty();
    if has_text && !is_text_of(text, &bytes) {
        return None;
    }
    let is_wide = !widths.is_empty() && widths.iter().all(|width| matches!(width, 4 | 6 | 8 | 16));
    let is_word = is_wide && !has_colon && !has_prefix && !has_text;
    let is_marked = has_colon || has_text || has_prefix;
    // Comments of HotSpot stand behind an address too.
    if bytes.is_empty() && has_prefix {
        return None;
    }
    Some(DumpLine { line: number, address, bytes, is_marked, is_word })
}

/// Takes groups of digits up to the characters of a dump. The text behind them decides where they
/// end.
fn take_groups<'a>(columns: &'a str, whole: &str) -> (Vec<u8>, Vec<usize>, &'a str) {
    let mut best: Option<(Vec<u8>, Vec<usize>, &str)> = None;
    let (mut bytes, mut widths, mut rest) = (Vec::new(), Vec::new(), columns);
    loop {
        let text = rest.trim();
        if text.is_empty() {
            return match best {
                Some(best) => best,
                None => (bytes, widths, ""),
            };
        }
        if is_text_of(text, &bytes) && !bytes.is_empty() {
            best = Some((bytes.clone(), widths.clone(), text));
        }
        let word = text.trim_start_matches(['|', ' ', '\u{2502}']);
        let word = &word[..word.find(char::is_whitespace).unwrap_or(word.len())];
        let digits = word.strip_prefix("0x").unwrap_or(word);
        let is_group = !digits.is_empty()
            && digits.len().is_multiple_of(2)
            && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
            && digits.len() <= whole.len();
        if !is_group {
            return best.unwrap_or((bytes, widths, text));
        }
        if widths.len() == GROUPS_MOST {
            return (Vec::new(), Vec::new(), text);
        }
        widths.push(digits.len());
        let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("two digits");
        let group = (0..digits.len()).step_by(2).map(byte);
        // A debugger's number: its lowest byte comes first in memory.
        match digits.len() < word.len() && digits.len() > 2 {
            true => bytes.extend(group.rev()),
            false => bytes.extend(group),
        }
        let at = rest.find(word).expect("it was found there");
        rest = &rest[at + word.len()..];
    }
}

/// Whether a text shows these bytes as characters.
fn is_text_of(text: &str, bytes: &[u8]) -> bool {
    // pwntools draws bars, and dots in the middle.
    if text.contains('\u{2502}') {
        let plain = text.replace('\u{2502}', "").replace('\u{b7}', ".");
        return !plain.contains('\u{2502}') && is_text_of(&plain, bytes);
    }
    let framed = [('|', '|'), ('>', '<')]
        .iter()
        .find_map(|(open, close)| text.strip_prefix(*open).and_then(|text| text.strip_suffix(*close)));
    let shown: String =
        bytes.iter().map(|byte| if matches!(byte, 0x20..0x7f) { char::from(*byte) } else { '.' }).collect();
    // Visual Studio shows bytes above 0x7f in the characters of Windows.
    let is_shown = |(byte, c): (&u8, char)| *byte >= 0x80 || c == char::from(*byte) || c == '.';
    let is_windows =
        !text.is_ascii() && text.chars().count() == bytes.len() && bytes.iter().zip(text.chars()).all(is_shown);
    framed.map_or(shown.trim() == text.trim() || is_windows, |framed| framed == shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Option<Vec<u8>> {
        let found = read_byte_dump(&text.lines().collect::<Vec<_>>(), CodeMode::Bits64).expect(text)?;
        Some(found.regions.into_iter().next()?.code.expect(text).listing.bytes().to_vec())
    }

    #[test]
    fn dumps_of_all_programs_are_read() {
        for text in [
            "00000000: 4801 d8                                  H..",
            "00000000: 48 01 d8  H..",
            "00000000  48 01 d8                                          |H..|\n00000003",
            "000000 48 01 d8\n000003",
            "0000000 48 01 d8\n0000003",
            "000000 48 01 d8                                         >H..<",
            "Contents of section .text:\n 0000 4801d8                               H..             ",
            "Hex dump of section '.text':\n  0x00000000 4801d8                              H..\n",
            "0x1100 <mix>:\t0x48\t0x01\t0xd8",
            "00000000  48 01 d8           \u{2502}H\u{b7}\u{b7}\u{2502}\n00000003",
            "  0x00007f33d5470e20: 4801 | d8",
            "00007ff6`d5b71010  48 01 d8  H..",
            "0x00007FF6D5B71010  48 01 d8  H.Ø",
        ] {
            assert_eq!(bytes(text), Some(vec![0x48, 1, 0xd8]), "{text}");
        }
    }

    #[test]
    fn numbers_of_debuggers_begin_with_their_last_byte() {
        let expected = [0x48, 0x89, 0xf8, 0x48, 0x0f, 0xaf, 0xc6, 0xc3, 0x48, 0x01, 0xd8, 0x90, 0x90, 0x90, 0x90, 0xc3];
        for text in [
            "0x1100 <f>:\t0xc3c6af0f48f88948\t0xc390909090d80148",
            "0x1100 <f>:\t0x48f88948\t0xc3c6af0f\t0x90d80148\t0xc3909090",
        ] {
            assert_eq!(bytes(text), Some(expected.to_vec()), "{text}");
        }
    }

    #[test]
    fn sixteen_bytes_a_line_count_in_octal_too() {
        let line = "90 ".repeat(16);
        assert_eq!(bytes(&format!("0000000 {line}\n0000020 90\n0000021")).map(|all| all.len()), Some(17));
        assert_eq!(bytes(&format!("0000000 {line}\n0000010 90\n0000011")).map(|all| all.len()), Some(17));
    }

    #[test]
    fn other_texts_are_no_dumps() {
        for text in
            ["48 01 d8", "4801d8", "1000 48 01 d8", "401136: 48 01 d8  add %rbx,%rax", "add: nop", "0000: nop", ""]
        {
            assert_eq!(bytes(text), None, "{text}");
        }
        for text in ["0000000 0148 00d8\n0000004", "00000000: 4801\n00000008: 90", "00000000: 48 01 d8\n00000010: 90"] {
            assert!(read_byte_dump(&text.lines().collect::<Vec<_>>(), CodeMode::Bits64).is_err(), "{text}");
        }
    }
}
