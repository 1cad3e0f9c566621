//! External assemblers, for macros, directives and dialects that the built-in parser lacks.

use crate::args::ExternalAssembler;
use crate::output::Failure;
use crate::process::external_tool;
use crate::process::interrupt::ScratchFolder;
use cyclescope::input::{self, InputKind};
use cyclescope::pasted::{check_external_text, has_att_registers};
use object::{Object, ObjectSection};
use std::path::Path;
use std::process::Command;

/// Assembles text to position-independent machine code.
pub fn run_assembler(assembler: ExternalAssembler, text: &str) -> Result<Vec<u8>, Failure> {
    check_external_text(text, has_comments(assembler, text)).map_err(|error| Failure::from_snippet(&error, text))?;
    let scratch = ScratchFolder::new(&["snippet.s", "snippet.o"])?;
    let (source, object) = (scratch.path("snippet.s"), scratch.path("snippet.o"));
    std::fs::write(&source, add_directives(assembler, text))
        .map_err(|error| Failure::from_system(format!("writing {} failed", source.display()), &error))?;
    let command = assembler_command(assembler, &source, &object);
    let name = command.get_program().to_string_lossy().into_owned();
    let remedy = format!("install it (Debian: {}), or leave --assembler out", debian_package(&name));
    external_tool::run_tool(command, &format!("assembler {name}"), &remedy)
        .map_err(|failure| failure.replace_in_text(&source.to_string_lossy(), "snippet"))?;
    let bytes = input::read_input(&object, InputKind::Code)
        .map_err(|bad| Failure::from_unreadable(&format!("reading {name}'s output failed"), &bad))?;
    if matches!(assembler, ExternalAssembler::Nasm | ExternalAssembler::Yasm) {
        Ok(bytes)
    } else {
        read_text_section(&name, &bytes)
    }
}

/// Whether `;` starts a comment: in lines for NASM and YASM. On a command line it separates
/// statements.
fn has_comments(assembler: ExternalAssembler, text: &str) -> bool {
    matches!(assembler, ExternalAssembler::Nasm | ExternalAssembler::Yasm) && text.contains('\n')
}

/// Adds the directives for the text's dialect and mode. Line numbers of the text don't change.
fn add_directives(assembler: ExternalAssembler, text: &str) -> String {
    match assembler {
        ExternalAssembler::Nasm | ExternalAssembler::Yasm => {
            let separated = if has_comments(assembler, text) { text.to_string() } else { text.replace(';', "\n") };
            format!("bits 64\ndefault rel\n%line 0+1 snippet\n{separated}\n")
        }
        // In Intel mode these assemblers would take AT&T's operands in the wrong order.
        ExternalAssembler::As | ExternalAssembler::LlvmMc => {
            let syntax = if has_att_registers(text) { ".att_syntax prefix" } else { ".intel_syntax noprefix" };
            format!("{syntax}\n.text\n# 1 \"snippet\"\n{text}\n")
        }
    }
}

fn assembler_command(assembler: ExternalAssembler, source: &Path, object: &Path) -> Command {
    let (name, options): (&str, &[&str]) = match assembler {
        ExternalAssembler::As => ("as", &["--64"]),
        ExternalAssembler::Nasm => ("nasm", &["-f", "bin"]),
        ExternalAssembler::Yasm => ("yasm", &["-f", "bin"]),
        ExternalAssembler::LlvmMc => ("llvm-mc", &["--triple=x86_64-linux-gnu", "--filetype=obj"]),
    };
    let mut command = Command::new(name);
    command.args(options).arg("-o").arg(object).arg(source);
    command
}

fn debian_package(name: &str) -> &'static str {
    match name {
        "as" => "binutils",
        "nasm" => "nasm",
        "yasm" => "yasm",
        _ => "llvm",
    }
}

/// Extracts the code from an object file, which must not need a linker.
fn read_text_section(name: &str, object: &[u8]) -> Result<Vec<u8>, Failure> {
    let unreadable = |error: object::Error| Failure::internal(format!("{name}'s output is unreadable: {error}"));
    let file = object::File::parse(object).map_err(unreadable)?;
    let Some(section) = file.section_by_name(".text") else { return Ok(Vec::new()) };
    if section.relocations().next().is_some() {
        let remedy = "use only labels inside the snippet and RIP-relative addresses";
        return Err(Failure::usage("the snippet refers to a symbol outside itself", Some(remedy)));
    }
    Ok(section.data().map_err(unreadable)?.to_vec())
}
