//! Decides whether `;` separates statements or starts a comment.
//!
//! It separates in GNU as and on a command line, and starts a comment in NASM, MASM and IDA. The
//! text decides: words that are no instruction are a comment, and so is what follows `;` at the
//! start of a line. If neither occurs, a text of several lines in Intel syntax has two meanings.

use super::dialect::CodeDialect;
use super::instruction_text::{begins_like_operand, is_instruction_name};
use super::text_words::{first_word, names_in, position_in, require_count, split_statements, strip_comment};
use crate::asm::{self, InstructionSyntax, TextPosition};
use cyclescope_core::error::BadSnippet;
use std::collections::BTreeSet;

/// Meaning of `;` in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SemicolonMeaning {
    /// It separates statements.
    Separator,
    /// It starts a comment.
    Comment,
}

/// What follows a `;`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TailKind {
    /// Nothing.
    Empty,
    /// An instruction.
    Code,
    /// Words that are no instruction.
    Prose,
    /// Almost an instruction.
    Unclear,
}

/// Remedy that removes the second meaning.
const REMEDY: &str = "write each instruction on a line of its own, and start comments with `#`";

/// Decides what `;` means in these lines.
pub(super) fn decide_semicolons(lines: &[&str], dialect: CodeDialect) -> Result<SemicolonMeaning, BadSnippet> {
    let is_one_line = lines.iter().filter(|line| !line.trim().is_empty()).count() < 2;
    require_count(lines.iter().map(|line| line.matches(';').count()).sum())?;
    let labels = find_labels(lines);
    let (mut code_at, mut unclear_at, mut is_comment) = (None, None, false);
    for (number, line) in (1..).zip(lines) {
        let code = strip_comment(line);
        let parts = split_statements(code);
        for tail in &parts[1..] {
            let at = position_in(number, line, tail);
            match classify_tail(tail, dialect, &labels) {
                TailKind::Empty => {}
                TailKind::Prose if is_one_line => return Err(prose_error(at, tail)),
                TailKind::Prose => is_comment = true,
                _ if parts[0].trim().is_empty() && !is_one_line => is_comment = true,
                TailKind::Code => code_at = code_at.or(Some((at, *tail, parts[0]))),
                TailKind::Unclear => unclear_at = unclear_at.or(Some((at, *tail))),
            }
        }
    }
    if is_one_line {
        let leading = lines.iter().find(|line| line.trim_start().starts_with(';'));
        return match (leading, code_at) {
            (Some(_), Some((at, tail, _))) => Err(ambiguity_error(at, tail)),
            _ => Ok(SemicolonMeaning::Separator),
        };
    }
    let syntax = dialect.syntax;
    match (is_comment, unclear_at, code_at) {
        (true, Some((at, tail)), _) => Err(ambiguity_error(at, tail)),
        (true, None, _) => Ok(SemicolonMeaning::Comment),
        (false, _, Some((at, tail, _))) if syntax != Some(InstructionSyntax::Att) => Err(ambiguity_error(at, tail)),
        (false, Some((at, tail)), None) if syntax != Some(InstructionSyntax::Att) => Err(ambiguity_error(at, tail)),
        _ => Ok(SemicolonMeaning::Separator),
    }
}

fn ambiguity_error(at: TextPosition, tail: &str) -> BadSnippet {
    let what = format!("`{}` after `;` may be an instruction (GNU as) or a comment (NASM)", tail.trim());
    at.error_expecting(what, REMEDY)
}

fn prose_error(at: TextPosition, tail: &str) -> BadSnippet {
    let what = format!("`{}` is no instruction, and `;` separates instructions here", tail.trim());
    at.error_expecting(what, "start a comment with `#`")
}

/// Names in front of a colon.
fn find_labels<'a>(lines: &[&'a str]) -> BTreeSet<&'a str> {
    let parts = lines.iter().flat_map(|line| split_statements(line));
    parts.filter_map(|part| part.split_once(':')).filter_map(|(before, _)| names_in(before).last()).collect()
}

fn classify_tail(tail: &str, dialect: CodeDialect, labels: &BTreeSet<&str>) -> TailKind {
    let mut text = tail.trim();
    if let Some((label, rest)) = text.split_once(':')
        && names_in(label).next() == Some(label.trim())
        && labels.contains(label.trim())
        && asm::registers::find_register(label.trim()).is_none()
    {
        text = rest.trim();
        if text.is_empty() {
            return TailKind::Code;
        }
    }
    if text.is_empty() {
        return TailKind::Empty;
    }
    if super::directives::Directive::parse(text).is_some() {
        return TailKind::Code;
    }
    let parsed = dialect.assemble(text);
    let word = first_word(text);
    let operand = text[word.len()..].trim_start();
    match parsed {
        Ok(listing) if listing.bytes().is_empty() => TailKind::Empty,
        Ok(_) => TailKind::Code,
        // A branch to a label of another line.
        Err(_) if is_instruction_name(&word) && names_label(operand, labels) => TailKind::Code,
        Err(_) if is_almost_instruction(&word) && begins_like_operand(operand) => TailKind::Unclear,
        Err(_) => TailKind::Prose,
    }
}

fn names_label(operand: &str, labels: &BTreeSet<&str>) -> bool {
    let name = operand.trim();
    labels.contains(name) || name.strip_suffix(['f', 'b']).is_some_and(|number| labels.contains(number))
}

/// Whether a word is an instruction, or becomes one by leaving out one character.
fn is_almost_instruction(word: &str) -> bool {
    let shorter = |(at, c): (usize, char)| format!("{}{}", &word[..at], &word[at + c.len_utf8()..]);
    is_instruction_name(word) || word.char_indices().map(shorter).any(|shorter| is_instruction_name(&shorter))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decide(text: &str) -> Result<SemicolonMeaning, String> {
        let lines: Vec<&str> = text.lines().collect();
        let syntax = super::super::dialect::recognize_syntax(lines.iter().copied());
        decide_semicolons(&lines, CodeDialect { syntax, ..CodeDialect::default() }).map_err(|error| error.message)
    }

    #[test]
    fn the_text_decides_what_a_semicolon_means() {
        use SemicolonMeaning::{Comment, Separator};
        for (text, expected) in [
            ("imul rax, rax; pause", Separator),
            ("imul rax, rax;\nnop;\n", Separator),
            ("; loop over rows\nadd rax, 1 ; one more\nnop", Comment),
            ("nop\n; imul rax, rax\nadd rax, 1", Comment),
            ("mov %rax, %rbx; nop\nnop", Separator),
            ("add rax, 1 ; imul rax, rax\nnop ; and so on\n", Comment),
            ("nop\nadd rax, 1 ; and add one", Comment),
        ] {
            assert_eq!(decide(text), Ok(expected), "{text}");
        }
        for text in [
            "add rax, 1 ; imul rax, rax\nnop",
            "; imul rax, rax",
            "add rax, 1 ; adds one",
            "add rax, 1 ; imull rax, rax\nnop ; and so on",
            "top: dec ecx ; jnz top\nnop",
        ] {
            assert!(decide(text).is_err(), "{text}: {:?}", decide(text));
        }
    }
}
