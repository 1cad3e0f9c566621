//! Compilers and assemblers turn the text of every method into the engine's instructions, in the
//! same order.

use super::*;
use crate::asm::{ALL_MODES, Emitter};
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

/// The methods available in a language, with their text for code of a mode.
fn texts_in(language: &SourceLanguage, mode: CodeMode) -> impl Iterator<Item = (&'static Clock, String)> {
    ALL_CLOCKS.iter().filter_map(move |clock| render_source(clock, language, mode).ok().map(|text| (clock, text)))
}

/// The engine's code of one side, with references to memory zeroed.
fn engine_code(clock: &Clock, side: ClockSide, mode: CodeMode) -> Vec<u8> {
    let mut emitter = Emitter::starting_at(0, mode);
    clock.emit_side(side, None, &mut emitter);
    let (mut bytes, references) = emitter.finish();
    for at in references {
        bytes[at as usize..at as usize + 4].fill(0);
    }
    bytes
}

fn decode(code: &[u8], mode: CodeMode) -> Vec<Instruction> {
    Decoder::new(mode.bits(), code, DecoderOptions::NONE).into_iter().collect()
}

/// An object file. The code of each probe ends at its first return.
struct Probes {
    file: Vec<u8>,
    mode: CodeMode,
}

impl Probes {
    fn code(&self, clock: &Clock, side: ClockSide) -> Vec<u8> {
        let file = object::File::parse(&*self.file).expect("an object file");
        let name = probe(clock, side);
        let symbol = file.symbols().find(|symbol| symbol.name() == Ok(&name)).expect("each probe has a symbol");
        let section = file.section_by_index(symbol.section_index().expect("a section")).expect("a section");
        let code = &section.data().expect("code")[(symbol.address() - section.address()) as usize..];
        let length = decode(code, self.mode)
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

/// Runs a tool in a folder, which makes an object file for code of a mode; `None` if it is not
/// installed. It must print nothing.
#[track_caller]
fn run_tool(folder: &Path, mode: CodeMode, (name, arguments): (&str, &[&str]), object: &str) -> Option<Probes> {
    let Ok(output) = Command::new(name).args(arguments).current_dir(folder).output() else {
        cyclescope_skipped::report_left_out(format_args!("{name} is not installed"));
        return None;
    };
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && printed.is_empty(), "{name} {arguments:?}: {printed}");
    Some(Probes { file: std::fs::read(folder.join(object)).expect("an object file"), mode })
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
fn assert_same_code(clock: &Clock, side: ClockSide, probes: &Probes, settings: &CompilerSettings) {
    let (compiled, mode) = (&*probes.code(clock, side), probes.mode);
    let bytes = |code: &[u8]| -> Vec<Vec<u8>> {
        let mut of_method: Vec<Instruction> = decode(code, mode).into_iter().filter(is_of_method).collect();
        // Without optimisation, the upper halves of 64-bit values in 32-bit code are constants.
        while of_method.pop_if(|last| last.mnemonic() == Mnemonic::Mov && last.op0_register().is_gpr()).is_some() {}
        let of_method = of_method.into_iter();
        of_method.map(|instruction| code[instruction.ip() as usize..instruction.next_ip() as usize].to_vec()).collect()
    };
    let listed = || crate::asm::Listing::from_code(compiled, mode);
    let context = || format!("{}, {} {side:?}:\n{}", settings.name, clock.name, listed().text());
    let instructions = decode(compiled, mode);
    if clock.calls_system() {
        // The fences are around the call, as in the engine.
        let order = |code: &[u8]| -> Vec<Mnemonic> {
            let mnemonics = decode(code, mode).into_iter().map(|instruction| instruction.mnemonic());
            let ordered = mnemonics.filter(|instruction| [Mnemonic::Lfence, Mnemonic::Call].contains(instruction));
            // Position-independent 32-bit code finds its address by a call first.
            ordered.skip_while(|instruction| *instruction == Mnemonic::Call).take(3).collect()
        };
        return assert_eq!(order(compiled), order(&engine_code(clock, side, CodeMode::Bits64)), "{}", context());
    }
    assert_eq!(bytes(compiled), bytes(&engine_code(clock, side, mode)), "{}", context());
    let first = instructions.iter().position(is_of_method).expect("some");
    let is_last =
        |one: &Instruction| is_of_method(one) && one.mnemonic() != Mnemonic::Mov || one.op0_register().is_cr();
    let last = instructions.iter().rposition(is_last).expect("some");
    // In 32-bit code EBX and a reading are on the stack while CPUID changes them.
    let is_move = |instruction: &Instruction| match instruction.mnemonic() {
        Mnemonic::Mov => true,
        Mnemonic::Push | Mnemonic::Pop => mode == CodeMode::Bits32,
        _ => false,
    };
    assert!(
        instructions[first..=last].iter().all(|instruction| is_move(instruction) || is_of_method(instruction)),
        "{}",
        context()
    );
    if mode == CodeMode::Bits32 {
        assert_ebx_is_preserved(&instructions, &context());
    } else if clock.side_clobbers(side).contains(&Register::RBX) {
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
        // Position-independent 32-bit code finds its address by a call.
        matches!(instruction.mnemonic(), Mov | Shl | Or | Push | Pop | Endbr64 | Endbr32 | Sub | Add | Lea | Leave)
            || mode == CodeMode::Bits32 && matches!(instruction.mnemonic(), Xor | Call)
    };
    let outside = instructions[..first].iter().chain(&instructions[last + 1..]);
    assert!(!settings.is_straight || outside.into_iter().all(around), "{}", context());
}

/// CPUID is between a push and a pop of EBX.
#[track_caller]
fn assert_ebx_is_preserved(instructions: &[Instruction], context: &str) {
    let is_move = |instruction: &&Instruction| instruction.mnemonic() == Mnemonic::Mov;
    let on_ebx = |instruction: Option<&Instruction>, mnemonic| {
        instruction.is_some_and(|one| one.mnemonic() == mnemonic && one.op0_register() == Register::EBX)
    };
    let at_cpuid = instructions.iter().enumerate().filter(|(_, one)| one.mnemonic() == Mnemonic::Cpuid);
    for (at, _) in at_cpuid {
        let before = instructions[..at].iter().rev().find(|one| !is_move(one));
        let after = instructions[at + 1..].iter().next();
        assert!(on_ebx(before, Mnemonic::Push) && on_ebx(after, Mnemonic::Pop), "{context}");
    }
}

fn assert_all_same_code(language: &SourceLanguage, probes: &Probes, settings: &CompilerSettings) {
    for (clock, _) in texts_in(language, probes.mode) {
        ClockSide::BOTH.iter().for_each(|side| assert_same_code(clock, *side, probes, settings));
    }
}

/// A C or C++ file that includes every method twice, with one function per side.
fn probes_in_c(language: &SourceLanguage, mode: CodeMode, folder: &Folder, main: &str) {
    let mut text = String::new();
    let mut functions = String::new();
    for (clock, header) in texts_in(language, mode) {
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
fn compile_probes(folder: &Folder, mode: CodeMode, compiler: &str, options: &[&str], file: &str) -> Option<Probes> {
    if mode == CodeMode::Bits32 && !compiles_narrow_code(folder, compiler) {
        return None;
    }
    // GCC merges two equal functions into one.
    let apart = if compiler.starts_with('g') { "-fno-ipa-icf" } else { "-c" };
    let of_mode = mode.choose(["-m64", "-m32"]);
    let arguments = [&STRICT[..], options, &[of_mode, apart, file, "-o", "main.o"]].concat();
    run_tool(&folder.0, mode, (compiler, &arguments), "main.o")
}

const STRICT: [&str; 5] = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-c"];

/// Whether a compiler has its library's headers for 32-bit code. Those of C++ are a package of their own.
fn compiles_narrow_code(folder: &Folder, compiler: &str) -> bool {
    let (language, header) = if compiler.ends_with("++") { ("c++", "cstdint") } else { ("c", "stdint.h") };
    folder.write("narrow", &format!("#include <{header}>\n#include <time.h>\nint answer;\n"));
    let words = ["-m32", "-c", "-x", language, "narrow", "-o", "narrow.o"];
    let built = Command::new(compiler).args(words).current_dir(&folder.0).output();
    let can = built.is_ok_and(|output| output.status.success());
    if !can {
        cyclescope_skipped::report_left_out(format_args!("{compiler} -m32 does not work"));
    }
    can
}

#[test]
fn c_compilers_assemble_the_engines_instructions() {
    const OPTION_SETS: [&[&str]; 6] = [
        &["-O2", "-std=c11", "-D_GNU_SOURCE"],
        &["-O2", "-std=gnu11", "-fPIC"],
        &["-O0", "-std=gnu11"],
        &["-O0", "-std=gnu99", "-fPIC"],
        &["-O3", "-std=gnu17", "-march=native"],
        &["-O2", "-std=gnu11", "-masm=intel"],
    ];
    const WIDE_OPTION_SET: &[&str] = &["-O1", "-std=gnu11", "-mcmodel=large", "-fPIC"];
    // GCC before version 5 reserved EBX in position-independent code.
    const NARROW_OPTION_SET: &[&str] = &["-O2", "-std=gnu11", "-fPIC", "-fno-omit-frame-pointer"];
    for mode in ALL_MODES {
        let folder = Folder::new(&format!("c{}", mode.bits()));
        probes_in_c(&c::C, mode, &folder, "main.c");
        for compiler in ["gcc", "clang"] {
            for options in OPTION_SETS.into_iter().chain([mode.choose([WIDE_OPTION_SET, NARROW_OPTION_SET])]) {
                let Some(probes) = compile_probes(&folder, mode, compiler, options, "main.c") else { break };
                let name = format!("{compiler} {} {options:?}", mode.bits());
                assert_all_same_code(&c::C, &probes, &CompilerSettings { name, is_straight: true });
            }
        }
    }
}

/// The compiler cannot save a register that the program has fixed.
#[test]
fn rbx_is_preserved_if_the_compiler_cannot_save_it() {
    for mode in ALL_MODES {
        let folder = Folder::new(&format!("rbx{}", mode.bits()));
        probes_in_c(&c::C, mode, &folder, "main.c");
        let options = ["-O2", "-std=gnu11", mode.choose(["-ffixed-rbx", "-ffixed-ebx"])];
        let Some(probes) = compile_probes(&folder, mode, "gcc", &options, "main.c") else { continue };
        assert_all_same_code(&c::C, &probes, &CompilerSettings { name: format!("gcc {options:?}"), is_straight: true });
    }
}

#[test]
fn cxx_compilers_assemble_the_engines_instructions() {
    const OPTION_SETS: [&[&str]; 4] = [
        &["-O2", "-std=c++11"],
        &["-O2", "-std=c++20", "-fPIC"],
        &["-O0", "-std=gnu++17"],
        &["-O2", "-std=gnu++17", "-masm=intel"],
    ];
    for mode in ALL_MODES {
        let folder = Folder::new(&format!("cxx{}", mode.bits()));
        probes_in_c(&c::CXX, mode, &folder, "main.cpp");
        for compiler in ["g++", "clang++"] {
            for options in OPTION_SETS {
                let Some(probes) = compile_probes(&folder, mode, compiler, options, "main.cpp") else { break };
                let name = format!("{compiler} {} {options:?}", mode.bits());
                assert_all_same_code(&c::CXX, &probes, &CompilerSettings { name, is_straight: true });
            }
        }
    }
}

/// The target of a mode, if its standard library is installed.
fn installed_target(mode: CodeMode) -> Option<&'static str> {
    let target = mode.choose(["x86_64-unknown-linux-gnu", "i686-unknown-linux-gnu"]);
    let output = Command::new("rustc").args(["--print", "target-libdir", "--target", target]).output().ok()?;
    let folder = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    let has_library = std::fs::read_dir(folder).is_ok_and(|mut files| files.next().is_some());
    if !has_library {
        cyclescope_skipped::report_left_out(format_args!("rustc has no library for {target}"));
    }
    has_library.then_some(target)
}

#[test]
fn rustc_assembles_the_engines_instructions() {
    for mode in ALL_MODES {
        if let Some(target) = installed_target(mode) {
            compare_rust_probes(mode, target);
        }
    }
}

fn compare_rust_probes(mode: CodeMode, target: &str) {
    let folder = Folder::new(&format!("rust{}", mode.bits()));
    let mut text = String::new();
    for (clock, module) in texts_in(&rust::RUST, mode) {
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
                &["--edition", edition, "--target", target, "--crate-type", "lib", "--emit", "obj"][..],
                &["-D", "warnings", "-C", &level, "-C", "codegen-units=1", "lib.rs", "-o", "lib.o"],
            ];
            let Some(probes) = run_tool(&folder.0, mode, ("rustc", &arguments.concat()), "lib.o") else { return };
            let is_straight = level != "opt-level=0";
            assert_all_same_code(
                &rust::RUST,
                &probes,
                &CompilerSettings { name: format!("rustc {edition} {level} {target}"), is_straight },
            );
        }
    }
}

/// Assemblers add nothing: all bytes equal the engine's. In 32-bit code a store of EAX to an address
/// has a shorter encoding, and addresses are in the code: there the instructions are equal.
#[track_caller]
fn assert_engine_code(language: &SourceLanguage, probes: &Probes) {
    let mode = probes.mode;
    let operations = |code: &[u8]| -> Vec<(Mnemonic, Vec<Register>)> {
        let registers = |one: &Instruction| (0..one.op_count()).map(|number| one.op_register(number)).collect();
        decode(code, mode).iter().map(|one| (one.mnemonic(), registers(one))).collect()
    };
    for (clock, _) in texts_in(language, mode) {
        for side in ClockSide::BOTH {
            let (own, engines) = (probes.code(clock, side), engine_code(clock, side, mode));
            let same = match mode {
                CodeMode::Bits64 => own == engines,
                CodeMode::Bits32 => operations(&own) == operations(&engines),
            };
            assert!(same, "{} {side:?}: {own:02x?}", clock.name);
        }
    }
}

#[test]
fn gnu_as_assembles_the_engines_code() {
    for mode in ALL_MODES {
        let folder = Folder::new(&format!("gas{}", mode.bits()));
        let mut text = String::new();
        let [place, counter] = mode.choose([["place(%rip)", ", counter(%rip)"], ["place", ", counter"]]);
        for (clock, macros) in texts_in(&assembly::GAS, mode) {
            let name = clock_identifier(clock);
            folder.write(&name, &macros);
            text.push_str(&format!(".include \"{name}\"\n.include \"{name}\"\n"));
            let counter = if clock.reads_counter() { counter } else { "" };
            for side in ClockSide::BOTH {
                let (probe, end) = (probe(clock, side), end_of(side));
                text.push_str(&format!("{probe}: cyclescope_{name}_{end} {place}{counter}\nret\n"));
            }
        }
        folder.write("main.s", &text);
        let arguments = [mode.choose(["--64", "--32"]), "--fatal-warnings", "main.s", "-o", "main.o"];
        if let Some(probes) = run_tool(&folder.0, mode, ("as", &arguments), "main.o") {
            assert_engine_code(&assembly::GAS, &probes);
        }
    }
}

#[test]
fn nasm_assembles_the_engines_code() {
    for mode in ALL_MODES {
        let folder = Folder::new(&format!("nasm{}", mode.bits()));
        let mut text = format!("bits {}\nsection .text\nextern place, counter\n", mode.bits());
        let [place, counter] = mode.choose([["rel place", ", [rel counter]"], ["place", ", [counter]"]]);
        for (clock, macros) in texts_in(&assembly::NASM, mode) {
            let name = clock_identifier(clock);
            folder.write(&name, &macros);
            text.push_str(&format!("%include \"{name}\"\n%include \"{name}\"\n"));
            let counter = if clock.reads_counter() { counter } else { "" };
            for side in ClockSide::BOTH {
                let (probe, end) = (probe(clock, side), end_of(side));
                text.push_str(&format!("{probe}: cyclescope_{name}_{end} {place}{counter}\nret\n"));
            }
        }
        folder.write("main.asm", &text);
        let format = mode.choose(["elf64", "elf32"]);
        let arguments = ["-w+all", "-Werror", "-f", format, "main.asm", "-o", "main.o"];
        if let Some(probes) = run_tool(&folder.0, mode, ("nasm", &arguments), "main.o") {
            assert_engine_code(&assembly::NASM, &probes);
        }
    }
}

#[test]
fn every_method_has_text_in_every_language_or_a_reason() {
    for clock in ALL_CLOCKS {
        for (language, mode) in LANGUAGES.iter().flat_map(|language| ALL_MODES.map(|mode| (language, mode))) {
            match render_source(clock, language, mode) {
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
