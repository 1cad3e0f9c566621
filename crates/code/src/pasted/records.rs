//! Instructions in records: JSON of Compiler Explorer, radare2 and debug adapters, gdb/MI, and what
//! Python prints for Capstone's objects.
//!
//! ```text
//! {"address":4096,"opcodes":["48","89","f8"],"text":"mov rax, rdi"}
//! {address="0x1000",func-name="f",offset="0",opcodes="48 89 f8",inst="mov %rdi,%rax"}
//! <CsInsn 0x1000 [4889f8]: mov rax, rdi>
//! ```
//!
//! Each record becomes a line of a listing. A format is the names of its fields.

use super::instruction_text::looks_like_instruction;
use std::fmt::Write;

/// Names of the field that has the instruction. The first one that a record has counts.
const TEXT_FIELDS: [&str; 7] = ["inst", "instruction", "opcode", "disasm", "text", "assembly", "asm"];
/// Names of the fields of an instruction in two parts.
const PART_FIELDS: (&str, [&str; 3]) = ("mnemonic", ["op_str", "operands", "ops"]);
/// Names of the field that has the address. gdb/MI has offsets too.
const ADDRESS_FIELDS: [&str; 5] = ["address", "addr", "vaddr", "pc", "offset"];
/// Names of the field that has the bytes.
const BYTES_FIELDS: [&str; 4] = ["bytes", "opcodes", "instructionBytes", "machineCode"];
/// Names of the field that has the function.
const FUNCTION_FIELDS: [&str; 2] = ["func-name", "function"];
/// Most records inside of one another.
const DEPTH_MOST: usize = 32;

/// A text with a line for each record.
#[derive(Debug, Default)]
pub(super) struct RecordText {
    pub(super) text: String,
    /// The line of the pasted text that each line comes from.
    lines: Vec<u32>,
}

impl RecordText {
    fn push(&mut self, line: u32, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
        self.lines.push(line);
    }

    /// The line of the pasted text that a line comes from.
    pub(super) fn line_of(&self, line: u32) -> u32 {
        self.lines.get(line.saturating_sub(1) as usize).copied().unwrap_or(1)
    }
}

/// The fields of a record.
#[derive(Debug, Default)]
struct CodeRecord {
    fields: Vec<(String, String)>,
}

impl CodeRecord {
    fn field(&self, names: &[&str]) -> Option<&str> {
        let value = |name: &&str| self.fields.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        names.iter().find_map(value)
    }

    /// Adds to a field. The parts of a list become one.
    fn extend(&mut self, key: &str, value: &str) {
        match self.fields.iter_mut().find(|(known, _)| known == key) {
            Some((_, old)) => {
                old.push(' ');
                old.push_str(value);
            }
            None => self.fields.push((key.to_string(), value.to_string())),
        }
    }

    fn text(&self) -> Option<String> {
        let name = || self.field(&[PART_FIELDS.0]);
        let joined = || Some(format!("{} {}", name()?, self.field(&PART_FIELDS.1).unwrap_or_default()));
        self.field(&TEXT_FIELDS).map(str::to_string).or_else(joined)
    }

    fn address(&self) -> Option<u64> {
        let text = self.field(&ADDRESS_FIELDS)?;
        text.strip_prefix("0x").map_or_else(|| text.parse().ok(), |digits| u64::from_str_radix(digits, 16).ok())
    }
}

/// A line of a listing.
fn write_line(address: Option<u64>, bytes: &str, text: &str) -> String {
    let digits: String = bytes.replace("0x", "").chars().filter(char::is_ascii_hexdigit).collect();
    let mut line = address.map_or(String::new(), |address| format!("{address:#x}: "));
    if digits.len().is_multiple_of(2) {
        for at in (0..digits.len()).step_by(2) {
            let _ = write!(line, "{} ", &digits[at..at + 2]);
        }
        line.push_str(if digits.is_empty() { "" } else { "\t" });
    }
    line.push_str(text);
    line
}

/// Reads records; `None` if the text has none with an instruction.
pub(super) fn read_records(text: &str) -> Option<RecordText> {
    read_python_objects(text).or_else(|| read_fields(text))
}

/// Reads `<CsInsn 0x1000 [4889f8]: mov rax, rdi>` and `(4096, 3, 'mov', 'rax, rdi')`, alone or in
/// lists.
fn read_python_objects(text: &str) -> Option<RecordText> {
    let mut found = RecordText::default();
    for (number, line) in (1..).zip(text.lines()) {
        let before = found.lines.len();
        for object in line.split("<CsInsn ").skip(1) {
            let (address, rest) = object.split('>').next()?.split_once(" [")?;
            let (bytes, code) = rest.split_once("]: ")?;
            let address = u64::from_str_radix(address.strip_prefix("0x")?, 16).ok()?;
            found.push(number, &write_line(Some(address), bytes, code.trim()));
        }
        for tuple in line.split('(').skip(1) {
            let Some((place, rest)) = tuple.split_once('\'') else { continue };
            let Some((name, operands)) = rest.split_once("', '") else { continue };
            let address = place.split(',').next()?.trim().parse().ok()?;
            found.push(number, &write_line(Some(address), "", &format!("{name} {}", operands.split('\'').next()?)));
        }
        if found.lines.len() == before && !line.trim().is_empty() {
            return None;
        }
    }
    (!found.lines.is_empty()).then_some(found)
}

/// Reads JSON and gdb/MI.
fn read_fields(text: &str) -> Option<RecordText> {
    let names_text = |name: &str| text.contains(&format!("\"{name}\"")) || text.contains(&format!("{name}=\""));
    if !text.contains('{') || !TEXT_FIELDS.iter().chain(&[PART_FIELDS.0]).any(|name| names_text(name)) {
        return None;
    }
    let mut records: Vec<(u32, CodeRecord)> = Vec::new();
    let mut open: Vec<CodeRecord> = Vec::new();
    let (mut key, mut is_list, mut line) = (None::<String>, false, 1);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        match c {
            '"' => {
                let (value, after) = take_string(rest)?;
                line += rest[..rest.len() - after.len()].matches('\n').count() as u32;
                rest = after;
                match (&key, rest.trim_start().strip_prefix(':')) {
                    (None, Some(after)) => {
                        key = Some(value);
                        rest = after;
                    }
                    (Some(key), _) => {
                        if let Some(record) = open.last_mut() {
                            record.extend(key, &value);
                        }
                    }
                    (None, None) => {}
                }
            }
            _ if is_word(c) => {
                let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
                let (word, after) = rest.split_at(end);
                rest = after;
                match (&key, rest.strip_prefix('=')) {
                    (_, Some(after)) => {
                        key = Some(word.to_string());
                        rest = after;
                    }
                    (Some(key), None) => {
                        if let Some(record) = open.last_mut() {
                            record.extend(key, word);
                        }
                    }
                    (None, None) => {}
                }
                continue;
            }
            _ => {
                match c {
                    '{' => {
                        open.push(CodeRecord::default());
                        (key, is_list) = (None, false);
                    }
                    '}' => {
                        records.push((line, open.pop()?));
                        key = None;
                    }
                    '[' => is_list = key.is_some(),
                    ']' => (key, is_list) = (None, false),
                    ',' if !is_list => key = None,
                    '\n' => line += 1,
                    _ => {}
                }
                rest = &rest[c.len_utf8()..];
            }
        }
        if open.len() > DEPTH_MOST {
            return None;
        }
    }
    write_records(&records)
}

/// A string in quotes with its escapes, and the text after it.
fn take_string(text: &str) -> Option<(String, &str)> {
    let (mut value, mut escaped) = (String::new(), false);
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => {
                value.push(if matches!(c, 't' | 'n' | 'r') { ' ' } else { c });
                escaped = false;
            }
            '\\' => escaped = true,
            '"' => return Some((value, &text[at + 1..])),
            _ => value.push(c),
        }
    }
    None
}

fn write_records(records: &[(u32, CodeRecord)]) -> Option<RecordText> {
    let mut found = RecordText::default();
    let mut function = String::new();
    let has_addresses = records.iter().any(|(_, record)| record.address().is_some());
    let mut has_code = false;
    for (line, record) in records {
        let Some(text) = record.text() else { continue };
        has_code |= looks_like_instruction(&text);
        let label = text.trim().strip_suffix(':').filter(|_| has_addresses);
        if let Some(name) = record.field(&FUNCTION_FIELDS).or(label).filter(|name| has_addresses && **name != function)
        {
            function = name.to_string();
            found.push(*line, &format!("Dump of assembler code for function {name}:"));
        }
        if label.is_none() {
            found.push(*line, &write_line(record.address(), record.field(&BYTES_FIELDS).unwrap_or_default(), &text));
        }
    }
    has_code.then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_become_lines() {
        for (text, lines) in [
            (
                "{\"address\":16,\"opcodes\":[\"48\",\"89\",\"f8\"],\"text\":\"mov rax, rdi\"}",
                "0x10: 48 89 f8 \tmov rax, rdi\n",
            ),
            ("{\"asm\":[{\"text\":\"f:\",\"source\":null},{\"text\":\" nop\",\"source\":{\"line\":1}}]}", "f:\n nop\n"),
            (
                "^done,asm_insns=[{address=\"0x10\",func-name=\"f\",offset=\"0\",inst=\"nop\"}]",
                "Dump of assembler code for function f:\n0x10: nop\n",
            ),
            ("{\"addr\":\"0x10\",\"mnemonic\":\"mov\",\"op_str\":\"rax, rdi\"}", "0x10: mov rax, rdi\n"),
            ("[{\"offset\":16,\"opcode\":\"nop\",\"bytes\":\"90\"}]", "0x10: 90 \tnop\n"),
            ("[<CsInsn 0x10 [90]: nop>, <CsInsn 0x11 [c3]: ret >]", "0x10: 90 \tnop\n0x11: c3 \tret\n"),
            ("(16, 3, 'mov', 'rax, rdi')\n(19, 1, 'ret', '')", "0x10: mov rax, rdi\n0x13: ret \n"),
        ] {
            assert_eq!(read_records(text).expect(text).text, lines, "{text}");
        }
        for text in ["nop", "{0x48, 0x01}", "asm(\"nop\" ::: \"rax\");", "{\"text\":\"hello\"}", "{\"text\":\"nop"] {
            assert!(read_records(text).is_none(), "{text}");
        }
    }

    #[test]
    fn lines_are_those_of_the_pasted_text() {
        let found = read_records("[\n{\"text\":\"nop\"},\n{\"text\":\"pause\"}]").expect("records");
        assert_eq!([found.line_of(1), found.line_of(2)], [2, 3]);
    }
}
