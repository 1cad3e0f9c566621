//! What the options of `run` name: snippets, or functions of libraries that are yet to be loaded.

use crate::args::{CallArgs, Common, RunArgs, Serialize};
use crate::input::calling::Calling;
use crate::input::function::Function;
use crate::input::library::Library;
use crate::input::return_type::{self, ReturnType};
use crate::input::source;
use crate::output::Failure;
use crate::process::interrupt::Scratch;
use crate::process::isolated::isolated;
use cyclescope::error::Unavailable;
use cyclescope::machine::Machine;
use cyclescope::record::Serialized;
use cyclescope::snippet::Snippet;
use cyclescope::study::run::Subject;
use std::path::PathBuf;

/// What is measured.
pub enum Target {
    /// The snippet, and the one that it is compared with.
    Snippets(Vec<Snippet>),
    /// The functions of the library of this number among [`Libraries`], called in this way.
    Call(usize, Box<Calling>),
}

/// What is measured, the machine whose features it was checked against, and the text that came from standard input.
pub struct Found {
    /// What is measured.
    pub target: Target,
    /// The machine.
    pub machine: Machine,
    /// The text of the snippet, where standard input had it.
    pub stdin: Option<String>,
}

impl Target {
    /// What the options name. Libraries are compiled, each once, and not yet loaded; `seed` is that of random contents. What
    /// is wrong with a snippet is found before anything about the machine is asked.
    pub fn find(
        common: &Common,
        args: &RunArgs,
        seed: u64,
        libraries: &mut Libraries,
        machine: impl FnOnce() -> Result<Machine, Failure>,
    ) -> Result<Found, Failure> {
        if let Some(number) = libraries.find(args)? {
            let named = &libraries.all[number];
            let serialized = return_type::waiting(args.call_with.serialize, named.returned())?;
            let calling = Box::new(Calling::new(&args.call_with, serialized, seed)?);
            let Some(regions) = &named.regions else {
                require_warm(args)?;
                let machine = machine()?;
                require_library(common, &machine)?;
                return Ok(Found { target: Target::Call(number, calling), machine, stdin: None });
            };
            require_call(&args.call_with)?;
            let machine = machine()?;
            for snippet in regions {
                source::require_loop_register(args, snippet)?;
                source::check(snippet, &machine)?;
            }
            return Ok(Found { target: Target::Snippets(regions.clone()), machine, stdin: None });
        }
        let text = source::read(args)?;
        let (snippet, machine) = source::snippet(args, text.as_ref(), machine)?;
        let mut snippets = vec![snippet];
        if let Some(versus) = &args.versus {
            snippets.push(source::versus(args, versus, &machine)?);
        }
        let stdin = text.filter(|text| text.from_stdin).map(|text| text.text);
        Ok(Found { target: Target::Snippets(snippets), machine, stdin })
    }

    /// The subjects of a run: the one that is measured, and the one that it is compared with.
    pub fn subjects(&self, loaded: &[Loaded]) -> Vec<Subject> {
        match self {
            Target::Snippets(snippets) => snippets.iter().cloned().map(Subject::from).collect(),
            Target::Call(number, with) => {
                let subject = |function: &Function| function.subject(with, with.serialized);
                loaded[*number].iter().flatten().map(subject).collect()
            }
        }
    }

    /// The calls of the function that is measured that wait for something else.
    pub fn beside(&self, loaded: &[Loaded]) -> Option<Subject> {
        let Target::Call(number, with) = self else { return None };
        let function = loaded[*number].iter().flatten().next()?;
        Some(function.subject(with, Serialized::beside(with.serialized)))
    }
}

/// A region is no function.
fn require_call(args: &CallArgs) -> Result<(), Failure> {
    if !args.is_given() {
        return Ok(());
    }
    let remedy =
        "leave CYCLESCOPE_BODY out to measure the function, or the options on its arguments and memory";
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

fn require_library(common: &Common, machine: &Machine) -> Result<(), Failure> {
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
pub type Loaded = [Option<Function>; 2];

/// Libraries that are to be loaded, each once.
#[derive(Default)]
pub struct Libraries {
    all: Vec<Named>,
    /// Folders in which they were compiled.
    folders: Vec<Scratch>,
}

/// A library, the one that it is compared with, and what names them.
struct Named {
    by: Naming,
    library: Library,
    versus: Option<Library>,
    /// What `CYCLESCOPE_BODY` marks in them.
    regions: Option<Vec<Snippet>>,
}

/// The options that name functions.
#[derive(Clone, PartialEq)]
struct Naming {
    files: [Option<PathBuf>; 3],
    names: [Option<String>; 5],
    serialize: Option<Serialize>,
}

impl Naming {
    fn of(args: &RunArgs) -> Naming {
        let names = [&args.call, &args.versus, &args.versus_call, &args.cflags, &args.call_with.setup];
        Naming {
            files: [&args.source.c, &args.source.lib, &args.source.elf].map(Clone::clone),
            names: names.map(Clone::clone),
            serialize: args.call_with.serialize,
        }
    }
}

impl Libraries {
    /// The number of the library that the options name, compiled where it has to be; none where they name no library.
    fn find(&mut self, args: &RunArgs) -> Result<Option<usize>, Failure> {
        let by = Naming::of(args);
        // The last one first: neighbours are alike.
        if let Some(known) = self.all.iter().rposition(|known| known.by == by) {
            return Ok(Some(known));
        }
        let Some((mut library, versus)) = Library::find(args)? else { return Ok(None) };
        let folder = library.folder.take();
        let regions = regions(args, &library, versus.as_ref(), folder.as_ref())?;
        self.folders.extend(folder);
        self.all.push(Named { by, library, versus, regions });
        Ok(Some(self.all.len() - 1))
    }

    /// What the library of this number brings into memory, and the one that it is compared with.
    pub fn contents(&self, number: usize) -> impl Iterator<Item = Vec<u8>> {
        let Named { library, versus, .. } = &self.all[number];
        [Some(library), versus.as_ref()].into_iter().flatten().map(Library::contents)
    }

    /// Loads all of them in a process of their own, where there are any, and works with their functions there; returns the
    /// exit code.
    pub fn with(
        self,
        json: bool,
        work: impl FnOnce(&Vec<Loaded>) -> Result<u8, Failure>,
    ) -> Result<u8, Failure> {
        let Libraries { all, folders } = self;
        if all.iter().all(|named| named.regions.is_some()) {
            return work(&Vec::new());
        }
        let load = || all.iter().map(Named::load).collect();
        isolated(load, folders, work, |failure| failure.report(json))
    }
}

impl Named {
    /// What the functions return, where that is known.
    fn returned(&self) -> [Option<ReturnType>; 2] {
        [self.library.returned, self.versus.as_ref().and_then(|versus| versus.returned)]
    }

    /// Functions, unless a region is measured.
    fn load(&self) -> Result<Loaded, Failure> {
        if self.regions.is_some() {
            return Ok([None, None]);
        }
        let [.., setup] = &self.by.names;
        let load = |library: &Library| library.load(setup.as_deref());
        Ok([Some(load(&self.library)?), self.versus.as_ref().map(load).transpose()?])
    }
}

/// The regions that are marked, in both variants or in neither.
fn regions(
    args: &RunArgs,
    library: &Library,
    versus: Option<&Library>,
    folder: Option<&Scratch>,
) -> Result<Option<Vec<Snippet>>, Failure> {
    let Some(region) = library.region(args, folder)? else { return Ok(None) };
    let other = versus.map(|versus| versus.region(args, folder)).transpose()?;
    if other == Some(None) {
        let remedy = "mark the region to compare with CYCLESCOPE_BODY in both, or in neither";
        return Err(Failure::usage("only the first file marks a region", Some(remedy)));
    }
    Ok(Some([Some(region), other.flatten()].into_iter().flatten().collect()))
}
