//! Text of `objdump -d`, GNU's and LLVM's, and of `dumpbin /disasm`.
//!
//! ```text
//! 0000000000001139 <main>:
//!     1139:  55                     push   %rbp
//! ```

use crate::pasted::listing_line::{
    CodeLine, ListingFormat, ListingLine, parse_after_address, parse_header, take_address, take_byte_pairs,
};

pub(super) const FORMAT: ListingFormat =
    ListingFormat { name: "objdump", read: |lines| lines.iter().map(|line| parse_line(line)).collect() };

/// Parses a line.
pub(super) fn parse_line(line: &str) -> ListingLine<'_> {
    let trimmed = line.trim();
    if trimmed.is_empty() || line.contains("file format ") || trimmed.starts_with("Disassembly of section") {
        return ListingLine::Frame;
    }
    if trimmed == "..." {
        return ListingLine::Gap;
    }
    if let Some(header) = parse_header(trimmed) {
        return header;
    }
    if let Some((address, rest)) = take_address(line.trim_start())
        && !line.trim_start().starts_with("0x")
        && let Some(rest) = rest.strip_prefix(':')
        && rest.starts_with([' ', '\t'])
    {
        return parse_after_address(Some(address), rest);
    }
    // `--no-addresses`, and the further bytes of dumpbin.
    let (bytes, text) = take_byte_pairs(trimmed);
    match (bytes.is_empty(), text.trim()) {
        (true, _) => ListingLine::Unknown,
        (false, "") if !line.starts_with(char::is_whitespace) => ListingLine::Unknown,
        (false, "") => ListingLine::MoreBytes(bytes),
        (false, text) if line.starts_with('\t') => ListingLine::Code(CodeLine { bytes, text, ..CodeLine::default() }),
        _ => ListingLine::Unknown,
    }
}
