//! Numbers among the arguments of a call, in the notations of C, and some of Rust and Python.

use super::arg_value::ArgValue;
use super::size::parse_size;

/// Parses a number: all of the text.
pub fn parse_number(text: &str) -> Result<ArgValue, String> {
    let separated = remove_separators(text).ok_or_else(String::new)?;
    let digits = separated.strip_prefix(['-', '+']).unwrap_or(&separated);
    let is_decimal = !digits.starts_with('0')
        || !digits[1..].starts_with(|c: char| c.is_ascii_alphabetic() && !matches!(c, 'e' | 'E'));
    if is_decimal && digits.contains(['.', 'e', 'E']) { parse_float(&separated) } else { parse_integer(&separated) }
}

/// Removes `_` and `'` between digits. `None` at other places.
fn remove_separators(text: &str) -> Option<String> {
    let is_separator = |c: char| matches!(c, '_' | '\'');
    let parts: Vec<&str> = text.split(is_separator).collect();
    let is_digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_hexdigit());
    let is_between_digits = |pair: &[&str]| is_digit(pair[0].chars().next_back()) && is_digit(pair[1].chars().next());
    parts.windows(2).all(is_between_digits).then(|| parts.concat())
}

/// Parses an integer, with a suffix such as that of `100UL` or `64K`. An error without text means
/// that it is none.
fn parse_integer(text: &str) -> Result<ArgValue, String> {
    let (sign, unsigned) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let digits = unsigned.trim_end_matches(['u', 'U', 'l', 'L', 'z', 'Z']);
    let lower = digits.to_ascii_lowercase();
    let with_base = [("0x", 16), ("0b", 2), ("0o", 8)].into_iter().find_map(|(prefix, base)| {
        let digits = lower.strip_prefix(prefix)?;
        Some(i128::from_str_radix(digits, base))
    });
    let number = match with_base {
        Some(number) => number.ok(),
        None => parse_size(unsigned).map(i128::from).or_else(|| digits.parse().ok()),
    };
    // The parsers accept a second sign.
    let number = number.filter(|_| !unsigned.contains(['-', '+'])).ok_or_else(String::new)?;
    if digits.starts_with('0') && digits.bytes().all(|digit| digit.is_ascii_digit()) {
        require_same_octal(digits, number)?;
    }
    Ok(ArgValue::Number(sign * number))
}

/// Refuses digits that are another number in C, where a 0 at the start means base 8.
fn require_same_octal(digits: &str, decimal: i128) -> Result<(), String> {
    match i128::from_str_radix(digits, 8) {
        Ok(octal) if octal == decimal => Ok(()),
        Ok(octal) => Err(format!("`{digits}` is {octal} in C and {decimal} elsewhere; write {octal} or {decimal}")),
        Err(_) => Err(format!("`{digits}` is no number in C, because it begins with 0; write {decimal}")),
    }
}

/// Parses a floating point number. An error without text means that it is none.
fn parse_float(text: &str) -> Result<ArgValue, String> {
    let (digits, is_single) = match text.strip_suffix(['f', 'F']) {
        Some(digits) => (digits, true),
        None => (text.strip_suffix(['l', 'L']).unwrap_or(text), false),
    };
    let double: f64 = digits.parse().map_err(|_| String::new())?;
    let single: f32 = digits.parse().map_err(|_| String::new())?;
    let (value, kind, size) = match is_single {
        true => (ArgValue::Single(single), "float", single.abs().into()),
        false => (ArgValue::Double(double), "double", double.abs()),
    };
    let significand = digits.split(['e', 'E']).next().unwrap_or_default();
    let is_zero = !significand.contains(|c: char| matches!(c, '1'..='9'));
    match f64::is_finite(size) && (size > 0.0 || is_zero) {
        true => Ok(value),
        false => Err(format!("`{text}` is outside the range of a `{kind}`")),
    }
}

/// Bits of the types whose limits have names, as in `INT_MAX`.
const SIGNED_LIMITS: [(&str, u32); 12] = [
    ("CHAR", 8),
    ("SCHAR", 8),
    ("SHRT", 16),
    ("INT", 32),
    ("LONG", 64),
    ("LLONG", 64),
    ("INT8", 8),
    ("INT16", 16),
    ("INT32", 32),
    ("INT64", 64),
    ("PTRDIFF", 64),
    ("SSIZE", 64),
];
const UNSIGNED_LIMITS: [(&str, u32); 10] = [
    ("UCHAR", 8),
    ("USHRT", 16),
    ("UINT", 32),
    ("ULONG", 64),
    ("ULLONG", 64),
    ("UINT8", 8),
    ("UINT16", 16),
    ("UINT32", 32),
    ("UINT64", 64),
    ("SIZE", 64),
];

/// The value of a limit of `<limits.h>` or `<stdint.h>`.
pub fn find_limit(name: &str) -> Option<i128> {
    let (of, end) = name.rsplit_once('_')?;
    let bits = |limits: &[(&str, u32)]| limits.iter().find(|(own, _)| *own == of).map(|(_, bits)| *bits);
    match (end, bits(&SIGNED_LIMITS), bits(&UNSIGNED_LIMITS)) {
        ("MAX", Some(bits), _) => Some((1 << (bits - 1)) - 1),
        ("MIN", Some(bits), _) => Some(-(1 << (bits - 1))),
        ("MAX", None, Some(bits)) => Some((1 << bits) - 1),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_look_like_those_of_c_and_its_relatives() {
        for (text, number) in [
            ("0", 0),
            ("00", 0),
            ("-07", -7),
            ("0x10", 16),
            ("0XfFu", 255),
            ("0xe", 14),
            ("-1", -1),
            ("+5", 5),
            ("18446744073709551615", u64::MAX.into()),
            ("100UL", 100),
            ("1_000", 1000),
            ("1'000'000", 1_000_000),
            ("0xdead_beef", 0xdead_beef),
            ("0b101", 5),
            ("0o17", 15),
            ("64K", 65536),
            ("-1M", -(1 << 20)),
        ] {
            assert_eq!(parse_number(text), Ok(ArgValue::Number(number)), "{text}");
        }
        for wrong in
            ["1.5.2", "1f", "0x", "0x1g", "0b2", "1_", "_1", "1__0", "--1", "0x-1", "1k", "5x", "1u8", "0x1.8p3"]
        {
            assert_eq!(parse_number(wrong), Err(String::new()), "{wrong}");
        }
        assert!(parse_number("010").unwrap_err().ends_with("write 8 or 10"));
        assert!(parse_number("-0755UL").unwrap_err().contains("493 in C and 755 elsewhere"));
        assert!(parse_number("08").unwrap_err().ends_with("write 8"));
    }

    #[test]
    fn floating_point_numbers_fit_their_type() {
        for (text, number) in [
            ("0.5", 0.5),
            ("-1e3", -1000.0),
            ("1e-3", 0.001),
            (".5", 0.5),
            ("1.", 1.0),
            ("2.0L", 2.0),
            ("1_000.5", 1000.5),
            ("010.5", 10.5),
            ("0e5", 0.0),
        ] {
            assert_eq!(parse_number(text), Ok(ArgValue::Double(number)), "{text}");
        }
        assert_eq!(parse_number("2.5f"), Ok(ArgValue::Single(2.5)));
        for (wrong, kind) in [("1e999", "double"), ("-1e-400", "double"), ("1e39f", "float"), ("1e-50f", "float")] {
            assert_eq!(parse_number(wrong), Err(format!("`{wrong}` is outside the range of a `{kind}`")));
        }
    }

    #[test]
    fn limits_have_their_names() {
        for (name, number) in [
            ("INT_MAX", i32::MAX.into()),
            ("INT_MIN", i32::MIN.into()),
            ("LONG_MIN", i64::MIN.into()),
            ("UINT64_MAX", u64::MAX.into()),
            ("SIZE_MAX", u64::MAX.into()),
            ("UINT8_MAX", 255),
        ] {
            assert_eq!(find_limit(name), Some(number), "{name}");
        }
        assert_eq!(["UINT_MIN", "INT_MEAN", "MAX", "DBL_MAX"].map(find_limit), [None; 4]);
    }
}
