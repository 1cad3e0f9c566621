//! Turns a file of machine code into a loadable library. Objects and archives are linked. An
//! executable that runs at any address is copied without the flag that prevents loading.
//!
//! The system's loader does the rest. State that only the program's start prepares, such as what
//! `main` sets, is missing. Executables with thread-local variables are rejected, because their
//! code finds them at a place that another process doesn't have.

use crate::input::compiler::{self, Compiler};
use crate::input::elf_file::{parse_elf, symbol_type};
use crate::input::function_symbol::{NameMatch, ambiguous_name, match_name};
use crate::output::Failure;
use cyclescope::asm::CodeMode;
use cyclescope::error::Unavailable;
use cyclescope::input::{self, InputKind};
use object::elf::{
    DF_1_PIE, DT_FLAGS_1, EM_386, EM_X86_64, ET_DYN, ET_REL, FileHeader64, FileType, PT_DYNAMIC, PT_TLS, SHF_ALLOC,
    SHT_NOTE, STT_FUNC,
};
use object::read::archive::ArchiveFile;
use object::read::elf::{Dyn, ElfFile32, ElfFile64, FileHeader, ProgramHeader};
use object::{Endianness, Object, ObjectSection, ObjectSymbol, SectionFlags};
use std::path::{Path, PathBuf};

type NativeElf<'a> = ElfFile64<'a, Endianness>;

/// The first bytes of an archive.
const ARCHIVE_MAGIC: &[u8] = b"!<arch>\n";
/// Start of a C++ symbol name, after the NUL byte that ends the previous name.
const MANGLED_START: &[u8] = b"\0_Z";

/// Folders in which distributions keep the libraries of 64-bit programs.
const LIBRARY_FOLDERS: [&str; 5] = ["/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/usr/lib", "/usr/local/lib"];

/// The mode of a file's machine code, and the kind of the file.
fn recognize_file(image: &[u8]) -> Option<(CodeMode, FileType)> {
    match (NativeElf::parse(image), ElfFile32::<Endianness>::parse(image)) {
        (Ok(file), _) => {
            let (header, endian) = (file.elf_header(), file.endian());
            (header.e_machine(endian) == EM_X86_64).then(|| (CodeMode::Bits64, header.e_type(endian)))
        }
        (_, Ok(file)) => {
            let (header, endian) = (file.elf_header(), file.endian());
            (header.e_machine(endian) == EM_386).then(|| (CodeMode::Bits32, header.e_type(endian)))
        }
        _ => None,
    }
}

/// Fails if a file has machine code of another mode.
pub fn require_mode(file: &Path, image: &[u8], mode: CodeMode) -> Result<(), Failure> {
    let Some((own, _)) = recognize_file(image).filter(|(own, _)| *own != mode) else { return Ok(()) };
    let remedy = match own {
        CodeMode::Bits64 => "leave --bits 32 out, or build the file with -m32",
        CodeMode::Bits32 => "add --bits 32",
    };
    Err(Failure::usage(format!("{} has {}-bit machine code", file.display(), own.bits()), Some(remedy)))
}

/// Returns a library with these functions of a file: the file itself, or one created at `output`
/// with these linker flags.
pub fn make_library(
    file: &Path,
    functions: &[&str],
    words: Option<&str>,
    mode: CodeMode,
    output: PathBuf,
) -> Result<PathBuf, Failure> {
    let image = read_machine_code(file)?;
    if image.starts_with(ARCHIVE_MAGIC) {
        return link_library(file, &image, functions, words, mode, output);
    }
    require_mode(file, &image, mode)?;
    let foreign = || {
        let text = format!("{} has no x86-64 machine code in ELF format", file.display());
        Failure::usage(text, Some("name an executable, an object file, an archive or a shared library"))
    };
    let (_, kind) = recognize_file(&image).ok_or_else(foreign)?;
    match kind {
        ET_REL => link_library(file, &image, functions, words, mode, output),
        ET_DYN if mode == CodeMode::Bits32 => Ok(file.to_path_buf()),
        ET_DYN => make_loadable(file, &NativeElf::parse(&*image).map_err(|_| foreign())?, &image, output),
        _ => Err(Failure::from(Unavailable {
            what: format!("a function in {}", file.display()),
            why: "the program runs at fixed addresses and can't be loaded into another process".to_string(),
            remedy: "link it with -pie, from objects compiled with -fPIE, or name the function's object file"
                .to_string(),
        })),
    }
}

/// Reads the bytes of a file of machine code.
pub fn read_machine_code(file: &Path) -> Result<Vec<u8>, Failure> {
    let remedy = "name a readable executable, object file, archive or shared library; strip debug information from one \
                  that is too long";
    input::read_input(file, InputKind::Code).map_err(|bad| match find_system_library(file) {
        Some(path) => Failure::from_input(&bad, &format!("name its path: {}", path.display())),
        None => Failure::from_input(&bad, remedy),
    })
}

/// A library of the system with this file name, if no folder is given.
fn find_system_library(file: &Path) -> Option<PathBuf> {
    let is_name = file.parent() == Some(Path::new("")) && !file.exists();
    let paths = LIBRARY_FOLDERS.iter().map(|folder| Path::new(folder).join(file));
    paths.filter(|_| is_name).find(|path| path.is_file())
}

/// The bytes that a library loads into memory, or the whole file if it can't be parsed. Debug
/// information, which names the compilation folder, and the linker's build ID don't count.
pub fn read_loaded_bytes(library: &Path) -> Vec<u8> {
    // The loader reports an unreadable library.
    allocated_contents(read_machine_code(library).unwrap_or_default())
}

fn allocated_contents(image: Vec<u8>) -> Vec<u8> {
    let Some(file) = parse_elf(&image) else { return image };
    let allocated = file.sections().filter(|section| match section.flags() {
        SectionFlags::Elf { sh_type, sh_flags, .. } => sh_flags.contains(SHF_ALLOC) && sh_type != SHT_NOTE,
        _ => false,
    });
    let contents: Option<Vec<&[u8]>> = allocated.map(|section| section.data().ok()).collect();
    contents.map_or_else(|| image.clone(), |contents| contents.concat())
}

/// Links an object, or the archive members that these functions need. Internal references bind
/// inside the library, so that objects compiled for position-independent executables can be linked
/// too.
fn link_library(
    file: &Path,
    image: &[u8],
    functions: &[&str],
    words: Option<&str>,
    mode: CodeMode,
    output: PathBuf,
) -> Result<PathBuf, Failure> {
    let plus_plus = image.windows(MANGLED_START.len()).any(|bytes| bytes == MANGLED_START);
    let compiler = if plus_plus { Compiler::cxx_compiler() } else { Compiler::c_compiler() };
    let mut flags = compiler::join_flags(&["-shared", "-Wl,-Bsymbolic"], None)?;
    let functions = find_archive_symbols(image, functions)?;
    flags.extend(functions.iter().map(|function| format!("-Wl,--undefined={function}")));
    flags.extend(compiler::mode_flags(mode).iter().map(|flag| flag.to_string()));
    let mut words = compiler::join_flags(&[], words)?;
    words.extend(compiler.runtime_library(mode));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let linked = compiler.compile(file, InputKind::Code, &flags, &output, &words);
    linked.map_err(|failure| compiler::explain_mode(failure, mode))?;
    Ok(output)
}

/// Returns the file, or a copy that isn't marked as an executable.
fn make_loadable(file: &Path, parsed: &NativeElf, image: &[u8], output: PathBuf) -> Result<PathBuf, Failure> {
    let endian = parsed.endian();
    let segments = || parsed.elf_program_headers().iter();
    let Some((at, flags)) = segments().find_map(|segment| find_pie_flags(segment, endian, image)) else {
        return Ok(file.to_path_buf());
    };
    if segments().any(|segment| segment.p_type(endian) == PT_TLS) {
        return Err(Failure::from(Unavailable {
            what: format!("a function in {}", file.display()),
            why: "the program has thread-local variables, which its code finds only in its own process".to_string(),
            remedy: "name the function's object file, or build a shared library".to_string(),
        }));
    }
    let mut copy = image.to_vec();
    copy[at..at + size_of::<u64>()].copy_from_slice(&(flags & !DF_1_PIE.0).to_le_bytes());
    std::fs::write(&output, copy)
        .map_err(|error| Failure::from_system(format!("writing {} failed", output.display()), &error))?;
    Ok(output)
}

/// Finds the file offset and the value of an executable's flags.
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

/// Finds the symbols that make the linker take these functions from an archive. The members of a
/// function that isn't exported come with another symbol.
fn find_archive_symbols(image: &[u8], functions: &[&str]) -> Result<Vec<String>, Failure> {
    let Ok(archive) = ArchiveFile::parse(image) else { return Ok(Vec::new()) };
    let members: Vec<&[u8]> = archive.members().flatten().filter_map(|member| member.data(image).ok()).collect();
    functions.iter().map(|name| find_archive_symbol(&members, name)).collect()
}

fn find_archive_symbol(members: &[&[u8]], name: &str) -> Result<String, Failure> {
    let mut found: Vec<(NameMatch, String, String)> = Vec::new();
    for member in members {
        let Some(file) = parse_elf(member) else { continue };
        let functions = file.symbols().filter(|symbol| symbol.is_definition());
        let functions: Vec<_> = functions.filter(|symbol| symbol_type(symbol) == Some(STT_FUNC)).collect();
        for symbol in &functions {
            let Ok(own) = symbol.name() else { continue };
            let Some(fits) = match_name(own, name) else { continue };
            let linked =
                if symbol.is_global() { Some(symbol) } else { functions.iter().find(|other| other.is_global()) };
            let Some(linked) = linked.and_then(|linked| linked.name().ok()) else { continue };
            found.push((fits, own.to_string(), linked.to_string()));
        }
    }
    let best = found.iter().map(|(fits, ..)| *fits).min();
    found.retain(|(fits, ..)| Some(*fits) == best);
    found.dedup_by(|one, other| one.1 == other.1 && one.2 == other.2);
    match found.as_slice() {
        // The linker says that there is none.
        [] => Ok(name.to_string()),
        [(_, _, linked), rest @ ..] if rest.is_empty() || best == Some(NameMatch::Linker) => Ok(linked.clone()),
        several => Err(ambiguous_name(name, several.iter().map(|(_, own, _)| own.as_str()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::{debug_info, function_symbol};
    use cyclescope_fuzz::{InputShape, fuzz_reader};
    use std::process::Command;

    #[test]
    fn any_machine_code_file_is_read_or_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let source = folder.path().join("f.c");
        let text = "struct s { struct s *next; float x[2]; enum { A } e; };\n\
                    static struct s f(struct s *p, int (*q)(long), const char *t, ...) { return p[q(*t)]; }\n\
                    int main(int n, char **v) { f((void *)v, 0, *v, n); return 0; }\n";
        std::fs::write(&source, text).expect("a file");
        let made = |words: &[&str], name: &str| {
            let output = folder.path().join(name);
            let status = Command::new("cc").args(words).arg("-o").arg(&output).arg(&source).status();
            status.is_ok_and(|status| status.success()).then(|| std::fs::read(output).expect("a file"))
        };
        let seeds = [
            made(&["-fPIE", "-pie", "-g"], "pie"),
            made(&["-fPIC", "-shared", "-O0", "-g"], "so"),
            made(&["-fPIC", "-shared", "-g", "-gsplit-dwarf"], "split"),
            made(&["-c"], "o"),
        ];
        let seeds: Vec<Vec<u8>> = seeds.into_iter().flatten().collect();
        if seeds.is_empty() {
            return cyclescope_skipped::report_skipped("no compiler makes a file here");
        }
        let output = folder.path().join("copy");
        fuzz_reader("machine_code", InputShape::Bytes, &seeds, |bytes| {
            for name in ["f", "Foo::f"] {
                let _ = function_symbol::find_function(bytes, name, NameMatch::End);
                let _ = find_archive_symbols(bytes, &[name]);
            }
            // The address of `f` in an intact file.
            for address in (0x1000..0x1200).step_by(16).chain([0]) {
                let _ = debug_info::read_types(bytes, &source, address, "f");
            }
            let _ = allocated_contents(bytes.to_vec());
            if let Ok(parsed) = NativeElf::parse(bytes) {
                let _ = make_loadable(Path::new("f"), &parsed, bytes, output.clone());
            }
        });
    }
}
