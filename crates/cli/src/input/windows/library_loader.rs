//! Finds functions of DLLs and of object files. Workers load them; this process only maps the files of
//! DLLs, and makes the images of objects.

use crate::input::call_addresses::{CallAddresses, CallSymbols};
use crate::input::coff::{CoffObject, ImageRefusal};
use crate::input::elf;
use crate::input::function_symbol::{FunctionSymbol, missing_function};
use crate::input::loaded_code::LoadedCode;
use crate::input::symbol_list::list_symbols;
use crate::output::Failure;
use cyclescope::asm::CodeMode;
use cyclescope::executor::user::{ImagePlace, find_narrow_segment, load_library, place_code};
use object::LittleEndian;
use object::pe::IMAGE_FILE_DLL;
use object::read::pe::PeFile64;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Most images of an object file, each at other addresses.
const IMAGES_MOST: usize = 16;
/// Most bytes of all of them.
const IMAGE_BYTES_MOST: usize = 64 << 20;

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
    recognize_library(file, &elf::read_machine_code(file)?)?;
    Ok(file.to_path_buf())
}

/// Lets workers load a DLL or an object file and finds the functions of a call. All workers have a DLL
/// at one address, and an object file at several.
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
    let object = recognize_library(source, &image)?;
    let place = |symbol: &FunctionSymbol| symbol.address.ok_or_else(|| missing_function(source, &symbol.linker_name));
    let offsets = CallAddresses::find(symbols, place)?;
    if let Some(object) = object {
        return place_object(&object, source, &offsets);
    }
    let path = std::path::absolute(library).unwrap_or_else(|_| library.to_path_buf());
    let start = load_library(&path).map_err(|error| {
        Failure::usage(format!("{} can't be loaded: {error}", source.display()), Some("name a DLL of 64-bit code"))
    })?;
    let bytes =
        PeFile64::parse(&*image).map_or(0, |file| file.nt_headers().optional_header.size_of_image.get(LittleEndian));
    let listed = list_symbols(&image).unwrap_or_default();
    let functions = listed.iter().filter_map(|symbol| Some((symbol.address?, symbol.name)));
    let code = describe_code(source, start..start + u64::from(bytes), functions);
    LOADED.lock().expect("no holder panics").push(code);
    Ok(vec![offsets.move_to(start)])
}

/// Lets workers have code, each piece in a page of its own and at the offset of `address` in its
/// page, near that address. The addresses of the pieces.
pub fn map_code(address: u64, pieces: &[&[u8]], _mode: CodeMode) -> Result<Vec<u64>, Failure> {
    place_code(address, pieces).map_err(|error| Failure::from_system("reserving memory failed", &error))
}

/// Lets workers have images of an object file, at several addresses: the functions at these offsets in
/// each.
fn place_object(object: &CoffObject, source: &Path, offsets: &CallAddresses) -> Result<Vec<CallAddresses>, Failure> {
    let failed = |error| Failure::from_system("reserving memory failed", &error);
    let parts = object.parts();
    let called: Vec<u64> =
        [offsets.function].into_iter().chain(offsets.setup).chain(offsets.callbacks.iter().copied()).collect();
    let functions = object.list_functions();
    let images = (IMAGE_BYTES_MOST / parts.bytes().max(1)).clamp(1, IMAGES_MOST);
    let place_image = |_| {
        let place = ImagePlace::reserve([parts.code, parts.constants, parts.variables]).map_err(failed)?;
        let start = place.start();
        place.place(object.make_image(start, &called).map_err(|refusal| refuse_object(source, refusal))?)?;
        let range = start..start + parts.bytes() as u64;
        let functions = functions.iter().map(|function| (function.offset, function.name));
        LOADED.lock().expect("no holder panics").push(describe_code(source, range, functions));
        Ok(offsets.move_to(start))
    };
    (0..images).map(place_image).collect()
}

/// The code of a library that is in these addresses, with these functions at offsets in it.
fn describe_code<'a>(file: &Path, range: Range<u64>, functions: impl Iterator<Item = (u64, &'a str)>) -> LoadedCode {
    let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned();
    let mut functions: Vec<(u64, String)> =
        functions.map(|(offset, name)| (range.start + offset, name.to_string())).collect();
    functions.sort();
    LoadedCode { name, range, functions }
}

/// The object file of x86-64 code that a file is; `None` if it is a DLL.
fn recognize_library<'a>(file: &Path, image: &'a [u8]) -> Result<Option<CoffObject<'a>>, Failure> {
    let name = file.display();
    if let Ok(parsed) = PeFile64::parse(image) {
        let is_library = parsed.nt_headers().file_header.characteristics.get(LittleEndian).contains(IMAGE_FILE_DLL);
        let remedy = "build its functions as a DLL, and name that";
        let refused = || Failure::usage(format!("{name} is a program, and Windows loads DLLs"), Some(remedy));
        return is_library.then_some(None).ok_or_else(refused);
    }
    match CoffObject::parse(image) {
        Some(object) => object.map(Some).map_err(|why| refuse_object(file, ImageRefusal::Damaged(why))),
        None => {
            let remedy = "name a DLL or an object file of 64-bit code, not of whole program optimisation (/GL, -flto)";
            Err(Failure::usage(format!("{name} has no x86-64 machine code for Windows"), Some(remedy)))
        }
    }
}

/// The failure for an object file whose functions can't run as they are.
fn refuse_object(file: &Path, refusal: ImageRefusal) -> Failure {
    let name = file.display();
    match refusal {
        ImageRefusal::Damaged(why) => {
            Failure::usage(format!("{name} can't be loaded: {why}"), Some("build the file again"))
        }
        ImageRefusal::NeedsLinker(needs) => {
            let library = file.with_extension("dll");
            let library = library.display();
            let remedy = format!(
                "link it: gcc -shared -o {library} {name}, or link /DLL /EXPORT:NAME /OUT:{library} {name}; then \
                 measure --lib {library}"
            );
            Failure::usage(format!("{name} {needs}"), Some(&remedy))
        }
    }
}
