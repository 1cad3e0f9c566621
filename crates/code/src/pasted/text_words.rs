//! Words, comments and columns of a line.

use crate::asm::TextPosition;
use cyclescope_core::error::BadSnippet;
use std::collections::BTreeSet;

/// The start of a line.
pub(super) fn line_start(line: u32) -> TextPosition {
    TextPosition { line, column: 1 }
}

/// The position of a part of a line, which must be a slice of it.
pub(super) fn position_in(line: u32, whole: &str, part: &str) -> TextPosition {
    let offset = (part.as_ptr() as usize).wrapping_sub(whole.as_ptr() as usize).min(whole.len());
    TextPosition { line, column: whole[..offset].chars().count() as u32 + 1 }
}

/// Most instructions of a text: a snippet has at most as many bytes.
const INSTRUCTIONS_MOST: usize = 64 << 10;

/// Most lines of a text: instructions, and source code between them.
const LINES_MOST: usize = 256 << 10;
/// Most regions of a text.
const REGIONS_MOST: usize = 100;
/// What helps if a text is too long.
const SHORTEN: &str = "paste the part that matters, such as a loop";

/// Fails if a text has too many lines.
pub(super) fn require_lines(lines: usize) -> Result<(), BadSnippet> {
    if lines <= LINES_MOST {
        return Ok(());
    }
    Err(line_start(1).error_expecting(format!("the text has {lines} lines, more than {LINES_MOST}"), SHORTEN))
}

/// Fails if a text has too many regions.
pub(super) fn require_regions(regions: usize, remedy: &str) -> Result<(), BadSnippet> {
    if regions <= REGIONS_MOST {
        return Ok(());
    }
    Err(line_start(1).error_expecting(format!("the text has {regions} regions, more than {REGIONS_MOST}"), remedy))
}

/// Fails if a text has too many instructions.
pub(super) fn require_count(instructions: usize) -> Result<(), BadSnippet> {
    if instructions <= INSTRUCTIONS_MOST {
        return Ok(());
    }
    let message = format!("the text has {instructions} instructions, more than {INSTRUCTIONS_MOST}");
    Err(line_start(1).error_expecting(message, SHORTEN))
}

pub(super) fn has_content(line: &str) -> bool {
    !line.trim().is_empty()
}

/// The line's first word in lower case.
pub(super) fn first_word(text: &str) -> String {
    text.split_whitespace().next().unwrap_or_default().to_ascii_lowercase()
}

/// The places of the bytes outside of quotes.
fn unquoted_places(text: &str) -> impl Iterator<Item = usize> + '_ {
    let bytes = text.as_bytes();
    let (mut quote, mut next) = (None, 0);
    std::iter::from_fn(move || {
        while let Some(&byte) = bytes.get(next) {
            let at = next;
            next += 1;
            match (quote, byte) {
                (Some(_), b'\\') => next += 1,
                (Some(open), byte) if byte == open => quote = None,
                (Some(_), _) => {}
                (None, b'"') => quote = Some(b'"'),
                // A character, such as `'#'`.
                (None, b'\'') if bytes.get(at + 2) == Some(&b'\'') => next += 2,
                _ => return Some(at),
            }
        }
        None
    })
}

/// The line without a comment that starts with `#` or `//`. A quoted text may hold both.
pub(super) fn strip_comment(line: &str) -> &str {
    let bytes = line.as_bytes();
    // `https://` is an address of the web.
    let is_url = |at: usize| at > 0 && bytes[at - 1] == b':';
    // So is the number of a lambda in a name of C++: `{lambda(int)#1}`.
    let is_number = |at: usize| {
        let digits = bytes[at + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        digits > 0 && bytes.get(at + 1 + digits) == Some(&b'}')
    };
    let begins = |at: &usize| bytes[*at] == b'#' && !is_number(*at) || bytes[*at..].starts_with(b"//") && !is_url(*at);
    unquoted_places(line).find(begins).map_or(line, |at| &line[..at])
}

/// Splits a text at each `;` that isn't in quotes.
pub(super) fn split_statements(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    for at in unquoted_places(text).filter(|at| text.as_bytes()[*at] == b';') {
        parts.push(&text[start..at]);
        start = at + 1;
    }
    parts.push(&text[start..]);
    parts
}

/// Whether a character may be part of a name.
pub(super) fn is_name_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '@' | '?' | '$')
}

/// Removes the brackets of labels that llvm-objdump writes without addresses: `<L0>:` and `jb <L0>`.
pub(super) fn unwrap_labels(text: &str) -> String {
    let label = |line: &'_ str| {
        let name = line.trim().strip_prefix('<')?.strip_suffix(">:")?;
        (!name.is_empty() && name.chars().all(is_name_character)).then(|| name.to_string())
    };
    let labels: BTreeSet<String> = text.lines().filter_map(label).collect();
    if labels.is_empty() {
        return text.to_string();
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('<') {
        plain.push_str(before);
        match after.split_once('>').filter(|(name, _)| labels.contains(*name)) {
            Some((name, behind)) => {
                plain.push_str(name);
                rest = behind;
            }
            None => {
                plain.push('<');
                rest = after;
            }
        }
    }
    plain + rest
}

/// The names in a text.
pub(super) fn names_in(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c| !is_name_character(c)).filter(|name| !name.is_empty())
}

/// Replaces comments between `/*` and `*/` by blanks. Lines and columns don't change.
pub(super) fn blank_block_comments(text: &str) -> String {
    let mut blanked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(begin) = rest.find("/*") {
        let end = rest[begin + 2..].find("*/").map_or(rest.len(), |end| begin + 2 + end + 2);
        blanked.push_str(&rest[..begin]);
        blanked.extend(rest[begin..end].chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        rest = &rest[end..];
    }
    blanked.push_str(rest);
    blanked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_cut_outside_of_quotes() {
        assert_eq!(strip_comment("add rax, 1 # one"), "add rax, 1 ");
        assert_eq!(strip_comment("mov al, '#' // c"), "mov al, '#' ");
        assert_eq!(strip_comment(".string \"a#b\\\"#\" # c"), ".string \"a#b\\\"#\" ");
        assert_eq!(split_statements("mov al, ';'; nop;"), ["mov al, ';'", " nop", ""]);
        assert_eq!(strip_comment("f::{lambda(int)#1}: # c"), "f::{lambda(int)#1}: ");
        assert_eq!(unwrap_labels("<f>:\n<L0>:\n jb <L0>\n jb <L1>"), "f:\nL0:\n jb L0\n jb <L1>");
        assert_eq!(blank_block_comments("a /* b\nc */ d"), "a     \n     d");
    }
}
