//! Reads values of function arguments.
//!
//! ```text
//! argument = [ name "=" ] value
//! value    = integer | float | character | string | "{" [ value { "," value } ] "}"
//!          | ("buffer" | "out") [ ":" bytes ] [ "+" bytes ]
//!          | "size" [ "/" integer ] | "NULL" | "nullptr" | "true" | "false" | "INT_MAX" …
//!          | the name of a value of an enumeration, such as RED or Color::Red
//!          | [ "&" ] the name of a function
//! ```
//!
//! An `@` may precede a value. Numbers and strings look like those of C. Braces hold the members of
//! a structure. Expressions are refused.

use super::arg_value::{ArgValue, CallArgument, CallMemoryName, MemoryPlace};
use super::call_number::{find_limit, parse_number};
use super::size::parse_size;

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
const VALUE_KINDS: &str =
    "a value such as 100, -1, 0x40, 0.5, 0.5f, \"text\", {1, 2}, `buffer`, `out`, `size` or &function";

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

    /// Takes a name with the names that it is in, such as `Color::Red`.
    fn take_path(&mut self) -> &'a str {
        let all = self.rest;
        self.take_while(is_name_character);
        while let Some(inner) = self.rest.strip_prefix("::").filter(|inner| is_name(inner)) {
            self.rest = inner;
            self.take_while(is_name_character);
        }
        &all[..all.len() - self.rest.len()]
    }

    fn read_argument(&mut self) -> Result<CallArgument, String> {
        self.peek();
        let before = self.rest;
        let name = self.take_while(is_name_character);
        if is_name(name) && self.accept('=') {
            return Ok(CallArgument { name: Some(name.to_string()), value: self.read_operand()? });
        }
        self.rest = before;
        Ok(CallArgument { name: None, value: self.read_operand()? })
    }

    /// Reads a value that no operator follows.
    fn read_operand(&mut self) -> Result<ArgValue, String> {
        self.peek();
        let before = self.rest;
        let value = self.read_value()?;
        match self.peek().is_some_and(is_operator) {
            true => Err(expression_at(before)),
            false => Ok(value),
        }
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
            Some('&') if is_name(&before[1..]) => {
                self.rest = &before[1..];
                Ok(ArgValue::Function(self.take_path().to_string()))
            }
            Some('(') => Err(expression_at(before)),
            Some(c) if is_operator(c) => Err(expression_at(before)),
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
            members.push(self.read_operand()?);
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
        let word = self.take_path();
        let memory = match word {
            "NULL" | "nullptr" | "false" => return Ok(ArgValue::Number(0)),
            "true" => return Ok(ArgValue::Number(1)),
            "sizeof" => {
                return Err(
                    "`sizeof` is not evaluated; write `size` for the bytes of the buffer, or a number".to_string()
                );
            }
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
            "NAN" | "INFINITY" => return Err(format!("`{word}` is no value here; write a number")),
            word => return Ok(find_limit(word).map_or_else(|| ArgValue::Name(word.to_string()), ArgValue::Number)),
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
        let (mut last, mut end) = (' ', before.len());
        // A sign belongs to the number at its start and after a decimal exponent, a quote between
        // digits.
        let digits = before.trim_start_matches(['-', '+']);
        let is_hexadecimal = digits.starts_with("0x") || digits.starts_with("0X");
        for (at, c) in before.char_indices() {
            let is_sign = matches!(c, '-' | '+') && (at == 0 || !is_hexadecimal && matches!(last, 'e' | 'E'));
            let precedes_digit = || before[at + 1..].starts_with(|next: char| next.is_ascii_hexdigit());
            let is_separator = c == '\'' && last.is_ascii_hexdigit() && precedes_digit();
            if !is_sign && !is_separator && !c.is_ascii_alphanumeric() && !matches!(c, '.' | '_') {
                end = at;
                break;
            }
            last = c;
        }
        let (text, rest) = before.split_at(end);
        self.rest = rest;
        parse_number(text)
    }
}

/// Refuses an expression.
fn expression_at(rest: &str) -> String {
    format!("expressions are not evaluated: write the number instead of the expression at `{rest}`")
}

fn is_operator(c: char) -> bool {
    matches!(c, '<' | '>' | '*' | '/' | '%' | '+' | '-' | '|' | '&' | '^' | '~' | '!' | '?')
}

fn is_name_character(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

/// Whether a text can name a parameter.
fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| is_name_character(first) && !first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Result<ArgValue, String> {
        parse_argument(text).map(|argument| argument.value)
    }

    #[test]
    fn words_and_characters_are_numbers() {
        for (text, number) in
            [("'a'", 97), ("'\\n'", 10), ("NULL", 0), ("nullptr", 0), ("true", 1), ("INT_MAX", 0x7fffffff)]
        {
            assert_eq!(value(text), Ok(ArgValue::Number(number)), "{text}");
        }
        assert_eq!(parse_arguments("1'000, 'a'").unwrap().len(), 2);
        for name in ["x", "RED", "Color::Red"] {
            assert_eq!(value(name), Ok(ArgValue::Name(name.to_string())));
        }
        assert_eq!(value("@&less"), Ok(ArgValue::Function("less".to_string())));
        for wrong in ["", "--1", "1 2", "'ab'", "@", "&", "&1", "&f(1)", "a::", "a::1", "NAN", "f(1)"] {
            assert!(value(wrong).is_err(), "{wrong}");
        }
        let expressions = [
            "1-2",
            "0x1e+1",
            "1<<20",
            "64 * 1024",
            "size-1",
            "buffer-8",
            "~0",
            "(1<<20)",
            "(size_t)-1",
            "{1|2}",
            "n=1*2",
        ];
        for wrong in expressions {
            assert!(value(wrong).unwrap_err().contains("expressions are not evaluated"), "{wrong}");
        }
        assert!(value("sizeof(buffer)").unwrap_err().contains("write `size`"));
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
            "{1, {2.5f, buffer}, {RED}}",
            "&compare",
            "{&ns::compare, 1}",
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
            ("0, buffer:, 5", "at `, 5`"),
            ("0, buffer 5", "comma between two arguments at `5`"),
            ("0,", "at the end"),
            ("\"open", "closing quote at `\"open`"),
            ("{1, 2", "a comma or `}` at the end"),
            ("buffer:x", "at `x`"),
            ("size/0", "size/0"),
            ("1, *p", "at `*p`"),
            ("1<<20, 5", "at `1<<20, 5`"),
        ] {
            let error = parse_arguments(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
        assert_eq!(parse_arguments(" ").unwrap(), []);
        assert_eq!(parse_arguments("0, buffer, n=size").unwrap().len(), 3);
    }
}
