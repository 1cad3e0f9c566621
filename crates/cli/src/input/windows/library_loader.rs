//! Finds functions of DLLs. Workers load them; this process only maps their files.

use crate::input::call_addresses::{CallAddresses, CallSymbols};
use crate::input::elf;
use crate::input::function_symbol::{FunctionSymbol, missing_function};
use crate::input::loaded_code::LoadedCode;
use crate::input::symbol_list::list_symbols;
use crate::output::Failure;
use cyclescope::asm::CodeMode;
use cyclescope::executor::user::{find_narrow_segment, load_library, place_code};
use object::pe::{IMAGE_FILE_DLL, ImageFileHeader};
use object::read::coff::CoffFile;
use object::read::pe::PeFile64;
use object::{Architecture, LittleEndian, Object};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// The code of all libraries that workers load.
static LOADED: Mutex<Vec<LoadedCode>> = Mutex::new(Vec::new());

/// The place of an address in a library, such as `f+0x12 of f.dll`.
pub fn describe_place(address: u64) -> Option<String> {
    LOADED.lock().expect("no holder panics").iter().find_map(|code| code.describe_place(address))
}

/// The library of a file of machine code: the file itself.
pub fn make_library(
    file: &Path,
    _functions: &[&str],
    _words: Option<&str>,
    _mode: CodeMode,
    _output: PathBuf,
) -> Result<PathBuf, Failure> {
    require_library(file, &elf::read_machine_code(file)?)?;
    Ok(file.to_path_buf())
}

/// Lets workers load a DLL and finds the functions of a call. All workers have it at one address.
pub fn find_addresses(
    library: &Path,
    source: &Path,
    symbols: &CallSymbols,
    mode: CodeMode,
) -> Result<Vec<CallAddresses>, Failure> {
    if mode == CodeMode::Bits32 {
        find_narrow_segment()?;
    }
    let image = elf::read_machine_code(library)?;
    require_library(source, &image)?;
    let place = |symbol: &FunctionSymbol| symbol.address.ok_or_else(|| missing_function(source, &symbol.linker_name));
    CallAddresses::find(symbols, place)?;
    let path = std::path::absolute(library).unwrap_or_else(|_| library.to_path_buf());
    let start = load_library(&path).map_err(|error| {
        Failure::usage(format!("{} can't be loaded: {error}", source.display()), Some("name a DLL of 64-bit code"))
    })?;
    LOADED.lock().expect("no holder panics").push(describe_code(source, &image, start));
    Ok(vec![CallAddresses::find(symbols, |symbol| place(symbol).map(|address| start + address))?])
}

/// Lets workers have code, each piece in a page of its own and at the offset of `address` in its
/// page, near that address. The addresses of the pieces.
pub fn map_code(address: u64, pieces: &[&[u8]], _mode: CodeMode) -> Result<Vec<u64>, Failure> {
    place_code(address, pieces).map_err(|error| Failure::from_system("reserving memory failed", &error))
}

/// The code of a DLL that is loaded at an address.
fn describe_code(file: &Path, image: &[u8], start: u64) -> LoadedCode {
    let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned();
    let bytes =
        PeFile64::parse(image).map_or(0, |file| file.nt_headers().optional_header.size_of_image.get(LittleEndian));
    let listed = list_symbols(image).unwrap_or_default().into_iter();
    let mut functions: Vec<(u64, String)> =
        listed.filter_map(|symbol| Some((start + symbol.address?, symbol.name.to_string()))).collect();
    functions.sort();
    LoadedCode { name, range: start..start + u64::from(bytes), functions }
}

/// Fails for a file that Windows does not load as a library of 64-bit code.
fn require_library(file: &Path, image: &[u8]) -> Result<(), Failure> {
    if let Ok(parsed) = PeFile64::parse(image) {
        let is_library = parsed.nt_headers().file_header.characteristics.get(LittleEndian).contains(IMAGE_FILE_DLL);
        return if is_library { Ok(()) } else { Err(refuse_program(file)) };
    }
    let name = file.display();
    let object = CoffFile::<_, ImageFileHeader>::parse(image);
    if object.is_ok_and(|object| object.architecture() == Architecture::X86_64) {
        let library = file.with_extension("dll");
        let library = library.display();
        let remedy = format!(
            "link it: gcc -shared -o {library} {name}, or link /DLL /NOENTRY /EXPORT:NAME /OUT:{library} {name}; then \
             measure --lib {library}"
        );
        return Err(Failure::usage(format!("{name} is an object file, and Windows loads DLLs"), Some(&remedy)));
    }
    let remedy = "name a DLL of 64-bit code";
    Err(Failure::usage(format!("{name} is no DLL of x86-64 machine code"), Some(remedy)))
}

fn refuse_program(file: &Path) -> Failure {
    let remedy = "build its functions as a DLL, and name that";
    Failure::usage(format!("{} is a program, and Windows loads DLLs", file.display()), Some(remedy))
}
