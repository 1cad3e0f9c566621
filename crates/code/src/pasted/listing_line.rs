//! Lines of a listing: addresses, bytes and instructions.

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
        let after = &rest[2..];
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

/// Parses what follows an address and a colon: bytes and an instruction, or one of them.
pub(super) fn parse_after_address(address: Option<u64>, rest: &str) -> ListingLine<'_> {
    // Arrows of `--visualize-jumps` stand between the address and the code.
    let rest = rest.trim_start_matches(|c: char| c.is_whitespace() || "/|\\->+X".contains(c));
    let (bytes, text) = take_byte_pairs(rest);
    let text = text.trim();
    match (bytes.is_empty(), text.is_empty()) {
        (_, false) if text.starts_with("R_X86_64_") || text.starts_with("IMAGE_REL_AMD64_") => ListingLine::Relocation,
        (true, true) => ListingLine::Frame,
        // Bytes in groups, as in a dump of data.
        (true, false) if text.starts_with(|c: char| c.is_ascii_digit()) => ListingLine::Unknown,
        (false, true) => ListingLine::MoreBytes(bytes),
        _ => ListingLine::Code(CodeLine { address, bytes, text, ..CodeLine::default() }),
    }
}

/// Parses `0000000000001139 <main>:`, or `<main>:` without an address.
pub(super) fn parse_header(line: &str) -> Option<ListingLine<'_>> {
    let line = line.trim();
    let after = take_address(line).map_or(line, |(_, after)| after);
    let name = after.trim_start().strip_prefix('<')?.strip_suffix(">:")?;
    Some(ListingLine::Header { name })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_end_at_two_blanks_or_a_tab() {
        assert_eq!(take_byte_pairs("48 85 f6             \ttest"), (vec![0x48, 0x85, 0xf6], "            \ttest"));
        assert_eq!(take_byte_pairs("90\tnop"), (vec![0x90], "\tnop"));
        assert_eq!(take_byte_pairs("add %rax"), (vec![], "add %rax"));
        assert_eq!(take_byte_word("4801c0 x"), Some((vec![0x48, 1, 0xc0], " x")));
        assert_eq!(take_address("0000abcd`12340000: x"), Some((0xabcd_1234_0000, ": x")));
    }
}
