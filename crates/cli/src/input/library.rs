//! The library of a measured function: named by the user, or compiled from C or C++ code.

use crate::args::{ArgValue, CallArgument, CallTarget, RunArgs};
use crate::input::assembly_source::{is_assembly, write_assembly};
use crate::input::call_addresses::CallSymbols;
use crate::input::compiler::{self, Compiler};
use crate::input::debug_info;
use crate::input::elf;
use crate::input::function::LibraryFunction;
use crate::input::function_symbol::{self, CallbackSymbol, FunctionSymbol, NameMatch};
use crate::input::library_loader;
use crate::input::region;
use crate::input::signature::{FunctionTypes, Signature};
use crate::output::{Failure, print_warning};
use crate::process::interrupt::ScratchFolder;
use cyclescope::asm::CodeMode;
use cyclescope::input::InputKind;
use cyclescope::snippet::Snippet;
use std::path::{Path, PathBuf};

/// A library with a function to measure, not yet loaded.
pub struct FunctionLibrary {
    /// The mode of its code.
    pub mode: CodeMode,
    path: PathBuf,
    source: PathBuf,
    /// The function, and the one that runs before each call.
    functions: [Option<TypedFunction>; 2],
    /// The functions that arguments name.
    callbacks: Vec<CallbackSymbol>,
    /// Whether the whole text of --call is the function's name, parentheses included.
    is_whole_name: bool,
    /// Folder that holds the compiled library.
    pub folder: Option<ScratchFolder>,
}

/// A function and its types, if known.
struct TypedFunction {
    symbol: FunctionSymbol,
    types: FunctionTypes,
}

/// Default name of a compiled function.
const DEFAULT_NAME: &str = "f";
/// File name of the compiled library.
const COMPILED_FILE: &str = "function.so";
/// File with the macros for C code.
const HEADER_FILE: &str = "cyclescope_body.h";
/// File name of prepared assembly text.
const ASSEMBLY_FILE: &str = "function.s";
const SCRATCH_FILES: [&str; 3] = [COMPILED_FILE, HEADER_FILE, ASSEMBLY_FILE];

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
    /// Finds or compiles the requested library. These values of its arguments name functions, or
    /// may.
    pub fn find_or_compile(args: &RunArgs, callbacks: &[ArgValue]) -> Result<Option<FunctionLibrary>, Failure> {
        let named = [
            (&args.source.c, LibraryKind::Code),
            (&args.source.lib, LibraryKind::Library),
            (&args.source.elf, LibraryKind::Any),
        ];
        let named = named.into_iter().find_map(|(path, kind)| Some((path.as_ref()?, kind)));
        let Some((source, kind)) = named else { return Ok(None) };
        let folder = (kind != LibraryKind::Library).then(|| ScratchFolder::new(&SCRATCH_FILES)).transpose()?;
        let call = args.call.clone().unwrap_or_else(|| CallTarget::new(DEFAULT_NAME));
        let setup = args.call_with.setup.as_deref();
        let functions = || {
            let named = [Some(call.name.as_str()), setup].into_iter().flatten();
            named.chain(callbacks.iter().filter_map(explicit_name)).collect::<Vec<&str>>()
        };
        let mode = args.code_mode.mode();
        let path = match &folder {
            None => source.clone(),
            Some(folder) if kind == LibraryKind::Code && is_assembly(source) => {
                assemble_library(source, args, folder, &functions())?
            }
            Some(folder) if kind == LibraryKind::Code => compile_library(source, args, folder, false)?,
            Some(folder) => library_loader::make_library(
                source,
                &functions(),
                args.cflags.as_deref(),
                mode,
                folder.path(COMPILED_FILE),
            )?,
        };
        let mut library = FunctionLibrary::find_functions(path, source, mode, &call, setup, callbacks)?;
        library.folder = folder;
        Ok(Some(library))
    }

    /// Finds the named functions in a library.
    fn find_functions(
        path: PathBuf,
        source: &Path,
        mode: CodeMode,
        call: &CallTarget,
        setup: Option<&str>,
        callbacks: &[ArgValue],
    ) -> Result<FunctionLibrary, Failure> {
        let image = elf::read_machine_code(&path)?;
        elf::require_mode(source, &image, mode)?;
        let whole = match call.arguments {
            Some(_) => function_symbol::find_function(&image, &call.text, NameMatch::Demangled)?,
            None => None,
        };
        let is_whole_name = whole.is_some();
        let find = |name: &str| {
            let found = function_symbol::find_function(&image, name, NameMatch::End)?;
            Ok::<_, Failure>(found.unwrap_or_else(|| FunctionSymbol::from_loader(name)))
        };
        let typed = |symbol: FunctionSymbol| {
            let read = |address| debug_info::read_types(&image, source, address, &symbol.display);
            TypedFunction { types: symbol.address.map_or(FunctionTypes::Unknown, read), symbol }
        };
        let function = whole.map_or_else(|| find(&call.name), Ok)?;
        if mode == CodeMode::Bits32 && !function.is_exported {
            warn_of_static_function(&function.display);
        }
        let functions = [Some(typed(function)), setup.map(find).transpose()?.map(typed)];
        let callbacks = callbacks.iter().filter_map(|value| find_callback(&image, value).transpose());
        let callbacks = callbacks.collect::<Result<_, _>>()?;
        let source = source.to_path_buf();
        Ok(FunctionLibrary { mode, path, source, functions, callbacks, is_whole_name, folder: None })
    }

    fn function(&self) -> &TypedFunction {
        self.functions[0].as_ref().expect("a library has a function to measure")
    }

    /// The function's name in messages.
    pub fn name(&self) -> &str {
        &self.function().symbol.display
    }

    /// What is known about the function's types.
    pub fn types(&self) -> &FunctionTypes {
        &self.function().types
    }

    /// The types of the function that runs before each call, if known.
    pub fn setup_signature(&self) -> Option<&Signature> {
        self.functions[1].as_ref().and_then(|setup| setup.types.signature())
    }

    /// The functions that arguments may name.
    pub fn callbacks(&self) -> &[CallbackSymbol] {
        &self.callbacks
    }

    /// All arguments of a call of the function, if the text of --call has them.
    pub fn read_arguments<'a>(&self, call: Option<&'a CallTarget>) -> Result<Option<&'a [CallArgument]>, Failure> {
        let Some(CallTarget { text, arguments: Some(arguments), .. }) = call.filter(|_| !self.is_whole_name) else {
            return Ok(None);
        };
        match arguments {
            Ok(arguments) => Ok(Some(arguments)),
            Err(error) => {
                let remedy = "write it as in --call 'crc32(0, buffer, size)'";
                Err(Failure::usage(format!("in `{text}`: {error}"), Some(remedy)))
            }
        }
    }

    /// The region of the C file that `CYCLESCOPE_BODY` marks, if any. The file is compiled again as
    /// straight code, in the folder of the measured library.
    pub fn find_region(&self, args: &RunArgs, folder: Option<&ScratchFolder>) -> Result<Option<Snippet>, Failure> {
        let Some(folder) = folder.filter(|_| args.source.c.is_some()) else { return Ok(None) };
        if !region::contains_region(&self.path)? {
            return Ok(None);
        }
        compile_library(&self.source, args, folder, true)?;
        region::read_region(&self.path, &self.source, &self.function().symbol.linker_name).map(Some)
    }

    /// The bytes that it loads into memory.
    pub fn loaded_bytes(&self) -> Vec<u8> {
        elf::read_loaded_bytes(&self.path)
    }

    /// Loads the library into this process and finds the functions of the call.
    pub fn load_function(&self) -> Result<LibraryFunction, Failure> {
        let symbols = CallSymbols {
            function: &self.function().symbol,
            setup: self.functions[1].as_ref().map(|setup| &setup.symbol),
            callbacks: &self.callbacks,
        };
        LibraryFunction::load(&self.path, &self.source, &symbols, self.mode)
    }
}

/// Compilers may give a function whose callers they all know its arguments in registers.
fn warn_of_static_function(name: &str) {
    print_warning(&format!(
        "{name} is not exported; if it is static, the compiler may pass its arguments in registers, which a call in \
         32-bit code does not"
    ));
}

/// The name of a function, if a value can be nothing else.
fn explicit_name(value: &ArgValue) -> Option<&str> {
    if let ArgValue::Function(name) = value { Some(name) } else { None }
}

/// Finds the function that an argument names. `None` if the name is another thing's, such as an
/// enumerator's.
fn find_callback(image: &[u8], value: &ArgValue) -> Result<Option<CallbackSymbol>, Failure> {
    let found = match value {
        ArgValue::Function(name) => {
            let own = function_symbol::find_function(image, name, NameMatch::End)?;
            Some(own.unwrap_or_else(|| FunctionSymbol::from_loader(name)))
        }
        // Several functions of this name are no error either.
        ArgValue::Name(name) => function_symbol::find_function(image, name, NameMatch::End).unwrap_or_default(),
        _ => None,
    };
    Ok(found.map(|symbol| CallbackSymbol { value: value.clone(), symbol }))
}

/// Compiles a file to a library of this name; `straight` is for its region.
fn compile_library(source: &Path, args: &RunArgs, folder: &ScratchFolder, straight: bool) -> Result<PathBuf, Failure> {
    let compiler = match &args.cc {
        Some(named) => Compiler::from_option(named)?,
        None if is_cpp_source(source) => Compiler::cxx_compiler(),
        None => Compiler::c_compiler(),
    };
    let library = folder.path(COMPILED_FILE);
    let header = folder.path(HEADER_FILE);
    std::fs::write(&header, region::REGION_HEADER.concat())
        .map_err(|error| Failure::from_system(format!("writing {} failed", header.display()), &error))?;
    let header = header.to_string_lossy();
    let further =
        if straight { region::compiler_flags(compiler.is_clang(), args.code_mode.mode()) } else { Vec::new() };
    let own = ["-O2", "-fPIC", "-shared", "-include", &header];
    let first = [&own[..], compiler::mode_flags(args.code_mode.mode()), further.as_slice()].concat();
    let mut flags = compiler::join_flags(&first, args.cflags.as_deref())?;
    // Debug information has the functions' types, and changes no code.
    flags.push("-g".to_string());
    // It is read from the library. A file of its own would stay in the folder.
    flags.retain(|flag| !flag.starts_with("-gsplit-dwarf"));
    let runtime = compiler.runtime_library(args.code_mode.mode());
    let libraries: Vec<&str> = runtime.iter().map(String::as_str).collect();
    let compiled = compiler.compile(source, InputKind::Source, &flags, &library, &libraries);
    compiled.map_err(|failure| compiler::explain_mode(failure, args.code_mode.mode()))?;
    Ok(library)
}

/// Assembles a file to a library with these functions. References inside of the file bind there, so
/// that code for position-independent executables can be linked too.
fn assemble_library(
    source: &Path,
    args: &RunArgs,
    folder: &ScratchFolder,
    functions: &[&str],
) -> Result<PathBuf, Failure> {
    let compiler = args.cc.as_deref().map_or_else(|| Ok(Compiler::c_compiler()), Compiler::from_option)?;
    let [library, copy] = [COMPILED_FILE, ASSEMBLY_FILE].map(|name| folder.path(name));
    write_assembly(source, functions, &copy)?;
    let first = ["-shared", "-Wl,-Bsymbolic", "-Wl,-z,noexecstack"];
    let flags = compiler::join_flags(&[&first, compiler::mode_flags(args.code_mode.mode())].concat(), None)?;
    let mut words = compiler::join_flags(&[], args.cflags.as_deref())?;
    words.extend(compiler.runtime_library(args.code_mode.mode()));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let assembled = compiler.compile(&copy, InputKind::Source, &flags, &library, &words);
    assembled.map(|()| library).map_err(|failure| {
        let failure = failure.replace_in_text(&copy.to_string_lossy(), &source.to_string_lossy());
        let remedy = match failure.text() {
            text if text.contains("recompile with -fP") => POSITION_REMEDY,
            text if text.contains(" failed:") => ASSEMBLER_REMEDY,
            _ => return failure,
        };
        failure.with_remedy(remedy)
    })
}

/// What helps if the assembler does not know the text.
const ASSEMBLER_REMEDY: &str = "the text must be for GNU as; assemble other text to an object, as with nasm -f elf64, \
    and name that with --elf";
/// What helps if code has absolute addresses.
const POSITION_REMEDY: &str = "compile the source with -fPIE, as in gcc -O2 -S -fPIE, so that its code runs at any \
    address; Compiler Explorer takes the flag too";

fn is_cpp_source(source: &Path) -> bool {
    source.extension().is_some_and(|end| ["cc", "cpp", "cxx", "C"].iter().any(|cpp| end == *cpp))
}
