//! Mutated fields: the text around them stays whole, so that readers reach them.
//!
//! A field gets a value of another type, a number that no result has, another field's value, or
//! text that a terminal, a spreadsheet or a browser would obey. Texts are changed as bytes, so that
//! a field may also occur twice, hold invalid UTF-8, or hold a number beyond every type.

use crate::{FuzzRandom, bytes, json};
use serde_json::Value;

/// Contents of JSON strings that something may obey, or that a reader may not expect.
const HOSTILE_TEXTS: [&[u8]; 30] = [
    br"\u001b[2J\u001b]0;owned\u0007",
    br"\u009b31m",
    br"\u202egpj.exe",
    br"\u2066x\u2069\u200f",
    br"\u2028",
    br"\u0000",
    br"\ud800",
    br"\udc00\ud800",
    br"\ufdd0bold\ufdd3",
    br"\r",
    br"\n| a | b |\n",
    br"\t",
    b"\xff\xfe",
    b"\xc3",
    b"\x1b[31m",
    "\u{9b}31m".as_bytes(),
    "\u{202e}x".as_bytes(),
    br"=HYPERLINK(\u0022http://x\u0022)",
    b"+1+1",
    b"@SUM(A1)",
    b"-2+3",
    br"\t=1+1",
    b"</td><script>alert(1)</script>",
    b"]]>&<!--",
    b"`a` [b](javascript:c) ![d](e)",
    b"$(touch x) `touch x` ; touch x",
    b"../../../etc/passwd",
    b"NaN",
    b"-1",
    b"",
];

/// Texts of numbers that no result has, or that no type holds.
const ODD_NUMBERS: [&[u8]; 22] = [
    b"0",
    b"-1",
    b"-0.0",
    b"1",
    b"0.5",
    b"1e308",
    b"-1e308",
    b"1e400",
    b"-1e400",
    b"5e-324",
    b"1e-400",
    b"4294967296",
    b"9007199254740993",
    b"18446744073709551615",
    b"18446744073709551616",
    b"-9223372036854775808",
    b"1152921504606846976",
    b"123456789012345678901234567890123456789012345678901234567890",
    b"NaN",
    b"Infinity",
    b"0x10",
    b"1_000",
];

/// Words of closed lists, such as units and verdicts.
const CLOSED_WORDS: [&str; 24] = [
    "core_cycles",
    "tsc_ticks",
    "ns",
    "MHz",
    "bytes",
    "count",
    "share",
    "ratio",
    "instructions",
    "found",
    "limited",
    "none",
    "unclear",
    "slower",
    "faster",
    "same",
    "measured",
    "skipped",
    "failed",
    "exact",
    "sum",
    "upper",
    "kernel",
    "user",
];

/// Levels of nesting: readers allow fewer than the last.
const NESTING_LEVELS: [usize; 3] = [2, 100, 5_000];
/// Characters of a long text.
const LONG_TEXT: usize = 70_000;

/// A copy of lines of JSON, or of a table, in which fields of one line changed.
pub(crate) fn mutate_fields(seed: &[u8], other: &[u8], random: &mut FuzzRandom) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> = seed.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let full: Vec<usize> = (0..lines.len()).filter(|number| !lines[*number].is_empty()).collect();
    let Some(at) = (!full.is_empty()).then(|| *random.pick(&full)) else {
        return bytes::mutate_bytes(seed, other, random);
    };
    lines[at] = match serde_json::from_slice::<Value>(&lines[at]) {
        Ok(mut value) => {
            if random.below(4) == 0 {
                value = json::change_line(value, random);
            }
            change_field(&value, random)
        }
        Err(_) => change_cell(&lines[at], random),
    };
    lines.join(&b'\n')
}

/// How a field of an object changes.
enum FieldChange {
    /// It is missing.
    Missing,
    /// It occurs a second time.
    Repeated,
    /// A new field stands before it.
    Extra,
    /// It has another value.
    Value,
}

/// The line's text, with one field changed.
fn change_field(line: &Value, random: &mut FuzzRandom) -> Vec<u8> {
    let path = draw_path(line, random);
    let changed = draw_value(find_value(line, &path), line, random);
    let change = match random.below(8) {
        0 => FieldChange::Missing,
        1 => FieldChange::Repeated,
        2 => FieldChange::Extra,
        _ => FieldChange::Value,
    };
    let mut text = Vec::new();
    write_changed(line, Some(&path), &change, &changed, &mut text);
    text
}

/// Writes a value. `path` leads to the changed field, if it is in this value.
fn write_changed(value: &Value, path: Option<&[usize]>, change: &FieldChange, changed: &[u8], text: &mut Vec<u8>) {
    if path.is_some_and(<[usize]>::is_empty) {
        text.extend_from_slice(changed);
        return;
    }
    let next = |number: usize| path.filter(|path| path[0] == number).map(|path| &path[1..]);
    match value {
        Value::Array(items) => {
            text.push(b'[');
            for (number, item) in items.iter().enumerate() {
                text.extend_from_slice(if number > 0 { b"," } else { b"" });
                write_changed(item, next(number), change, changed, text);
            }
            text.push(b']');
        }
        Value::Object(fields) => {
            text.push(b'{');
            let begun = text.len();
            let mut write_field = |name: &str, value: &Value, path: Option<&[usize]>| {
                text.extend_from_slice(if text.len() > begun { b"," } else { b"" });
                text.extend_from_slice(Value::from(name).to_string().as_bytes());
                text.push(b':');
                write_changed(value, path, change, changed, text);
            };
            for (number, (name, field)) in fields.iter().enumerate() {
                let path = next(number);
                let is_changed = path.is_some_and(<[usize]>::is_empty);
                match change {
                    FieldChange::Missing if is_changed => continue,
                    FieldChange::Repeated if is_changed => write_field(name, field, None),
                    FieldChange::Extra if is_changed => write_field("extra\u{1b}[2J", field, None),
                    _ => {}
                }
                write_field(name, field, path);
            }
            text.push(b'}');
        }
        value => text.extend_from_slice(value.to_string().as_bytes()),
    }
}

/// The numbers of the children on a random way into the value.
fn draw_path(value: &Value, random: &mut FuzzRandom) -> Vec<usize> {
    let (mut path, mut value) = (Vec::new(), value);
    loop {
        let children = count_children(value);
        // Few changes replace a whole object.
        if children == 0 || (!path.is_empty() && random.below(10) == 0) {
            return path;
        }
        path.push(random.below(children));
        value = child(value, path[path.len() - 1]);
    }
}

fn count_children(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.len(),
        Value::Object(fields) => fields.len(),
        _ => 0,
    }
}

fn child(value: &Value, number: usize) -> &Value {
    match value {
        Value::Array(items) => &items[number],
        Value::Object(fields) => fields.values().nth(number).expect("it has as many"),
        _ => value,
    }
}

fn find_value<'a>(value: &'a Value, path: &[usize]) -> &'a Value {
    path.iter().fold(value, |value, number| child(value, *number))
}

/// The text of another value for a field of a line.
fn draw_value(own: &Value, line: &Value, random: &mut FuzzRandom) -> Vec<u8> {
    match random.below(12) {
        0 => random
            .pick(&[&b"null"[..], b"true", b"false", b"[]", b"{}", b"\"\"", b"[null]", b"{\"value\":null}"])
            .to_vec(),
        1 => exchange_type(own),
        2 => random.pick(&ODD_NUMBERS).to_vec(),
        3 => quote(random.pick::<&[u8]>(&ODD_NUMBERS)),
        4 => find_value(line, &draw_path(line, random)).to_string().into_bytes(),
        5 => quote(random.pick(&CLOSED_WORDS).as_bytes()),
        6 => nest(random),
        7 if random.below(8) == 0 => quote(&vec![b'x'; LONG_TEXT]),
        8 | 9 if own.is_number() => alter_number(own.as_f64().unwrap_or_default(), random),
        8 | 9 if own.is_object() => alter_interval(own, random),
        _ => add_hostile_text(own, random),
    }
}

/// The value as another type: a number as text, and so on.
fn exchange_type(own: &Value) -> Vec<u8> {
    match own {
        Value::Null => b"\"null\"".to_vec(),
        Value::Bool(is) => u8::from(*is).to_string().into_bytes(),
        Value::Number(number) => quote(number.to_string().as_bytes()),
        Value::String(text) => format!("[{}]", Value::from(text.as_str())).into_bytes(),
        Value::Array(items) => items.first().map_or(b"0".to_vec(), |first| first.to_string().into_bytes()),
        Value::Object(fields) => Value::from_iter(fields.values().cloned()).to_string().into_bytes(),
    }
}

fn quote(content: &[u8]) -> Vec<u8> {
    [b"\"", content, b"\""].concat()
}

fn nest(random: &mut FuzzRandom) -> Vec<u8> {
    let levels = *random.pick(&NESTING_LEVELS);
    let (open, close) = *random.pick(&[("[", "]"), ("{\"a\":", "}")]);
    let inner = if open == "[" { "" } else { "1" };
    (open.repeat(levels) + inner + &close.repeat(levels)).into_bytes()
}

/// A plausible number that contradicts its surroundings.
fn alter_number(own: f64, random: &mut FuzzRandom) -> Vec<u8> {
    let other = match random.below(6) {
        0 => -own,
        1 => own + 1.0,
        2 => own * 1e3,
        3 => own / 1e3,
        4 => own.trunc(),
        _ => 1.0 / own,
    };
    Value::from(other).to_string().into_bytes()
}

/// An object whose ends are exchanged, or negative, or in another unit.
fn alter_interval(own: &Value, random: &mut FuzzRandom) -> Vec<u8> {
    let mut object = own.clone();
    let fields = ["value", "low", "high"];
    match random.below(3) {
        0 => {
            let (low, high) = (object["low"].clone(), object["high"].clone());
            (object["low"], object["high"]) = (high, low);
        }
        1 => {
            for field in fields {
                object[field] = object[field].as_f64().map_or(Value::Null, |number| Value::from(-number));
            }
        }
        _ => object["unit"] = Value::from(*random.pick(&CLOSED_WORDS)),
    }
    object.to_string().into_bytes()
}

/// The value's text with hostile text before or behind it, or alone.
fn add_hostile_text(own: &Value, random: &mut FuzzRandom) -> Vec<u8> {
    let hostile: &[u8] = random.pick::<&[u8]>(&HOSTILE_TEXTS);
    let text = Value::from(own.as_str().unwrap_or_default()).to_string();
    let text = &text.as_bytes()[1..text.len() - 1];
    quote(&match random.below(3) {
        0 => hostile.to_vec(),
        1 => [hostile, text].concat(),
        _ => [text, hostile].concat(),
    })
}

/// A row of a table with one cell changed.
fn change_cell(row: &[u8], random: &mut FuzzRandom) -> Vec<u8> {
    let mut cells: Vec<Vec<u8>> = row.split(|byte| *byte == b',').map(<[u8]>::to_vec).collect();
    let at = random.below(cells.len());
    // A cell has the characters themselves, without the escapes of JSON.
    let plain = |hostile: &[u8]| {
        let quoted = quote(hostile);
        serde_json::from_slice::<String>(&quoted).map_or(hostile.to_vec(), String::into_bytes)
    };
    match random.below(8) {
        0 => drop(cells.remove(at)),
        1 => cells.insert(at, cells[at].clone()),
        2 => cells[at] = random.pick(&ODD_NUMBERS).to_vec(),
        3 => cells[at] = random.pick(&CLOSED_WORDS).as_bytes().to_vec(),
        4 => cells[at] = random.pick(&[&b"5-3"[..], b"<=-1", b"-3--1", b"1e400", b"3-", b"<=NaN"]).to_vec(),
        5 => {
            let to = random.below(cells.len());
            cells.swap(at, to);
        }
        6 => cells[at] = plain(random.pick::<&[u8]>(&HOSTILE_TEXTS)),
        _ => {
            let hostile = plain(random.pick::<&[u8]>(&HOSTILE_TEXTS));
            cells[at].extend(hostile);
        }
    }
    cells.join(&b',')
}
