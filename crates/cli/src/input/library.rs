//! The library of a function that is measured: named, or compiled from C or C++ code.

use crate::args::{RunArgs, Serialize};
use crate::input::compiler::{self, Compiler};
use crate::input::elf;
use crate::input::function::Function;
use crate::input::region;
use crate::input::return_type::{self, ReturnType};
use crate::output::Failure;
use crate::process::interrupt::Scratch;
use cyclescope::snippet::Snippet;
use std::path::{Path, PathBuf};

/// A library with a function to measure, not yet loaded.
pub struct Library {
    path: PathBuf,
    name: String,
    source: PathBuf,
    /// The name of its compiled file.
    file: &'static str,
    /// What the function returns, where it was asked for and could be told.
    pub returned: Option<ReturnType>,
    /// Folder in which the library was compiled.
    pub folder: Option<Scratch>,
}

/// The default name of a compiled function.
const DEFAULT_NAME: &str = "f";
/// The compiled library's file.
const COMPILED: &str = "function.so";
/// The file of the library that it is compared with.
const VERSUS: &str = "versus.so";
/// The file with the macros that C code may use.
const HEADER: &str = "cyclescope_body.h";
/// The files that ask the compiler what a function returns, in C and in C++, and the compiled one.
const ASKING: [&str; 3] = ["returned.c", "returned.cpp", "returned.so"];
const FILES: [&str; 6] = [COMPILED, VERSUS, HEADER, ASKING[0], ASKING[1], ASKING[2]];

/// What a file is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// C or C++ code.
    Code,
    /// A shared library.
    Library,
    /// A file of machine code of any kind.
    Any,
}

impl Library {
    /// The library that the arguments ask for, compiled where it has to be, and the one that it is compared with.
    pub fn find(args: &RunArgs) -> Result<Option<(Library, Option<Library>)>, Failure> {
        let named =
            [(&args.source.c, Kind::Code), (&args.source.lib, Kind::Library), (&args.source.elf, Kind::Any)];
        let named = named.into_iter().find_map(|(path, kind)| Some((path.as_ref()?, kind)));
        let Some((first, kind)) = named else { return Ok(None) };
        let folder = (kind != Kind::Library).then(|| Scratch::new(&FILES)).transpose()?;
        let made = |source: &Path, file: &'static str, name: String| {
            let flags = args.cflags.as_deref();
            let path = match &folder {
                None => source.to_path_buf(),
                Some(folder) if kind == Kind::Code => compile(source, flags, folder, file, false)?,
                Some(folder) => {
                    let functions = [Some(name.as_str()), args.call_with.setup.as_deref()];
                    let functions: Vec<&str> = functions.into_iter().flatten().collect();
                    elf::library(source, &functions, flags, folder.path(file))?
                }
            };
            let mut library =
                Library { path, name, source: source.to_path_buf(), file, returned: None, folder: None };
            library.returned = library.ask(args, folder.as_ref());
            Ok::<_, Failure>(library)
        };
        let name = args.call.clone().unwrap_or_else(|| DEFAULT_NAME.to_string());
        let other = args.versus_call.clone().unwrap_or_else(|| name.clone());
        let mut library = made(first, COMPILED, name)?;
        let versus = match (&args.versus, &args.versus_call) {
            (None, None) => None,
            (source, _) => Some(made(source.as_ref().map_or(first, Path::new), VERSUS, other)?),
        };
        library.folder = folder;
        Ok(Some((library, versus)))
    }

    /// What the function returns, where a call is to wait for it and the compiler of its code can tell.
    fn ask(&self, args: &RunArgs, folder: Option<&Scratch>) -> Option<ReturnType> {
        let wanted = args.call_with.serialize == Some(Serialize::Result) && args.source.c.is_some();
        let folder = folder.filter(|_| wanted)?;
        let source = std::path::absolute(&self.source).ok()?;
        let plus_plus = is_plus_plus(&source);
        let [c, cpp, compiled] = ASKING;
        let question = folder.path(if plus_plus { cpp } else { c });
        std::fs::write(&question, return_type::asking(source.to_str()?, &self.name, plus_plus)).ok()?;
        let answer = compile(&question, args.cflags.as_deref(), folder, compiled, false).ok()?;
        return_type::answer(&elf::read(&answer).ok()?)
    }

    /// The region of the C file that `CYCLESCOPE_BODY` marks, where it marks one: compiled again, straight, in the folder
    /// of the library that is measured.
    pub fn region(&self, args: &RunArgs, folder: Option<&Scratch>) -> Result<Option<Snippet>, Failure> {
        let Some(folder) = folder.filter(|_| args.source.c.is_some()) else { return Ok(None) };
        if !region::is_in(&self.path)? {
            return Ok(None);
        }
        compile(&self.source, args.cflags.as_deref(), folder, self.file, true)?;
        region::find(&self.path, &self.source, &self.name).map(Some)
    }

    /// What it brings into memory.
    pub fn contents(&self) -> Vec<u8> {
        elf::loaded(&self.path)
    }

    /// Loads the library into this process and finds the function, and the one that runs before it.
    pub fn load(&self, setup: Option<&str>) -> Result<Function, Failure> {
        Function::load(&self.path, &self.source, &self.name, setup)
    }
}

/// Compiles a file to a library of this name, `straight` for its region.
fn compile(
    source: &Path,
    flags: Option<&str>,
    folder: &Scratch,
    file: &str,
    straight: bool,
) -> Result<PathBuf, Failure> {
    let compiler = if is_plus_plus(source) { Compiler::cxx() } else { Compiler::c() };
    let library = folder.path(file);
    let header = folder.path(HEADER);
    std::fs::write(&header, region::HEADER.concat())
        .map_err(|error| Failure::internal(format!("writing {} failed: {error}", header.display())))?;
    let header = header.to_string_lossy();
    let further = if straight { region::flags(compiler.is_clang()) } else { Vec::new() };
    let first = [&["-O2", "-fPIC", "-shared", "-include", &header], further.as_slice()].concat();
    let flags = compiler::flags(&first, flags)?;
    compiler.compile(source, &flags, &library, &[])?;
    Ok(library)
}

fn is_plus_plus(source: &Path) -> bool {
    source.extension().is_some_and(|end| ["cc", "cpp", "cxx", "C"].iter().any(|cpp| end == *cpp))
}
