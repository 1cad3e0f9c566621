//! Other names for instructions: condition codes, pseudo-operations with a built-in immediate, and habits of
//! common assemblers.

use super::kinds::{Imm, Slot, slots};
use super::pattern::{Pattern, Target};
use iced_x86::Code;
use std::collections::HashMap;

type Table = HashMap<String, Vec<Pattern>>;

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

/// Predicates of floating-point comparisons, by their number (Intel SDM volume 2, table of CMPPD and VCMPPD).
const COMPARISONS: [&[&str]; 32] = [
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
const INTEGER: [&[&str]; 8] =
    [&["eq"], &["lt"], &["le"], &["false"], &["neq"], &["nlt", "ge"], &["nle", "gt"], &["true"]];

/// Predicates of XOP integer comparisons.
const XOP: [&[&str]; 8] = [&["lt"], &["le"], &["gt"], &["ge"], &["eq"], &["neq"], &["false"], &["true"]];

const NAMES: [(&str, &[&str]); 30] = [
    ("iret", &["iretd"]),
    ("pushf", &["pushfq"]),
    ("popf", &["popfq"]),
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
];

/// Adds all other names to the table.
pub(super) fn add(table: &mut Table) {
    conditions(table);
    for (new, known) in NAMES {
        let strings = matches!(new, "movs" | "cmps" | "lods" | "stos" | "scas" | "ins" | "outs");
        for name in known {
            let patterns = table.get(*name).cloned().unwrap_or_default();
            let wanted =
                patterns.into_iter().filter(|p| !strings || (is_string(p.code) && !p.targets.is_empty()));
            put(table, new, wanted.collect());
        }
    }
    let wide = |p: &Pattern| slots(p.code).any(|s| matches!(s, Slot::Absolute | Slot::Imm(Imm::Bits(64))));
    put(table, "movabs", table["mov"].iter().filter(|p| wide(p)).cloned().collect());
    for name in ["fadd", "fmul", "fsub", "fsubr", "fdiv", "fdivr"] {
        let popping = table[&format!("{name}p")].iter().filter(|p| p.targets.is_empty()).cloned().collect();
        put(table, name, popping);
    }
    comparisons(table);
}

fn is_string(code: Code) -> bool {
    slots(code).any(|s| matches!(s, Slot::Source | Slot::Destination))
}

/// Puts patterns in front, so that on a tie the alias' own meaning wins.
fn put(table: &mut Table, name: &str, patterns: Vec<Pattern>) {
    if patterns.is_empty() {
        return;
    }
    let entry = table.entry(name.to_string()).or_default();
    let new: Vec<Pattern> = patterns.into_iter().filter(|p| !entry.contains(p)).collect();
    entry.splice(0..0, new);
}

fn conditions(table: &mut Table) {
    for group in CONDITIONS {
        for (stem, tail) in [("j", ""), ("set", ""), ("cmov", ""), ("cmp", "xadd")] {
            let names: Vec<String> = group.iter().map(|cc| format!("{stem}{cc}{tail}")).collect();
            let known = names.iter().find_map(|name| table.get(name)).cloned().unwrap_or_default();
            for name in &names {
                put(table, name, known.clone());
            }
        }
    }
}

fn comparisons(table: &mut Table) {
    for suffix in ["ps", "pd", "ss", "sd", "ph", "sh"] {
        predicates(table, &format!("vcmp{suffix}"), "vcmp", suffix, &COMPARISONS);
        predicates(table, &format!("cmp{suffix}"), "cmp", suffix, &COMPARISONS[..8]);
    }
    for suffix in ["b", "w", "d", "q", "ub", "uw", "ud", "uq"] {
        predicates(table, &format!("vpcmp{suffix}"), "vpcmp", suffix, &INTEGER);
        predicates(table, &format!("vpcom{suffix}"), "vpcom", suffix, &XOP);
    }
    for (high, immediate) in [("lql", 0x00), ("hql", 0x01), ("lqh", 0x10), ("hqh", 0x11)] {
        for stem in ["pclmul", "vpclmul"] {
            let base = format!("{stem}qdq");
            let patterns = with_immediate(table, &base, immediate);
            put(table, &format!("{stem}{high}qdq"), patterns);
        }
    }
}

fn predicates(table: &mut Table, base: &str, stem: &str, suffix: &str, names: &[&[&str]]) {
    for (number, names) in (0..).zip(names) {
        let patterns = with_immediate(table, base, number);
        for name in *names {
            // A real instruction of that name (vpcmpeqb) keeps its place in front.
            let entry = table.entry(format!("{stem}{name}{suffix}")).or_default();
            entry.extend(patterns.iter().cloned());
            if entry.is_empty() {
                table.remove(&format!("{stem}{name}{suffix}"));
            }
        }
    }
}

/// The patterns of a comparison without their last operand, an immediate.
fn with_immediate(table: &Table, base: &str, immediate: u8) -> Vec<Pattern> {
    let Some(patterns) = table.get(base) else { return Vec::new() };
    let mut found = Vec::new();
    for pattern in patterns {
        let operands = pattern.code.op_code().op_count();
        let plain = pattern.targets.len() as u32 == operands;
        if plain && slots(pattern.code).last() == Some(Slot::Imm(Imm::Byte)) {
            let targets: Vec<Target> = pattern.targets[..pattern.targets.len() - 1].to_vec();
            found.push(Pattern { code: pattern.code, targets, immediate: Some(immediate) });
        }
    }
    found
}
