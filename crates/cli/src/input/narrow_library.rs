//! Libraries of 32-bit code in this process, which the system's loader can't load: below 4 GiB, where
//! 32-bit code reaches them.
//!
//! Segments are copied, relocations applied, and constructors run, as the system's loader does. There
//! are no other 32-bit libraries in this process, and no C library: the first use of a symbol that
//! the file does not define is a fault that names it. A file with thread-local variables is refused,
//! because segment GS of this process leads to none.

use crate::input::loaded_code::LoadedCode;
use crate::input::narrow_image::{MissingSymbols, NarrowImage};
use crate::output::Failure;
use cyclescope::executor::user::NarrowMemory;
use std::path::Path;
use std::sync::Mutex;

/// A library in memory.
struct LoadedLibrary {
    /// Keeps it where it is.
    _memory: NarrowMemory,
    code: LoadedCode,
    missing: MissingSymbols,
}

/// All libraries of 32-bit code that this process has loaded. They stay loaded.
static LOADED: Mutex<Vec<LoadedLibrary>> = Mutex::new(Vec::new());

/// Loads a library from its file's bytes and returns the address that its own addresses are relative
/// to. `source` is the file to name in messages; copies with other numbers get other places.
pub fn load_library(image: &[u8], source: &Path, number: u64) -> Result<u64, Failure> {
    let mut image = NarrowImage::copy(image, source, number)?;
    image.apply_relocations()?;
    image.protect_segments()?;
    image.run_constructors()?;
    let range = image.range();
    let name = source.file_name().unwrap_or(source.as_os_str()).to_string_lossy().into_owned();
    let functions = image.list_functions();
    let start = range.start;
    let code = LoadedCode { name, range, functions };
    let loaded = LoadedLibrary { _memory: image.memory, code, missing: image.missing };
    LOADED.lock().expect("no holder panics").push(loaded);
    Ok(start)
}

/// The place of an address in a loaded library, such as `f+0x12 of code.o`.
pub fn describe_place(address: u64) -> Option<String> {
    let loaded = LOADED.lock().expect("no holder panics");
    loaded.iter().find_map(|library| library.code.describe_place(address))
}

/// The symbol that a loaded library lacks, if the address is that of one, and the library's name.
pub fn find_missing_symbol(address: u64) -> Option<(String, String)> {
    let loaded = LOADED.lock().expect("no holder panics");
    loaded.iter().find_map(|library| Some((library.missing.find_name(address)?.to_string(), library.code.name.clone())))
}
