//! Texts of instructions: names, prefixes and first operands.

use super::text_words::{first_word, is_name_character, names_in, split_statements, strip_comment};
use crate::asm::registers::find_register;
use crate::asm::{is_att_mnemonic, is_mnemonic};

/// Whether a word is the name of an instruction in either syntax.
pub(super) fn is_instruction_name(word: &str) -> bool {
    is_mnemonic(word) || is_att_mnemonic(word)
}

/// Names of prefixes.
const PREFIXES: [&str; 17] = [
    "lock", "rep", "repe", "repz", "repne", "repnz", "bnd", "notrack", "data16", "addr32", "cs", "ds", "es", "fs",
    "gs", "xacquire", "xrelease",
];

/// Whether a text is only a prefix.
pub(super) fn is_prefix(text: &str) -> bool {
    PREFIXES.contains(&text)
}

/// Whether the first word of a text is the name of an instruction or a prefix.
pub(super) fn begins_with_instruction(text: &str) -> bool {
    let word = first_word(text);
    // A type of C.
    let declares = word == "int" && !looks_like_instruction(text);
    (is_instruction_name(&word) || is_prefix(&word)) && !declares
}

/// Whether a text is written like an instruction, and not like a sentence or source code.
pub(super) fn looks_like_instruction(text: &str) -> bool {
    let word = first_word(text);
    let rest = text.trim_start().get(word.len()..).unwrap_or_default().trim();
    if is_prefix(&word) {
        return !rest.is_empty() && looks_like_instruction(rest);
    }
    let is_branch = word.starts_with('j') || word.starts_with("loop") || word.starts_with("call");
    let is_target = is_branch && !rest.is_empty() && rest.chars().all(is_name_character);
    is_instruction_name(&word) && (rest.is_empty() || is_target || begins_like_operand(rest))
}

/// Whether a text begins with a register, a number, a size or an address.
pub(super) fn begins_like_operand(text: &str) -> bool {
    const SIZES: [&str; 10] =
        ["byte", "word", "dword", "qword", "xmmword", "ymmword", "zmmword", "oword", "short", "near"];
    let word = text.trim_start_matches(['%', '*']);
    let name = names_in(word).next().unwrap_or_default();
    let is_known = find_register(name).is_some() || SIZES.contains(&name.to_ascii_lowercase().as_str());
    // A label of data: `x(%rip)`, `table(,%rcx,4)`, `x[rip]`.
    let after = word.strip_prefix(name).filter(|_| !name.is_empty()).unwrap_or_default();
    let is_data = ["(%", "(,%", "[r"].iter().any(|address| after.starts_with(address));
    let is_name = word.starts_with(name) && is_known || is_data;
    is_name || text.starts_with(['[', '(', '$', '-']) || text.starts_with(|c: char| c.is_ascii_digit())
}

/// The instruction of a line without comments. A line has one instruction, so that `;` starts a
/// comment.
pub(super) fn instruction_of(text: &str) -> &str {
    split_statements(strip_comment(text))[0].trim_end()
}

pub(super) fn is_branch_name(word: &str) -> bool {
    word.starts_with('j') || word.starts_with("loop") || word.starts_with("call") || word == "xbegin"
}
