//! Other names for instructions: condition codes, pseudo-operations with a fixed immediate, and
//! conventions of common assemblers.

use super::mnemonic_pattern::{MnemonicPattern, OperandTarget};
use super::operand_slot::{ImmediateEncoding, OperandSlot, list_slots};
use iced_x86::Code;
use std::collections::HashMap;

type PatternTable = HashMap<String, Vec<MnemonicPattern>>;

const CONDITIONS: [&[&str]; 16] = [
    &["o"],
    &["no"],
    &["b", "c", "nae"],
    &["ae", "nc", "nb"],
    &["e", "z"],
    &["ne", "nz"],
    &["be", "na"],
    &["a", "nbe"],
    &["s"],
    &["ns"],
    &["p", "pe"],
    &["np", "po"],
    &["l", "nge"],
    &["ge", "nl"],
    &["le", "ng"],
    &["g", "nle"],
];

/// Predicates of floating-point comparisons by number (Intel SDM volume 2, table of CMPPD and
/// VCMPPD).
const FLOAT_PREDICATES: [&[&str]; 32] = [
    &["eq", "eq_oq"],
    &["lt", "lt_os"],
    &["le", "le_os"],
    &["unord", "unord_q"],
    &["neq", "neq_uq"],
    &["nlt", "nlt_us"],
    &["nle", "nle_us"],
    &["ord", "ord_q"],
    &["eq_uq"],
    &["nge", "nge_us"],
    &["ngt", "ngt_us"],
    &["false", "false_oq"],
    &["neq_oq"],
    &["ge", "ge_os"],
    &["gt", "gt_os"],
    &["true", "true_uq"],
    &["eq_os"],
    &["lt_oq"],
    &["le_oq"],
    &["unord_s"],
    &["neq_us"],
    &["nlt_uq"],
    &["nle_uq"],
    &["ord_s"],
    &["eq_us"],
    &["nge_uq"],
    &["ngt_uq"],
    &["false_os"],
    &["neq_os"],
    &["ge_oq"],
    &["gt_oq"],
    &["true_us"],
];

/// Predicates of AVX-512 integer comparisons.
const INTEGER_PREDICATES: [&[&str]; 8] =
    [&["eq"], &["lt"], &["le"], &["false"], &["neq"], &["nlt", "ge"], &["nle", "gt"], &["true"]];

/// Predicates of XOP integer comparisons.
const XOP_PREDICATES: [&[&str]; 8] = [&["lt"], &["le"], &["gt"], &["ge"], &["eq"], &["neq"], &["false"], &["true"]];

const ALIAS_NAMES: [(&str, &[&str]); 34] = [
    ("iret", &["iretd"]),
    ("pushf", &["pushfq", "pushfd"]),
    ("popf", &["popfq", "popfd"]),
    ("pusha", &["pushad"]),
    ("popa", &["popad"]),
    ("sal", &["shl"]),
    ("fwait", &["wait"]),
    ("xlat", &["xlatb"]),
    ("icebp", &["int1"]),
    ("ud2a", &["ud2"]),
    ("ud2b", &["ud1"]),
    ("retn", &["ret"]),
    ("retq", &["ret"]),
    ("loopz", &["loope"]),
    ("loopnz", &["loopne"]),
    ("movs", &["movsb", "movsw", "movsd", "movsq"]),
    ("cmps", &["cmpsb", "cmpsw", "cmpsd", "cmpsq"]),
    ("lods", &["lodsb", "lodsw", "lodsd", "lodsq"]),
    ("stos", &["stosb", "stosw", "stosd", "stosq"]),
    ("scas", &["scasb", "scasw", "scasd", "scasq"]),
    ("ins", &["insb", "insw", "insd"]),
    ("outs", &["outsb", "outsw", "outsd"]),
    ("movsl", &["movsd"]),
    ("stosl", &["stosd"]),
    ("lodsl", &["lodsd"]),
    ("scasl", &["scasd"]),
    ("cmpsl", &["cmpsd"]),
    ("fcmovc", &["fcmovb"]),
    ("fcmovnae", &["fcmovb"]),
    ("fcmovz", &["fcmove"]),
    ("cmpxchg16", &["cmpxchg16b"]),
    ("prefetchwt", &["prefetchwt1"]),
    ("fcompi", &["fcomip"]),
    ("fucompi", &["fucomip"]),
];

/// Adds all other names to the table.
pub(super) fn add_aliases(table: &mut PatternTable) {
    add_condition_codes(table);
    for (new, known) in ALIAS_NAMES {
        let strings = matches!(new, "movs" | "cmps" | "lods" | "stos" | "scas" | "ins" | "outs");
        for name in known {
            let patterns = table.get(*name).cloned().unwrap_or_default();
            let wanted = patterns.into_iter().filter(|p| !strings || (is_string_code(p.code) && !p.targets.is_empty()));
            prepend_patterns(table, new, wanted.collect());
        }
    }
    let wide = |p: &MnemonicPattern| {
        list_slots(p.code).any(|s| matches!(s, OperandSlot::Absolute | OperandSlot::Imm(ImmediateEncoding::Bits(64))))
    };
    prepend_patterns(table, "movabs", table["mov"].iter().filter(|p| wide(p)).cloned().collect());
    for name in ["fadd", "fmul", "fsub", "fsubr", "fdiv", "fdivr"] {
        let popping = table[&format!("{name}p")].iter().filter(|p| p.targets.is_empty()).cloned().collect();
        prepend_patterns(table, name, popping);
    }
    add_comparisons(table);
    // Both divide by ten unless a base is given (Intel SDM vol. 2, AAM).
    for name in ["aam", "aad"] {
        let codes: Vec<Code> = table.get(name).into_iter().flatten().map(|pattern| pattern.code).collect();
        let decimal = |code| MnemonicPattern { code, targets: Vec::new(), immediate: Some(10) };
        prepend_patterns(table, name, codes.into_iter().map(decimal).collect());
    }
}

fn is_string_code(code: Code) -> bool {
    list_slots(code).any(|s| matches!(s, OperandSlot::Source | OperandSlot::Destination))
}

/// Puts patterns first, so that the alias' own meaning wins a tie.
fn prepend_patterns(table: &mut PatternTable, name: &str, patterns: Vec<MnemonicPattern>) {
    if patterns.is_empty() {
        return;
    }
    let entry = table.entry(name.to_string()).or_default();
    let new: Vec<MnemonicPattern> = patterns.into_iter().filter(|p| !entry.contains(p)).collect();
    entry.splice(0..0, new);
}

fn add_condition_codes(table: &mut PatternTable) {
    for group in CONDITIONS {
        for (stem, tail) in [("j", ""), ("set", ""), ("cmov", ""), ("cmp", "xadd")] {
            let names: Vec<String> = group.iter().map(|cc| format!("{stem}{cc}{tail}")).collect();
            let known = names.iter().find_map(|name| table.get(name)).cloned().unwrap_or_default();
            for name in &names {
                prepend_patterns(table, name, known.clone());
            }
        }
    }
}

fn add_comparisons(table: &mut PatternTable) {
    for suffix in ["ps", "pd", "ss", "sd", "ph", "sh"] {
        add_predicates(table, &format!("vcmp{suffix}"), "vcmp", suffix, &FLOAT_PREDICATES);
        add_predicates(table, &format!("cmp{suffix}"), "cmp", suffix, &FLOAT_PREDICATES[..8]);
    }
    for suffix in ["b", "w", "d", "q", "ub", "uw", "ud", "uq"] {
        add_predicates(table, &format!("vpcmp{suffix}"), "vpcmp", suffix, &INTEGER_PREDICATES);
        add_predicates(table, &format!("vpcom{suffix}"), "vpcom", suffix, &XOP_PREDICATES);
    }
    for (high, immediate) in [("lql", 0x00), ("hql", 0x01), ("lqh", 0x10), ("hqh", 0x11)] {
        for stem in ["pclmul", "vpclmul"] {
            let base = format!("{stem}qdq");
            let patterns = fix_immediate(table, &base, immediate);
            prepend_patterns(table, &format!("{stem}{high}qdq"), patterns);
        }
    }
}

fn add_predicates(table: &mut PatternTable, base: &str, stem: &str, suffix: &str, names: &[&[&str]]) {
    for (number, names) in (0..).zip(names) {
        let patterns = fix_immediate(table, base, number);
        for name in *names {
            // A real instruction with that name (vpcmpeqb) stays first.
            let entry = table.entry(format!("{stem}{name}{suffix}")).or_default();
            entry.extend(patterns.iter().cloned());
            if entry.is_empty() {
                table.remove(&format!("{stem}{name}{suffix}"));
            }
        }
    }
}

/// Patterns of a comparison without their last operand, an immediate.
fn fix_immediate(table: &PatternTable, base: &str, immediate: u8) -> Vec<MnemonicPattern> {
    let Some(patterns) = table.get(base) else { return Vec::new() };
    let mut found = Vec::new();
    for pattern in patterns {
        let operands = pattern.code.op_code().op_count();
        let plain = pattern.targets.len() as u32 == operands;
        if plain && list_slots(pattern.code).last() == Some(OperandSlot::Imm(ImmediateEncoding::Byte)) {
            let targets: Vec<OperandTarget> = pattern.targets[..pattern.targets.len() - 1].to_vec();
            found.push(MnemonicPattern { code: pattern.code, targets, immediate: Some(immediate) });
        }
    }
    found
}
