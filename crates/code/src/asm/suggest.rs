//! Error messages that name valid alternatives.

use super::ALL_MODES;
use super::instruction_builder::{MismatchReason, PatternMismatch};
use super::lexer::TextPosition;
use super::mnemonic;
use super::mnemonic_pattern::{MnemonicPattern, OperandTarget};
use super::operand::{OperandValue, size_name};
use super::operand_slot::{ImmediateEncoding, OperandSlot, RegisterClass, list_slots};
use super::statement::Statement;
use cyclescope_core::error::BadSnippet;
use iced_x86::Register;

/// Largest number of operand patterns in an error.
const MOST_LISTED: usize = 6;

/// Directives for data, without the dot that some assemblers use.
const DATA_DIRECTIVES: [&str; 17] = [
    "db", "dw", "dd", "dq", "dt", "do", "dy", "dz", "byte", "2byte", "4byte", "8byte", "word", "short", "long", "quad",
    "ascii",
];

/// Error for an unknown mnemonic.
pub(super) fn unknown_mnemonic(statement: &Statement) -> BadSnippet {
    let word = &statement.mnemonic;
    if DATA_DIRECTIVES.contains(&word.trim_start_matches('.')) {
        let message = format!("`{word}` is a data directive; a snippet contains only instructions");
        return statement.at.error_expecting(message, "give machine code with --hex, such as --hex '66 90'");
    }
    let message = format!("there is no instruction `{word}`");
    let mut others = ALL_MODES.into_iter().filter(|mode| *mode != statement.mode);
    if let Some(mode) = others.find(|mode| !mnemonic::find_patterns(word, *mode).is_empty()) {
        let remedy = format!("assemble it for that mode with --bits {}", mode.bits());
        return statement.at.error_expecting(format!("`{word}` exists only in {}-bit mode", mode.bits()), remedy);
    }
    let near = nearest_words(word, mnemonic::all_mnemonics(statement.mode));
    if near.is_empty() {
        return statement.at.error(message);
    }
    statement.at.error_expecting(message, format!("did you mean {}?", near.join(", ")))
}

/// How a function is measured with the data and functions that it uses.
pub(crate) const WHOLE_TEXT: &str =
    "save the whole text as FILE.s and measure its function with --c FILE.s --call NAME";

/// Error for a word that is neither a register nor a label.
pub(super) fn unknown_name(word: &str, at: TextPosition, labels: &[&str]) -> BadSnippet {
    let message = format!("`{word}` is neither a register nor a label of the snippet");
    let lower = word.to_lowercase();
    let mut names: Vec<&str> = super::registers::register_names().collect();
    names.extend(labels);
    let near = nearest_words(&lower, names.into_iter());
    if word.starts_with(['.', '$']) {
        let hint = format!("add its section of data to the text, write the operand as memory at R14, or {WHOLE_TEXT}");
        return at.error_expecting(message, hint);
    }
    if near.is_empty() {
        let hint = format!("a snippet knows only its own labels; measure functions with --c or --lib, or {WHOLE_TEXT}");
        return at.error_expecting(message, hint);
    }
    at.error_expecting(message, format!("did you mean {}?", near.join(", ")))
}

/// Up to three known words similar to this one, nearest first.
pub fn nearest_words<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let limit = if word.len() < 4 { 1 } else { 2 };
    let mut near: Vec<(usize, &str)> = Vec::new();
    for name in known {
        if name.len().abs_diff(word.len()) <= limit {
            let distance = edit_distance(word, name);
            if distance <= limit {
                near.push((distance, name));
            }
        } else if word.len() >= 3 && name.starts_with(word) {
            near.push((limit + name.len() - word.len(), name));
        }
    }
    near.sort_unstable();
    near.into_iter().take(3).map(|(_, name)| name).collect()
}

/// Insertions, deletions, replacements and swaps of adjacent letters between two words.
fn edit_distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

/// Error of the pattern that came nearest.
pub(super) fn mismatch_error(
    statement: &Statement,
    patterns: &[MnemonicPattern],
    mismatches: &[(PatternMismatch, &MnemonicPattern)],
) -> BadSnippet {
    let counted = |why: &MismatchReason| matches!(why, MismatchReason::TooFew | MismatchReason::TooMany);
    let best = mismatches.iter().min_by_key(|(m, pattern)| {
        // Among patterns with fewer operands, the longest shows where the surplus starts. Among
        // immediates, the widest is the intended one.
        let length = usize::MAX - pattern.targets.len();
        let width = if let MismatchReason::Range(bits, _) = m.why { u32::MAX - bits } else { 0 };
        (counted(&m.why), usize::MAX - m.depth, m.why.rank(), width, length)
    });
    let Some((mismatch, _)) = best else {
        return statement.at.error("this instruction does not exist in 64-bit mode");
    };
    let mut shown: Vec<String> = Vec::new();
    // The writer may have meant any pattern that accepted the operands before this one.
    let near = mismatches.iter().filter(|(m, _)| m.depth >= mismatch.depth && !counted(&m.why));
    let mut meant: Vec<&MnemonicPattern> = near.map(|(_, pattern)| *pattern).collect();
    if meant.is_empty() {
        meant = patterns.iter().collect();
    }
    for pattern in meant {
        let text = describe_pattern(pattern);
        if !shown.contains(&text) {
            shown.push(text);
        }
    }
    let more = if shown.len() > MOST_LISTED { " or others" } else { "" };
    shown.truncate(MOST_LISTED);
    let fits = format!("{} takes {}{more}", statement.mnemonic, shown.join(" | "));
    let (message, hint) = explain_mismatch(&mismatch.why, statement, mismatch.at);
    let hint = suggest_extension(statement).or(hint);
    mismatch.at.error_expecting(message, hint.unwrap_or(fits))
}

/// The instruction that extends a 32-bit register to 64 bits, which MOVSX and MOVZX don't.
fn suggest_extension(statement: &Statement) -> Option<String> {
    let [OperandValue::Register(to), OperandValue::Register(from)] =
        statement.operands.iter().map(|operand| &operand.value).collect::<Vec<_>>()[..]
    else {
        return None;
    };
    let name = |register: Register| format!("{register:?}").to_lowercase();
    if !to.is_gpr64() || !from.is_gpr32() {
        return None;
    }
    match statement.mnemonic.as_str() {
        "movsx" => Some(format!("write movsxd {}, {}", name(*to), name(*from))),
        "movzx" => {
            Some(format!("write mov {}, {}, which clears the upper half", name(to.full_register32()), name(*from)))
        }
        _ => None,
    }
}

fn explain_mismatch(why: &MismatchReason, statement: &Statement, at: TextPosition) -> (String, Option<String>) {
    let text = |s: &str| s.to_string();
    match why {
        MismatchReason::Range(bits, signed) => {
            (format!("the immediate does not fit in {}{bits} bits", if *signed { "sign-extended " } else { "" }), None)
        }
        MismatchReason::Displacement => (text("the displacement does not fit in 32 bits"), None),
        MismatchReason::Size(bytes) => {
            let name = size_name(*bytes).map_or_else(|| format!("{bytes} bytes"), |n| format!("{n} ptr"));
            (
                format!("the memory operand of `{}` has a different size", statement.mnemonic),
                Some(format!("{name} fits")),
            )
        }
        MismatchReason::Broadcast(count) => {
            (text("the broadcast has a different number of elements"), Some(format!("{{1to{count}}} fits")))
        }
        MismatchReason::NoBroadcast => (format!("`{}` cannot broadcast here", statement.mnemonic), None),
        MismatchReason::Index(class) => {
            (text("this address needs a vector register as index"), Some(format!("as in [rax+{class}1*4]")))
        }
        MismatchReason::Decorator => (format!("this decorator does not go with `{}` here", statement.mnemonic), None),
        MismatchReason::Prefix => (
            format!("this prefix does not go with `{}` here", statement.mnemonic),
            Some(text("lock needs a memory destination, rep a string instruction, and a hint an existing encoding")),
        ),
        MismatchReason::NeedsMask => {
            (format!("`{}` needs a mask", statement.mnemonic), Some(text("one of {k1} to {k7} after this operand")))
        }
        MismatchReason::Far => {
            (text("near and far targets do not mix"), Some(text("`far` goes with jmp and call of a far pointer")))
        }
        MismatchReason::Encoding(message) => (text(message), None),
        MismatchReason::Kind => {
            (format!("this operand does not fit `{}`", describe_statement_before(statement, at)), None)
        }
        MismatchReason::TooFew => (format!("`{}` lacks an operand", statement.mnemonic), None),
        MismatchReason::TooMany => (format!("this operand is one too many for `{}`", statement.mnemonic), None),
    }
}

/// Mnemonic with the kinds of the operands before that position.
fn describe_statement_before(statement: &Statement, at: TextPosition) -> String {
    let before: Vec<&str> = statement
        .operands
        .iter()
        .take_while(|o| o.at < at)
        .map(|o| match &o.value {
            OperandValue::Register(r) | OperandValue::Group(r, _) => {
                RegisterClass::from_register(*r).map_or("register", RegisterClass::name)
            }
            OperandValue::Constant(_) => "imm",
            OperandValue::Memory(_) => "mem",
            OperandValue::Nothing => "",
        })
        .collect();
    if before.is_empty() {
        return statement.mnemonic.clone();
    }
    format!("{} {}, …", statement.mnemonic, before.join(", "))
}

/// Operands of a pattern as in instruction tables.
fn describe_pattern(pattern: &MnemonicPattern) -> String {
    if pattern.targets.is_empty() {
        return String::from("no operands");
    }
    let slots: Vec<OperandSlot> = list_slots(pattern.code).collect();
    let memory = pattern.code.op_code().memory_size().size() * 8;
    let memory = if memory == 0 { String::from("m") } else { format!("m{memory}") };
    let names: Vec<String> = pattern
        .targets
        .iter()
        .map(|target| match target {
            OperandTarget::Operand(index) => describe_slot(slots[*index as usize], &memory),
            OperandTarget::Implied(register) => format!("{register:?}").to_lowercase(),
        })
        .collect();
    names.join(", ")
}

fn describe_slot(slot: OperandSlot, memory: &str) -> String {
    match slot {
        OperandSlot::RegMem(
            class @ (RegisterClass::Gpr8 | RegisterClass::Gpr16 | RegisterClass::Gpr32 | RegisterClass::Gpr64),
        ) if memory[1..] == class.name()[1..] => {
            format!("r/{memory}")
        }
        OperandSlot::RegMem(class) => format!("{}/{memory}", class.name()),
        OperandSlot::Reg(class) => class.name().to_string(),
        OperandSlot::Group(class, count) => format!("{}+{}", class.name(), count - 1),
        OperandSlot::Fixed(register) => format!("{register:?}").to_lowercase(),
        OperandSlot::Vsib(class, bits) => format!("vm{bits}{}", &class.name()[..1]),
        OperandSlot::Absolute => format!("moffs{}", &memory[1..]),
        OperandSlot::Imm(ImmediateEncoding::One) => String::from("1"),
        OperandSlot::Imm(imm) => format!("imm{}", imm.stored_bits()),
        OperandSlot::Branch(bits) => format!("rel{bits}"),
        OperandSlot::Mem
        | OperandSlot::Source
        | OperandSlot::Destination
        | OperandSlot::MaskedStore
        | OperandSlot::Table => memory.to_string(),
        OperandSlot::Unusable => String::new(),
    }
}

/// The operand most likely responsible if the encoder rejects a combination, with the reason.
pub(super) fn blame_operand(statement: &Statement, distinct: bool) -> (MismatchReason, TextPosition) {
    let operands = &statement.operands;
    let place = |wanted: &dyn Fn(&OperandValue) -> bool| operands.iter().find(|o| wanted(&o.value)).map(|o| o.at);
    let zeroing = operands.iter().flat_map(|o| &o.decorators).find(|(text, _)| text == "z").map(|(_, at)| *at);
    let high_byte = place(&|value| {
        matches!(value, OperandValue::Register(Register::AH | Register::BH | Register::CH | Register::DH))
    });
    let beyond =
        place(&|value| matches!(value, OperandValue::Register(r) if r.is_vector_register() && r.number() > 15));
    let memory = place(&|value| matches!(value, OperandValue::Memory(_)));
    let (why, at) = match (zeroing, high_byte, beyond) {
        _ if distinct => ("these registers must be distinct", memory),
        (Some(at), _, _) if memory.is_some() => ("`{z}` does not go with a memory destination", Some(at)),
        (_, Some(at), _) => ("ah, bh, ch and dh do not go with registers that need a REX prefix", Some(at)),
        (_, _, Some(at)) => ("registers from 16 on need an EVEX encoding", Some(at)),
        _ => ("the processor does not accept this combination", None),
    };
    (MismatchReason::Encoding(why), at.unwrap_or(statement.at))
}
