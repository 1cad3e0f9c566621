//! Values of function arguments, as text and parsed.
//!
//! ```text
//! argument = [ name "=" ] value
//! value    = integer | float | character | string | "{" [ value { "," value } ] "}"
//!          | ("buffer" | "out") [ ":" bytes ] [ "+" bytes ]
//!          | "size" [ "/" integer ] | "NULL" | "nullptr" | "true" | "false"
//! ```
//!
//! An `@` may precede a value. Numbers and strings look like those of C. Braces hold the members of
//! a structure.

use super::size::parse_size;
use std::fmt;

/// The value of one argument.
#[derive(Debug, Clone, PartialEq)]
pub enum ArgValue {
    /// An integer.
    Number(i128),
    /// A `double`.
    Double(f64),
    /// A `float`.
    Single(f32),
    /// Bytes of the file in the buffer, or of the buffer if it holds no file, divided by a number.
    Size {
        /// The divisor.
        divisor: u64,
    },
    /// An address in the memory that functions work on.
    Memory(MemoryPlace),
    /// The address of this text and a NUL byte.
    Text(Vec<u8>),
    /// Members of a structure.
    Members(Vec<ArgValue>),
}

/// A place in the memory that functions work on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryPlace {
    /// Which memory.
    pub memory: CallMemoryName,
    /// Its bytes, if given.
    pub bytes: Option<u64>,
    /// Offset from its start in bytes.
    pub offset: u64,
}

/// The memory that functions work on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallMemoryName {
    /// The buffer that --buffer and --contents describe.
    Buffer,
    /// The second buffer.
    Out,
}

/// The start of the buffer.
pub const BUFFER_START: ArgValue =
    ArgValue::Memory(MemoryPlace { memory: CallMemoryName::Buffer, bytes: None, offset: 0 });

impl ArgValue {
    /// The places in memory that it contains.
    pub fn memory_places(&self) -> Vec<MemoryPlace> {
        match self {
            ArgValue::Memory(place) => vec![*place],
            ArgValue::Members(members) => members.iter().flat_map(ArgValue::memory_places).collect(),
            _ => Vec::new(),
        }
    }

    /// The texts that it contains.
    pub fn texts(&self) -> Vec<&[u8]> {
        match self {
            ArgValue::Text(text) => vec![text],
            ArgValue::Members(members) => members.iter().flat_map(ArgValue::texts).collect(),
            _ => Vec::new(),
        }
    }
}

impl fmt::Display for ArgValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArgValue::Number(number) => number.fmt(f),
            // The debug format always has a point or an exponent.
            ArgValue::Double(number) => write!(f, "{number:?}"),
            ArgValue::Single(number) => write!(f, "{number:?}f"),
            ArgValue::Size { divisor: 1 } => f.write_str("size"),
            ArgValue::Size { divisor } => write!(f, "size/{divisor}"),
            ArgValue::Memory(MemoryPlace { memory, bytes, offset }) => {
                f.write_str(match memory {
                    CallMemoryName::Buffer => "buffer",
                    CallMemoryName::Out => "out",
                })?;
                bytes.map_or(Ok(()), |bytes| write!(f, ":{bytes}"))?;
                if *offset > 0 { write!(f, "+{offset}") } else { Ok(()) }
            }
            ArgValue::Text(text) => write!(f, "\"{}\"", text.escape_ascii()),
            ArgValue::Members(members) => {
                let members: Vec<String> = members.iter().map(ArgValue::to_string).collect();
                write!(f, "{{{}}}", members.join(", "))
            }
        }
    }
}

/// One argument: a value, and its parameter's name if it is passed by name.
#[derive(Debug, Clone, PartialEq)]
pub struct CallArgument {
    /// The name of the parameter.
    pub name: Option<String>,
    /// The value.
    pub value: ArgValue,
}

impl fmt::Display for CallArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.as_ref().map_or(Ok(()), |name| write!(f, "{name}="))?;
        self.value.fmt(f)
    }
}

impl serde::Serialize for CallArgument {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// Parses one argument.
pub fn parse_argument(text: &str) -> Result<CallArgument, String> {
    let mut reader = ValueReader { rest: text };
    let argument = reader.read_argument()?;
    match reader.rest.trim_start() {
        "" => Ok(argument),
        rest => Err(expected_at("the end of the value", rest)),
    }
}

/// Parses arguments with commas between them.
pub fn parse_arguments(text: &str) -> Result<Vec<CallArgument>, String> {
    let mut reader = ValueReader { rest: text };
    if reader.peek().is_none() {
        return Ok(Vec::new());
    }
    let mut arguments = vec![reader.read_argument()?];
    while reader.peek().is_some() {
        reader.require(',', "a comma between two arguments")?;
        arguments.push(reader.read_argument()?);
    }
    Ok(arguments)
}

/// What a value may be, for messages.
const VALUE_KINDS: &str = "a value such as 100, -1, 0x40, 0.5, 0.5f, \"text\", {1, 2}, `buffer`, `out` or `size`";

fn expected_at(what: &str, rest: &str) -> String {
    match rest {
        "" => format!("expected {what} at the end"),
        rest => format!("expected {what} at `{rest}`"),
    }
}

/// A half-read text.
struct ValueReader<'a> {
    rest: &'a str,
}

impl<'a> ValueReader<'a> {
    fn peek(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start();
        self.rest.chars().next()
    }

    fn accept(&mut self, sign: char) -> bool {
        self.peek();
        let rest = self.rest.strip_prefix(sign);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn require(&mut self, sign: char, what: &str) -> Result<(), String> {
        if self.accept(sign) { Ok(()) } else { Err(expected_at(what, self.rest)) }
    }

    /// Takes the characters up to the first that isn't `within`.
    fn take_while(&mut self, within: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !within(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    fn read_argument(&mut self) -> Result<CallArgument, String> {
        self.peek();
        let before = self.rest;
        let name = self.take_while(is_name_character);
        if is_name(name) && self.accept('=') {
            return Ok(CallArgument { name: Some(name.to_string()), value: self.read_value()? });
        }
        self.rest = before;
        Ok(CallArgument { name: None, value: self.read_value()? })
    }

    fn read_value(&mut self) -> Result<ArgValue, String> {
        self.accept('@');
        let first = self.peek();
        let before = self.rest;
        let value = match first {
            Some('{') => self.read_members(),
            Some('"') => self.read_quoted('"').map(ArgValue::Text),
            Some('\'') => match self.read_quoted('\'')?.as_slice() {
                [one] => Ok(ArgValue::Number((*one as i8).into())),
                _ => Err(expected_at("one character between the quotes", before)),
            },
            Some(c) if is_name_character(c) && !c.is_ascii_digit() => self.read_word(),
            Some('-' | '+' | '.' | '0'..='9') => self.read_number(),
            _ => Err(String::new()),
        };
        value.map_err(|error| if error.is_empty() { expected_at(VALUE_KINDS, before) } else { error })
    }

    fn read_members(&mut self) -> Result<ArgValue, String> {
        self.require('{', "`{`")?;
        let mut members = Vec::new();
        while !self.accept('}') {
            if !members.is_empty() {
                self.require(',', "a comma or `}`")?;
            }
            members.push(self.read_value()?);
        }
        Ok(ArgValue::Members(members))
    }

    /// Reads the bytes between quotes.
    fn read_quoted(&mut self, quote: char) -> Result<Vec<u8>, String> {
        let before = self.rest;
        let mut characters = self.rest[1..].char_indices();
        let mut bytes = Vec::new();
        while let Some((at, c)) = characters.next() {
            let byte = match c {
                c if c == quote => {
                    self.rest = &self.rest[1 + at + 1..];
                    return Ok(bytes);
                }
                '\\' => match characters.next().map(|(_, c)| c) {
                    Some('n') => b'\n',
                    Some('t') => b'\t',
                    Some('r') => b'\r',
                    Some('0') => 0,
                    Some(c @ ('\\' | '"' | '\'')) => c as u8,
                    Some('x') => {
                        let digits: String = characters.by_ref().take(2).map(|(_, c)| c).collect();
                        u8::from_str_radix(&digits, 16)
                            .map_err(|_| expected_at("two hexadecimal digits after `\\x`", before))?
                    }
                    _ => return Err(expected_at("one of \\n, \\t, \\r, \\0, \\\\, \\\", \\' and \\xNN", before)),
                },
                c => {
                    bytes.extend(c.encode_utf8(&mut [0; 4]).bytes());
                    continue;
                }
            };
            bytes.push(byte);
        }
        Err(expected_at("a closing quote", before))
    }

    fn read_word(&mut self) -> Result<ArgValue, String> {
        let memory = match self.take_while(is_name_character) {
            "NULL" | "nullptr" | "false" => return Ok(ArgValue::Number(0)),
            "true" => return Ok(ArgValue::Number(1)),
            "size" => {
                if !self.accept('/') {
                    return Ok(ArgValue::Size { divisor: 1 });
                }
                let divisor = self.read_bytes()?;
                return if divisor > 0 {
                    Ok(ArgValue::Size { divisor })
                } else {
                    Err("size/0 is no number".to_string())
                };
            }
            "buffer" => CallMemoryName::Buffer,
            "out" => CallMemoryName::Out,
            _ => return Err(String::new()),
        };
        let bytes = if self.accept(':') { Some(self.read_bytes()?) } else { None };
        let offset = if self.accept('+') { self.read_bytes()? } else { 0 };
        Ok(ArgValue::Memory(MemoryPlace { memory, bytes, offset }))
    }

    /// Reads a number of bytes, such as 4096 or 64K.
    fn read_bytes(&mut self) -> Result<u64, String> {
        self.peek();
        let before = self.rest;
        let digits = self.take_while(|c| c.is_ascii_alphanumeric());
        parse_size(digits).ok_or_else(|| expected_at("a number such as 4096 or 64K", before))
    }

    fn read_number(&mut self) -> Result<ArgValue, String> {
        let before = self.rest;
        let mut last = ' ';
        // A sign belongs to the number at its start and after a decimal exponent.
        let digits = before.trim_start_matches(['-', '+']);
        let is_hexadecimal = digits.starts_with("0x") || digits.starts_with("0X");
        let mut end = before.len();
        for (at, c) in before.char_indices() {
            let is_sign = matches!(c, '-' | '+') && (at == 0 || !is_hexadecimal && matches!(last, 'e' | 'E'));
            if !is_sign && !c.is_ascii_alphanumeric() && c != '.' {
                end = at;
                break;
            }
            last = c;
        }
        let (text, rest) = before.split_at(end);
        self.rest = rest;
        parse_float(text).or_else(|| parse_integer(text)).ok_or_else(String::new)
    }
}

fn is_name_character(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

/// Whether a text can name a parameter.
fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| is_name_character(first) && !first.is_ascii_digit())
}

/// Parses an integer, with a suffix such as that of `100UL`.
fn parse_integer(text: &str) -> Option<ArgValue> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let digits = digits.trim_end_matches(['u', 'U', 'l', 'L', 'z', 'Z']);
    let number = match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        Some(digits) => i128::from_str_radix(digits, 16),
        None => digits.parse(),
    };
    number.ok().filter(|number| *number >= 0).map(|number| ArgValue::Number(sign * number))
}

/// Parses a floating point number: text with a point or an exponent.
fn parse_float(text: &str) -> Option<ArgValue> {
    if text.contains(['x', 'X']) || !text.contains(['.', 'e', 'E']) {
        return None;
    }
    let value = match text.strip_suffix(['f', 'F']) {
        Some(digits) => ArgValue::Single(digits.parse().ok().filter(|number: &f32| number.is_finite())?),
        None => {
            ArgValue::Double(text.trim_end_matches(['l', 'L']).parse().ok().filter(|number: &f64| number.is_finite())?)
        }
    };
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Result<ArgValue, String> {
        parse_argument(text).map(|argument| argument.value)
    }

    #[test]
    fn numbers_look_like_those_of_c() {
        for (text, number) in [
            ("0x10", 16),
            ("-1", -1),
            ("18446744073709551615", u64::MAX.into()),
            ("100UL", 100),
            ("0xffu", 255),
            ("'a'", 97),
            ("'\\n'", 10),
            ("NULL", 0),
            ("true", 1),
        ] {
            assert_eq!(value(text), Ok(ArgValue::Number(number)), "{text}");
        }
        for (text, number) in
            [("0.5", 0.5), ("-1e3", -1000.0), ("1e-3", 0.001), (".5", 0.5), ("1.", 1.0), ("2.0L", 2.0)]
        {
            assert_eq!(value(text), Ok(ArgValue::Double(number)), "{text}");
        }
        assert_eq!(value("2.5f"), Ok(ArgValue::Single(2.5)));
        for wrong in ["", "--1", "x", "1.5.2", "e", "1e999", "1f", "0x", "1 2", "'ab'", "@", "1-2", "0x1e+1"] {
            assert!(value(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn texts_of_values_read_back() {
        for text in [
            "0.5",
            "-1000.0",
            "1e300",
            "2.5f",
            "size",
            "size/8",
            "-1",
            "buffer",
            "buffer:4096",
            "out:64+8",
            "out+16",
            "\"a\\n\\\"b\\x01\"",
            "{1, {2.5f, buffer}, {}}",
        ] {
            assert_eq!(value(text).unwrap().to_string(), text);
        }
        assert_eq!(value("@buffer:64K+1"), value("buffer:65536+1"));
        assert_eq!(value("\"ü\""), Ok(ArgValue::Text("ü".into())));
        let named = parse_argument("n = 1000").unwrap();
        assert_eq!((named.name.as_deref(), named.to_string()), (Some("n"), "n=1000".to_string()));
    }

    #[test]
    fn errors_quote_the_place() {
        for (text, part) in [
            ("0, buffr, 5", "at `buffr, 5`"),
            ("0, buffer 5", "comma between two arguments at `5`"),
            ("0,", "at the end"),
            ("\"open", "closing quote at `\"open`"),
            ("{1, 2", "a comma or `}` at the end"),
            ("buffer:x", "at `x`"),
            ("size/0", "size/0"),
            ("1, *p", "at `*p`"),
        ] {
            let error = parse_arguments(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
        assert_eq!(parse_arguments(" ").unwrap(), []);
        assert_eq!(parse_arguments("0, buffer, n=size").unwrap().len(), 3);
    }
}
