//! Mutated JSON values, to reach the code behind the parser.

use crate::{FuzzRandom, bytes};
use serde_json::{Value, json};

/// A copy in which one or a few values changed. Input that is not JSON is mutated as bytes.
pub(crate) fn mutate_json(seed: &[u8], other: &[u8], random: &mut FuzzRandom) -> Vec<u8> {
    let Ok(mut value) = serde_json::from_slice::<Value>(seed) else {
        return bytes::mutate_bytes(seed, other, random);
    };
    let other = serde_json::from_slice(other).unwrap_or(Value::Null);
    for _ in 0..1 + random.below(3) {
        change_value(&mut value, &other, random);
    }
    serde_json::to_vec(&value).expect("the value was parsed from JSON")
}

/// The line with one value changed, perhaps to another value of it.
pub(crate) fn change_line(mut line: Value, random: &mut FuzzRandom) -> Value {
    let other = line.clone();
    change_value(&mut line, &other, random);
    line
}

/// A copy in which values of one line changed, or lines were removed or repeated.
pub(crate) fn mutate_lines(seed: &[u8], other: &[u8], random: &mut FuzzRandom) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> = seed.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let others: Vec<&[u8]> = other.split(|byte| *byte == b'\n').collect();
    let at = random.below(lines.len());
    match random.below(8) {
        0 => drop(lines.remove(at)),
        1 => lines.push(lines[at].clone()),
        2 => lines.insert(at, random.pick(&others).to_vec()),
        _ => {
            let donor: &[u8] = random.pick::<&[u8]>(&others);
            lines[at] = mutate_json(&lines[at], donor, random);
        }
    }
    lines.join(&b'\n')
}

/// Changes one value at a random place.
fn change_value(value: &mut Value, other: &Value, random: &mut FuzzRandom) {
    let donor = pick_value(other, random).clone();
    let place = pick_value_mut(value, random);
    match random.below(10) {
        0 => *place = donor,
        1 => *place = draw_odd_value(random),
        _ => alter_value(place, donor, random),
    }
}

/// Changes a value in a way that fits its type.
fn alter_value(place: &mut Value, donor: Value, random: &mut FuzzRandom) {
    match place {
        Value::Number(number) => *place = alter_number(number.as_f64().unwrap_or(0.0), random),
        Value::Bool(is) => *is = !*is,
        Value::String(text) => alter_text(text, random),
        Value::Array(items) => alter_items(items, donor, random),
        Value::Object(fields) => {
            let names: Vec<String> = fields.keys().cloned().collect();
            match random.below(3) {
                _ if names.is_empty() => drop(fields.insert("x".to_string(), donor)),
                0 => drop(fields.remove(random.pick(&names))),
                1 => drop(fields.insert(random.pick(&names).clone(), donor)),
                _ => {
                    let (from, to) = (random.pick(&names), random.pick(&names));
                    let value = fields[from].clone();
                    fields.insert(to.clone(), value);
                }
            }
        }
        Value::Null => *place = draw_odd_value(random),
    }
}

fn alter_text(text: &mut String, random: &mut FuzzRandom) {
    let mut characters: Vec<char> = text.chars().collect();
    let at = random.below(characters.len() + 1);
    match random.below(6) {
        0 => characters.clear(),
        1 => characters.truncate(at),
        2 => characters.insert(at, *random.pick(&['\u{1b}', '\0', '\n', ' ', 'µ', '-', '0', 'f', '\u{202e}', '\''])),
        3 if at < characters.len() => drop(characters.remove(at)),
        4 => characters.extend_from_within(..),
        _ => {
            characters =
                random.pick(&["user", "kernel", "/dev/zero", "0", "-1", "ff", "imul", "nop", "*"]).chars().collect();
        }
    }
    characters.truncate(1 << 14);
    *text = characters.into_iter().collect();
}

fn alter_items(items: &mut Vec<Value>, donor: Value, random: &mut FuzzRandom) {
    if items.is_empty() {
        items.push(donor);
        return;
    }
    let at = random.below(items.len());
    match random.below(6) {
        0 => drop(items.remove(at)),
        1 => items.insert(at, items[at].clone()),
        2 => items[at] = donor,
        3 => items.clear(),
        4 => items.truncate(at),
        _ => {
            let to = random.below(items.len());
            items.swap(at, to);
        }
    }
}

/// A value that readers may not expect.
fn draw_odd_value(random: &mut FuzzRandom) -> Value {
    let values = [
        json!(0),
        json!(-1),
        json!(1),
        json!(2),
        json!(3),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(1u64 << 60),
        json!(1u64 << 40),
        json!(1u64 << 32),
        json!(u32::MAX),
        json!(1e308),
        json!(-1e308),
        json!(1e-308),
        json!(0.0),
        json!(-0.0),
        json!(0.5),
        json!(2.5),
        json!(f64::MIN_POSITIVE),
        json!(null),
        json!(true),
        json!(""),
        json!([]),
        json!({}),
        json!([[]]),
        json!("x"),
    ];
    random.pick(&values).clone()
}

/// A number close to another one, or far from it.
fn alter_number(number: f64, random: &mut FuzzRandom) -> Value {
    match random.below(6) {
        0 => json!(number as i64),
        1 => json!(number + 1.0),
        2 => json!(-number),
        3 => json!((number as u64).wrapping_mul(2)),
        4 => json!(number / 3.0),
        _ => draw_odd_value(random),
    }
}

/// How many of eight steps go one level down.
const DEEPER_EIGHTHS: usize = 7;

fn pick_value<'a>(mut value: &'a Value, random: &mut FuzzRandom) -> &'a Value {
    loop {
        let next = match value {
            Value::Array(items) if !items.is_empty() => Some(random.pick(items)),
            Value::Object(fields) if !fields.is_empty() => fields.values().nth(random.below(fields.len())),
            _ => None,
        };
        match next {
            Some(next) if random.below(8) < DEEPER_EIGHTHS => value = next,
            _ => return value,
        }
    }
}

fn pick_value_mut<'a>(mut value: &'a mut Value, random: &mut FuzzRandom) -> &'a mut Value {
    loop {
        let is_last = match value {
            Value::Array(items) => items.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            _ => true,
        };
        if is_last || random.below(8) >= DEEPER_EIGHTHS {
            return value;
        }
        value = match value {
            Value::Array(items) => {
                let at = random.below(items.len());
                &mut items[at]
            }
            Value::Object(fields) => {
                let at = random.below(fields.len());
                fields.values_mut().nth(at).expect("it has as many")
            }
            _ => unreachable!("it would have been the last"),
        };
    }
}
