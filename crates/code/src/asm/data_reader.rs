//! Reads directives of data: bytes, words, numbers, text, space and alignment, in the words of GNU
//! as, NASM and MASM.

use super::CodeMode;
use super::cursor::TokenCursor;
use super::expression::{CodeSymbol, LinearForm};
use super::lexer::{TextPosition, split_tokens};
use super::snippet_data::{ALIGNMENT_MOST, DATA_BYTES_MOST, SnippetData};
use cyclescope_core::error::BadSnippet;

/// A statement in a section of data.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DataStatement<'a> {
    /// Where it begins.
    pub(crate) at: TextPosition,
    /// The labels in front of it, with their colons.
    pub(crate) labels: &'a str,
    /// The directive, which may follow a name; empty after a label alone.
    pub(crate) code: &'a str,
}

/// What a directive of data does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DataDirective {
    /// Integers of this many bytes; with 4 and 8 also floating-point numbers.
    Integers(usize),
    /// Floating-point numbers of this many bytes.
    Floats(usize),
    /// Text, which ends with this many zeros.
    Text(usize),
    /// This many bytes for each unit.
    Space(usize),
    /// Repeated values: count, size, value.
    Fill,
    /// An alignment in bytes.
    Alignment,
    /// An alignment as a power of two.
    PowerAlignment,
}

/// Directives by their names without a dot.
const DATA_DIRECTIVES: &[(DataDirective, &[&str])] = &[
    (DataDirective::Integers(1), &["byte", "db"]),
    (DataDirective::Integers(2), &["word", "short", "hword", "value", "2byte", "dw"]),
    (DataDirective::Integers(4), &["long", "int", "4byte", "dd", "dword"]),
    (DataDirective::Integers(8), &["quad", "8byte", "dq", "qword"]),
    (DataDirective::Floats(4), &["float", "single", "real4"]),
    (DataDirective::Floats(8), &["double", "real8"]),
    (DataDirective::Text(0), &["ascii"]),
    (DataDirective::Text(1), &["asciz", "string"]),
    (DataDirective::Space(1), &["zero", "skip", "space", "resb"]),
    (DataDirective::Space(2), &["resw"]),
    (DataDirective::Space(4), &["resd"]),
    (DataDirective::Space(8), &["resq"]),
    (DataDirective::Fill, &["fill"]),
    (DataDirective::Alignment, &["align", "balign", "alignb"]),
    (DataDirective::PowerAlignment, &["p2align"]),
];

fn find_directive(word: &str) -> Option<DataDirective> {
    let name = word.to_ascii_lowercase();
    let name = name.strip_prefix('.').unwrap_or(&name);
    DATA_DIRECTIVES.iter().find(|(_, names)| names.contains(&name)).map(|(directive, _)| *directive)
}

/// The names that a statement gives to data.
pub(crate) fn data_names<'a>(statement: &DataStatement<'a>) -> impl Iterator<Item = &'a str> + use<'a> {
    let named = split_name(statement.code).0;
    statement.labels.split(':').map(str::trim).chain(named).filter(|name| !name.is_empty())
}

/// Splits `name dd 1` into name and directive.
fn split_name(code: &str) -> (Option<&str>, &str) {
    let word = code.split_whitespace().next().unwrap_or_default();
    let rest = code[word.len()..].trim_start();
    let second = rest.split_whitespace().next().unwrap_or_default();
    let is_second = find_directive(second).is_some() || second.eq_ignore_ascii_case("times");
    let is_first = find_directive(word).is_some() || word.eq_ignore_ascii_case("times");
    if is_second && !is_first { (Some(word), rest) } else { (None, code) }
}

/// Reads the statements of a text's data, for code of a mode.
pub(crate) fn read_data(statements: &[DataStatement], mode: CodeMode) -> Result<SnippetData, BadSnippet> {
    let data = SnippetData { mode, ..SnippetData::default() };
    let mut reader = DataReader { data, pointers: Vec::new() };
    for statement in statements {
        reader.read_statement(statement)?;
    }
    reader.resolve_pointers()
}

/// Data that is being read.
struct DataReader {
    data: SnippetData,
    /// Places that hold the address of a label, plus a number.
    pointers: Vec<(usize, String, i64, TextPosition)>,
}

impl DataReader {
    fn read_statement(&mut self, statement: &DataStatement) -> Result<(), BadSnippet> {
        let at = statement.at;
        for name in data_names(statement) {
            if self.data.labels.insert(name.to_string(), self.data.bytes.len()).is_some() {
                return Err(at.error(format!("the label `{name}` already exists")));
            }
        }
        let (_, code) = split_name(statement.code);
        let (word, rest) = split_word(code);
        if !word.eq_ignore_ascii_case("times") {
            return if code.is_empty() { Ok(()) } else { self.add_directive(word, rest, at) };
        }
        let (count, repeated) = split_word(rest);
        let (word, rest) = split_word(repeated);
        (0..read_count(count, at)?).try_for_each(|_| self.add_directive(word, rest, at))
    }

    fn add_directive(&mut self, word: &str, rest: &str, at: TextPosition) -> Result<(), BadSnippet> {
        let Some(directive) = find_directive(word) else {
            let what = format!("`{word}` is no directive of data that is known here");
            return Err(at.error_expecting(what, "assemble the text with --assembler as or nasm"));
        };
        let arguments = split_arguments(rest);
        let count = |index: usize, default: usize| match arguments.get(index) {
            Some(text) => read_count(text, at),
            None => Ok(default),
        };
        let bytes = &mut self.data.bytes;
        match directive {
            DataDirective::Integers(size) | DataDirective::Floats(size) => {
                let is_float = matches!(directive, DataDirective::Floats(_));
                arguments.iter().try_for_each(|argument| self.add_value(argument, size, is_float, at))?;
            }
            DataDirective::Text(zeros) => {
                for argument in &arguments {
                    bytes.extend(read_quoted(argument, true).ok_or_else(|| at.error("a text needs quotes"))?);
                    bytes.resize(bytes.len() + zeros, 0);
                }
            }
            DataDirective::Space(size) => {
                let fill = count(1, 0)? as u8;
                bytes.resize(bytes.len() + size * count(0, 0)?, fill);
            }
            DataDirective::Fill => {
                let value = (count(2, 0)? as u64).to_le_bytes();
                let one = &value[..count(1, 1)?.min(value.len())];
                bytes.extend(one.repeat(count(0, 0)?));
            }
            DataDirective::Alignment => self.align(count(0, 1)? as u64, at)?,
            DataDirective::PowerAlignment => self.align(1u64.checked_shl(count(0, 0)? as u32).unwrap_or(0), at)?,
        }
        if self.data.bytes.len() > DATA_BYTES_MOST {
            let what = format!("the snippet has more than {DATA_BYTES_MOST} bytes of data");
            return Err(at.error_expecting(what, "use the memory that R14 points into, 1 MiB"));
        }
        Ok(())
    }

    fn align(&mut self, bytes: u64, at: TextPosition) -> Result<(), BadSnippet> {
        if !bytes.is_power_of_two() || bytes > ALIGNMENT_MOST {
            let what = "data can't be aligned like this";
            return Err(at.error_expecting(what, format!("name a power of two up to {ALIGNMENT_MOST} bytes")));
        }
        self.data.alignment = self.data.alignment.max(bytes);
        let start = self.data.bytes.len().next_multiple_of(bytes as usize);
        self.data.bytes.resize(start, 0);
        Ok(())
    }

    /// Adds a number, a character or text, or the address of a label.
    fn add_value(&mut self, argument: &str, size: usize, is_float: bool, at: TextPosition) -> Result<(), BadSnippet> {
        if let Some(mut text) = read_quoted(argument, false).filter(|_| !is_float) {
            text.resize(text.len().next_multiple_of(size), 0);
            self.data.bytes.extend(text);
            return Ok(());
        }
        if let Some(bytes) = read_float(argument, size, is_float) {
            self.data.bytes.extend(bytes);
            return Ok(());
        }
        // Microsoft's assembler leaves it open.
        let form = if argument == "?" { LinearForm::default() } else { read_form(argument, at)? };
        let bad = || at.error_expecting(format!("`{argument}` is no value of {size} bytes"), "a number or a label");
        let value = match form.symbol {
            _ if !form.registers.is_empty() || is_float => return Err(bad()),
            None => form.constant,
            Some((CodeSymbol::Label(name), _)) if 8 * size == self.data.mode.bits() as usize => {
                let addend = i64::try_from(form.constant).map_err(|_| bad())?;
                self.pointers.push((self.data.bytes.len(), name, addend, at));
                0
            }
            Some(_) => return Err(bad()),
        };
        let bits = 8 * size as u32;
        if !(-(1i128 << (bits - 1))..1i128 << bits).contains(&value) {
            return Err(bad());
        }
        self.data.bytes.extend(&value.to_le_bytes()[..size]);
        Ok(())
    }

    fn resolve_pointers(mut self) -> Result<SnippetData, BadSnippet> {
        for (place, name, addend, at) in self.pointers {
            let Some(target) = self.data.labels.get(&name) else {
                let remedy = "data can point to data of the same text only";
                return Err(at.error_expecting(format!("`{name}` is no label of data"), remedy));
            };
            let target = (*target as i64).checked_add(addend).filter(|target| i32::try_from(*target).is_ok());
            let target = target.ok_or_else(|| at.error(format!("this address is too far from `{name}`")))?;
            self.data.pointers.push((place, target));
        }
        Ok(self.data)
    }
}

fn split_word(text: &str) -> (&str, &str) {
    let text = text.trim();
    text.split_once(char::is_whitespace).map_or((text, ""), |(word, rest)| (word, rest.trim()))
}

/// Splits at commas outside of quotes.
fn split_arguments(text: &str) -> Vec<&str> {
    let mut quote = None;
    let mut is_escaped = false;
    let parts = text.split(|c: char| {
        match (quote, c) {
            _ if is_escaped => is_escaped = false,
            (Some('"'), '\\') => is_escaped = true,
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, ',') => return true,
            _ => {}
        }
        false
    });
    parts.map(str::trim).filter(|part| !part.is_empty()).collect()
}

/// The bytes of a text in quotes; `None` for anything else.
fn read_quoted(text: &str, has_escapes: bool) -> Option<Vec<u8>> {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
    if !has_escapes {
        return Some(inner.as_bytes().to_vec());
    }
    let mut bytes = Vec::new();
    let mut rest = inner.bytes().peekable();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        let mut octal = None;
        while let Some(digit) = rest.next_if(|digit| (b'0'..=b'7').contains(digit) && octal.is_none_or(|one| one < 32))
        {
            octal = Some(8 * octal.unwrap_or(0) + u32::from(digit - b'0'));
        }
        bytes.push(match octal {
            Some(value) => value as u8,
            None => match rest.next()? {
                b'n' => b'\n',
                b't' => b'\t',
                b'r' => b'\r',
                b'b' => 8,
                b'f' => 12,
                other => other,
            },
        });
    }
    Some(bytes)
}

/// A floating-point number with a point or an exponent. Where only such numbers are allowed, the
/// point may be missing.
fn read_float(text: &str, size: usize, is_float: bool) -> Option<Vec<u8>> {
    let is_hexadecimal = text.to_ascii_lowercase().contains("0x") || text.ends_with(['h', 'H']);
    if is_hexadecimal || !(is_float || text.contains('.')) || !matches!(size, 4 | 8) {
        return None;
    }
    let digits = text.trim_start_matches(['+', '-']);
    let is_number = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let is_named = is_float && ["inf", "infinity", "nan"].iter().any(|name| digits.eq_ignore_ascii_case(name));
    match size {
        _ if !is_number && !is_named => None,
        4 => text.parse::<f32>().ok().map(|number| number.to_le_bytes().to_vec()),
        _ => text.parse::<f64>().ok().map(|number| number.to_le_bytes().to_vec()),
    }
}

fn read_form(text: &str, at: TextPosition) -> Result<LinearForm, BadSnippet> {
    // Columns count from the argument.
    let place = |error: BadSnippet| BadSnippet { line: at.line, column: at.column, ..error };
    let tokens = split_tokens(text).map_err(place)?;
    let mut cursor = TokenCursor::new(&tokens, CodeMode::default());
    let form = cursor.read_expression(false).map_err(place)?;
    match cursor.is_at_operand_end() {
        true => Ok(form),
        false => Err(at.error_expecting(format!("`{text}` is no number"), "a number or a label")),
    }
}

/// A number of things, at most as many as there may be bytes.
fn read_count(text: &str, at: TextPosition) -> Result<usize, BadSnippet> {
    let form = read_form(text, at)?;
    let is_number = form.registers.is_empty() && form.symbol.is_none();
    usize::try_from(form.constant)
        .ok()
        .filter(|count| is_number && *count <= DATA_BYTES_MOST)
        .ok_or_else(|| at.error_expecting(format!("`{text}` is no count"), format!("a number up to {DATA_BYTES_MOST}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&str]) -> Result<SnippetData, BadSnippet> {
        let statement = |(line, code): (u32, &&'static str)| {
            let (labels, code) = code.split_once(": ").map_or(("", *code), |(label, code)| (label, code));
            DataStatement { at: TextPosition { line, column: 1 }, labels, code }
        };
        let lines: Vec<&'static str> = lines.iter().map(|line| &*line.to_string().leak()).collect();
        read_data(&(1..).zip(&lines).map(statement).collect::<Vec<_>>(), CodeMode::Bits64)
    }

    #[test]
    fn directives_of_all_dialects_are_read() {
        let bytes = |line: &str| read(&[line]).expect("data").bytes;
        for (line, expected) in [
            ("db 1, -1, 'ab', 0FFh", vec![1, 255, b'a', b'b', 255]),
            ("x dw 0x1234, 1", vec![0x34, 0x12, 1, 0]),
            (".long 1+2*3", vec![7, 0, 0, 0]),
            ("dd 1.5", 1.5f32.to_le_bytes().to_vec()),
            ("dq -2.0e0", (-2.0f64).to_le_bytes().to_vec()),
            (".double 3", 3.0f64.to_le_bytes().to_vec()),
            (".float 1e-3, inf", [0.001f32.to_le_bytes(), f32::INFINITY.to_le_bytes()].concat()),
            (".asciz \"a,\\n\\060\"", b"a,\n0\0".to_vec()),
            ("resw 2", vec![0; 4]),
            (".zero 3", vec![0; 3]),
            (".fill 2, 2, 5", vec![5, 0, 5, 0]),
            ("x times 3 db 7", vec![7; 3]),
            ("X DD ?", vec![0; 4]),
        ] {
            assert_eq!(bytes(line), expected, "{line}");
        }
    }

    #[test]
    fn labels_pointers_and_alignment_are_kept() {
        let data = read(&["a: .byte 1", ".p2align 4", "b: dq a, c+1", "c: ", "d dd 2"]).expect("data");
        let labels: Vec<(&str, usize)> = data.labels.iter().map(|(name, at)| (name.as_str(), *at)).collect();
        assert_eq!(labels, [("a", 0), ("b", 16), ("c", 32), ("d", 32)]);
        assert_eq!((data.alignment, data.pointers), (16, vec![(16, 0), (24, 33)]));
    }

    #[test]
    fn what_is_no_data_is_refused() {
        for (lines, expected) in [
            (&["db 256"][..], "no value of 1 bytes"),
            (&["dd rax"], "no value of 4 bytes"),
            (&["dq nowhere"], "no label of data"),
            (&["dd a", "a: db 1"], "no value of 4 bytes"),
            (&["a: db 1", "a: db 1"], "already exists"),
            (&[".zero 16385"], "no count"),
            (&[".zero 16384", "db 1"], "more than 16384 bytes"),
            (&[".align 3"], "aligned"),
            (&["incbin \"x\""], "no directive of data"),
        ] {
            let error = read(lines).expect_err(expected);
            assert!(error.message.contains(expected), "{error:?}");
        }
    }
}
