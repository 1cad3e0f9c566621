//! Text of `objdump -d`, GNU's and LLVM's, and of `dumpbin /disasm`.
//!
//! ```text
//! 0000000000001139 <main>:
//!     1139:  55                     push   %rbp
//! ```

use crate::pasted::instruction_text::begins_with_instruction;
use crate::pasted::listing_line::{
    CodeLine, ListingFormat, ListingLine, parse_after_address, parse_header, take_address, take_byte_pairs,
};

pub(super) const FORMAT: ListingFormat =
    ListingFormat { name: "objdump", read: |lines| lines.iter().map(|line| parse_line(line)).collect() };

/// Parses a line.
pub(super) fn parse_line(line: &str) -> ListingLine<'_> {
    let trimmed = line.trim();
    // gdb numbers the expression of `display/i`: `1: x/i $pc`.
    if trimmed.is_empty()
        || is_expression(trimmed)
        || line.contains("file format ")
        || trimmed.starts_with("Disassembly of section")
    {
        return ListingLine::Frame;
    }
    // The kernel's `decodecode` repeats the end of the code.
    if trimmed == "Code starting with the faulting instruction" {
        return ListingLine::Header { name: "faulting instruction" };
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
        // The kernel's `decodecode` marks the instruction of a fault.
        && let rest = rest.strip_prefix('*').unwrap_or(rest)
        && rest.starts_with([' ', '\t'])
    {
        return parse_after_address(Some(address), rest);
    }
    if let Some(code) = parse_prefix_address(line) {
        return code;
    }
    // `--no-addresses`, and the further bytes of dumpbin.
    let (bytes, text) = take_byte_pairs(trimmed);
    let is_code = line.starts_with('\t') || begins_with_instruction(strip_comment_mark(text));
    let text = if line.starts_with('\t') { text } else { strip_comment_mark(text) };
    match (bytes.is_empty(), text.trim()) {
        (true, _) => ListingLine::Unknown,
        (false, "") if !line.starts_with(char::is_whitespace) => ListingLine::Unknown,
        (false, "") => ListingLine::MoreBytes(bytes),
        (false, text) if is_code => ListingLine::Code(CodeLine { bytes, text, ..CodeLine::default() }),
        _ => ListingLine::Unknown,
    }
}

/// Whether a line is `1: x/i $pc`.
fn is_expression(line: &str) -> bool {
    line.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with(": x/")
}

/// Parses `0000000000001139 <main+0x4> mov %rsp,%rbp` of `--prefix-addresses`.
fn parse_prefix_address(line: &str) -> Option<ListingLine<'_>> {
    let (address, rest) = take_address(line)?;
    let (symbol, rest) = rest.strip_prefix(" <")?.split_once("> ")?;
    let (bytes, text) = take_byte_pairs(rest.trim_start());
    let text = text.trim();
    let function = Some(symbol).filter(|symbol| !symbol.contains("+0x"));
    let code = CodeLine { address: Some(address), bytes, text, function, ..CodeLine::default() };
    begins_with_instruction(text).then_some(ListingLine::Code(code))
}

/// The text after a mark that makes it a comment: `48 01 d8  ; add rax, rbx`.
fn strip_comment_mark(text: &str) -> &str {
    text.trim_start().trim_start_matches([';', '#']).trim_start()
}
