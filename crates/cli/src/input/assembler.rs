//! Other assemblers: macros, directives and other dialects that the built-in parser does not have.

use crate::args::Assembler;
use crate::output::Failure;
use crate::process::interrupt::Scratch;
use crate::process::tool;
use cyclescope::input::{self, Kind};
use object::{Object, ObjectSection};
use std::path::Path;
use std::process::Command;

/// Assembles a text to position-independent machine code.
pub fn assemble(assembler: Assembler, text: &str) -> Result<Vec<u8>, Failure> {
    let scratch = Scratch::new(&["snippet.s", "snippet.o"])?;
    let (source, object) = (scratch.path("snippet.s"), scratch.path("snippet.o"));
    std::fs::write(&source, wrap(assembler, text))
        .map_err(|error| Failure::internal(format!("writing {} failed: {error}", source.display())))?;
    let command = command(assembler, &source, &object);
    let name = command.get_program().to_string_lossy().into_owned();
    let remedy = format!("install it (Debian: {}), or leave --assembler out", package(&name));
    tool::run(command, &format!("assembler {name}"), &remedy)
        .map_err(|failure| failure.renamed(&source.to_string_lossy(), "snippet"))?;
    let bytes = input::read(&object, Kind::Code)
        .map_err(|bad| Failure::internal(format!("reading {name}'s output failed: {}", bad.why)))?;
    if matches!(assembler, Assembler::Nasm | Assembler::Yasm) {
        Ok(bytes)
    } else {
        text_section(&name, &bytes)
    }
}

/// Puts a text in its dialect and mode. Its own lines keep their numbers.
fn wrap(assembler: Assembler, text: &str) -> String {
    match assembler {
        // In NASM's language `;` starts a comment; on a command line it separates statements as elsewhere.
        Assembler::Nasm | Assembler::Yasm => {
            format!("bits 64\ndefault rel\n%line 0+1 snippet\n{}\n", text.replace(';', "\n"))
        }
        Assembler::As | Assembler::LlvmMc => {
            format!(".intel_syntax noprefix\n.text\n# 1 \"snippet\"\n{text}\n")
        }
    }
}

fn command(assembler: Assembler, source: &Path, object: &Path) -> Command {
    let (name, options): (&str, &[&str]) = match assembler {
        Assembler::As => ("as", &["--64"]),
        Assembler::Nasm => ("nasm", &["-f", "bin"]),
        Assembler::Yasm => ("yasm", &["-f", "bin"]),
        Assembler::LlvmMc => ("llvm-mc", &["--triple=x86_64-linux-gnu", "--filetype=obj"]),
    };
    let mut command = Command::new(name);
    command.args(options).arg("-o").arg(object).arg(source);
    command
}

fn package(name: &str) -> &'static str {
    match name {
        "as" => "binutils",
        "nasm" => "nasm",
        "yasm" => "yasm",
        _ => "llvm",
    }
}

/// The code of an object file, which must need no linker.
fn text_section(name: &str, object: &[u8]) -> Result<Vec<u8>, Failure> {
    let unreadable =
        |error: object::Error| Failure::internal(format!("{name}'s output is unreadable: {error}"));
    let file = object::File::parse(object).map_err(unreadable)?;
    let Some(section) = file.section_by_name(".text") else { return Ok(Vec::new()) };
    if section.relocations().next().is_some() {
        let remedy = "use labels inside the snippet and RIP-relative addresses only";
        return Err(Failure::usage("the snippet refers to something outside itself", Some(remedy)));
    }
    Ok(section.data().map_err(unreadable)?.to_vec())
}
