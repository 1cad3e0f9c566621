//! External assemblers, for macros, directives and dialects that the built-in parser lacks.

use crate::args::{ExternalAssembler, RunArgs};
use crate::input::object_code::{self, AssembledCode};
use crate::output::Failure;
use crate::process::external_tool;
use crate::process::interrupt::ScratchFolder;
use cyclescope::asm::CodeMode;
use cyclescope::input::{self, InputKind};
use cyclescope::pasted::{check_external_text, has_att_registers};
use std::path::Path;
use std::process::Command;

/// Texts that are assembled together, so that all have the same labels and macros: the snippet,
/// --init and --setup.
pub type AssemblyTexts<'a> = [&'a str; object_code::SECTIONS.len()];

/// Names of the texts in the assembler's messages.
const TEXT_NAMES: AssemblyTexts<'static> = ["snippet", "init", "setup"];

/// Assembles texts to position-independent machine code.
pub fn run_assembler(
    assembler: ExternalAssembler,
    args: &RunArgs,
    texts: AssemblyTexts,
) -> Result<AssembledCode, Failure> {
    for text in texts {
        check_external_text(text, has_comments(assembler, text), args.code_mode.mode())
            .map_err(|error| Failure::from_snippet(&error, text))?;
    }
    let scratch = ScratchFolder::new(&["snippet.s", "snippet.o"])?;
    let (source, object) = (scratch.path("snippet.s"), scratch.path("snippet.o"));
    std::fs::write(&source, join_texts(assembler, args, texts)?)
        .map_err(|error| Failure::from_system(format!("writing {} failed", source.display()), &error))?;
    let command = assembler_command(assembler, args, &source, &object);
    let name = command.get_program().to_string_lossy().into_owned();
    let remedy = format!("install it ({}), or leave --assembler out", find_package(&name));
    external_tool::run_tool(command, &format!("assembler {name}"), &remedy)
        .map_err(|failure| failure.replace_in_text(&source.to_string_lossy(), "snippet"))?;
    let bytes = input::read_input(&object, InputKind::Code)
        .map_err(|bad| Failure::from_unreadable(&format!("reading {name}'s output failed"), &bad))?;
    object_code::read_object(&name, &bytes, args.code_mode.mode())
}

/// Whether `;` starts a comment: in lines for NASM, YASM and MASM's dialect. On a command line it
/// separates statements.
fn has_comments(assembler: ExternalAssembler, text: &str) -> bool {
    !is_gnu(assembler) && text.contains('\n')
}

/// Whether an assembler has the directives of GNU as.
fn is_gnu(assembler: ExternalAssembler) -> bool {
    matches!(assembler, ExternalAssembler::As | ExternalAssembler::LlvmMc)
}

/// Joins the texts, each in its section, with the directives for the dialect and mode. Messages
/// count the lines of each text.
fn join_texts(assembler: ExternalAssembler, args: &RunArgs, texts: AssemblyTexts) -> Result<String, Failure> {
    let mut joined = match assembler {
        ExternalAssembler::Nasm | ExternalAssembler::Yasm => match args.code_mode.mode() {
            CodeMode::Bits64 => "bits 64\ndefault rel\n".to_string(),
            CodeMode::Bits32 => "bits 32\n".to_string(),
        },
        // In Intel mode these assemblers would take AT&T's operands in the wrong order.
        ExternalAssembler::As | ExternalAssembler::LlvmMc => match texts.iter().any(|text| has_att_registers(text)) {
            true => ".att_syntax prefix\n".to_string(),
            false => ".intel_syntax noprefix\n".to_string(),
        },
        ExternalAssembler::Uasm | ExternalAssembler::Jwasm => match args.code_mode.mode() {
            CodeMode::Bits64 => "option casemap:none\n".to_string(),
            CodeMode::Bits32 => ".686\n.xmm\n.model flat\noption casemap:none\n".to_string(),
        },
    };
    if is_gnu(assembler) {
        for file in &args.include {
            if file.contains(['"', '\\', '\n']) {
                let text = format!("--include {file} has a character that no directive can hold");
                return Err(Failure::usage(text, Some("rename the file")));
            }
            joined.push_str(&format!(".include \"{file}\"\n"));
        }
    }
    for ((text, section), name) in texts.iter().zip(object_code::SECTIONS).zip(TEXT_NAMES) {
        if text.trim().is_empty() && section != object_code::SECTIONS[0] {
            continue;
        }
        let separated = if has_comments(assembler, text) { text.to_string() } else { text.replace(';', "\n") };
        joined.push_str(&match assembler {
            ExternalAssembler::Nasm | ExternalAssembler::Yasm if section == object_code::SECTIONS[0] => {
                format!("section {section}\n%line 0+1 {name}\n{separated}\n")
            }
            ExternalAssembler::Nasm | ExternalAssembler::Yasm => {
                format!("section {section} progbits alloc exec nowrite align=1\n%line 0+1 {name}\n{separated}\n")
            }
            ExternalAssembler::As | ExternalAssembler::LlvmMc => {
                format!(".section {section},\"ax\",@progbits\n# 1 \"{name}\"\n{text}\n")
            }
            ExternalAssembler::Uasm | ExternalAssembler::Jwasm if section == object_code::SECTIONS[0] => {
                format!(".code\n{separated}\n")
            }
            ExternalAssembler::Uasm | ExternalAssembler::Jwasm => {
                format!("{section} segment 'CODE'\n{separated}\n{section} ends\n")
            }
        });
    }
    if matches!(assembler, ExternalAssembler::Uasm | ExternalAssembler::Jwasm) {
        joined.push_str("end\n");
    }
    Ok(joined)
}

fn assembler_command(assembler: ExternalAssembler, args: &RunArgs, source: &Path, object: &Path) -> Command {
    let is_narrow = args.code_mode.mode() == CodeMode::Bits32;
    let (name, wide, narrow): (&str, &[&str], &[&str]) = match assembler {
        ExternalAssembler::As => ("as", &["--64"], &["--32"]),
        ExternalAssembler::Nasm => ("nasm", &["-f", "elf64"], &["-f", "elf32"]),
        ExternalAssembler::Yasm => ("yasm", &["-f", "elf64"], &["-f", "elf32"]),
        ExternalAssembler::LlvmMc => (
            "llvm-mc",
            &["--triple=x86_64-linux-gnu", "--filetype=obj"],
            &["--triple=i386-linux-gnu", "--filetype=obj"],
        ),
        ExternalAssembler::Uasm => ("uasm", &["-q", "-elf64"], &["-q", "-elf"]),
        ExternalAssembler::Jwasm => ("jwasm", &["-q", "-elf64"], &["-q", "-elf"]),
    };
    let options = if is_narrow { narrow } else { wide };
    let is_gas = is_gnu(assembler);
    let is_masm = matches!(assembler, ExternalAssembler::Uasm | ExternalAssembler::Jwasm);
    let mut command = Command::new(name);
    command.args(options);
    for definition in &args.define {
        match is_gas {
            // A symbol of these assemblers has a value; a name alone is defined.
            true if !definition.contains('=') => command.args(["--defsym", &format!("{definition}=1")]),
            true => command.args(["--defsym", definition]),
            false => command.arg(format!("-D{definition}")),
        };
    }
    // The folder of the text comes first, as in its own build.
    let own = args.source.file.as_deref().and_then(Path::parent).map(|folder| folder.display().to_string());
    let own = own.map(|folder| if folder.is_empty() { ".".to_string() } else { folder });
    for folder in own.iter().chain(&args.include_dir) {
        // Old versions of NASM only put it in front of the file's name.
        command.arg(format!("-I{}/", folder.trim_end_matches('/')));
    }
    if !is_gas {
        let option = if is_masm { "-Fi" } else { "-P" };
        command.args(args.include.iter().map(|file| format!("{option}{file}")));
    }
    if is_masm {
        command.arg(format!("-Fo{}", object.display()));
    } else {
        command.arg("-o").arg(object);
    }
    command.arg(source);
    command
}

/// Where an assembler comes from.
fn find_package(name: &str) -> &'static str {
    match name {
        "as" => "Debian: binutils",
        "nasm" => "Debian: nasm",
        "yasm" => "Debian: yasm",
        "uasm" => "github.com/Terraspace/UASM",
        "jwasm" => "github.com/JWasm/JWasm",
        _ => "Debian: llvm",
    }
}
