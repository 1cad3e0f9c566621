//! Machine code in hexadecimal, as shells, C, Python, BHive and CSV files write it.

use super::directives::Directive;
use super::pasted_text::{PastedRegion, PastedText, RegionCode};
use super::text_words::{line_start, names_in, require_regions, strip_comment};
use crate::asm::{CodeMode, Listing, is_mnemonic};
use cyclescope_core::error::BadSnippet;
use iced_x86::{Decoder, DecoderError, DecoderOptions};

/// Shortest word of a list that can't be a single byte or a number of one.
const LONG_WORD_DIGITS: usize = 4;

/// Reads machine code; `None` if the text is something else.
pub(super) fn read_hex_text(lines: &[&str], mode: CodeMode) -> Result<Option<PastedText>, BadSnippet> {
    let filled: Vec<(u32, &str)> =
        (1..).zip(lines.iter().map(|line| line.trim())).filter(|(_, line)| is_content(line)).collect();
    let Some(&(first, _)) = filled.first() else { return Ok(None) };
    let regions = match (read_table(&filled, mode)?, decode_literal(&filled)) {
        (Some(regions), _) => regions,
        (None, Some(bytes)) => vec![new_region(String::new(), first, bytes, mode)],
        (None, None) => {
            let Some(words) = split_words(&filled) else { return Ok(None) };
            refuse_list(&filled, &words, mode)?;
            let is_decimal = is_decimal_list(&filled, &words);
            let mut bytes = Vec::new();
            for word in &words {
                match word.digits.parse() {
                    Ok(byte) if is_decimal => bytes.push(byte),
                    _ => bytes.extend(word.to_bytes()?),
                }
            }
            vec![new_region(String::new(), first, bytes, mode)]
        }
    };
    Ok(Some(PastedText { source: "machine code", syntax: None, regions, dropped: Vec::new() }))
}

fn is_content(line: &str) -> bool {
    !line.is_empty() && !line.starts_with('#') && !line.starts_with("//")
}

/// A region of machine code of a mode.
pub(super) fn new_region(name: String, line: u32, bytes: Vec<u8>, mode: CodeMode) -> PastedRegion {
    let mut decoder = Decoder::new(mode.bits(), &bytes, DecoderOptions::NONE);
    while decoder.can_decode() {
        let start = decoder.position();
        let _ = decoder.decode();
        if decoder.last_error() == DecoderError::NoMoreBytes {
            let rest = crate::asm::to_hex(&bytes[start..]);
            let what = format!("the last instruction, {rest} at +{start:#x}, is not complete");
            let error = line_start(line).error_expecting(what, "add the missing bytes");
            return PastedRegion { name, line, code: Err(error) };
        }
    }
    let listing = Listing::from_code(&bytes, mode);
    let text = listing.text();
    PastedRegion { name, line, code: Ok(RegionCode { listing, text, ..RegionCode::default() }) }
}

/// Reads lines of `hex,number`, with or without column names: BHive's format.
fn read_table(filled: &[(u32, &str)], mode: CodeMode) -> Result<Option<Vec<PastedRegion>>, BadSnippet> {
    let mut regions = Vec::new();
    for (index, &(line, text)) in filled.iter().enumerate() {
        let mut fields = text.split(',').map(|field| field.trim().trim_matches(['"', '\'']));
        let (hex, number) = (fields.next().unwrap_or_default(), fields.next());
        let is_hex = is_hex_word(hex) && hex.len() >= LONG_WORD_DIGITS;
        let is_number = number.is_some_and(|number| number.parse::<f64>().is_ok());
        let ends = fields.next().is_none();
        if index == 0 && filled.len() > 1 && !is_hex && text.contains(',') && is_column_names(text) {
            continue;
        }
        if !(is_hex && is_number && ends) {
            return Ok(None);
        }
        let number = number.unwrap_or_default();
        if is_hex_word(number) && number.bytes().any(|byte| byte.is_ascii_digit()) {
            let what = format!("`{text}` may be a row with a number, or bytes separated by commas");
            let remedy = "leave out the number, or write blanks between the bytes";
            return Err(line_start(line).error_expecting(what, remedy));
        }
        let bytes = HexWord { line, digits: hex, is_marked: false, has_prefix: false }.to_bytes()?;
        regions.push(new_region(hex.to_string(), line, bytes, mode));
    }
    require_regions(regions.len(), "measure the rows of the file with --from FILE")?;
    Ok((!regions.is_empty()).then_some(regions))
}

/// Decodes `b'H\x01\xc0'` of Python and Rust, in which characters are bytes.
fn decode_literal(filled: &[(u32, &str)]) -> Option<Vec<u8>> {
    let [(_, text)] = filled else { return None };
    let value = text.split_once('=').map_or(*text, |(_, value)| value.trim());
    let value = value.trim_end_matches(';').strip_prefix('b')?;
    let quote = value.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    let inner = value.strip_prefix(quote)?.strip_suffix(quote).filter(|inner| inner.contains("\\x"))?;
    let mut bytes = Vec::new();
    let mut rest = inner;
    while let Some(c) = rest.chars().next() {
        let (byte, length) = match (c, rest.as_bytes().get(1)) {
            ('\\', Some(b'x')) => (u8::from_str_radix(rest.get(2..4)?, 16).ok()?, 4),
            ('\\', Some(b'n')) => (b'\n', 2),
            ('\\', Some(b't')) => (b'\t', 2),
            ('\\', Some(b'r')) => (b'\r', 2),
            ('\\', Some(b'0')) => (0, 2),
            ('\\', Some(escaped @ (b'\\' | b'"' | b'\''))) => (*escaped, 2),
            ('\\', _) => return None,
            (c, _) if c.is_ascii() => (c as u8, 1),
            _ => return None,
        };
        bytes.push(byte);
        rest = &rest[length..];
    }
    Some(bytes)
}

fn is_column_names(text: &str) -> bool {
    let is_name = |field: &str| {
        let field = field.trim().trim_matches(['"', '\'']);
        !field.is_empty() && field.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | ' ' | '-'))
    };
    text.split(',').all(is_name)
        && ["hex", "code", "block", "bytes"].iter().any(|name| text.to_lowercase().contains(name))
}

/// A word with hexadecimal digits, without its prefix or suffix.
#[derive(Debug, Clone, Copy)]
struct HexWord<'a> {
    line: u32,
    digits: &'a str,
    /// Whether it shows that it is hexadecimal.
    is_marked: bool,
    /// Whether it began with `0x`, so that one digit is a byte too.
    has_prefix: bool,
}

impl HexWord<'_> {
    fn to_bytes(self) -> Result<Vec<u8>, BadSnippet> {
        if self.has_prefix && self.digits.len() == 1 {
            return Ok(vec![u8::from_str_radix(self.digits, 16).expect("a digit")]);
        }
        if self.digits.len() % 2 == 1 {
            let what = format!("`{}` has an odd number of hexadecimal digits", self.digits);
            return Err(line_start(self.line).error_expecting(what, "write two digits a byte"));
        }
        let byte = |at: usize| u8::from_str_radix(&self.digits[at..at + 2], 16).expect("two digits");
        Ok((0..self.digits.len()).step_by(2).map(byte).collect())
    }
}

fn is_hex_word(word: &str) -> bool {
    !word.is_empty() && word.len().is_multiple_of(2) && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Splits a text into words with digits; `None` if it has other words.
fn split_words<'a>(filled: &[(u32, &'a str)]) -> Option<Vec<HexWord<'a>>> {
    let mut words = Vec::new();
    let has_braces = filled.iter().any(|(_, text)| text.contains('{'));
    let is_list = filled.iter().any(|(_, text)| text.contains(['{', '[', '(', '"', '\'']));
    for &(line, text) in filled {
        let text = strip_comment(text).trim();
        // The bytes of a C or Python variable. C may have a second one for their number.
        let is_number = |value: &str| value.trim_end_matches(';').bytes().all(|digit| digit.is_ascii_digit());
        let text = match text.split_once('=') {
            Some((_, value)) if has_braces && is_number(value.trim()) => continue,
            Some((_, value)) => value.trim(),
            None => text,
        };
        // Data of assemblers, if each number shows that it is hexadecimal.
        let data = DATA_DIRECTIVES.iter().find_map(|name| strip_word(text, name));
        let is_marked = |word: &str| word.starts_with("0x") || word.starts_with("0X") || word.ends_with(['h', 'H']);
        // NASM's and MASM's comments begin with `;`.
        let data =
            data.map(|data| if text.starts_with('.') { data } else { data.split(';').next().unwrap_or(data).trim() });
        let text = match data {
            Some(data) if data.split(',').all(|word| is_marked(word.trim())) => data,
            _ => text,
        };
        let text = if is_list { skip_opening(text) } else { text };
        let separates = |c: char| c.is_whitespace() || ",;\"'{}[]()".contains(c);
        for word in text.split(separates).filter(|word| !word.is_empty() && !CASTS.contains(word)) {
            if let Some(escaped) = word.strip_prefix("\\x").or_else(|| word.strip_prefix("\\X")) {
                for byte in escaped.split("\\x") {
                    words.push(parse_word(line, byte).filter(|word| word.digits.len() == 2)?);
                }
                continue;
            }
            // `48:01:c0`; two parts may be an address and a byte.
            let parts: Vec<&str> = word.split([':', '-']).collect();
            if parts.len() > 2 && parts.iter().all(|part| part.len() == 2 && is_hex_word(part)) {
                words.extend(parts.into_iter().map(|digits| HexWord {
                    line,
                    digits,
                    is_marked: false,
                    has_prefix: false,
                }));
                continue;
            }
            words.push(parse_word(line, word)?);
        }
    }
    let has_digit = words.iter().any(|word| word.digits.bytes().any(|byte| byte.is_ascii_digit()));
    let is_instruction = words.first().is_some_and(|word| is_mnemonic(&word.digits.to_lowercase()));
    let is_data = |text: &str| Directive::parse(text) == Some(Directive::Data);
    let is_byte_data = |text: &str| DATA_DIRECTIVES.iter().any(|name| strip_word(text, name).is_some());
    let is_marked = words.iter().all(|word| word.is_marked);
    let is_directive = filled.iter().any(|(_, text)| is_data(text) && !(is_marked && is_byte_data(text)));
    (has_digit && !is_instruction && !is_directive).then_some(words)
}

/// Types in front of a byte, and what continues a line.
const CASTS: [&str; 5] = ["byte", "u8", "uint8_t", "\\", "."];

/// The list behind its name or type: `new byte[] { 0x48`, `bytes.fromhex('48`, `b"\x48`,
/// `Uint8Array([0x48`.
fn skip_opening(text: &str) -> &str {
    const OPENINGS_MOST: usize = 4;
    // Keystone prints the bytes, and how many instructions they are.
    let text = match text.strip_prefix("([").and_then(|list| list.split_once("], ")) {
        Some((list, count)) if count.trim_end_matches(')').bytes().all(|digit| digit.is_ascii_digit()) => list,
        _ => text,
    };
    let is_named = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '[');
    let separates = |c: char| c.is_whitespace() || ",;\"'{}[]()".contains(c);
    let is_byte = |word: &str| parse_word(1, word).is_some() || word.starts_with("\\x") || CASTS.contains(&word);
    let mut openings =
        text.match_indices(['{', '[', '(', '"', '\'']).take(OPENINGS_MOST).map(|(at, _)| text.split_at(at + 1));
    let list = openings.find(|(name, list)| {
        let mut words = list.split(separates).filter(|word| !word.is_empty()).peekable();
        let is_list = (words.peek().is_some() || list.trim().is_empty()) && words.all(is_byte);
        is_list && !names_in(name).any(names_instruction)
    });
    let is_list = text.split(separates).filter(|word| !word.is_empty()).all(is_byte);
    list.filter(|_| is_named && !is_list).map_or(text, |(_, list)| list)
}

/// Whether a word is an instruction's name in either syntax: `[90]` behind it is its operand.
fn names_instruction(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    is_mnemonic(&word) || word.strip_suffix(['b', 'w', 'l', 'q']).is_some_and(is_mnemonic)
}

/// Directives that write bytes.
const DATA_DIRECTIVES: [&str; 8] = [".byte", "db", "DB", ".BYTE", "_emit", "__emit", "_asm _emit", "__asm _emit"];

/// The text after a word.
fn strip_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    text.strip_prefix(word).filter(|rest| rest.starts_with(char::is_whitespace)).map(str::trim)
}

/// Parses `48`, `4801c0`, `0x48` or `48h`.
fn parse_word(line: u32, word: &str) -> Option<HexWord<'_>> {
    let prefixed = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X"));
    let digits = prefixed.or_else(|| masm_digits(word)).unwrap_or(word);
    let is_hex = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let begins = word.starts_with(|c: char| c.is_ascii_digit()) || digits.len().is_multiple_of(2);
    (is_hex && begins).then_some(HexWord {
        line,
        digits,
        is_marked: digits.len() < word.len(),
        has_prefix: prefixed.is_some(),
    })
}

/// The digits of `48h` and `0afh`.
fn masm_digits(word: &str) -> Option<&str> {
    let digits = word.strip_suffix('h').or_else(|| word.strip_suffix('H'))?;
    Some(digits.strip_prefix('0').filter(|rest| rest.len() == 2).unwrap_or(digits))
}

/// Whether a list in brackets has decimal bytes: a number of three digits is no hexadecimal byte.
fn is_decimal_list(filled: &[(u32, &str)], words: &[HexWord]) -> bool {
    let is_byte =
        |word: &HexWord| !word.is_marked && word.digits.parse::<u8>().is_ok_and(|byte| byte.to_string() == word.digits);
    let is_list = filled.iter().any(|(_, text)| text.contains(['[', '{'])) && filled[0].1.contains(',');
    is_list && words.iter().all(is_byte) && words.iter().any(|word| word.digits.len() == 3)
}

/// Fails if the words have two meanings: decimal or hexadecimal, one snippet or several.
fn refuse_list(filled: &[(u32, &str)], words: &[HexWord], mode: CodeMode) -> Result<(), BadSnippet> {
    let at = line_start(filled[0].0);
    let text = filled[0].1;
    let is_decimal = |word: &HexWord| {
        !word.has_prefix && word.digits.len() <= 3 && word.digits.bytes().all(|digit| digit.is_ascii_digit())
    };
    let is_odd = words.iter().any(|word| word.digits.len() % 2 == 1);
    if is_odd && words.len() > 1 && words.iter().all(is_decimal) && !is_decimal_list(filled, words) {
        let what = "these numbers may be decimal, and some have an odd number of digits";
        return Err(at.error_expecting(what, "write each byte with two hexadecimal digits"));
    }
    let is_number = |word: &HexWord| word.has_prefix && matches!(word.digits.len(), 4 | 8 | 16);
    if words.len() > 1 && words.iter().all(is_number) {
        let what = format!("`0x{}` is a number of several bytes, which memory holds in reverse", words[0].digits);
        return Err(at.error_expecting(what, "write each byte on its own, in the order of memory, as in 0x48, 0x01"));
    }
    let braced = text.contains('{') && !filled.iter().any(|(_, text)| text.contains("0x") || text.contains("0X"));
    let is_decimal = |word: &HexWord| word.digits.bytes().all(|byte| byte.is_ascii_digit());
    if braced && words.iter().all(is_decimal) && !is_decimal_list(filled, words) {
        let what = format!("the numbers of `{text}` may be decimal or hexadecimal");
        return Err(at.error_expecting(what, "write 0x in front of each byte"));
    }
    let is_address_line = |(_, text): &(u32, &str)| {
        let mut lengths = text.split_whitespace().map(str::len);
        let first = lengths.next().unwrap_or_default();
        let rest: Vec<usize> = lengths.collect();
        first >= LONG_WORD_DIGITS && !rest.is_empty() && rest.iter().all(|length| *length == 2)
    };
    if filled.iter().all(is_address_line) {
        let address = text.split_whitespace().next().unwrap_or_default();
        let what = format!("`{address}` may be an address or bytes");
        return Err(at.error_expecting(what, "leave out addresses, and write blanks between all bytes"));
    }
    let is_word = |text: &str| is_hex_word(text.trim_matches('"')) && text.len() >= LONG_WORD_DIGITS;
    // The lines of `xxd -p` end inside of instructions.
    let is_wrapped = || {
        let end = |word: &HexWord| {
            new_region(String::new(), word.line, word.to_bytes().unwrap_or_default(), mode).code.is_err()
        };
        words.split_last().is_some_and(|(last, lines)| {
            let length = lines.first().map_or(0, |line| line.digits.len());
            last.digits.len() <= length && lines.iter().all(|line| line.digits.len() == length) && lines.iter().any(end)
        })
    };
    if filled.len() > 1 && filled.iter().all(|(_, text)| is_word(text)) && !is_wrapped() {
        let what = "each line may be a snippet of its own, or all together one";
        let remedy = "join the lines for one snippet, or use --from FILE with the first line `hex` for several";
        return Err(at.error_expecting(what, remedy));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Option<Vec<Vec<u8>>> {
        let found = read_hex_text(&text.lines().collect::<Vec<_>>(), CodeMode::Bits64).expect(text)?;
        Some(found.regions.into_iter().map(|region| region.code.expect(text).listing.bytes().to_vec()).collect())
    }

    #[test]
    fn machine_code_is_read_in_every_notation() {
        for text in [
            "4801c0",
            "48 01 c0",
            "0x48,0x01, 0xC0",
            "\\x48\\x01\\xc0",
            "\"\\x48\\x01\\xc0\"",
            "{0x48, 0x01, 0xc0}",
            "unsigned char code[] = { 0x48, 0x01,\n 0xc0 };",
            "code = b'\\x48\\x01\\xc0'",
            "48h 01h 0c0h",
            "\"4801c0\"",
            "48:01:c0",
            "# a block\n48 01\nc0\n",
            "4801c0,12.50",
            "unsigned char code[] = {\n 0x48, 0x1, 0xc0\n};\nunsigned int code_len = 3;",
            ".byte 0x48, 0x01, 0xc0",
            "db 48h, 01h\ndb 0C0h",
            "new byte[] { 0x48, 0x01, 0xC0 };",
            "b'H\\x01\\xc0'",
            "\\x48\\x01\\xc0  // add rax, rax",
            "hex,cycles\n4801c0,1.50\n",
            "4801\nc0",
            "_asm _emit 0x48\n_asm _emit 0x01\n_asm _emit 0xC0",
            "code := []byte{0x48, 0x01, 0xc0}",
            "new Uint8Array([0x48,0x01,0xc0])",
            "bytes.fromhex('4801c0')",
            "let code: [u8; 3] = [0x48, 0x01, 0xC0];",
            "byte[] code = new byte[] { (byte)0x48, (byte)0x01, (byte)0xC0 };",
            "[Byte[]] $buf = 0x48,0x01,0xc0",
            "buf =  b\"\"\nbuf += b\"\\x48\\x01\"\nbuf += b\"\\xc0\"",
            "[72, 1, 192]",
            "unsigned char code[] = {72, 1, 192};",
            "([72, 1, 192], 1)",
        ] {
            assert_eq!(bytes(text), Some(vec![vec![0x48, 0x01, 0xc0]]), "{text}");
        }
        assert_eq!(bytes("4801c0,1.00\n90909090,0.25").map(|all| all.len()), Some(2));
        for text in ["fadd", "add", "nop", "dec 48", "mov eax, 48h", "1: nop", "db 90", "dd 48", "40: 01 c0", ""] {
            assert_eq!(bytes(text), None, "{text}");
        }
    }

    #[test]
    fn two_meanings_are_errors() {
        for text in [
            "{72, 15}",
            "4801c0\n90909090",
            "4801c0,30",
            "48 0",
            "4801c",
            "000000 48 01 c0",
            "{0x48f88948, 0xc3c6af0f}",
        ] {
            let found = read_hex_text(&text.lines().collect::<Vec<_>>(), CodeMode::Bits64);
            assert!(found.is_err(), "{text}: {found:?}");
        }
    }

    #[test]
    fn an_operand_in_brackets_is_no_list_of_bytes() {
        for text in ["nop; mov rax, [90]", "a: mov rax, [0x90]", "x: callq *(90)", "nop; jmp [90]", "; call (90)"] {
            assert!(read_hex_text(&[text], CodeMode::Bits64).is_ok_and(|found| found.is_none()), "{text}");
        }
    }
}
