//! Assembly text for GNU as, such as compiler output, made ready to become a library.
//!
//! A copy of the text names the functions to call as global ones, which pasted text often does not.
//! Text in Intel syntax without a directive gets one. Demangled names, as Compiler Explorer prints
//! them, are put between quotes. Lines keep their numbers.
//!
//! Its limits: the syntaxes of GNU as. NASM, MASM and Go's assembler are refused by its messages.

use crate::output::Failure;
use cyclescope::input::{self, InputKind};
use cyclescope::pasted::has_att_registers;
use std::fmt::Write;
use std::path::Path;

/// Whether a file is assembly text, according to its name.
pub fn is_assembly(source: &Path) -> bool {
    source.extension().is_some_and(|end| end == "s" || end == "S")
}

/// Writes a copy of the text that an assembler takes, with these functions as global ones.
pub fn write_assembly(source: &Path, functions: &[&str], copy: &Path) -> Result<(), Failure> {
    let remedy = "name an existing regular file that you may read";
    let text = input::read_input(source, InputKind::Source).map_err(|bad| Failure::from_input(&bad, remedy))?;
    let text = prepare_assembly(&String::from_utf8_lossy(&text), functions);
    std::fs::write(copy, text)
        .map_err(|error| Failure::from_system(format!("writing {} failed", copy.display()), &error))
}

fn prepare_assembly(text: &str, functions: &[&str]) -> String {
    let labels: Vec<&str> = text.lines().filter_map(find_label).collect();
    let mut odd: Vec<&str> = labels.iter().copied().filter(|label| !label.chars().all(is_symbol_character)).collect();
    // A name may begin with another one.
    odd.sort_by_key(|label| std::cmp::Reverse(label.len()));
    let lines: Vec<String> = text.lines().map(|line| quote_names(line, &odd)).collect();
    let has_syntax = text.lines().any(|line| {
        let line = line.trim_start();
        line.starts_with(".intel_syntax") || line.starts_with(".att_syntax")
    });
    let syntax = if has_syntax || has_att_registers(text) { "" } else { ".intel_syntax noprefix; " };
    let mut prepared = format!("{syntax}{}\n", lines.join("\n"));
    let is_called = |label: &&str| {
        let name = label.split_once('(').map_or(*label, |(name, _)| name);
        functions.iter().any(|function| **function == **label || **function == *name)
    };
    for label in labels.iter().filter(|label| is_called(label)) {
        let _ = writeln!(prepared, ".globl \"{label}\"\n.type \"{label}\", @function");
    }
    prepared
}

/// The name in front of a colon that begins a line.
fn find_label(line: &str) -> Option<&str> {
    let line = line.split(['#', '"']).next().unwrap_or_default().trim_end();
    let name = line.strip_suffix(':').or_else(|| line.split_once(":\t").map(|(name, _)| name))?;
    let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic() || "_.".contains(first));
    is_name.then_some(name)
}

fn is_symbol_character(c: char) -> bool {
    c.is_alphanumeric() || "_.$@?".contains(c)
}

/// A line with quotes around these names.
fn quote_names(line: &str, names: &[&str]) -> String {
    let Some(name) = names.iter().find(|name| line.contains(**name)) else { return line.to_string() };
    line.replacen(name, &format!("\"{name}\""), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn demangled_names_are_quoted_and_called_functions_are_global() {
        let text = "square(int):\n        imul    edi, edi\n        ret\nquad(int, f(char)):\n        call    square(int)\n\
                    .LC0:\n        .long   5\n";
        let prepared = prepare_assembly(text, &["quad", "nothing"]);
        let expected = ".intel_syntax noprefix; \"square(int)\":\n        imul    edi, edi\n        ret\n\
                        \"quad(int, f(char))\":\n        call    \"square(int)\"\n.LC0:\n        .long   5\n\
                        .globl \"quad(int, f(char))\"\n.type \"quad(int, f(char))\", @function\n";
        assert_eq!(prepared, expected);
    }

    #[test]
    fn text_with_a_syntax_keeps_it() {
        for text in ["f:\n\tmovl %edi, %eax\n", "\t.intel_syntax noprefix\nf:\n\tmov eax, edi\n"] {
            assert_eq!(prepare_assembly(text, &["f"]), format!("{text}.globl \"f\"\n.type \"f\", @function\n"));
        }
    }
}
