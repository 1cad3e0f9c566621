//! The target that the options of `run` name: snippets, or functions of libraries to load.

use crate::args::{ArgValue, CallTarget, CommonArgs, RunArgs};
use crate::input::call_parameters::{CallParameters, CallRequest};
use crate::input::capture::CapturedRegion;
use crate::input::function::LibraryFunction;
use crate::input::library::FunctionLibrary;
use crate::input::mix_source::{MixTarget, find_mix, require_mix};
use crate::input::source;
use crate::input::variants::{RunVariant, expand_variants};
use crate::output::Failure;
use crate::process::interrupt::ScratchFolder;
use crate::process::isolation::run_isolated;
use cyclescope::error::Unavailable;
use cyclescope::machine::Machine;
use cyclescope::record::{MixRecord, SerializedBy};
use cyclescope::snippet::Snippet;
use cyclescope::study::run::RunSubject;
use std::path::PathBuf;

/// What is measured: the variants of a run, the first one first.
pub enum RunTarget {
    /// Snippets.
    Snippets(Vec<Snippet>),
    /// The orders of a mix.
    Mix(MixTarget),
    /// A region taken from a run of an executable.
    Region(Box<CapturedRegion>),
    /// Calls of functions.
    Calls(CalledFunctions),
}

/// The functions of all variants, and how they are called.
pub struct CalledFunctions {
    /// The numbers of their libraries in [`FunctionLibraries`].
    pub libraries: Vec<usize>,
    /// Their calls, which share one memory.
    pub calling: Box<CallParameters>,
}

/// The target, and the machine whose features it was checked against.
pub struct FoundTarget {
    /// What is measured.
    pub target: RunTarget,
    /// The names of the variants; empty if their code distinguishes them.
    pub names: Vec<String>,
    /// The machine.
    pub machine: Machine,
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
        if args.region.to.is_some() {
            let machine = machine()?;
            require_user_memory(common, &machine)?;
            let region = CapturedRegion::capture(args)?;
            let target = RunTarget::Region(Box::new(region));
            return Ok(FoundTarget { target, names: Vec::new(), machine });
        }
        if let Some(text) = &args.source.mix {
            let machine = machine()?;
            let ring = common.capabilities(&machine).ring;
            let target = RunTarget::Mix(find_mix(text, args, common.quick, ring, &machine)?);
            return Ok(FoundTarget { target, names: Vec::new(), machine });
        }
        require_mix(args)?;
        let variants = expand_variants(args, &source::read_snippet_text)?;
        let first = variants.first().map(|variant| &variant.args);
        let numbers = variants.iter().map(|variant| {
            let callbacks = find_callbacks(&variant.args, first);
            variant.name_failure(libraries.find_or_add(&variant.args, callbacks))
        });
        let numbers: Option<Vec<usize>> = numbers.collect::<Result<Vec<_>, Failure>>()?.into_iter().collect();
        let (target, machine) = match numbers {
            Some(numbers) => find_functions(common, &variants, &numbers, seed, libraries, machine)?,
            None => build_snippets(&variants, machine)?,
        };
        let names = variants.into_iter().filter_map(|variant| variant.name).collect();
        Ok(FoundTarget { target, names, machine })
    }

    /// The subjects of a run: the measured one, and those that it is compared with.
    pub fn build_subjects(&self, loaded: &[LoadedFunction]) -> Vec<RunSubject> {
        match self {
            RunTarget::Snippets(snippets) | RunTarget::Mix(MixTarget { snippets, .. }) => {
                snippets.iter().cloned().map(RunSubject::from).collect()
            }
            RunTarget::Region(region) => vec![region.build_subject()],
            RunTarget::Calls(calls) => {
                let CalledFunctions { libraries, calling } = calls;
                let subject = |(variant, library): (usize, &usize)| {
                    Some(loaded[*library].as_ref()?.build_subject(calling, variant, calling.serialized))
                };
                libraries.iter().enumerate().filter_map(subject).collect()
            }
        }
    }

    /// Calls of the measured function with the other kind of serialization.
    pub fn counterpart_subject(&self, loaded: &[LoadedFunction]) -> Option<RunSubject> {
        let CalledFunctions { libraries, calling } = self.called_functions()?;
        let function = loaded[libraries[0]].as_ref()?;
        Some(function.build_subject(calling, 0, SerializedBy::counterpart_of(calling.serialized)))
    }

    /// The called functions; `None` for snippets.
    pub fn called_functions(&self) -> Option<&CalledFunctions> {
        match self {
            RunTarget::Snippets(_) | RunTarget::Mix(_) | RunTarget::Region(_) => None,
            RunTarget::Calls(calls) => Some(calls),
        }
    }

    /// Whether it is a function, or a region of a run.
    pub fn is_function(&self) -> bool {
        matches!(self, RunTarget::Region(_) | RunTarget::Calls(_))
    }

    /// The mix whose orders are measured.
    pub fn mix(&self) -> Option<&MixRecord> {
        match self {
            RunTarget::Mix(mix) => Some(&mix.record),
            _ => None,
        }
    }
}

/// Assembles the snippets of all variants.
fn build_snippets(
    variants: &[RunVariant],
    machine: impl FnOnce() -> Result<Machine, Failure>,
) -> Result<(RunTarget, Machine), Failure> {
    let (first, others) = variants.split_first().expect("a run has a variant");
    let (snippet, machine) = first.name_failure(source::build_snippet(&first.args, machine))?;
    let mut snippets = vec![snippet];
    for other in others {
        let built = source::build_snippet(&other.args, || Ok(machine.clone()));
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
        let first = named[0];
        let mut requests = Vec::with_capacity(variants.len());
        for (variant, named) in variants.iter().zip(&named) {
            requests.push(variant.name_failure(named.request_call(&variant.args, (first, args)))?);
        }
        let calling = Box::new(CallParameters::new(&requests, args.code_mode.mode(), seed)?);
        require_warm(args)?;
        let machine = machine()?;
        require_user_memory(common, &machine)?;
        return Ok((RunTarget::Calls(CalledFunctions { libraries: numbers.to_vec(), calling }), machine));
    }
    if regions.len() < named.len() {
        let remedy = "mark the region to compare with CYCLESCOPE_BODY in all, or in none";
        return Err(Failure::usage("only some of the files mark a region", Some(remedy)));
    }
    variants.iter().try_for_each(|variant| require_call(&variant.args))?;
    let machine = machine()?;
    for snippet in &regions {
        source::require_loop(args, snippet)?;
        source::check_machine_code(snippet, &machine)?;
    }
    Ok((RunTarget::Snippets(regions), machine))
}

/// The values in the arguments of a variant that name functions, or may, each once. Without arguments
/// of its own, it has those of the first variant.
fn find_callbacks(own: &RunArgs, first: Option<&RunArgs>) -> Vec<ArgValue> {
    let listed = |args: &RunArgs| args.call.as_ref()?.arguments.as_ref()?.as_ref().ok().cloned();
    let in_call = listed(own).or_else(|| first.and_then(listed)).unwrap_or_default();
    // Errors of --arg are reported where the values are used.
    let after_buffer = own.call_with.arguments().unwrap_or_default();
    let mut found: Vec<ArgValue> = Vec::new();
    for value in in_call.iter().chain(&after_buffer).flat_map(|argument| argument.value.named_functions()) {
        if !found.contains(value) {
            found.push(value.clone());
        }
    }
    found
}

/// Fails if a region is measured with options that only calls use.
fn require_call(args: &RunArgs) -> Result<(), Failure> {
    let has_list = |call: &Option<CallTarget>| call.as_ref().is_some_and(|call| call.arguments.is_some());
    if !args.call_with.is_given() && !has_list(&args.call) {
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

/// Fails if the executor has no memory of a process.
fn require_user_memory(common: &CommonArgs, machine: &Machine) -> Result<(), Failure> {
    match common.capabilities(machine).library {
        Ok(_) => Ok(()),
        Err(_) => Err(Failure::from(Unavailable {
            what: format!("a function or region in {}", common.offer().place),
            why: "libraries and programs are loaded into a process, whose memory is not mapped there".to_string(),
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
    callbacks: Vec<ArgValue>,
}

impl LibraryOptions {
    fn from_args(args: &RunArgs, callbacks: Vec<ArgValue>) -> LibraryOptions {
        // Calls with other arguments are of the same function. An empty list may belong to its name.
        let call = args.call.as_ref().map(|call| match &call.arguments {
            Some(Ok(arguments)) if !arguments.is_empty() => call.name.clone(),
            _ => call.text.clone(),
        });
        let [flags, compiler, setup] = [&args.cflags, &args.cc, &args.call_with.setup].map(Clone::clone);
        LibraryOptions {
            files: [&args.source.c, &args.source.lib, &args.source.elf].map(Clone::clone),
            names: [call, flags, compiler, setup],
            callbacks,
        }
    }
}

/// What background load does with a library.
pub enum LoadTarget {
    /// It runs the region that `CYCLESCOPE_BODY` marks.
    Region(Snippet),
    /// It calls the function of the library with this number.
    Call(usize, Box<CallParameters>),
}

impl FunctionLibraries {
    /// The region or call that these options name; `None` if they name no library. `seed` determines
    /// random contents.
    pub fn find_load(&mut self, args: &RunArgs, seed: u64) -> Result<Option<LoadTarget>, Failure> {
        let Some(number) = self.find_or_add(args, find_callbacks(args, None))? else { return Ok(None) };
        let named = &self.all[number];
        if let Some(region) = &named.region {
            require_call(args)?;
            return Ok(Some(LoadTarget::Region(region.clone())));
        }
        let request = named.request_call(args, (named, args))?;
        Ok(Some(LoadTarget::Call(number, Box::new(CallParameters::new(&[request], args.code_mode.mode(), seed)?))))
    }

    /// The number of the library that the options name, compiled if necessary; `None` if they name
    /// none. `callbacks` are the values of its arguments that name functions, or may.
    fn find_or_add(&mut self, args: &RunArgs, callbacks: Vec<ArgValue>) -> Result<Option<usize>, Failure> {
        let by = LibraryOptions::from_args(args, callbacks);
        // Searches from the end, because consecutive points usually share a library.
        if let Some(known) = self.all.iter().rposition(|known| known.by == by) {
            return Ok(Some(known));
        }
        let Some(mut library) = FunctionLibrary::find_or_compile(args, &by.callbacks)? else { return Ok(None) };
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
    /// The call of a variant. Without arguments of its own, it has those of the first variant.
    fn request_call<'a>(
        &'a self,
        own: &'a RunArgs,
        (first, first_args): (&'a NamedLibrary, &'a RunArgs),
    ) -> Result<CallRequest<'a>, Failure> {
        let arguments = match self.library.read_arguments(own.call.as_ref())? {
            Some(all) => Some(all),
            None => first.library.read_arguments(first_args.call.as_ref())?,
        };
        Ok(CallRequest {
            name: self.library.name(),
            args: &own.call_with,
            arguments,
            types: self.library.types(),
            setup: self.library.setup_signature(),
            callbacks: self.library.callbacks(),
        })
    }

    /// Loads the function, unless a region is measured.
    fn load_function(&self) -> Result<LoadedFunction, Failure> {
        match self.region {
            Some(_) => Ok(None),
            None => self.library.load_function().map(Some),
        }
    }
}
