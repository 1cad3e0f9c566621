//! Lines of a listing: addresses, bytes and instructions.

use super::dialect::assembles_in_any_mode;
use super::instruction_text::looks_like_instruction;
use super::text_words::first_word;
use crate::asm::{self, ALL_MODES};
use iced_x86::{Decoder, DecoderOptions};

/// A format of listings.
pub(super) struct ListingFormat {
    /// The program that writes it.
    pub(super) name: &'static str,
    /// Reads each line.
    pub(super) read: for<'a> fn(&[&'a str]) -> Vec<ListingLine<'a>>,
}

/// A line of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ListingLine<'a> {
    /// A function starts.
    Header { name: &'a str },
    /// The name of the place of the next instruction.
    Place { name: &'a str },
    /// An instruction.
    Code(CodeLine<'a>),
    /// More bytes of the instruction before.
    MoreBytes(Vec<u8>),
    /// A relocation: the linker fills in an operand.
    Relocation,
    /// Bytes were left out.
    Gap,
    /// The function ends.
    End,
    /// Text that the format has around code.
    Frame,
    /// Text that the format doesn't explain: source code, or an error.
    Unknown,
}

/// An instruction of a listing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct CodeLine<'a> {
    /// Its address.
    pub(super) address: Option<u64>,
    /// Its bytes; empty if the listing has none.
    pub(super) bytes: Vec<u8>,
    /// Its text, a slice of the line.
    pub(super) text: &'a str,
    /// A prefix that the listing has on a line of its own in front.
    pub(super) prefix: Option<&'a str>,
    /// Name of the place that branches use, if it isn't the address.
    pub(super) label: Option<&'a str>,
    /// The function that begins here, if the line itself names it.
    pub(super) function: Option<&'a str>,
}

/// Takes a hexadecimal number, which may have a `0x` or a backtick inside.
pub(super) fn take_address(text: &str) -> Option<(u64, &str)> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let end = digits.find(|c: char| !c.is_ascii_hexdigit() && c != '`').unwrap_or(digits.len());
    let number = digits[..end].replace('`', "");
    if number.is_empty() || number.len() > 16 {
        return None;
    }
    Some((u64::from_str_radix(&number, 16).ok()?, &digits[end..]))
}

/// Takes bytes as pairs of digits with single blanks between them.
pub(super) fn take_byte_pairs(text: &str) -> (Vec<u8>, &str) {
    let mut bytes = Vec::new();
    let mut rest = text;
    let is_pair = |pair: &&str| pair.bytes().all(|digit| digit.is_ascii_hexdigit());
    while let Some(pair) = rest.get(..2).filter(is_pair) {
        // MASM writes `48/ 8B C1` behind a prefix.
        let after = rest[2..].strip_prefix(['/', '|']).filter(|after| after.starts_with(' ')).unwrap_or(&rest[2..]);
        if !(after.is_empty() || after.starts_with([' ', '\t'])) {
            break;
        }
        bytes.push(u8::from_str_radix(pair, 16).expect("two digits"));
        rest = after;
        match rest.strip_prefix(' ') {
            Some(next) => rest = next,
            None => break,
        }
    }
    (bytes, rest)
}

/// Takes bytes as one word with two digits a byte.
pub(super) fn take_byte_word(text: &str) -> Option<(Vec<u8>, &str)> {
    let end = text.find(|c: char| c.is_whitespace()).unwrap_or(text.len());
    let word = &text[..end];
    if word.is_empty() || word.len() % 2 == 1 || !word.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let byte = |at: usize| u8::from_str_radix(&word[at..at + 2], 16).expect("two digits");
    Some(((0..word.len()).step_by(2).map(byte).collect(), &text[end..]))
}

/// Names of relocations begin like this.
const RELOCATIONS: [&str; 4] = ["R_X86_64_", "IMAGE_REL_AMD64_", "R_386_", "IMAGE_REL_I386_"];

/// Parses what follows an address and a colon: bytes and an instruction, or one of them.
pub(super) fn parse_after_address(address: Option<u64>, rest: &str) -> ListingLine<'_> {
    // Arrows of `--visualize-jumps` stand between the address and the code.
    let rest = rest.trim_start_matches(|c: char| c.is_whitespace() || "/|\\->+X".contains(c));
    let (bytes, text) = take_byte_pairs(rest);
    let text = strip_pointer(text);
    match (bytes.is_empty(), text.is_empty()) {
        (_, false) if RELOCATIONS.iter().any(|start| text.starts_with(start)) => ListingLine::Relocation,
        (true, true) => ListingLine::Frame,
        // Bytes in groups, as in a dump of data.
        (true, false) if text.starts_with(|c: char| c.is_ascii_digit()) => ListingLine::Unknown,
        (false, true) => ListingLine::MoreBytes(bytes),
        _ => ListingLine::Code(CodeLine { address, bytes, text, ..CodeLine::default() }),
    }
}

/// Whether bytes are one instruction.
pub(super) fn is_one_instruction(bytes: &[u8]) -> bool {
    ALL_MODES.into_iter().any(|mode| {
        let mut decoder = Decoder::new(mode.bits(), bytes, DecoderOptions::NONE);
        let is_valid = decoder.can_decode() && !decoder.decode().is_invalid();
        is_valid && !decoder.can_decode()
    })
}

/// Whether a text may name the instruction that bytes hold.
pub(super) fn is_name_of(text: &str, bytes: &[u8]) -> bool {
    let decoded = Decoder::new(64, bytes, DecoderOptions::NONE).decode();
    let holds = format!("{:?}", decoded.mnemonic()).to_ascii_lowercase();
    let says = first_word(text);
    says.starts_with(&holds) || holds.starts_with(&says) || !asm::is_mnemonic(&says)
}

/// Cuts the columns behind an instruction: counts, values and comments. The text stays as it is if
/// it assembles, if no shorter one does, or if an instruction follows.
pub(super) fn cut_tail(text: &str) -> &str {
    const ENDS_MOST: usize = 12;
    let is_end = |at: &usize| {
        let (before, rest) = text.split_at(*at);
        let after = rest.trim_start();
        let gap = &rest[..rest.len() - after.len()];
        let separates = after.starts_with(['|', '`', '\u{2502}', '\u{2192}'])
            || after.starts_with("=>")
            || gap.contains('\t')
            || gap.len() > 1;
        separates && !before.ends_with(|c: char| c.is_whitespace() || c == ',') && !after.starts_with(',')
    };
    let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).filter(is_end).take(ENDS_MOST).collect();
    let code = |end: usize| text[..end].split(';').next().unwrap_or_default();
    if ends.is_empty() || is_branch(text) || assembles_in_any_mode(code(text.len())) {
        return text;
    }
    let end = ends.iter().rev().find(|end| assembles_in_any_mode(code(**end)));
    let has_other = |end: usize| has_instruction_inside(&text[end..]);
    end.filter(|end| !has_other(**end)).map_or(text, |end| &text[..*end])
}

/// Whether an instruction with operands begins at some word of a text.
pub(super) fn has_instruction_inside(text: &str) -> bool {
    let separates = |c: char| c.is_whitespace() || matches!(c, '|' | '`' | '\u{2502}');
    let mut words = text.split(separates).filter(|word| !word.is_empty());
    words.any(|word| {
        let rest = &text[word.as_ptr() as usize - text.as_ptr() as usize..];
        looks_like_instruction(rest) && rest.trim().contains(char::is_whitespace)
    })
}

/// Whether the operand of an instruction is a place in the code.
fn is_branch(text: &str) -> bool {
    let word = first_word(text);
    word.starts_with('j') || word.starts_with("loop") || word.starts_with("call")
}

/// The text of an instruction without the arrow of the kernel's `decodecode`.
fn strip_pointer(text: &str) -> &str {
    text.split_once("<-- trapping").map_or(text, |(before, _)| before).trim()
}

/// Whether a text has an address in front of a colon and more text, as lines of code have.
pub(super) fn begins_like_code_line(text: &str) -> bool {
    let begins = text.starts_with("0x") || text.starts_with(|c: char| c.is_ascii_digit());
    let after = take_address(text).and_then(|(_, after)| after.strip_prefix(':')).unwrap_or_default();
    begins && after.starts_with([' ', '\t']) && !after.trim().is_empty()
}

/// Whether an instruction follows words with digits, such as bytes or shares.
pub(super) fn has_code_behind_digits(text: &str) -> bool {
    const WORDS_MOST: usize = 24;
    let mut rest = text.trim();
    for words in 0..WORDS_MOST {
        if words > 0 && looks_like_instruction(rest) {
            return true;
        }
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let is_number = |c: char| c.is_ascii_hexdigit() || !c.is_ascii() || ".%:|x`/$\\<>=*+-[]".contains(c);
        // IDA: `.text:0000000140001010`.
        let is_section = |word: &str| {
            let digits = word.rsplit_once(':').map_or("", |(_, digits)| digits);
            digits.len() >= 8 && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
        };
        let is_symbol = rest.starts_with('<');
        if end == rest.len() || !(is_symbol || rest[..end].chars().all(is_number) || is_section(&rest[..end])) {
            return false;
        }
        rest = rest[end..].trim_start();
    }
    false
}

/// Parses `0000000000001139 <main>:`, or `<main>:` without an address.
pub(super) fn parse_header(line: &str) -> Option<ListingLine<'_>> {
    let line = line.trim();
    let line = match line.split_once("> (File Offset: ") {
        Some((before, _)) => &line[..=before.len()],
        None => line.strip_suffix(':')?,
    };
    let (has_address, after) = take_address(line).map_or((false, line), |(_, after)| (true, after));
    let name = after.trim_start().strip_prefix('<')?.strip_suffix('>')?;
    // `llvm-objdump --symbolize-operands` numbers the places in a function.
    let is_place = |digits: &str| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    Some(match !has_address && name.strip_prefix('L').is_some_and(is_place) {
        true => ListingLine::Place { name },
        false => ListingLine::Header { name },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_behind_an_instruction_are_cut() {
        for (text, code) in [
            ("imul   eax, eax", "imul   eax, eax"),
            ("mov eax, [rbp - 0x14]     EAX, [0x7ff] => 3", "mov eax, [rbp - 0x14]"),
            ("imul rax, rdi\t1.203s\t12,000,000", "imul rax, rdi"),
            ("add eax, ebx | EAX=1", "add eax, ebx"),
            ("imul eax, ebx | shl eax, 3", "imul eax, ebx | shl eax, 3"),
            ("imul eax, frob  , 3", "imul eax, frob  , 3"),
            ("imul eax, ebx  , frob", "imul eax, ebx  , frob"),
        ] {
            assert_eq!(cut_tail(text), code);
        }
    }

    #[test]
    fn bytes_end_at_two_blanks_or_a_tab() {
        assert_eq!(take_byte_pairs("48 85 f6             \ttest"), (vec![0x48, 0x85, 0xf6], "            \ttest"));
        assert_eq!(take_byte_pairs("48/ 8B C1\tmov"), (vec![0x48, 0x8b, 0xc1], "\tmov"));
        assert_eq!(take_byte_pairs("90\tnop"), (vec![0x90], "\tnop"));
        assert_eq!(take_byte_pairs("add %rax"), (vec![], "add %rax"));
        assert_eq!(take_byte_word("4801c0 x"), Some((vec![0x48, 1, 0xc0], " x")));
        assert_eq!(take_address("0000abcd`12340000: x"), Some((0xabcd_1234_0000, ": x")));
    }
}
