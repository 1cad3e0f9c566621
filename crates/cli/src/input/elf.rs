//! A file of machine code that is no shared library, made one: the objects that a linker takes are linked, and of an
//! executable that runs at any address a copy is made without the mark that keeps it from being loaded.
//!
//! The system's own loader does the rest. What only a start of the program itself would prepare, such as what `main` sets, is not
//! prepared; thread-local variables, which an executable reaches at a place that another process does not have, are refused.

use crate::input::compiler::{self, Compiler};
use crate::output::Failure;
use cyclescope::error::Unavailable;
use cyclescope::input::{self, InputKind};
use object::elf::{
    DF_1_PIE, DT_FLAGS_1, EM_X86_64, ET_DYN, ET_REL, FileHeader64, PT_DYNAMIC, PT_TLS, SHF_ALLOC, SHT_NOTE, STT_FUNC,
};
use object::read::elf::{Dyn, ElfFile64, FileHeader, ProgramHeader, SectionHeader};
use object::{Endianness, Object, ObjectSection, ObjectSymbol};
use std::path::{Path, PathBuf};

type NativeElf<'a> = ElfFile64<'a, Endianness>;

/// The first bytes of an archive.
const ARCHIVE_MAGIC: &[u8] = b"!<arch>\n";
/// What the name of a C++ symbol begins with, behind the end of another name.
const MANGLED_START: &[u8] = b"\0_Z";

/// A library that has these functions of a file: itself, or one that is made at `output`, with these words for the linker.
pub fn make_library(file: &Path, functions: &[&str], words: Option<&str>, output: PathBuf) -> Result<PathBuf, Failure> {
    let image = read_machine_code(file)?;
    if image.starts_with(ARCHIVE_MAGIC) {
        return link_library(file, &image, functions, words, output);
    }
    let foreign = || {
        let text = format!("{} has no machine code of x86-64 in ELF format", file.display());
        Failure::usage(text, Some("name an executable, an object file, an archive or a shared library"))
    };
    let parsed = NativeElf::parse(&*image).map_err(|_| foreign())?;
    let header = parsed.elf_header();
    if header.e_machine(parsed.endian()) != EM_X86_64 {
        return Err(foreign());
    }
    match header.e_type(parsed.endian()) {
        ET_REL => link_library(file, &image, functions, words, output),
        ET_DYN => make_loadable(file, &parsed, &image, output),
        _ => Err(Failure::from(Unavailable {
            what: format!("a function in {}", file.display()),
            why: "the program runs at fixed addresses, and can't be loaded into another process".to_string(),
            remedy: "link it with -pie, from objects compiled with -fPIE, or name the function's object file"
                .to_string(),
        })),
    }
}

/// The bytes of a file of machine code.
pub fn read_machine_code(file: &Path) -> Result<Vec<u8>, Failure> {
    let remedy = "name an executable, an object file, an archive or a shared library that you may read; what is longer may \
                  be stripped of its debug information";
    input::read_input(file, InputKind::Code).map_err(|bad| Failure::from_input(&bad, remedy))
}

/// What a library brings into memory, and its file where it can't be read as one. It says nothing of debug information, which names
/// the folder of a compilation, nor of the linker's number for the whole file.
pub fn read_loaded_bytes(library: &Path) -> Vec<u8> {
    // One that can't be read is told of when it is loaded.
    allocated_contents(read_machine_code(library).unwrap_or_default())
}

fn allocated_contents(image: Vec<u8>) -> Vec<u8> {
    let Ok(file) = NativeElf::parse(&*image) else { return image };
    let allocated = file.sections().filter(|section| {
        let header = section.elf_section_header();
        header.sh_flags(file.endian()).contains(SHF_ALLOC) && header.sh_type(file.endian()) != SHT_NOTE
    });
    let contents: Option<Vec<&[u8]>> = allocated.map(|section| section.data().ok()).collect();
    contents.map_or_else(|| image.clone(), |contents| contents.concat())
}

/// Links an object, or the members of an archive that these functions need. What it refers to itself stays inside, so that
/// objects that were compiled for an executable of any address can be linked too.
fn link_library(
    file: &Path,
    image: &[u8],
    functions: &[&str],
    words: Option<&str>,
    output: PathBuf,
) -> Result<PathBuf, Failure> {
    let plus_plus = image.windows(MANGLED_START.len()).any(|bytes| bytes == MANGLED_START);
    let compiler = if plus_plus { Compiler::cxx_compiler() } else { Compiler::c_compiler() };
    let mut flags = compiler::join_flags(&["-shared", "-Wl,-Bsymbolic"], None)?;
    flags.extend(functions.iter().map(|function| format!("-Wl,--undefined={function}")));
    let words = compiler::join_flags(&[], words)?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    compiler.compile(file, &flags, &output, &words)?;
    Ok(output)
}

/// The file, or a copy of it that is not marked as an executable.
fn make_loadable(file: &Path, parsed: &NativeElf, image: &[u8], output: PathBuf) -> Result<PathBuf, Failure> {
    let endian = parsed.endian();
    let segments = || parsed.elf_program_headers().iter();
    let Some((at, flags)) = segments().find_map(|segment| find_pie_flags(segment, endian, image)) else {
        return Ok(file.to_path_buf());
    };
    if segments().any(|segment| segment.p_type(endian) == PT_TLS) {
        return Err(Failure::from(Unavailable {
            what: format!("a function in {}", file.display()),
            why: "the program has thread-local variables, which its code finds only in a process of its own"
                .to_string(),
            remedy: "name the function's object file, or build a shared library".to_string(),
        }));
    }
    let mut copy = image.to_vec();
    copy[at..at + size_of::<u64>()].copy_from_slice(&(flags & !DF_1_PIE.0).to_le_bytes());
    std::fs::write(&output, copy)
        .map_err(|error| Failure::internal(format!("writing {} failed: {error}", output.display())))?;
    Ok(output)
}

/// The place and the value of an executable's flags in a file.
fn find_pie_flags(
    segment: &<FileHeader64<Endianness> as FileHeader>::ProgramHeader,
    endian: Endianness,
    image: &[u8],
) -> Option<(usize, u64)> {
    if segment.p_type(endian) != PT_DYNAMIC {
        return None;
    }
    let entries = segment.dynamic(endian, image).ok()??;
    let number = entries.iter().position(|entry| entry.d_tag(endian) == DT_FLAGS_1)?;
    let flags = entries[number].d_val(endian);
    let at = segment.p_offset(endian) as usize + number * size_of_val(&entries[0]) + size_of::<u64>();
    (flags & DF_1_PIE.0 != 0).then_some((at, flags))
}

/// The address, in a library's own counting, of a function that the library has and does not export; `None` where it
/// exports one of this name, or has none.
///
/// # Errors
///
/// Where several functions have this name.
pub fn find_hidden_function(image: &[u8], name: &str) -> Result<Option<u64>, Failure> {
    let Ok(file) = NativeElf::parse(image) else { return Ok(None) };
    let named = |symbol: &object::read::elf::ElfSymbol64<'_, '_>| symbol.is_definition() && symbol.name() == Ok(name);
    if file.dynamic_symbols().any(|symbol| named(&symbol)) {
        return Ok(None);
    }
    let is_function = |symbol: &object::read::elf::ElfSymbol64<'_, '_>| symbol.elf_symbol().st_type() == STT_FUNC;
    let found: Vec<u64> =
        file.symbols().filter(|symbol| named(symbol) && is_function(symbol)).map(|symbol| symbol.address()).collect();
    match found.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(*one)),
        several => {
            let text = format!("{} functions in it are named `{name}`", several.len());
            Err(Failure::usage(text, Some("give the one to be measured a name of its own")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_fuzz::{InputShape, fuzz_reader};
    use std::process::Command;

    #[test]
    fn any_file_is_answered() {
        let folder = tempfile::tempdir().expect("a folder");
        let source = folder.path().join("f.c");
        std::fs::write(&source, "static int f(void) { return 1; }\nint main(void) { return f(); }\n").expect("a file");
        let made = |words: &[&str], name: &str| {
            let output = folder.path().join(name);
            let status = Command::new("cc").args(words).arg("-o").arg(&output).arg(&source).status();
            status.is_ok_and(|status| status.success()).then(|| std::fs::read(output).expect("a file"))
        };
        let seeds = [made(&["-fPIE", "-pie"], "pie"), made(&["-fPIC", "-shared", "-O0"], "so"), made(&["-c"], "o")];
        let seeds: Vec<Vec<u8>> = seeds.into_iter().flatten().collect();
        if seeds.is_empty() {
            return cyclescope_skipped::report_skipped("no compiler makes a file here");
        }
        let output = folder.path().join("copy");
        fuzz_reader("machine_code", InputShape::Bytes, &seeds, |bytes| {
            let _ = find_hidden_function(bytes, "f");
            let _ = allocated_contents(bytes.to_vec());
            if let Ok(parsed) = NativeElf::parse(bytes) {
                let _ = make_loadable(Path::new("f"), &parsed, bytes, output.clone());
            }
        });
    }
}
