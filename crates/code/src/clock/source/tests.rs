//! Compilers and assemblers turn the text of every method into the engine's instructions, in the
//! same order.

use super::*;
use crate::asm::Emitter;
use crate::clock::{ALL_CLOCKS, ClockSide};
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use object::{Object, ObjectSection, ObjectSymbol};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Temporary folder that is deleted on drop.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("cyclescope-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.join(name), text).expect("a file");
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The methods available in a language, with their text.
fn texts_in(language: &SourceLanguage) -> impl Iterator<Item = (&'static Clock, String)> {
    ALL_CLOCKS.iter().filter_map(|clock| render_source(clock, language).ok().map(|text| (clock, text)))
}

/// The engine's code of one side, with references to memory zeroed.
fn engine_code(clock: &Clock, side: ClockSide) -> Vec<u8> {
    let mut emitter = Emitter::starting_at(0, crate::asm::CodeMode::Bits64);
    clock.emit_side(side, None, &mut emitter);
    let (mut bytes, references) = emitter.finish();
    for at in references {
        bytes[at as usize..at as usize + 4].fill(0);
    }
    bytes
}

fn decode(code: &[u8]) -> Vec<Instruction> {
    Decoder::new(64, code, DecoderOptions::NONE).into_iter().collect()
}

/// An object file. The code of each probe ends at its first return.
struct Probes(Vec<u8>);

impl Probes {
    fn code(&self, clock: &Clock, side: ClockSide) -> Vec<u8> {
        let file = object::File::parse(&*self.0).expect("an object file");
        let name = probe(clock, side);
        let symbol = file.symbols().find(|symbol| symbol.name() == Ok(&name)).expect("each probe has a symbol");
        let section = file.section_by_index(symbol.section_index().expect("a section")).expect("a section");
        let code = &section.data().expect("code")[(symbol.address() - section.address()) as usize..];
        let length = decode(code)
            .into_iter()
            .take_while(|instruction| instruction.mnemonic() != Mnemonic::Ret)
            .map(|instruction| instruction.len());
        code[..length.sum::<usize>()].to_vec()
    }
}

fn probe(clock: &Clock, side: ClockSide) -> String {
    format!("probe_{}_{}", clock_identifier(clock), end_of(side))
}

fn end_of(side: ClockSide) -> &'static str {
    match side {
        ClockSide::Start => "start",
        ClockSide::End => "end",
    }
}

/// Runs a tool in a folder; `None` if it is not installed. It must print nothing.
#[track_caller]
fn run_tool(folder: &Path, name: &str, arguments: &[&str], object: &str) -> Option<Probes> {
    let Ok(output) = Command::new(name).args(arguments).current_dir(folder).output() else {
        cyclescope_skipped::report_left_out(format_args!("{name} is not installed"));
        return None;
    };
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && printed.is_empty(), "{name} {arguments:?}: {printed}");
    Some(Probes(std::fs::read(folder.join(object)).expect("an object file")))
}

/// Whether an instruction belongs to the method: not a move, or a load of a constant.
fn is_of_method(instruction: &Instruction) -> bool {
    use Mnemonic::*;
    match instruction.mnemonic() {
        Lfence | Mfence | Serialize | Cpuid | Rdtsc | Rdtscp | Rdpru | Rdpmc => true,
        Mov => {
            let constant = matches!(instruction.op1_kind(), OpKind::Immediate32 | OpKind::Immediate32to64);
            constant || instruction.op0_register().is_cr() || instruction.op1_register().is_cr()
        }
        _ => false,
    }
}

/// Compiler settings.
struct CompilerSettings {
    /// Compiler and its options.
    name: String,
    /// Whether a function is straight-line code. Without optimisation rustc puts jumps and checks
    /// around statements.
    is_straight: bool,
}

/// Compares a compiled function with the engine's code. It must have the same instructions in the
/// same order, byte by byte, with only moves between them. Around them it may have what a function
/// needs.
#[track_caller]
fn assert_same_code(clock: &Clock, side: ClockSide, compiled: &[u8], settings: &CompilerSettings) {
    let bytes = |code: &[u8]| -> Vec<Vec<u8>> {
        let of_method = decode(code).into_iter().filter(is_of_method);
        of_method.map(|instruction| code[instruction.ip() as usize..instruction.next_ip() as usize].to_vec()).collect()
    };
    let context =
        || format!("{}, {} {side:?}:\n{}", settings.name, clock.name, crate::asm::Listing::from_bytes(compiled).text());
    let instructions = decode(compiled);
    if clock.calls_system() {
        // The fences are around the call, as in the engine.
        let order = |code: &[u8]| -> Vec<Mnemonic> {
            let mnemonics = decode(code).into_iter().map(|instruction| instruction.mnemonic());
            mnemonics.filter(|instruction| [Mnemonic::Lfence, Mnemonic::Call].contains(instruction)).take(3).collect()
        };
        return assert_eq!(order(compiled), order(&engine_code(clock, side)), "{}", context());
    }
    assert_eq!(bytes(compiled), bytes(&engine_code(clock, side)), "{}", context());
    let first = instructions.iter().position(is_of_method).expect("some");
    let last = instructions.iter().rposition(is_of_method).expect("some");
    assert!(
        instructions[first..=last]
            .iter()
            .all(|instruction| instruction.mnemonic() == Mnemonic::Mov || is_of_method(instruction)),
        "{}",
        context()
    );
    if clock.side_clobbers(side).contains(&Register::RBX) {
        let moves = |is_rbx: fn(&Instruction) -> bool| {
            instructions.iter().position(|instruction| instruction.mnemonic() == Mnemonic::Mov && is_rbx(instruction))
        };
        let (saved, loaded) = (
            moves(|instruction| instruction.op1_register() == Register::RBX),
            moves(|instruction| instruction.op0_register() == Register::RBX),
        );
        assert!(saved.is_some_and(|at| at < first) && loaded.is_some_and(|at| at > last), "{}", context());
    }
    let around = |instruction: &Instruction| {
        use Mnemonic::*;
        matches!(instruction.mnemonic(), Mov | Shl | Or | Push | Pop | Endbr64 | Sub | Add | Lea | Leave)
    };
    let outside = instructions[..first].iter().chain(&instructions[last + 1..]);
    assert!(!settings.is_straight || outside.into_iter().all(around), "{}", context());
}

fn assert_all_same_code(language: &SourceLanguage, probes: &Probes, settings: &CompilerSettings) {
    for (clock, _) in texts_in(language) {
        ClockSide::BOTH.iter().for_each(|side| assert_same_code(clock, *side, &probes.code(clock, *side), settings));
    }
}

/// A C or C++ file that includes every method twice, with one function per side.
fn probes_in_c(language: &SourceLanguage, folder: &Folder, main: &str) {
    let mut text = String::new();
    let mut functions = String::new();
    for (clock, header) in texts_in(language) {
        let name = clock_identifier(clock);
        folder.write(&name, &header);
        text.push_str(&format!("#include \"{name}\"\n#include \"{name}\"\n"));
        for side in ClockSide::BOTH {
            let reading = match language.name {
                "c" => format!("cyclescope_{name}_{}", end_of(side)),
                _ => format!("cyclescope::{name}::{}", end_of(side)),
            };
            let (parameter, argument) =
                if clock.reads_counter() { ("uint32_t counter", "counter") } else { ("void", "") };
            let probe = probe(clock, side);
            functions.push_str(&format!("uint64_t {probe}({parameter});\n"));
            functions.push_str(&format!("uint64_t {probe}({parameter}) {{ return {reading}({argument}); }}\n"));
        }
    }
    let functions = if language.name == "c" { functions } else { format!("extern \"C\" {{\n{functions}}}\n") };
    folder.write(main, &(text + "#include <stdint.h>\n" + &functions));
}

/// Compiles a C or C++ file with every warning as an error.
#[track_caller]
fn compile_probes(folder: &Folder, compiler: &str, options: &[&str], file: &str) -> Option<Probes> {
    // GCC merges two equal functions into one.
    let apart = if compiler.starts_with('g') { "-fno-ipa-icf" } else { "-c" };
    let arguments = [&STRICT[..], options, &[apart, file, "-o", "main.o"]].concat();
    run_tool(&folder.0, compiler, &arguments, "main.o")
}

const STRICT: [&str; 6] = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-m64", "-c"];

#[test]
fn c_compilers_assemble_the_engines_instructions() {
    let folder = Folder::new("c");
    probes_in_c(&c::C, &folder, "main.c");
    const OPTION_SETS: [&[&str]; 7] = [
        &["-O2", "-std=c11", "-D_GNU_SOURCE"],
        &["-O2", "-std=gnu11", "-fPIC"],
        &["-O0", "-std=gnu11"],
        &["-O0", "-std=gnu99", "-fPIC"],
        &["-O3", "-std=gnu17", "-march=native"],
        &["-O2", "-std=gnu11", "-masm=intel"],
        &["-O1", "-std=gnu11", "-mcmodel=large", "-fPIC"],
    ];
    for compiler in ["gcc", "clang"] {
        for options in OPTION_SETS {
            let Some(probes) = compile_probes(&folder, compiler, options, "main.c") else { break };
            let name = format!("{compiler} {options:?}");
            assert_all_same_code(&c::C, &probes, &CompilerSettings { name, is_straight: true });
        }
    }
}

/// The compiler cannot save a register that the program has fixed.
#[test]
fn rbx_is_preserved_if_the_compiler_cannot_save_it() {
    let folder = Folder::new("rbx");
    probes_in_c(&c::C, &folder, "main.c");
    let options = ["-O2", "-std=gnu11", "-ffixed-rbx"];
    let Some(probes) = compile_probes(&folder, "gcc", &options, "main.c") else { return };
    assert_all_same_code(&c::C, &probes, &CompilerSettings { name: format!("gcc {options:?}"), is_straight: true });
}

#[test]
fn cxx_compilers_assemble_the_engines_instructions() {
    let folder = Folder::new("cxx");
    probes_in_c(&c::CXX, &folder, "main.cpp");
    const OPTION_SETS: [&[&str]; 4] = [
        &["-O2", "-std=c++11"],
        &["-O2", "-std=c++20", "-fPIC"],
        &["-O0", "-std=gnu++17"],
        &["-O2", "-std=gnu++17", "-masm=intel"],
    ];
    for compiler in ["g++", "clang++"] {
        for options in OPTION_SETS {
            let Some(probes) = compile_probes(&folder, compiler, options, "main.cpp") else { break };
            let name = format!("{compiler} {options:?}");
            assert_all_same_code(&c::CXX, &probes, &CompilerSettings { name, is_straight: true });
        }
    }
}

#[test]
fn rustc_assembles_the_engines_instructions() {
    let folder = Folder::new("rust");
    let mut text = String::new();
    for (clock, module) in texts_in(&rust::RUST) {
        let name = clock_identifier(clock);
        folder.write(&format!("{name}.rs"), &module);
        text.push_str(&format!("mod {name};\n"));
        let (parameter, argument) = if clock.reads_counter() { ("counter: u32", "counter") } else { ("", "") };
        for side in ClockSide::BOTH {
            let (probe, end) = (probe(clock, side), end_of(side));
            text.push_str(&format!(
                "#[unsafe(no_mangle)]\npub extern \"C\" fn {probe}({parameter}) -> u64 {{ {name}::{end}({argument}) }}\n"
            ));
        }
    }
    folder.write("lib.rs", &text);
    for edition in ["2021", "2024"] {
        for level in ["0", "2"] {
            let level = format!("opt-level={level}");
            let arguments = [
                "--edition",
                edition,
                "--crate-type",
                "lib",
                "--emit",
                "obj",
                "-D",
                "warnings",
                "-C",
                &level,
                "-C",
                "codegen-units=1",
                "lib.rs",
                "-o",
                "lib.o",
            ];
            let Some(probes) = run_tool(&folder.0, "rustc", &arguments, "lib.o") else { return };
            let is_straight = level != "opt-level=0";
            assert_all_same_code(
                &rust::RUST,
                &probes,
                &CompilerSettings { name: format!("rustc {edition} {level}"), is_straight },
            );
        }
    }
}

/// Assemblers add nothing: all bytes equal the engine's.
#[track_caller]
fn assert_engine_bytes(language: &SourceLanguage, probes: &Probes) {
    for (clock, _) in texts_in(language) {
        for side in ClockSide::BOTH {
            let same = probes.code(clock, side) == engine_code(clock, side);
            assert!(same, "{} {side:?}: {:02x?}", clock.name, probes.code(clock, side));
        }
    }
}

#[test]
fn gnu_as_assembles_the_engines_bytes() {
    let folder = Folder::new("gas");
    let mut text = String::new();
    for (clock, macros) in texts_in(&assembly::GAS) {
        let name = clock_identifier(clock);
        folder.write(&name, &macros);
        text.push_str(&format!(".include \"{name}\"\n.include \"{name}\"\n"));
        let counter = if clock.reads_counter() { ", counter(%rip)" } else { "" };
        for side in ClockSide::BOTH {
            let (probe, end) = (probe(clock, side), end_of(side));
            text.push_str(&format!("{probe}: cyclescope_{name}_{end} place(%rip){counter}\nret\n"));
        }
    }
    folder.write("main.s", &text);
    let arguments = ["--64", "--fatal-warnings", "main.s", "-o", "main.o"];
    if let Some(probes) = run_tool(&folder.0, "as", &arguments, "main.o") {
        assert_engine_bytes(&assembly::GAS, &probes);
    }
}

#[test]
fn nasm_assembles_the_engines_bytes() {
    let folder = Folder::new("nasm");
    let mut text = String::from("bits 64\nsection .text\nextern place, counter\n");
    for (clock, macros) in texts_in(&assembly::NASM) {
        let name = clock_identifier(clock);
        folder.write(&name, &macros);
        text.push_str(&format!("%include \"{name}\"\n%include \"{name}\"\n"));
        let counter = if clock.reads_counter() { ", [rel counter]" } else { "" };
        for side in ClockSide::BOTH {
            let (probe, end) = (probe(clock, side), end_of(side));
            text.push_str(&format!("{probe}: cyclescope_{name}_{end} rel place{counter}\nret\n"));
        }
    }
    folder.write("main.asm", &text);
    let arguments = ["-w+all", "-Werror", "-f", "elf64", "main.asm", "-o", "main.o"];
    if let Some(probes) = run_tool(&folder.0, "nasm", &arguments, "main.o") {
        assert_engine_bytes(&assembly::NASM, &probes);
    }
}

#[test]
fn every_method_has_text_in_every_language_or_a_reason() {
    for clock in ALL_CLOCKS {
        for language in LANGUAGES {
            match render_source(clock, language) {
                Ok(text) => {
                    assert!(!text.contains('@') || language.name == "gas", "{}: {text}", clock.name);
                    let about = [clock.about, clock.source, clock.counts.text()];
                    assert!(about.iter().all(|part| text.contains(part)), "{}: {text}", clock.name);
                    for (_, promise, kept) in clock.promises.list_promises() {
                        let line = format!("{} {promise}", if kept { "promised:    " } else { "not promised:" });
                        assert!(text.contains(&line), "{} {}: {line}", clock.name, language.name);
                    }
                    assert_eq!(text.contains("ring 0 only, as"), clock.needs_ring0(), "{}", clock.name);
                }
                Err(error) => {
                    assert!(clock.calls_system() && !language.calls, "{} {}: {error:?}", clock.name, language.name);
                }
            }
        }
    }
}
