//! Normalises the spelling of operands and mnemonics.
//!
//! Both sides of a comparison are normalised, so it only matters that equal forms become equal. An
//! implied register with a number (`xmm0`) becomes its class, like any other.

/// Synonyms of a class, before a number of bits.
const WIDTH_WORDS: [(&str, &str); 6] =
    [("reg", "r"), ("gpr", "r"), ("mem", "m"), ("immediate", "imm"), ("imm", "imm"), ("i", "imm")];

/// Classes whose registers are numbered.
const NUMBERED_CLASSES: [&str; 10] = ["xmm", "ymm", "zmm", "tmm", "mm", "st", "bnd", "cr", "dr", "k"];

/// Synonyms of whole words.
const WHOLE_WORDS: [(&str, &str); 5] = [("r8l", "r8"), ("mmx", "mm"), ("mem", "m"), ("st(i)", "st"), ("sti", "st")];

/// Synonyms of conditions, with the names in the instruction database.
const CONDITIONS: [(&str, &str); 14] = [
    ("c", "b"),
    ("nae", "b"),
    ("nc", "ae"),
    ("nb", "ae"),
    ("z", "e"),
    ("nz", "ne"),
    ("na", "be"),
    ("nbe", "a"),
    ("pe", "p"),
    ("po", "np"),
    ("nge", "l"),
    ("nl", "ge"),
    ("ng", "le"),
    ("nle", "g"),
];

/// The mnemonic in lower case, with a canonical condition name.
pub(crate) fn spell_mnemonic(text: &str) -> String {
    let text = text.trim().to_lowercase();
    for stem in ["j", "set", "cmov"] {
        let condition = text.strip_prefix(stem).unwrap_or_default();
        if let Some((_, name)) = CONDITIONS.iter().find(|(other, _)| *other == condition) {
            return format!("{stem}{name}");
        }
    }
    text
}

/// Operands as tables write them, separated by a comma and a space.
pub(crate) fn spell_operands(text: &str) -> String {
    let text: String = text.to_lowercase().split_whitespace().collect();
    let operands = text.split(',').filter(|operand| !operand.is_empty());
    operands.map(spell_operand).collect::<Vec<_>>().join(", ")
}

fn spell_operand(text: &str) -> String {
    let (word, decorators) = text.split_at(text.find('{').unwrap_or(text.len()));
    format!("{}{}", spell_class(word), unify_masks(decorators))
}

fn spell_class(word: &str) -> String {
    if let Some((_, known)) = WHOLE_WORDS.iter().find(|(other, _)| *other == word) {
        return known.to_string();
    }
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    for (other, known) in WIDTH_WORDS {
        if let Some(bits) = word.strip_prefix(other).filter(|rest| digits(rest)) {
            return format!("{known}{bits}");
        }
    }
    // `st(1)` as well as `st1`.
    let bare = word.replace(['(', ')'], "");
    let numbered = NUMBERED_CLASSES.iter().find(|class| bare.strip_prefix(*class).is_some_and(digits));
    numbered.map_or(word.to_string(), |class| class.to_string())
}

/// Replaces `{k1}` to `{k7}` by `{k}`.
fn unify_masks(decorators: &str) -> String {
    (1..8).fold(decorators.to_string(), |text, number| text.replace(&format!("{{k{number}}}"), "{k}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{HashMap, HashSet};

    #[test]
    fn operands_of_other_tables_are_normalised() {
        let cases = [
            ("R64,R64", "r64, r64"),
            ("reg32 , imm8", "r32, imm8"),
            ("gpr64,mem64,I8", "r64, m64, imm8"),
            ("xmm1, xmm2, xmm15", "xmm, xmm, xmm"),
            ("zmm1{k1}{z}, zmm2, m32{1to16}", "zmm{k}{z}, zmm, m32{1to16}"),
            ("st(0), st(3)", "st, st"),
            ("k3{k2}, zmm0{sae}", "k{k}, zmm{sae}"),
            ("r8l, r8h", "r8, r8h"),
            ("vm32x, moffs64, rel8", "vm32x, moffs64, rel8"),
            ("", ""),
        ];
        for (text, ours) in cases {
            assert_eq!(spell_operands(text), ours, "{text}");
        }
    }

    #[test]
    fn conditions_have_a_canonical_name() {
        let cases = [("JZ", "je"), ("cmovnae", "cmovb"), ("setpo", "setnp"), ("jmp", "jmp"), ("sets", "sets")];
        for (text, ours) in cases {
            assert_eq!(spell_mnemonic(text), ours);
        }
        let known: HashSet<String> = cyclescope_code::asm::forms::all_forms().map(|form| form.mnemonic()).collect();
        for (_, name) in CONDITIONS {
            for stem in ["j", "set", "cmov"] {
                assert!(known.contains(&format!("{stem}{name}")), "{stem}{name}");
            }
        }
    }

    #[test]
    fn different_forms_stay_different() {
        let mut seen = HashMap::new();
        for form in cyclescope_code::asm::forms::all_forms() {
            let written = form.describe_operands();
            let key = (form.code, spell_operands(&written));
            if let Some(other) = seen.insert(key, written.clone()) {
                panic!("{:?}: `{other}` and `{written}`", form.code);
            }
        }
    }
}
