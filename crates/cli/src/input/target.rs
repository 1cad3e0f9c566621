//! The target that the options of `run` name: snippets, or functions of libraries to load.

use crate::args::{CallArgs, CallSerialization, CommonArgs, RunArgs};
use crate::input::call_parameters::CallParameters;
use crate::input::function::LibraryFunction;
use crate::input::library::FunctionLibrary;
use crate::input::return_type;
use crate::input::source;
use crate::input::variants::{self, RunVariant, expand_variants};
use crate::output::Failure;
use crate::process::interrupt::ScratchFolder;
use crate::process::isolation::run_isolated;
use cyclescope::error::Unavailable;
use cyclescope::machine::Machine;
use cyclescope::record::SerializedBy;
use cyclescope::snippet::Snippet;
use cyclescope::study::run::RunSubject;
use std::path::PathBuf;

/// What is measured: the variants of a run, the first one first.
pub enum RunTarget {
    /// Snippets.
    Snippets(Vec<Snippet>),
    /// Calls of functions.
    Calls(Vec<FunctionCall>),
}

/// Calls of a function.
pub struct FunctionCall {
    /// The number of its library in [`FunctionLibraries`].
    pub library: usize,
    /// How it is called.
    pub calling: CallParameters,
}

/// The target, the machine whose features it was checked against, and the text from standard input.
pub struct FoundTarget {
    /// What is measured.
    pub target: RunTarget,
    /// The names of the variants; empty if their code distinguishes them.
    pub names: Vec<String>,
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
        let text = if variants::needs_text(args) { source::read_snippet_text(args)? } else { None };
        let variants = expand_variants(args, text.as_ref().map(|text| text.text.as_str()))?;
        let numbers = variants.iter().map(|variant| variant.name_failure(libraries.find_or_add(&variant.args)));
        let numbers: Option<Vec<usize>> = numbers.collect::<Result<Vec<_>, Failure>>()?.into_iter().collect();
        let (target, machine) = match numbers {
            Some(numbers) => find_functions(common, &variants, &numbers, seed, libraries, machine)?,
            None => build_snippets(&variants, machine)?,
        };
        let stdin = text.filter(|text| text.from_stdin).map(|text| text.text);
        let names = variants.into_iter().filter_map(|variant| variant.name).collect();
        Ok(FoundTarget { target, names, machine, stdin })
    }

    /// The subjects of a run: the measured one, and those that it is compared with.
    pub fn build_subjects(&self, loaded: &[LoadedFunction]) -> Vec<RunSubject> {
        match self {
            RunTarget::Snippets(snippets) => snippets.iter().cloned().map(RunSubject::from).collect(),
            RunTarget::Calls(calls) => {
                let subject = |FunctionCall { library, calling }: &FunctionCall| {
                    Some(loaded[*library].as_ref()?.build_subject(calling, calling.serialized))
                };
                calls.iter().filter_map(subject).collect()
            }
        }
    }

    /// Calls of the measured function with the other kind of serialization.
    pub fn counterpart_subject(&self, loaded: &[LoadedFunction]) -> Option<RunSubject> {
        let FunctionCall { library, calling } = self.first_call()?;
        let function = loaded[*library].as_ref()?;
        Some(function.build_subject(calling, SerializedBy::counterpart_of(calling.serialized)))
    }

    /// The calls of the first variant; `None` for a snippet.
    pub fn first_call(&self) -> Option<&FunctionCall> {
        match self {
            RunTarget::Snippets(_) => None,
            RunTarget::Calls(calls) => calls.first(),
        }
    }
}

/// Assembles the snippets of all variants.
fn build_snippets(
    variants: &[RunVariant],
    machine: impl FnOnce() -> Result<Machine, Failure>,
) -> Result<(RunTarget, Machine), Failure> {
    let (first, others) = variants.split_first().expect("a run has a variant");
    let text = source::read_snippet_text(&first.args)?;
    let (snippet, machine) = first.name_failure(source::build_snippet(&first.args, text.as_ref(), machine))?;
    let mut snippets = vec![snippet];
    for other in others {
        let text = source::read_snippet_text(&other.args)?;
        let built = source::build_snippet(&other.args, text.as_ref(), || Ok(machine.clone()));
        snippets.push(other.name_failure(built)?.0);
    }
    Ok((RunTarget::Snippets(snippets), machine))
}

/// Finds the functions of all variants, or the regions that `CYCLESCOPE_BODY` marks in them.
fn find_functions(
    common: &CommonArgs,
    variants: &[RunVariant],
    numbers: &[usize],
    seed: u64,
    libraries: &FunctionLibraries,
    machine: impl FnOnce() -> Result<Machine, Failure>,
) -> Result<(RunTarget, Machine), Failure> {
    let args = &variants[0].args;
    let named: Vec<&NamedLibrary> = numbers.iter().map(|number| &libraries.all[*number]).collect();
    let regions: Vec<Snippet> = named.iter().filter_map(|named| named.region.clone()).collect();
    if regions.is_empty() {
        let returned: Vec<_> = named.iter().map(|named| named.library.returned).collect();
        let serialized = return_type::choose_serialization(args.call_with.serialize, &returned)?;
        let call = |(variant, library): (&RunVariant, &usize)| {
            let calling = CallParameters::new(&variant.args.call_with, serialized, seed)?;
            Ok(FunctionCall { library: *library, calling })
        };
        let calls = variants.iter().zip(numbers).map(call).collect::<Result<Vec<_>, Failure>>()?;
        require_warm(args)?;
        let machine = machine()?;
        require_library(common, &machine)?;
        return Ok((RunTarget::Calls(calls), machine));
    }
    if regions.len() < named.len() {
        let remedy = "mark the region to compare with CYCLESCOPE_BODY in all, or in none";
        return Err(Failure::usage("only some of the files mark a region", Some(remedy)));
    }
    require_call(&args.call_with)?;
    let machine = machine()?;
    for snippet in &regions {
        source::require_loop(args, snippet)?;
        source::check_machine_code(snippet, &machine)?;
    }
    Ok((RunTarget::Snippets(regions), machine))
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

/// A loaded function; `None` if a region of its library is measured.
pub type LoadedFunction = Option<LibraryFunction>;

/// The libraries to load, each once.
#[derive(Default)]
pub struct FunctionLibraries {
    all: Vec<NamedLibrary>,
    /// Folders that hold compiled libraries.
    folders: Vec<ScratchFolder>,
}

/// A library, and the options that name it.
struct NamedLibrary {
    by: LibraryOptions,
    library: FunctionLibrary,
    /// The region that `CYCLESCOPE_BODY` marks in it.
    region: Option<Snippet>,
}

/// The options that name a function.
#[derive(Clone, PartialEq)]
struct LibraryOptions {
    files: [Option<PathBuf>; 3],
    names: [Option<String>; 4],
    serialize: Option<CallSerialization>,
}

impl LibraryOptions {
    fn from_args(args: &RunArgs) -> LibraryOptions {
        let names = [&args.call, &args.cflags, &args.cc, &args.call_with.setup];
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
        let Some(mut library) = FunctionLibrary::find_or_compile(args)? else { return Ok(None) };
        let folder = library.folder.take();
        let region = library.find_region(args, folder.as_ref())?;
        self.folders.extend(folder);
        self.all.push(NamedLibrary { by, library, region });
        Ok(Some(self.all.len() - 1))
    }

    /// The bytes that this library loads into memory.
    pub fn loaded_contents(&self, number: usize) -> Vec<u8> {
        self.all[number].library.loaded_bytes()
    }

    /// Loads all libraries, if any, in a separate process, runs `work` on their functions there,
    /// and returns the exit code.
    pub fn load_and_run(
        self,
        json: bool,
        work: impl FnOnce(&Vec<LoadedFunction>) -> Result<u8, Failure>,
    ) -> Result<u8, Failure> {
        let FunctionLibraries { all, folders } = self;
        if all.iter().all(|named| named.region.is_some()) {
            return work(&Vec::new());
        }
        let load = || all.iter().map(NamedLibrary::load_function).collect();
        run_isolated(load, folders, work, |failure| failure.report(json))
    }
}

impl NamedLibrary {
    /// Loads the function, unless a region is measured.
    fn load_function(&self) -> Result<LoadedFunction, Failure> {
        if self.region.is_some() {
            return Ok(None);
        }
        let [.., setup] = &self.by.names;
        self.library.load_function(setup.as_deref()).map(Some)
    }
}
