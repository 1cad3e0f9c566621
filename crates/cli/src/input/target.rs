//! What the options of `run` name: snippets, or functions of libraries that are yet to be loaded.

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
    /// The snippet, and the one that it is compared with.
    Snippets(Vec<Snippet>),
    /// The functions of the library of this number among [`Libraries`], called in this way.
    Call(usize, Box<CallParameters>),
}

/// What is measured, the machine whose features it was checked against, and the text that came from standard input.
pub struct FoundTarget {
    /// What is measured.
    pub target: RunTarget,
    /// The machine.
    pub machine: Machine,
    /// The text of the snippet, where standard input had it.
    pub stdin: Option<String>,
}

impl RunTarget {
    /// What the options name. Libraries are compiled, each once, and not yet loaded; `seed` is that of random contents. What
    /// is wrong with a snippet is found before anything about the machine is asked.
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
                source::require_loop_register(args, snippet)?;
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

    /// The subjects of a run: the one that is measured, and the one that it is compared with.
    pub fn build_subjects(&self, loaded: &[FunctionPair]) -> Vec<RunSubject> {
        match self {
            RunTarget::Snippets(snippets) => snippets.iter().cloned().map(RunSubject::from).collect(),
            RunTarget::Call(number, with) => {
                let subject = |function: &LibraryFunction| function.build_subject(with, with.serialized);
                loaded[*number].iter().flatten().map(subject).collect()
            }
        }
    }

    /// The calls of the function that is measured that wait for something else.
    pub fn counterpart_subject(&self, loaded: &[FunctionPair]) -> Option<RunSubject> {
        let RunTarget::Call(number, with) = self else { return None };
        let function = loaded[*number].iter().flatten().next()?;
        Some(function.build_subject(with, SerializedBy::counterpart_of(with.serialized)))
    }
}

/// A region is no function.
fn require_call(args: &CallArgs) -> Result<(), Failure> {
    if !args.is_given() {
        return Ok(());
    }
    let remedy = "leave CYCLESCOPE_BODY out to measure the function, or the options on its arguments and memory";
    Err(Failure::usage("a region is measured, which is not called", Some(remedy)))
}

/// What is made cold is a snippet's own code and memory.
fn require_warm(args: &RunArgs) -> Result<(), Failure> {
    if args.cold.is_empty() {
        return Ok(());
    }
    let remedy = "mark the code with CYCLESCOPE_BODY, or measure its instructions as a snippet";
    Err(Failure::usage("--cold makes a snippet cold, and not a function", Some(remedy)))
}

fn require_library(common: &CommonArgs, machine: &Machine) -> Result<(), Failure> {
    match common.capabilities(machine).library {
        Ok(_) => Ok(()),
        Err(_) => Err(Failure::from(Unavailable {
            what: format!("a function in {}", common.offer().place),
            why: "it is in a library of a process, and nothing of a process is mapped there".to_string(),
            remedy: "measure it in user mode, or its code as a snippet with --hex".to_string(),
        })),
    }
}

/// A function, and the one that it is compared with.
pub type FunctionPair = [Option<LibraryFunction>; 2];

/// Libraries that are to be loaded, each once.
#[derive(Default)]
pub struct FunctionLibraries {
    all: Vec<NamedLibrary>,
    /// Folders in which they were compiled.
    folders: Vec<ScratchFolder>,
}

/// A library, the one that it is compared with, and what names them.
struct NamedLibrary {
    by: LibraryOptions,
    library: FunctionLibrary,
    versus: Option<FunctionLibrary>,
    /// What `CYCLESCOPE_BODY` marks in them.
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
    /// The number of the library that the options name, compiled where it has to be; none where they name no library.
    fn find_or_add(&mut self, args: &RunArgs) -> Result<Option<usize>, Failure> {
        let by = LibraryOptions::from_args(args);
        // The last one first: neighbours are alike.
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

    /// What the library of this number brings into memory, and the one that it is compared with.
    pub fn loaded_contents(&self, number: usize) -> impl Iterator<Item = Vec<u8>> {
        let NamedLibrary { library, versus, .. } = &self.all[number];
        [Some(library), versus.as_ref()].into_iter().flatten().map(FunctionLibrary::loaded_bytes)
    }

    /// Loads all of them in a process of their own, where there are any, and works with their functions there; returns the
    /// exit code.
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
    /// What the functions return, where that is known.
    fn return_types(&self) -> [Option<ReturnType>; 2] {
        [self.library.returned, self.versus.as_ref().and_then(|versus| versus.returned)]
    }

    /// Functions, unless a region is measured.
    fn load_functions(&self) -> Result<FunctionPair, Failure> {
        if self.regions.is_some() {
            return Ok([None, None]);
        }
        let [.., setup] = &self.by.names;
        let load = |library: &FunctionLibrary| library.load_function(setup.as_deref());
        Ok([Some(load(&self.library)?), self.versus.as_ref().map(load).transpose()?])
    }
}

/// The regions that are marked, in both variants or in neither.
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
