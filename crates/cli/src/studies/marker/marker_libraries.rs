//! Compiles markers at run time: in the user's own loop, and those of packages that the machine may
//! have.

use crate::input::compiler::{self, Compiler};
use crate::input::library_loader::{self, StdoutRedirect};
use crate::input::source;
use crate::output::Failure;
use crate::process::interrupt::ScratchFolder;
use cyclescope::asm::CodeMode;
use cyclescope::error::{Error, Unavailable};
use cyclescope::input::InputKind;
use cyclescope::machine::Machine;
use cyclescope::record::exit;
use cyclescope::study::marker::compiled_design::{CompiledDesign, ProbeSet};
use cyclescope::study::marker::custom_loop::{COMPILER_FLAGS, CustomLoop, UnfitLoop};
use cyclescope::study::marker::marker_findings::SkippedRecord;
use cyclescope::study::marker::source::context::LoopContext;
use cyclescope::study::marker::source::design::SiteDesign;
use cyclescope::study::marker::source::design::definition::DesignPackage;
use cyclescope::study::marker::source::{c, library};
use cyclescope::study::marker::static_program::NarrowAddresses;
use std::path::{Path, PathBuf};

/// The source of the user's loop.
#[derive(Debug, Clone, Copy)]
pub enum UserLoop<'a> {
    /// A C file that defines `around`.
    File(&'a Path),
    /// Intel-syntax assembly.
    Snippet(&'a str),
}

/// What to compile.
pub struct CompileRequest<'a> {
    /// Designs, in the order of the result.
    pub designs: &'a [&'static SiteDesign],
    /// Contexts for the designs of packages, unless the user supplies a loop.
    pub contexts: &'a [LoopContext<'a>],
    /// The user's loop, in which all designs are compiled.
    pub around: Option<UserLoop<'a>>,
    /// More compiler flags.
    pub cflags: Option<&'a str>,
}

/// Compiled libraries that aren't loaded yet.
pub struct MarkerLibraries {
    compiled: Vec<MarkerLibrary>,
    /// A program of 32-bit code, instead of libraries.
    narrow: Option<NarrowProgram>,
    absent: Vec<SkippedRecord>,
    /// Folder of the compiled files; `None` if nothing was compiled.
    pub folder: Option<ScratchFolder>,
}

/// The markers in libraries that this process has loaded.
pub struct LoadedMarkers {
    /// Designs that were compiled.
    pub compiled: Vec<CompiledDesign>,
    /// The probes that they call.
    pub probes: ProbeSet,
    /// Designs that are missing.
    pub absent: Vec<SkippedRecord>,
}

/// The required form of the user's file.
const LOOP_FORM: &str = "define the loop's body as `static inline void around(void *memory)`; the marker is placed at \
                         its end, or at one MARKER() in it";
/// Header that precedes the user's file in the syntax check.
const SYNTAX_CHECK_HEADER: &str = "alone.h";

struct MarkerLibrary {
    design: &'static SiteDesign,
    path: PathBuf,
}

/// A program of 32-bit code with some designs.
struct NarrowProgram {
    designs: Vec<&'static SiteDesign>,
    path: PathBuf,
    addresses: NarrowAddresses,
}

/// Names of a program's own files.
const PROBES_FILE: &str = "probes.c";
const PROGRAM_FILE: &str = "markers";

impl MarkerLibraries {
    /// Libraries of a request that needs none.
    pub fn new_empty() -> MarkerLibraries {
        MarkerLibraries { compiled: Vec::new(), narrow: None, absent: Vec::new(), folder: None }
    }

    /// Compiles what the request needs: nothing if the user has no loop and no design is a
    /// package's.
    pub fn compile_requested(request: &CompileRequest, machine: &Machine) -> Result<MarkerLibraries, Failure> {
        let mut libraries = MarkerLibraries::new_empty();
        let body = request.around.map(|around| parse_user_loop(around, machine)).transpose()?;
        let wanted: Vec<&'static SiteDesign> =
            request.designs.iter().copied().filter(|it| body.is_some() || it.package.is_some()).collect();
        if wanted.is_empty() {
            return Ok(libraries);
        }
        let mut flags = compiler::join_flags(COMPILER_FLAGS, request.cflags)?;
        let folder = ScratchFolder::new(&file_names(&wanted).iter().map(String::as_str).collect::<Vec<_>>())?;
        // Headers of packages include files from this folder.
        flags.push(format!("-I{}", folder.path("").display()));
        let forge = MarkerCompiler { folder: &folder, flags, compiler: Compiler::c_compiler() };
        if let Some(UserLoop::File(file)) = request.around {
            forge.check_syntax(file)?;
        }
        for design in wanted {
            let text = match &body {
                Some(body) => body.write_library(design).map_err(str::to_string),
                None => Ok(library::write_library(design, request.contexts)),
            };
            let absence = |why| SkippedRecord::from_design(design, why, None);
            let made = text.map_err(absence).and_then(|text| forge.check_package(design).map(|()| text));
            match made {
                Ok(text) => {
                    let path = forge
                        .compile_library(design, &text)
                        .map_err(|failure| explain_loop_failure(failure, request))?;
                    libraries.compiled.push(MarkerLibrary { design, path });
                }
                Err(absent) => libraries.absent.push(absent),
            }
        }
        libraries.folder = Some(folder);
        Ok(libraries)
    }

    /// Compiles the requested designs as one program of 32-bit code.
    pub fn compile_narrow(request: &CompileRequest) -> Result<MarkerLibraries, Failure> {
        let mut libraries = MarkerLibraries::new_empty();
        let (designs, absent): (Vec<_>, Vec<_>) =
            request.designs.iter().copied().partition(|design| design.narrow_obstacle().is_none());
        let absence = |design: &&'static SiteDesign| {
            let why = design.narrow_obstacle().unwrap_or_default();
            SkippedRecord::from_design(design, why.to_string(), Some("leave out --bits 32".to_string()))
        };
        libraries.absent = absent.iter().map(absence).collect();
        let files = designs.iter().flat_map(|design| ["c", "o"].map(|end| format!("{}.{end}", design.identifier())));
        let files: Vec<String> = files.chain([PROBES_FILE, PROGRAM_FILE].map(str::to_string)).collect();
        let folder = ScratchFolder::new(&files.iter().map(String::as_str).collect::<Vec<_>>())?;
        let compiler = Compiler::c_compiler();
        // Clang has no such option, and moves no unlikely path to another section.
        let only_gcc = |flag: &str| flag == "-fno-reorder-blocks-and-partition" && compiler.is_clang();
        let own: Vec<&str> = library::NARROW_FLAGS.iter().copied().filter(|flag| !only_gcc(flag)).collect();
        let flags = compiler::join_flags(&own, request.cflags)?;
        let forge = MarkerCompiler { folder: &folder, flags, compiler };
        let (addresses, path) = forge.compile_program(&designs, request.contexts)?;
        libraries.narrow = Some(NarrowProgram { designs, path, addresses });
        libraries.folder = Some(folder);
        Ok(libraries)
    }

    /// Loads the libraries into this process, which runs their constructors.
    pub fn load_markers(&self) -> Result<LoadedMarkers, Failure> {
        let _aside = StdoutRedirect::new();
        let probes = ProbeSet::read_built();
        let mut loaded = LoadedMarkers { compiled: Vec::new(), probes, absent: self.absent.clone() };
        if let Some(program) = &self.narrow {
            program.load(&mut loaded)?;
        }
        for MarkerLibrary { design, path } in &self.compiled {
            match library_loader::find_symbol(path, Path::new(design.name), &c::table_symbol(design), None) {
                Ok(table) => {
                    // SAFETY: the table comes from a file with the text of `source`, in a library that
                    // stays loaded.
                    loaded.compiled.push(unsafe { CompiledDesign::read_table(table, CodeMode::default()) });
                }
                Err(failure) => match &design.package {
                    Some(package) => loaded.absent.push(missing_package(design, package, &failure)),
                    None => return Err(failure),
                },
            }
        }
        Ok(loaded)
    }
}

impl NarrowProgram {
    /// Loads the program into this process.
    fn load(&self, loaded: &mut LoadedMarkers) -> Result<(), Failure> {
        let file = cyclescope::input::read_input(&self.path, InputKind::Code)
            .map_err(|error| Failure::usage(error.to_string(), None))?;
        let program = self.addresses.load_program(&file).map_err(Error::from)?;
        let find = |name: &str| program.find_symbol(name).map_err(Error::from);
        let (probes, hits) = (find("cyclescope_probes")?, find("marker_hits")?);
        // SAFETY: the tables come from files with the text of `source`, in a program that stays loaded.
        unsafe {
            loaded.probes = ProbeSet::read_table(probes, hits, CodeMode::Bits32);
            for design in &self.designs {
                let table = find(&c::table_symbol(design))?;
                loaded.compiled.push(CompiledDesign::read_table(table, CodeMode::Bits32));
            }
        }
        Ok(())
    }
}

/// Names of all generated files.
fn file_names(designs: &[&SiteDesign]) -> Vec<String> {
    let each = |design: &&SiteDesign| {
        let own = ["c", "so"].map(|end| format!("{}.{end}", design.identifier()));
        let packaged = design.package.iter().flat_map(|package| package.files);
        own.into_iter().chain(packaged.map(|(name, _)| name.to_string())).collect::<Vec<_>>()
    };
    designs.iter().flat_map(each).chain([SYNTAX_CHECK_HEADER.to_string()]).collect()
}

fn parse_user_loop(around: UserLoop, machine: &Machine) -> Result<CustomLoop, Failure> {
    match around {
        UserLoop::File(file) => {
            compiler::require_readable(file, InputKind::Source)?;
            let path = std::path::absolute(file)
                .map_err(|error| Failure::usage(format!("can't open {}: {error}", file.display()), None))?;
            CustomLoop::from_file(&path).map_err(|_| {
                let text = format!("a name like {:?} can't be included", file.display());
                Failure::usage(text, Some("rename the file, without quotes and line ends"))
            })
        }
        UserLoop::Snippet(text) => {
            let listing = source::parse_checked(text, CodeMode::Bits64, machine)?;
            CustomLoop::from_snippet(&listing).map_err(|unfit| match unfit {
                UnfitLoop::Empty | UnfitLoop::Path => Failure::usage(
                    "the snippet has no instructions",
                    Some("leave out --around-snippet to measure an empty loop"),
                ),
            })
        }
    }
}

/// Compiles markers.
struct MarkerCompiler<'a> {
    folder: &'a ScratchFolder,
    flags: Vec<String>,
    compiler: Compiler,
}

impl MarkerCompiler<'_> {
    /// Checks that the user's file is valid C.
    fn check_syntax(&self, file: &Path) -> Result<(), Failure> {
        let before = self.folder.path(SYNTAX_CHECK_HEADER);
        std::fs::write(&before, library::write_user_prologue()).map_err(|error| write_failure(&before, error))?;
        let name = before.to_string_lossy().into_owned();
        let words = ["-fsyntax-only", "-x", "c", "-include", &name];
        let words = words.iter().map(|word| word.to_string());
        let flags: Vec<String> = self.flags.iter().cloned().chain(words).collect();
        let checked = self.compiler.compile(file, InputKind::Source, &flags, &self.folder.path("none"), &[]);
        checked.map_err(|failure| {
            let placed = failure.text().contains("marker_in_around");
            let failure = failure.replace_in_text(&name, SYNTAX_CHECK_HEADER);
            if placed { failure.with_remedy(LOOP_FORM) } else { failure }
        })
    }

    fn compile_library(&self, design: &SiteDesign, text: &str) -> Result<PathBuf, Failure> {
        let [source, library] = ["c", "so"].map(|end| self.folder.path(&format!("{}.{end}", design.identifier())));
        let packaged = design.package.iter().flat_map(|package| package.files);
        for (name, text) in packaged {
            let file = self.folder.path(name);
            std::fs::write(&file, text).map_err(|error| write_failure(&file, error))?;
        }
        std::fs::write(&source, text).map_err(|error| write_failure(&source, error))?;
        let libraries = design.package.map_or(&[][..], |package| package.libraries);
        let compiled = self.compiler.compile(&source, InputKind::Source, &self.flags, &library, libraries);
        compiled
            .map_err(|failure| failure.replace_in_text(&source.to_string_lossy(), &format!("{}.c", design.name)))?;
        Ok(library)
    }

    /// Compiles and links a program of 32-bit code for reserved addresses.
    fn compile_program(
        &self,
        designs: &[&SiteDesign],
        contexts: &[LoopContext],
    ) -> Result<(NarrowAddresses, PathBuf), Failure> {
        let addresses = NarrowAddresses::reserve().map_err(Error::from)?;
        let [probes, program] = [PROBES_FILE, PROGRAM_FILE].map(|file| self.folder.path(file));
        std::fs::write(&probes, library::write_probes()).map_err(|error| write_failure(&probes, error))?;
        let address = format!("-Wl,-Ttext-segment={:#x}", addresses.start());
        let link = library::NARROW_LINK_FLAGS.iter().map(|flag| flag.to_string()).chain([address]);
        let link: Vec<String> = self.flags.iter().cloned().chain(link).collect();
        let build = |objects: &[&str]| self.compiler.compile(&probes, InputKind::Source, &link, &program, objects);
        build(&[]).map_err(explain_missing_mode)?;
        let mut objects = Vec::new();
        let flags: Vec<String> = self.flags.iter().cloned().chain(["-c".to_string()]).collect();
        for design in designs {
            let [source, object] = ["c", "o"].map(|end| self.folder.path(&format!("{}.{end}", design.identifier())));
            let text = library::write_program_part(design, contexts);
            std::fs::write(&source, text).map_err(|error| write_failure(&source, error))?;
            let compiled = self.compiler.compile(&source, InputKind::Source, &flags, &object, &[]);
            compiled
                .map_err(|failure| failure.replace_in_text(&source.to_string_lossy(), &format!("{}.c", design.name)))?;
            objects.push(object.to_string_lossy().into_owned());
        }
        build(&objects.iter().map(String::as_str).collect::<Vec<_>>())?;
        Ok((addresses, program))
    }

    /// Checks that a design's package is installed, by building an empty library with it.
    fn check_package(&self, design: &'static SiteDesign) -> Result<(), SkippedRecord> {
        let Some(package) = &design.package else { return Ok(()) };
        let made = self.compile_library(design, &library::write_library(design, &[]));
        made.map(drop).map_err(|failure| missing_package(design, package, &failure))
    }
}

/// A compiler that builds no 32-bit code.
fn explain_missing_mode(failure: Failure) -> Failure {
    if matches!(&failure, Failure::Error(record) if record.exit == exit::UNAVAILABLE) {
        return failure;
    }
    let text = failure.text();
    let said = text.lines().find_map(|line| line.split_once("error: ").map(|(_, said)| said)).unwrap_or(text);
    Failure::from(Unavailable {
        what: "a marker in 32-bit code".to_string(),
        why: format!("the C compiler builds no 32-bit code: {said}"),
        remedy: "install its support of 32-bit code (Debian: gcc-multilib), or name another compiler in $CC"
            .to_string(),
    })
}

fn write_failure(file: &Path, error: std::io::Error) -> Failure {
    Failure::from_system(format!("writing {} failed", file.display()), &error)
}

/// The record of a design whose package is missing, with the most telling line of the failure and
/// without names of temporary files.
fn missing_package(design: &'static SiteDesign, package: &DesignPackage, failure: &Failure) -> SkippedRecord {
    let text = failure.text();
    let said = |line: &'_ str| {
        let at = ["error: ", "cannot find "].iter().find_map(|words| line.find(words));
        at.map(|at| line[at..].trim_start_matches("error: ").to_string())
    };
    let said = text.lines().find_map(said).unwrap_or_else(|| text.to_string());
    let remedy = match failure {
        // There is no compiler.
        Failure::Error(record) if record.exit == exit::UNAVAILABLE => record.remedy.clone(),
        _ => Some(format!("install it (Debian: {})", package.debian)),
    };
    let reason = format!("can't compile a library with <{}>: {said}", package.header);
    SkippedRecord::from_design(design, reason, remedy)
}

/// Explains a failure of the user's loop in terms of the user's file.
fn explain_loop_failure(failure: Failure, request: &CompileRequest) -> Failure {
    let Some(UserLoop::File(file)) = request.around else { return failure };
    let text = failure.text();
    let undefined = text.contains("implicit declaration of function") || text.contains("undeclared function");
    if undefined && text.contains("marker_around") {
        return Failure::usage(format!("{} does not define the function `around`", file.display()), Some(LOOP_FORM));
    }
    if text.contains("MARKER() may only appear once") {
        return Failure::usage(format!("{} has more than one MARKER()", file.display()), Some(LOOP_FORM));
    }
    let placed = text.contains("marker_around");
    let failure = match std::path::absolute(file) {
        Ok(path) => failure.replace_in_text(&path.to_string_lossy(), &file.to_string_lossy()),
        Err(_) => failure,
    };
    if placed { failure.with_remedy(LOOP_FORM) } else { failure }
}
