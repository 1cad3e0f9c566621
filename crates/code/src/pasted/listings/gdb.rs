//! Text of gdb's `disassemble`, `x/i` and `layout asm`, and of lldb.
//!
//! ```text
//! Dump of assembler code for function main:
//! => 0x0000000000001139 <+0>:  push   %rbp
//! End of assembler dump.
//! ```

use crate::pasted::listing_line::{ListingFormat, ListingLine, parse_after_address, take_address};

pub(super) const FORMAT: ListingFormat =
    ListingFormat { name: "gdb", read: |lines| lines.iter().map(|line| parse_line(line)).collect() };

fn parse_line(line: &str) -> ListingLine<'_> {
    // The window of `layout asm` has a frame, and marks of breakpoints.
    // Its extensions mark the current line with arrows of their own.
    let trimmed = line.trim().trim_matches(|c: char| c.is_whitespace() || !c.is_ascii());
    if let Some(name) = trimmed.strip_prefix("Dump of assembler code for function ") {
        return ListingLine::Header { name: name.trim_end_matches(':') };
    }
    if trimmed == "End of assembler dump." {
        return ListingLine::End;
    }
    // The expression of `display/i`.
    if trimmed.is_empty()
        || trimmed.contains(": x/")
        || trimmed.starts_with("Dump of assembler code")
        || trimmed.starts_with("Address range 0x")
    {
        return ListingLine::Frame;
    }
    let code = ["=>", "->", "B+>", "B+", ">"]
        .iter()
        .find_map(|arrow| trimmed.strip_prefix(arrow))
        .unwrap_or(trimmed)
        .trim_start();
    if code.starts_with("0x")
        && let Some((address, rest)) = take_address(code)
        && let Some(rest) = skip_symbol(rest)
    {
        return parse_after_address(Some(address), rest);
    }
    // lldb with bytes: `a.out[0x100003f60] <+0>:  55  pushq  %rbp`.
    if let Some((program, rest)) = code.split_once("[0x")
        && !program.contains(char::is_whitespace)
        && let Some((address, rest)) = take_address(rest)
        && let Some(rest) = rest.strip_prefix(']').and_then(skip_symbol)
    {
        return parse_after_address(Some(address), rest);
    }
    // lldb names the function after the program: prog`main:
    match trimmed.strip_suffix(':').and_then(|name| name.split_once('`')) {
        Some((_, name)) => ListingLine::Header { name },
        None => ListingLine::Unknown,
    }
}

/// Skips ` <main+4>:` after an address. A demangled name may hold `<` and `>` itself. The colon is
/// missing in the window of `layout asm`.
fn skip_symbol(rest: &str) -> Option<&str> {
    if !rest.trim_start().starts_with('<') {
        return rest.strip_prefix(':');
    }
    match rest.find(">:") {
        Some(end) => Some(&rest[end + 2..]),
        None => rest.split_once('>').map(|(_, after)| after).filter(|after| after.starts_with(' ')),
    }
}
