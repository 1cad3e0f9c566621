//! Markers that are compiled here and now: in a loop of the user's own, and those of packages that the machine may have.

use crate::input::compiler::{self, Compiler};
use crate::input::function::{self, StdoutAside};
use crate::input::source;
use crate::output::Failure;
use crate::process::interrupt::Scratch;
use cyclescope::machine::Machine;
use cyclescope::record::exit;
use cyclescope::study::marker::around::{FLAGS, Loop, Unfit};
use cyclescope::study::marker::compiled::Compiled;
use cyclescope::study::marker::found::SkippedRecord;
use cyclescope::study::marker::source::context::Context;
use cyclescope::study::marker::source::design::Design;
use cyclescope::study::marker::source::design::definition::Package;
use cyclescope::study::marker::source::{c, library};
use std::path::{Path, PathBuf};

/// Where the user's loop is.
#[derive(Debug, Clone, Copy)]
pub enum Around<'a> {
    /// In a C file that defines `around`.
    File(&'a Path),
    /// In Intel-syntax text.
    Snippet(&'a str),
}

/// What is asked for.
pub struct Request<'a> {
    /// Designs, in the order of the result.
    pub designs: &'a [&'static Design],
    /// The contexts that the designs of packages are compiled in where there is no loop of the user's.
    pub contexts: &'a [Context<'a>],
    /// A loop of the user's, which all designs are compiled in.
    pub around: Option<Around<'a>>,
    /// More words for the compiler.
    pub cflags: Option<&'a str>,
}

/// Libraries that were compiled, not yet loaded.
pub struct Libraries {
    compiled: Vec<Library>,
    absent: Vec<SkippedRecord>,
    /// Where they were compiled; none where nothing was.
    pub folder: Option<Scratch>,
}

/// What is in libraries that this process has loaded.
pub struct Loaded {
    /// The designs that are there.
    pub compiled: Vec<Compiled>,
    /// Those that are not.
    pub absent: Vec<SkippedRecord>,
}

/// What a file of the user's has to be.
const FORM: &str = "the loop's body is `static inline void around(void *memory)`; the marker is placed at its end, or where \
                    MARKER() is in it";
/// The file that precedes the user's in the check of its syntax.
const ALONE: &str = "alone.h";

struct Library {
    design: &'static Design,
    path: PathBuf,
}

impl Libraries {
    /// None.
    pub fn none() -> Libraries {
        Libraries { compiled: Vec::new(), absent: Vec::new(), folder: None }
    }

    /// Compiles what the request needs compiled: nothing where no loop is asked for and no design is a package's.
    pub fn compile(request: &Request, machine: &Machine) -> Result<Libraries, Failure> {
        let mut libraries = Libraries::none();
        let body = request.around.map(|around| user_loop(around, machine)).transpose()?;
        let wanted: Vec<&'static Design> =
            request.designs.iter().copied().filter(|it| body.is_some() || it.package.is_some()).collect();
        if wanted.is_empty() {
            return Ok(libraries);
        }
        let mut flags = compiler::flags(FLAGS, request.cflags)?;
        let folder = Scratch::new(&files(&wanted).iter().map(String::as_str).collect::<Vec<_>>())?;
        // Headers of packages include what is in there.
        flags.push(format!("-I{}", folder.path("").display()));
        let forge = Forge { folder: &folder, flags, compiler: Compiler::c() };
        if let Some(Around::File(file)) = request.around {
            forge.check(file)?;
        }
        for design in wanted {
            let text = match &body {
                Some(body) => body.unit(design).map_err(str::to_string),
                None => Ok(library::unit(design, request.contexts)),
            };
            let absence = |why| SkippedRecord::of_design(design, why, None);
            let made = text.map_err(absence).and_then(|text| forge.package(design).map(|()| text));
            match made {
                Ok(text) => {
                    let path = forge.library(design, &text).map_err(|failure| of_user(failure, request))?;
                    libraries.compiled.push(Library { design, path });
                }
                Err(absent) => libraries.absent.push(absent),
            }
        }
        libraries.folder = Some(folder);
        Ok(libraries)
    }

    /// Loads them into this process: their constructors run.
    pub fn load(&self) -> Result<Loaded, Failure> {
        let _aside = StdoutAside::new();
        let mut loaded = Loaded { compiled: Vec::new(), absent: self.absent.clone() };
        for Library { design, path } in &self.compiled {
            match function::find(path, Path::new(design.name), &c::symbol(design), None) {
                // SAFETY: the table of a file whose text is `source`'s, in a library that stays loaded.
                Ok(table) => loaded.compiled.push(unsafe { Compiled::read(table as *const _) }),
                Err(failure) => match &design.package {
                    Some(package) => loaded.absent.push(missing(design, package, &failure)),
                    None => return Err(failure),
                },
            }
        }
        Ok(loaded)
    }
}

/// The names of all files that are made.
fn files(designs: &[&Design]) -> Vec<String> {
    let each = |design: &&Design| {
        let own = ["c", "so"].map(|end| format!("{}.{end}", design.identifier()));
        let packaged = design.package.iter().flat_map(|package| package.files);
        own.into_iter().chain(packaged.map(|(name, _)| name.to_string())).collect::<Vec<_>>()
    };
    designs.iter().flat_map(each).chain([ALONE.to_string()]).collect()
}

fn user_loop(around: Around, machine: &Machine) -> Result<Loop, Failure> {
    match around {
        Around::File(file) => {
            compiler::readable(file)?;
            let path = std::path::absolute(file).map_err(|error| {
                Failure::usage(format!("opening {} failed: {error}", file.display()), None)
            })?;
            Loop::file(&path).map_err(|_| {
                let text = format!("a name like {:?} can't be included", file.display());
                Failure::usage(text, Some("give the file a name without quotes and line ends"))
            })
        }
        Around::Snippet(text) => {
            let listing = source::checked(text, machine)?;
            Loop::snippet(&listing).map_err(|unfit| match unfit {
                Unfit::Empty | Unfit::Path => Failure::usage(
                    "the snippet has no instructions",
                    Some("an empty loop is measured without --around-snippet"),
                ),
            })
        }
    }
}

/// What compiles.
struct Forge<'a> {
    folder: &'a Scratch,
    flags: Vec<String>,
    compiler: Compiler,
}

impl Forge<'_> {
    /// Whether a file of the user's is C.
    fn check(&self, file: &Path) -> Result<(), Failure> {
        let before = self.folder.path(ALONE);
        std::fs::write(&before, library::alone()).map_err(|error| unwritten(&before, error))?;
        let name = before.to_string_lossy().into_owned();
        let words = ["-fsyntax-only", "-x", "c", "-include", &name];
        let words = words.iter().map(|word| word.to_string());
        let flags: Vec<String> = self.flags.iter().cloned().chain(words).collect();
        let checked = self.compiler.compile(file, &flags, &self.folder.path("none"), &[]);
        checked.map_err(|failure| {
            let placed = failure.text().contains("marker_in_around");
            let failure = failure.renamed(&name, ALONE);
            if placed { failure.with_remedy(FORM) } else { failure }
        })
    }

    fn library(&self, design: &Design, text: &str) -> Result<PathBuf, Failure> {
        let [source, library] =
            ["c", "so"].map(|end| self.folder.path(&format!("{}.{end}", design.identifier())));
        let unwritten =
            |file: &Path, error| Failure::internal(format!("writing {} failed: {error}", file.display()));
        let packaged = design.package.iter().flat_map(|package| package.files);
        for (name, text) in packaged {
            let file = self.folder.path(name);
            std::fs::write(&file, text).map_err(|error| unwritten(&file, error))?;
        }
        std::fs::write(&source, text).map_err(|error| unwritten(&source, error))?;
        let libraries = design.package.map_or(&[][..], |package| package.libraries);
        let compiled = self.compiler.compile(&source, &self.flags, &library, libraries);
        compiled
            .map_err(|failure| failure.renamed(&source.to_string_lossy(), &format!("{}.c", design.name)))?;
        Ok(library)
    }

    /// Whether a design's package is here: a library of it without functions can be made.
    fn package(&self, design: &'static Design) -> Result<(), SkippedRecord> {
        let Some(package) = &design.package else { return Ok(()) };
        let made = self.library(design, &library::unit(design, &[]));
        made.map(drop).map_err(|failure| missing(design, package, &failure))
    }
}

fn unwritten(file: &Path, error: std::io::Error) -> Failure {
    Failure::internal(format!("writing {} failed: {error}", file.display()))
}

/// A package's design, and of a failure what says most, without names of temporary files.
fn missing(design: &'static Design, package: &Package, failure: &Failure) -> SkippedRecord {
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
    let reason = format!("no library can be made with <{}>: {said}", package.header);
    SkippedRecord::of_design(design, reason, remedy)
}

/// What went wrong with the user's loop, in the user's words.
fn of_user(failure: Failure, request: &Request) -> Failure {
    let Some(Around::File(file)) = request.around else { return failure };
    let text = failure.text();
    let undefined = text.contains("implicit declaration of function") || text.contains("undeclared function");
    if undefined && text.contains("marker_around") {
        return Failure::usage(format!("{} defines no function `around`", file.display()), Some(FORM));
    }
    if text.contains("MARKER() may stand") {
        return Failure::usage(format!("{} has MARKER() in several places", file.display()), Some(FORM));
    }
    let placed = text.contains("marker_around");
    let failure = match std::path::absolute(file) {
        Ok(path) => failure.renamed(&path.to_string_lossy(), &file.to_string_lossy()),
        Err(_) => failure,
    };
    if placed { failure.with_remedy(FORM) } else { failure }
}
