//! The library of a measured function: named by the user, or compiled from C or C++ code.

use crate::args::{CallSerialization, RunArgs};
use crate::input::compiler::{self, Compiler};
use crate::input::elf;
use crate::input::function::LibraryFunction;
use crate::input::region;
use crate::input::return_type::{self, ReturnType};
use crate::output::Failure;
use crate::process::interrupt::ScratchFolder;
use cyclescope::snippet::Snippet;
use std::path::{Path, PathBuf};

/// A library with a function to measure, not yet loaded.
pub struct FunctionLibrary {
    path: PathBuf,
    name: String,
    source: PathBuf,
    /// The function's return type, if requested and known.
    pub returned: Option<ReturnType>,
    /// Folder that holds the compiled library.
    pub folder: Option<ScratchFolder>,
}

/// Default name of a compiled function.
const DEFAULT_NAME: &str = "f";
/// File name of the compiled library.
const COMPILED_FILE: &str = "function.so";
/// File with the macros for C code.
const HEADER_FILE: &str = "cyclescope_body.h";
/// Files that make the compiler report the return type, in C and in C++, and their compiled form.
const RETURN_TYPE_FILES: [&str; 3] = ["returned.c", "returned.cpp", "returned.so"];
const SCRATCH_FILES: [&str; 5] =
    [COMPILED_FILE, HEADER_FILE, RETURN_TYPE_FILES[0], RETURN_TYPE_FILES[1], RETURN_TYPE_FILES[2]];

/// The kind of a function's file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LibraryKind {
    /// C or C++ code.
    Code,
    /// A shared library.
    Library,
    /// Any file of machine code.
    Any,
}

impl FunctionLibrary {
    /// Finds or compiles the requested library.
    pub fn find_or_compile(args: &RunArgs) -> Result<Option<FunctionLibrary>, Failure> {
        let named = [
            (&args.source.c, LibraryKind::Code),
            (&args.source.lib, LibraryKind::Library),
            (&args.source.elf, LibraryKind::Any),
        ];
        let named = named.into_iter().find_map(|(path, kind)| Some((path.as_ref()?, kind)));
        let Some((source, kind)) = named else { return Ok(None) };
        let folder = (kind != LibraryKind::Library).then(|| ScratchFolder::new(&SCRATCH_FILES)).transpose()?;
        let name = args.call.clone().unwrap_or_else(|| DEFAULT_NAME.to_string());
        let path = match &folder {
            None => source.clone(),
            Some(folder) if kind == LibraryKind::Code => compile_library(source, args, folder, COMPILED_FILE, false)?,
            Some(folder) => {
                let functions = [Some(name.as_str()), args.call_with.setup.as_deref()];
                let functions: Vec<&str> = functions.into_iter().flatten().collect();
                elf::make_library(source, &functions, args.cflags.as_deref(), folder.path(COMPILED_FILE))?
            }
        };
        let mut library = FunctionLibrary { path, name, source: source.clone(), returned: None, folder: None };
        library.returned = library.ask_return_type(args, folder.as_ref());
        library.folder = folder;
        Ok(Some(library))
    }

    /// Asks the compiler for the function's return type, if a call waits for it.
    fn ask_return_type(&self, args: &RunArgs, folder: Option<&ScratchFolder>) -> Option<ReturnType> {
        let wanted = args.call_with.serialize == Some(CallSerialization::Result) && args.source.c.is_some();
        let folder = folder.filter(|_| wanted)?;
        let source = std::path::absolute(&self.source).ok()?;
        let plus_plus = is_cpp_source(&source);
        let [c, cpp, compiled] = RETURN_TYPE_FILES;
        let question = folder.path(if plus_plus { cpp } else { c });
        std::fs::write(&question, return_type::write_question(source.to_str()?, &self.name, plus_plus)).ok()?;
        let answer = compile_library(&question, args, folder, compiled, false).ok()?;
        return_type::read_answer(&elf::read_machine_code(&answer).ok()?)
    }

    /// The region of the C file that `CYCLESCOPE_BODY` marks, if any. The file is compiled again as
    /// straight code, in the folder of the measured library.
    pub fn find_region(&self, args: &RunArgs, folder: Option<&ScratchFolder>) -> Result<Option<Snippet>, Failure> {
        let Some(folder) = folder.filter(|_| args.source.c.is_some()) else { return Ok(None) };
        if !region::contains_region(&self.path)? {
            return Ok(None);
        }
        compile_library(&self.source, args, folder, COMPILED_FILE, true)?;
        region::read_region(&self.path, &self.source, &self.name).map(Some)
    }

    /// The bytes that it loads into memory.
    pub fn loaded_bytes(&self) -> Vec<u8> {
        elf::read_loaded_bytes(&self.path)
    }

    /// Loads the library into this process and finds the function and the one that runs before it.
    pub fn load_function(&self, setup: Option<&str>) -> Result<LibraryFunction, Failure> {
        LibraryFunction::load(&self.path, &self.source, &self.name, setup)
    }
}

/// Compiles a file to a library of this name; `straight` is for its region.
fn compile_library(
    source: &Path,
    args: &RunArgs,
    folder: &ScratchFolder,
    file: &str,
    straight: bool,
) -> Result<PathBuf, Failure> {
    let compiler = match &args.cc {
        Some(named) => Compiler::from_option(named)?,
        None if is_cpp_source(source) => Compiler::cxx_compiler(),
        None => Compiler::c_compiler(),
    };
    let library = folder.path(file);
    let header = folder.path(HEADER_FILE);
    std::fs::write(&header, region::REGION_HEADER.concat())
        .map_err(|error| Failure::internal(format!("writing {} failed: {error}", header.display())))?;
    let header = header.to_string_lossy();
    let further = if straight { region::compiler_flags(compiler.is_clang()) } else { Vec::new() };
    let first = [&["-O2", "-fPIC", "-shared", "-include", &header], further.as_slice()].concat();
    let flags = compiler::join_flags(&first, args.cflags.as_deref())?;
    compiler.compile(source, &flags, &library, &[])?;
    Ok(library)
}

fn is_cpp_source(source: &Path) -> bool {
    source.extension().is_some_and(|end| ["cc", "cpp", "cxx", "C"].iter().any(|cpp| end == *cpp))
}
