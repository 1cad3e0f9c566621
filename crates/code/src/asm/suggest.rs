//! Words an error so that it names what fits instead.

use super::kinds::{Class, Imm, Slot, slots};
use super::lexer::Position;
use super::mnemonic;
use super::operand::{Value, size_name};
use super::pattern::{Pattern, Target};
use super::place::{Mismatch, Why};
use super::statement::Statement;
use cyclescope_core::error::BadSnippet;
use iced_x86::Register;

/// Operand patterns that an error lists at most.
const LISTED: usize = 6;

/// Directives with which assemblers write bytes, without the dot that some of them have.
const DATA: [&str; 17] = [
    "db", "dw", "dd", "dq", "dt", "do", "dy", "dz", "byte", "2byte", "4byte", "8byte", "word", "short",
    "long", "quad", "ascii",
];

/// The error for a mnemonic that does not exist.
pub(super) fn unknown_mnemonic(statement: &Statement) -> BadSnippet {
    let word = &statement.mnemonic;
    if DATA.contains(&word.trim_start_matches('.')) {
        let message = format!("`{word}` is a directive for data, and a snippet has instructions only");
        return statement.at.error_expecting(message, "give machine code with --hex, such as --hex '66 90'");
    }
    let message = format!("there is no instruction `{word}`");
    let near = nearest(word, mnemonic::all());
    if near.is_empty() {
        return statement.at.error(message);
    }
    statement.at.error_expecting(message, format!("did you mean {}?", near.join(", ")))
}

/// The error for a word that is neither a register nor a label.
pub(super) fn unknown_name(word: &str, at: Position, labels: &[&str]) -> BadSnippet {
    let message = format!("`{word}` is neither a register nor a label of the snippet");
    let lower = word.to_lowercase();
    let mut known: Vec<&str> = super::registers::names().collect();
    known.extend(labels);
    let near = nearest(&lower, known.into_iter());
    if near.is_empty() {
        let hint = "a snippet knows its own labels only; functions are measured with --c or --lib";
        return at.error_expecting(message, hint);
    }
    at.error_expecting(message, format!("did you mean {}?", near.join(", ")))
}

/// Up to three known words near this one, the nearest first.
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let limit = if word.len() < 4 { 1 } else { 2 };
    let mut near: Vec<(usize, &str)> = Vec::new();
    for name in known {
        if name.len().abs_diff(word.len()) <= limit {
            let distance = distance(word, name);
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

/// Insertions, deletions, replacements and swaps of neighbours between two words.
fn distance(a: &str, b: &str) -> usize {
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

/// The error of the pattern that came nearest.
pub(super) fn no_fit(
    statement: &Statement,
    patterns: &[Pattern],
    mismatches: &[(Mismatch, &Pattern)],
) -> BadSnippet {
    let counted = |why: &Why| matches!(why, Why::TooFew | Why::TooMany);
    let best = mismatches.iter().min_by_key(|(m, pattern)| {
        // Of patterns that have fewer operands the longest one shows where the surplus starts, and of
        // immediates the widest is the one that was meant.
        let length = usize::MAX - pattern.targets.len();
        let width = if let Why::Range(bits, _) = m.why { u32::MAX - bits } else { 0 };
        (counted(&m.why), usize::MAX - m.depth, m.why.rank(), width, length)
    });
    let Some((mismatch, _)) = best else {
        return statement.at.error("this instruction does not exist in 64-bit mode");
    };
    let mut shown: Vec<String> = Vec::new();
    // Patterns that took the operands before this one are what the writer may have meant.
    let near = mismatches.iter().filter(|(m, _)| m.depth >= mismatch.depth && !counted(&m.why));
    let mut meant: Vec<&Pattern> = near.map(|(_, pattern)| *pattern).collect();
    if meant.is_empty() {
        meant = patterns.iter().collect();
    }
    for pattern in meant {
        let text = describe(pattern);
        if !shown.contains(&text) {
            shown.push(text);
        }
    }
    let more = if shown.len() > LISTED { " or others" } else { "" };
    shown.truncate(LISTED);
    let fits = format!("{} takes {}{more}", statement.mnemonic, shown.join(" | "));
    let (message, hint) = explain(&mismatch.why, statement, mismatch.at);
    mismatch.at.error_expecting(message, hint.unwrap_or(fits))
}

fn explain(why: &Why, statement: &Statement, at: Position) -> (String, Option<String>) {
    let text = |s: &str| s.to_string();
    match why {
        Why::Range(bits, signed) => (
            format!(
                "the immediate does not fit in {}{bits} bits",
                if *signed { "sign-extended " } else { "" }
            ),
            None,
        ),
        Why::Displacement => (text("the displacement does not fit in 32 bits"), None),
        Why::Size(bytes) => {
            let name = size_name(*bytes).map_or_else(|| format!("{bytes} bytes"), |n| format!("{n} ptr"));
            (
                format!("the memory operand of `{}` has a different size", statement.mnemonic),
                Some(format!("{name} fits")),
            )
        }
        Why::Broadcast(count) => {
            (text("the broadcast has a different number of elements"), Some(format!("{{1to{count}}} fits")))
        }
        Why::NoBroadcast => (format!("`{}` cannot broadcast here", statement.mnemonic), None),
        Why::Index(class) => {
            (text("this address needs a vector register as index"), Some(format!("as in [rax+{class}1*4]")))
        }
        Why::Decorator => (format!("this decorator does not go with `{}` here", statement.mnemonic), None),
        Why::Prefix => (
            format!("this prefix does not go with `{}` here", statement.mnemonic),
            Some(text(
                "lock wants a memory destination, rep a string instruction, a hint an encoding that exists",
            )),
        ),
        Why::NeedsMask => (
            format!("`{}` needs a mask", statement.mnemonic),
            Some(text("one of {k1} to {k7} after this operand")),
        ),
        Why::Far => (
            text("near and far targets do not mix"),
            Some(text("`far` goes with jmp and call of a far pointer")),
        ),
        Why::Encoding(message) => (text(message), None),
        Why::Kind => (format!("this operand does not fit `{}`", written(statement, at)), None),
        Why::TooFew => (format!("`{}` lacks an operand", statement.mnemonic), None),
        Why::TooMany => (format!("this operand is one too many for `{}`", statement.mnemonic), None),
    }
}

/// The mnemonic with the kinds of the operands before that place.
fn written(statement: &Statement, at: Position) -> String {
    let before: Vec<&str> = statement
        .operands
        .iter()
        .take_while(|o| o.at < at)
        .map(|o| match &o.value {
            Value::Register(r) | Value::Group(r, _) => Class::of(*r).map_or("register", Class::name),
            Value::Constant(_) => "imm",
            Value::Memory(_) => "mem",
            Value::Nothing => "",
        })
        .collect();
    if before.is_empty() {
        return statement.mnemonic.clone();
    }
    format!("{} {}, …", statement.mnemonic, before.join(", "))
}

/// A pattern's operands as instruction tables write them.
fn describe(pattern: &Pattern) -> String {
    if pattern.targets.is_empty() {
        return String::from("no operands");
    }
    let slots: Vec<Slot> = slots(pattern.code).collect();
    let memory = pattern.code.op_code().memory_size().size() * 8;
    let memory = if memory == 0 { String::from("m") } else { format!("m{memory}") };
    let names: Vec<String> = pattern
        .targets
        .iter()
        .map(|target| match target {
            Target::Operand(index) => name(slots[*index as usize], &memory),
            Target::Implied(register) => format!("{register:?}").to_lowercase(),
        })
        .collect();
    names.join(", ")
}

fn name(slot: Slot, memory: &str) -> String {
    match slot {
        Slot::RegMem(class @ (Class::Gpr8 | Class::Gpr16 | Class::Gpr32 | Class::Gpr64))
            if memory[1..] == class.name()[1..] =>
        {
            format!("r/{memory}")
        }
        Slot::RegMem(class) => format!("{}/{memory}", class.name()),
        Slot::Reg(class) => class.name().to_string(),
        Slot::Group(class, count) => format!("{}+{}", class.name(), count - 1),
        Slot::Fixed(register) => format!("{register:?}").to_lowercase(),
        Slot::Vsib(class, bits) => format!("vm{bits}{}", &class.name()[..1]),
        Slot::Absolute => format!("moffs{}", &memory[1..]),
        Slot::Imm(Imm::One) => String::from("1"),
        Slot::Imm(imm) => format!("imm{}", imm.stored()),
        Slot::Branch(bits) => format!("rel{bits}"),
        Slot::Mem | Slot::Source | Slot::Destination | Slot::MaskedStore | Slot::Table => memory.to_string(),
        Slot::Unusable => String::new(),
    }
}

/// The operand most likely to blame when the encoder refuses a combination, and why it does.
pub(super) fn blame(statement: &Statement, distinct: bool) -> (Why, Position) {
    let operands = &statement.operands;
    let place = |wanted: &dyn Fn(&Value) -> bool| operands.iter().find(|o| wanted(&o.value)).map(|o| o.at);
    let zeroing =
        operands.iter().flat_map(|o| &o.decorators).find(|(text, _)| text == "z").map(|(_, at)| *at);
    let high_byte = place(&|value| {
        matches!(value, Value::Register(Register::AH | Register::BH | Register::CH | Register::DH))
    });
    let beyond =
        place(&|value| matches!(value, Value::Register(r) if r.is_vector_register() && r.number() > 15));
    let memory = place(&|value| matches!(value, Value::Memory(_)));
    let (why, at) = match (zeroing, high_byte, beyond) {
        _ if distinct => ("these registers must be distinct", memory),
        (Some(at), _, _) if memory.is_some() => ("`{z}` does not go with a memory destination", Some(at)),
        (_, Some(at), _) => ("ah, bh, ch and dh do not go with registers that need a REX prefix", Some(at)),
        (_, _, Some(at)) => ("registers from 16 on need an EVEX encoding", Some(at)),
        _ => ("the processor does not accept this combination", None),
    };
    (Why::Encoding(why), at.unwrap_or(statement.at))
}
