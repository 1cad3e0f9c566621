//! The target that the options of `run` name: snippets, or functions of libraries to load.

use crate::args::{CallArgs, CallSerialization, CommonArgs, RunArgs};
use crate::input::call_parameters::CallParameters;
use crate::input::function::LibraryFunction;
use crate::input::library::FunctionLibrary;
use crate::input::return_type::{self, ReturnType};
use crate::input::source;
use crate::output::Failure;
use crate::process::interrupt::ScratchFolder;
use crate::process::isolation::run_isolated;
use cyclescope::error::Unavailable;
use cyclescope::machine::Machine;
use cyclescope::record::SerializedBy;
use cyclescope::snippet::Snippet;
use cyclescope::study::run::RunSubject;
use std::path::PathBuf;

/// What is measured.
pub enum RunTarget {
    /// The snippet, and the one that it is compared with, if any.
    Snippets(Vec<Snippet>),
    /// Calls of the functions of the library with this number in [`FunctionLibraries`].
    Call(usize, Box<CallParameters>),
}

/// The target, the machine whose features it was checked against, and the text from standard input.
pub struct FoundTarget {
    /// What is measured.
    pub target: RunTarget,
    /// The machine.
    pub machine: Machine,
    /// The snippet's text, if it came from standard input.
    pub stdin: Option<String>,
}

impl RunTarget {
    /// Finds the target that the options name. Each library is compiled once and not yet loaded;
    /// `seed` determines random contents. Errors in a snippet are reported before the machine is
    /// examined.
    pub fn find_target(
        common: &CommonArgs,
        args: &RunArgs,
        seed: u64,
        libraries: &mut FunctionLibraries,
        machine: impl FnOnce() -> Result<Machine, Failure>,
    ) -> Result<FoundTarget, Failure> {
        if let Some(number) = libraries.find_or_add(args)? {
            let named = &libraries.all[number];
            let serialized = return_type::choose_serialization(args.call_with.serialize, named.return_types())?;
            let calling = Box::new(CallParameters::new(&args.call_with, serialized, seed)?);
            let Some(regions) = &named.regions else {
                require_warm(args)?;
                let machine = machine()?;
                require_library(common, &machine)?;
                return Ok(FoundTarget { target: RunTarget::Call(number, calling), machine, stdin: None });
            };
            require_call(&args.call_with)?;
            let machine = machine()?;
            for snippet in regions {
                source::require_loop(args, snippet)?;
                source::check_machine_code(snippet, &machine)?;
            }
            return Ok(FoundTarget { target: RunTarget::Snippets(regions.clone()), machine, stdin: None });
        }
        let text = source::read_snippet_text(args)?;
        let (snippet, machine) = source::build_snippet(args, text.as_ref(), machine)?;
        let mut snippets = vec![snippet];
        if let Some(versus) = &args.versus {
            snippets.push(source::build_versus(args, versus, &machine)?);
        }
        let stdin = text.filter(|text| text.from_stdin).map(|text| text.text);
        Ok(FoundTarget { target: RunTarget::Snippets(snippets), machine, stdin })
    }

    /// The subjects of a run: the measured one, and the one that it is compared with.
    pub fn build_subjects(&self, loaded: &[FunctionPair]) -> Vec<RunSubject> {
        match self {
            RunTarget::Snippets(snippets) => snippets.iter().cloned().map(RunSubject::from).collect(),
            RunTarget::Call(number, with) => {
                let subject = |function: &LibraryFunction| function.build_subject(with, with.serialized);
                loaded[*number].iter().flatten().map(subject).collect()
            }
        }
    }

    /// Calls of the measured function with the other kind of serialization.
    pub fn counterpart_subject(&self, loaded: &[FunctionPair]) -> Option<RunSubject> {
        let RunTarget::Call(number, with) = self else { return None };
        let function = loaded[*number].iter().flatten().next()?;
        Some(function.build_subject(with, SerializedBy::counterpart_of(with.serialized)))
    }
}

/// Fails if a region is measured with options that only calls use.
fn require_call(args: &CallArgs) -> Result<(), Failure> {
    if !args.is_given() {
        return Ok(());
    }
    let remedy = "leave out the options for arguments and memory, or CYCLESCOPE_BODY to measure the function";
    Err(Failure::usage("the marked region is not called, so it has no arguments", Some(remedy)))
}

/// Fails for a function with --cold, which works only on a snippet's own code and memory.
fn require_warm(args: &RunArgs) -> Result<(), Failure> {
    if args.cold.is_empty() {
        return Ok(());
    }
    let remedy = "mark the code with CYCLESCOPE_BODY, or measure its instructions as a snippet";
    Err(Failure::usage("--cold works on snippets, not on functions", Some(remedy)))
}

fn require_library(common: &CommonArgs, machine: &Machine) -> Result<(), Failure> {
    match common.capabilities(machine).library {
        Ok(_) => Ok(()),
        Err(_) => Err(Failure::from(Unavailable {
            what: format!("a function in {}", common.offer().place),
            why: "libraries are loaded into a process, whose memory is not mapped there".to_string(),
            remedy: "measure it in user mode, or its code as a snippet with --hex".to_string(),
        })),
    }
}

/// A function, and the one that it is compared with.
pub type FunctionPair = [Option<LibraryFunction>; 2];

/// The libraries to load, each once.
#[derive(Default)]
pub struct FunctionLibraries {
    all: Vec<NamedLibrary>,
    /// Folders that hold compiled libraries.
    folders: Vec<ScratchFolder>,
}

/// A library, the one that it is compared with, and the options that name them.
struct NamedLibrary {
    by: LibraryOptions,
    library: FunctionLibrary,
    versus: Option<FunctionLibrary>,
    /// The regions that `CYCLESCOPE_BODY` marks in them.
    regions: Option<Vec<Snippet>>,
}

/// The options that name functions.
#[derive(Clone, PartialEq)]
struct LibraryOptions {
    files: [Option<PathBuf>; 3],
    names: [Option<String>; 5],
    serialize: Option<CallSerialization>,
}

impl LibraryOptions {
    fn from_args(args: &RunArgs) -> LibraryOptions {
        let names = [&args.call, &args.versus, &args.versus_call, &args.cflags, &args.call_with.setup];
        LibraryOptions {
            files: [&args.source.c, &args.source.lib, &args.source.elf].map(Clone::clone),
            names: names.map(Clone::clone),
            serialize: args.call_with.serialize,
        }
    }
}

impl FunctionLibraries {
    /// The number of the library that the options name, compiled if necessary; `None` if they name
    /// none.
    fn find_or_add(&mut self, args: &RunArgs) -> Result<Option<usize>, Failure> {
        let by = LibraryOptions::from_args(args);
        // Searches from the end, because consecutive points usually share a library.
        if let Some(known) = self.all.iter().rposition(|known| known.by == by) {
            return Ok(Some(known));
        }
        let Some((mut library, versus)) = FunctionLibrary::find_or_compile(args)? else { return Ok(None) };
        let folder = library.folder.take();
        let regions = find_regions(args, &library, versus.as_ref(), folder.as_ref())?;
        self.folders.extend(folder);
        self.all.push(NamedLibrary { by, library, versus, regions });
        Ok(Some(self.all.len() - 1))
    }

    /// The bytes that this library, and the one that it is compared with, load into memory.
    pub fn loaded_contents(&self, number: usize) -> impl Iterator<Item = Vec<u8>> {
        let NamedLibrary { library, versus, .. } = &self.all[number];
        [Some(library), versus.as_ref()].into_iter().flatten().map(FunctionLibrary::loaded_bytes)
    }

    /// Loads all libraries, if any, in a separate process, runs `work` on their functions there,
    /// and returns the exit code.
    pub fn load_and_run(
        self,
        json: bool,
        work: impl FnOnce(&Vec<FunctionPair>) -> Result<u8, Failure>,
    ) -> Result<u8, Failure> {
        let FunctionLibraries { all, folders } = self;
        if all.iter().all(|named| named.regions.is_some()) {
            return work(&Vec::new());
        }
        let load = || all.iter().map(NamedLibrary::load_functions).collect();
        run_isolated(load, folders, work, |failure| failure.report(json))
    }
}

impl NamedLibrary {
    /// The functions' return types, if known.
    fn return_types(&self) -> [Option<ReturnType>; 2] {
        [self.library.returned, self.versus.as_ref().and_then(|versus| versus.returned)]
    }

    /// Loads the functions, unless a region is measured.
    fn load_functions(&self) -> Result<FunctionPair, Failure> {
        if self.regions.is_some() {
            return Ok([None, None]);
        }
        let [.., setup] = &self.by.names;
        let load = |library: &FunctionLibrary| library.load_function(setup.as_deref());
        Ok([Some(load(&self.library)?), self.versus.as_ref().map(load).transpose()?])
    }
}

/// The marked regions, in both variants or in neither.
fn find_regions(
    args: &RunArgs,
    library: &FunctionLibrary,
    versus: Option<&FunctionLibrary>,
    folder: Option<&ScratchFolder>,
) -> Result<Option<Vec<Snippet>>, Failure> {
    let Some(region) = library.find_region(args, folder)? else { return Ok(None) };
    let other = versus.map(|versus| versus.find_region(args, folder)).transpose()?;
    if other == Some(None) {
        let remedy = "mark the region to compare with CYCLESCOPE_BODY in both, or in neither";
        return Err(Failure::usage("only the first file marks a region", Some(remedy)));
    }
    Ok(Some([Some(region), other.flatten()].into_iter().flatten().collect()))
}
