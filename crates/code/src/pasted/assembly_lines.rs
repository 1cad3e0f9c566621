//! The statements of assembly text: labels, directives and instructions, each with its place.

use super::directives::{Directive, other_mode_error};
use super::functions::is_end_text;
use super::instruction_text::begins_with_instruction;
use super::pasted_text::DroppedLine;
use super::semicolons::SemicolonMeaning;
use super::text_words::{first_word, is_name_character, names_in, position_in, split_statements, strip_comment};
use crate::asm::registers::find_register;
use crate::asm::{CodeMode, DataStatement, InstructionSyntax, TextPosition};
use cyclescope_core::error::BadSnippet;
use std::collections::BTreeSet;

/// Why data that no code uses is left out.
pub(super) const DATA_DROPPED: &str = "it is data";
/// Words of lines that objdump and Julia print between code.
const BANNERS: [&str; 4] = ["file format ", "Disassembly of section ", "Filename: ", "Source line: "];

/// A statement with code, or a label alone.
#[derive(Debug, Clone)]
pub(super) struct AssemblyStatement<'a> {
    /// Its line, from 1.
    pub(super) line: u32,
    /// Where it begins.
    pub(super) at: TextPosition,
    /// The labels in front of it, with their colons.
    pub(super) labels: &'a str,
    /// The instruction; empty after a label alone.
    pub(super) code: &'a str,
    /// The function that begins here.
    pub(super) function: Option<FunctionStart<'a>>,
    /// The syntax that a directive set.
    pub(super) syntax: Option<InstructionSyntax>,
}

/// The start of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FunctionStart<'a> {
    pub(super) name: &'a str,
    /// Whether the text says so. Otherwise it is a name in front of code.
    pub(super) is_declared: bool,
}

/// The statements of a text, and what else it shows.
#[derive(Debug, Default)]
pub(super) struct AssemblyLines<'a> {
    pub(super) statements: Vec<AssemblyStatement<'a>>,
    pub(super) dropped: Vec<DroppedLine>,
    /// Statements of data, which code may use.
    pub(super) data: Vec<DataStatement<'a>>,
    /// The program that probably wrote it.
    pub(super) source: Option<&'static str>,
    /// Names that the text declares to be functions.
    functions: BTreeSet<&'a str>,
    /// The last instruction so far.
    last_code: Option<&'a str>,
    is_data: bool,
    syntax: Option<InstructionSyntax>,
    /// The mode that the code is for.
    mode: CodeMode,
}

/// Splits lines into statements.
pub(super) fn split_lines<'a>(
    lines: &[&'a str],
    meaning: SemicolonMeaning,
    mode: CodeMode,
) -> Result<AssemblyLines<'a>, BadSnippet> {
    let mut found = AssemblyLines { mode, functions: find_functions(lines), ..AssemblyLines::default() };
    for (line, whole) in (1..).zip(lines) {
        let code = strip_comment(whole);
        if code.len() < whole.len() {
            found.dropped.push(DroppedLine::new_noise(line, &whole[code.len()..], "it is a comment"));
        }
        let parts = split_statements(code);
        let count = if meaning == SemicolonMeaning::Comment { 1 } else { parts.len() };
        if let Some(comment) = parts.get(count).map(|part| &code[code.len().min(offset_of(code, part))..]) {
            let is_code = begins_with_instruction(comment) && !comment.trim().is_empty();
            let drop = if is_code { DroppedLine::new_code } else { DroppedLine::new_noise };
            found.dropped.push(drop(line, comment, "it is a comment after `;`"));
        }
        for part in &parts[..count] {
            found.add_statement(line, whole, part.trim())?;
        }
    }
    Ok(found)
}

fn offset_of(whole: &str, part: &str) -> usize {
    (part.as_ptr() as usize).wrapping_sub(whole.as_ptr() as usize)
}

/// Names after `.type NAME, @function`, `.globl` and the like.
fn find_functions<'a>(lines: &[&'a str]) -> BTreeSet<&'a str> {
    let mut functions = BTreeSet::new();
    for line in lines {
        let line = strip_comment(line).trim();
        let word = first_word(line);
        let Some(rest) = line.get(word.len()..) else { continue };
        let is_declared = match word.as_str() {
            ".type" => rest.contains("function"),
            ".globl" | ".global" | "global" | "public" | ".weak" => true,
            _ => false,
        };
        if is_declared {
            functions.extend(rest.split(',').next().map(|name| name.trim().trim_matches('"')));
        }
    }
    functions
}

impl<'a> AssemblyLines<'a> {
    fn add_statement(&mut self, line: u32, whole: &'a str, statement: &'a str) -> Result<(), BadSnippet> {
        if statement.is_empty() {
            return Ok(());
        }
        if BANNERS.iter().any(|banner| statement.contains(banner)) {
            self.dropped.push(DroppedLine::new_noise(line, statement, "it is not code"));
            return Ok(());
        }
        let at = position_in(line, whole, statement);
        if matches!(statement, "..." | "\u{2026}" | "[...]") {
            let remedy = "paste the code without gaps, or each part on its own";
            return Err(at.error_expecting("code is left out here", remedy));
        }
        if is_sentence(statement) {
            self.dropped.push(DroppedLine::new_noise(line, statement, "it is a sentence"));
            return Ok(());
        }
        if let Some(name) = parse_odd_function(statement) {
            if !self.is_data {
                let function = Some(FunctionStart { name, is_declared: true });
                self.push_code(line, at, ("", ""), function);
            }
            let masm = statement.split_whitespace().any(|word| word.eq_ignore_ascii_case("proc"));
            self.source.get_or_insert(if masm { "MASM" } else { "Compiler Explorer" });
            return Ok(());
        }
        let (labels, code) = split_labels(statement);
        match Directive::parse(code) {
            Some(directive) => self.add_directive((line, at, whole), (labels, code), directive),
            None if code.starts_with('.') => {
                let what = format!("the directive `{}` is not known", first_word(code));
                let remedy = "delete the line if it makes no code, or assemble the text with --assembler as";
                Err(at.error_expecting(what, remedy))
            }
            None if self.is_data && begins_with_instruction(code) => {
                Err(at.error_expecting("this instruction is in a section of data", "write .text in front of the code"))
            }
            None if self.is_data => {
                self.push_data(line, statement, DataStatement { at, labels, code });
                Ok(())
            }
            None => {
                let function = names_in(labels)
                    .next()
                    .map(|name| FunctionStart { name, is_declared: self.functions.contains(name) });
                let function = function.filter(|function| !is_local_label(function.name));
                self.push_code(line, at, (labels, code), function);
                Ok(())
            }
        }
    }

    fn push_code(
        &mut self,
        line: u32,
        at: TextPosition,
        (labels, code): (&'a str, &'a str),
        function: Option<FunctionStart<'a>>,
    ) {
        let syntax = self.syntax;
        self.last_code = Some(code).filter(|code| !code.is_empty()).or(self.last_code);
        self.statements.push(AssemblyStatement { line, at, labels, code, function, syntax });
    }

    fn add_directive(
        &mut self,
        (line, at, whole): (u32, TextPosition, &'a str),
        (labels, code): (&'a str, &'a str),
        directive: Directive,
    ) -> Result<(), BadSnippet> {
        let has_code = self.last_code.is_some();
        let is_repeated = self.is_data && first_word(code) == "times";
        if is_repeated || self.is_data && matches!(directive, Directive::Data | Directive::Alignment) {
            self.push_data(line, whole, DataStatement { at, labels, code });
            return Ok(());
        }
        if !labels.is_empty() && !self.is_data && directive != Directive::Data {
            self.push_code(line, at, (labels, ""), None);
        }
        self.note_source(code);
        let why = match directive {
            Directive::Mode(bits) if bits != self.mode.bits() => return Err(other_mode_error(line, code, bits)),
            Directive::Mode(_) => "it makes no code",
            Directive::Macro => {
                let what = format!("`{code}` needs an assembler");
                return Err(at.error_expecting(what, format!("add --assembler {}", suggest_assembler(code))));
            }
            Directive::NoCode => "it makes no code",
            Directive::CodeSection => {
                self.is_data = false;
                "it makes no code"
            }
            Directive::DataSection => {
                self.is_data = true;
                "it makes no code"
            }
            Directive::Syntax(syntax) => {
                self.syntax = Some(syntax);
                "it makes no code"
            }
            Directive::Alignment if has_code && !self.is_data => {
                let why = "code is placed at many addresses, whose alignment differs";
                self.dropped.push(DroppedLine::new_code(line, code, why));
                return Ok(());
            }
            Directive::Alignment => "it makes no code",
            Directive::Data if self.is_after_code() => {
                self.move_labels_to_data();
                self.push_data(line, whole, DataStatement { at, labels, code });
                return Ok(());
            }
            // The assembler explains what helps.
            Directive::Data => {
                self.push_code(line, at, (labels, code), None);
                return Ok(());
            }
        };
        self.dropped.push(DroppedLine::new_noise(line, whole, why));
        Ok(())
    }

    fn note_source(&mut self, code: &str) {
        let word = first_word(code);
        let source = match word.as_str() {
            "section" | "bits" | "global" | "default" | "extern" | "[bits" => "NASM",
            "public" | "includelib" | ".code" => "MASM",
            ".text" | ".globl" | ".p2align" | ".intel_syntax" | ".att_syntax" | ".section" => return,
            _ if code.to_ascii_lowercase().ends_with(" segment") => "MASM",
            _ if word.starts_with('.') => "compiler output",
            _ => return,
        };
        self.source.get_or_insert(source);
    }

    /// Whether code ended before, and does not run on into what follows here.
    fn is_after_code(&self) -> bool {
        self.last_code.is_some_and(is_end_text)
    }

    /// Moves labels after the last instruction to the data that they name.
    fn move_labels_to_data(&mut self) {
        let first = self.statements.iter().rposition(|statement| !statement.code.is_empty()).map_or(0, |last| last + 1);
        let labels = self.statements.drain(first..);
        self.data.extend(labels.map(|AssemblyStatement { at, labels, .. }| DataStatement { at, labels, code: "" }));
    }

    /// Keeps a statement of data for code that uses its label.
    fn push_data(&mut self, line: u32, text: &str, statement: DataStatement<'a>) {
        self.dropped.push(DroppedLine::new_noise(line, text, DATA_DROPPED));
        self.data.push(statement);
    }
}

/// The assembler that knows a directive.
fn suggest_assembler(code: &str) -> &'static str {
    let word = first_word(code);
    let is_nasm = word.starts_with('%')
        || matches!(word.as_str(), "times" | "struc" | "istruc")
        || code.split_whitespace().nth(1).is_some_and(|word| word.eq_ignore_ascii_case("equ"));
    if is_nasm { "nasm" } else { "as" }
}

/// Whether a statement is a sentence: words alone, which begin with no instruction, and a mark at
/// their end.
fn is_sentence(statement: &str) -> bool {
    const WORDS_LEAST: usize = 3;
    if !statement.ends_with(['.', ':', '?', '!']) || statement.split_whitespace().count() < WORDS_LEAST {
        return false;
    }
    let is_word = |word: &&str| {
        let word = word.trim_end_matches(['.', ',', ':', '?', '!', ';']).replace(['\'', '-'], "");
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric()) && find_register(&word).is_none()
    };
    statement.split_whitespace().all(|word| is_word(&word))
        && !begins_with_instruction(statement)
        && Directive::parse(statement).is_none()
}

/// Whether a label is of no interest outside of its function.
fn is_local_label(name: &str) -> bool {
    name.starts_with(['.', '$', '?']) || name.starts_with(|c: char| c.is_ascii_digit()) || name.starts_with("LBB")
}

/// A demangled name in front of a colon, such as `square(int):`, a method of .NET, or `name PROC`.
fn parse_odd_function(statement: &str) -> Option<&str> {
    let mut words = statement.split_whitespace();
    if words.any(|word| word.eq_ignore_ascii_case("proc")) {
        let lower = statement.to_ascii_lowercase();
        let at = lower.find(" proc").or_else(|| lower.find("\tproc"))?;
        return Some(statement[..at].trim());
    }
    if is_method(statement) {
        return Some(statement);
    }
    let name = statement.strip_suffix(':')?.trim_end();
    let is_plain = name.chars().all(is_name_character);
    let is_odd = !name.is_empty() && !is_plain && !begins_with_instruction(name);
    is_odd.then(|| name.trim_matches('"'))
}

/// Whether a statement names a method of .NET: `Demo.Add(Int32, Int32)`.
fn is_method(statement: &str) -> bool {
    let Some((name, types)) = statement.strip_suffix(')').and_then(|inner| inner.split_once('(')) else { return false };
    let is_word = |c: char| c.is_ascii_alphanumeric() || "._+<>`".contains(c);
    let is_type = |c: char| is_word(c) || ", []&*".contains(c);
    name.contains('.')
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(is_word)
        && types.chars().all(is_type)
}

/// Splits `label: code`. A segment register in front of a colon belongs to the code.
fn split_labels(statement: &str) -> (&str, &str) {
    let mut end = 0;
    loop {
        let rest = &statement[end..];
        let Some((name, after)) = rest.split_once(':') else { break };
        let name = name.trim();
        if name.is_empty()
            || !name.chars().all(is_name_character)
            || find_register(name).is_some()
            || after.starts_with(':')
        {
            break;
        }
        end = statement.len() - after.len();
    }
    (statement[..end].trim_end(), statement[end..].trim_start())
}
