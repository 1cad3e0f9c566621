//! Normalises the spelling of operands and mnemonics.
//!
//! Both sides of a comparison are normalised, so it only matters that equal forms become equal. An
//! implied register with a number (`xmm0`) becomes its class, like any other.
//!
//! The operands of a string instruction follow from its name. Some tables write all of them (`m8,
//! al`), some only the register, and most none. All become none.

use cyclescope_code::asm::forms::{self, OperandChoice};
use std::collections::HashSet;
use std::sync::LazyLock;

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

/// Synonyms of prefixes, with the names in the instruction database.
const PREFIXES: [(&str, &str); 2] = [("repz", "repe"), ("repnz", "repne")];

/// Registers that string instructions imply.
const STRING_REGISTERS: [&str; 5] = ["al", "ax", "eax", "rax", "dx"];

/// String instructions, with their prefixes.
static STRING_MNEMONICS: LazyLock<HashSet<String>> = LazyLock::new(|| {
    let is_string = |form: &forms::InstructionForm| {
        form.build_instruction(&OperandChoice::default()).is_some_and(|instruction| instruction.is_string_instruction())
    };
    forms::all_forms().filter(is_string).map(|form| form.mnemonic()).collect()
});

/// The mnemonic and the operands of a form, as equal forms of all tables spell them.
pub(crate) fn spell_form(mnemonic: &str, operands: &str) -> (String, String) {
    let (mnemonic, operands) = (spell_mnemonic(mnemonic), spell_operands(operands));
    // SSE instructions share two of these names. They have vector registers.
    let follows = STRING_MNEMONICS.contains(&mnemonic) && operands.split(", ").all(is_string_operand);
    let operands = if follows { String::new() } else { operands };
    (mnemonic, operands)
}

/// Whether the operand is one that a string instruction implies. The mnemonic names its prefix too.
fn is_string_operand(operand: &str) -> bool {
    let word = operand.split('{').next().unwrap_or_default();
    let bits = word.strip_prefix('m').is_some_and(|bits| bits.bytes().all(|byte| byte.is_ascii_digit()));
    word.is_empty() || bits || STRING_REGISTERS.contains(&word)
}

/// The mnemonic in lower case, with canonical names of prefix and condition.
pub(crate) fn spell_mnemonic(text: &str) -> String {
    let mut text = text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    if let Some((prefix, rest)) = text.split_once([' ', '_']).filter(|(prefix, _)| prefix.starts_with("rep")) {
        let known = PREFIXES.iter().find(|(other, _)| *other == prefix).map_or(prefix, |(_, name)| name);
        text = format!("{known} {rest}");
    }
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
        for text in ["REPNZ  SCASB", "repne_scasb", "repne scasb"] {
            assert_eq!(spell_mnemonic(text), "repne scasb");
        }
        let known: HashSet<String> = cyclescope_code::asm::forms::all_forms().map(|form| form.mnemonic()).collect();
        for (_, name) in CONDITIONS {
            for stem in ["j", "set", "cmov"] {
                assert!(known.contains(&format!("{stem}{name}")), "{stem}{name}");
            }
        }
    }

    #[test]
    fn string_instructions_have_no_operands() {
        let cases = [
            ("lodsb", ["", "al", "AL, mem8", "al, m8"]),
            ("STOSQ", ["", "rax", "m64, rax", "m64"]),
            ("repne scasw", ["", "ax{repne}", "ax, m16", "m16"]),
            ("movsd", ["", "m32, m32", "mem32,mem32", "m32"]),
            ("outsb", ["", "dx", "dx, m8", "m8"]),
        ];
        for (mnemonic, spellings) in cases {
            for operands in spellings {
                assert_eq!(spell_form(mnemonic, operands).1, "", "{mnemonic} {operands}");
            }
        }
        assert_eq!(spell_form("movsd", "xmm, m64").1, "xmm, m64", "the SSE instruction");
        assert_eq!(spell_form("mov", "al, m8").1, "al, m8", "no string instruction");
    }

    #[test]
    fn different_forms_stay_different() {
        let mut seen = HashMap::new();
        for form in cyclescope_code::asm::forms::all_forms() {
            let written = form.describe_operands();
            let key = (form.code, spell_form(&form.mnemonic(), &written));
            if let Some(other) = seen.insert(key, written.clone()) {
                panic!("{:?}: `{other}` and `{written}`", form.code);
            }
        }
    }
}
