//! Checks claims of comments that only certain files do something. An unchecked claim is soon
//! false.

use crate::arrows::Arrows;
use crate::source::{Module, Segments, Source};
use std::collections::BTreeSet;
use std::path::Path;

/// Something that code does.
#[derive(Debug, Clone, Copy)]
pub enum Act {
    /// Builds a value of this type by its fields.
    Builds(&'static str),
    /// Calls a method of this name.
    Calls(&'static str),
    /// Names this item of a file.
    Names(&'static str, &'static str),
    /// Names an item of another project by the end of its path.
    NamesForeign(&'static [&'static str]),
    /// Names anything of these files and folders.
    Uses(Places),
    /// Calls one of these macros.
    Invokes(&'static [&'static str]),
}

/// Files and folders below a crate's source, such as `measure/schedule.rs` and `executor/`.
pub type Places = &'static [&'static str];

/// The files that a claim is about.
#[derive(Debug, Clone, Copy)]
pub enum Within {
    /// All crates.
    Everything,
    /// The library.
    Library,
    /// The studies.
    Studies,
    /// These files and folders.
    These(Places),
}

/// A claim: among the files in `within`, only those in `by` do this.
#[derive(Debug, Clone, Copy)]
pub struct Claim {
    /// The claim in words.
    pub text: &'static str,
    pub act: Act,
    pub within: Within,
    pub by: Places,
}

/// The violations of a claim, file by file, with the name. They are searched in the files `within`,
/// or in all files if it is empty. An exception that no file needs is reported too.
pub fn broken(source: &Source, arrows: &Arrows, root: &Path, claim: &Claim, within: &[String]) -> Vec<String> {
    let acts = acts(source, arrows, root, claim.act);
    let acts = acts.iter().filter(|(file, _)| within.is_empty() || is_in(file, within));
    let (allowed, forbidden): (Vec<_>, Vec<_>) = acts.partition(|(file, _)| is_in(file, claim.by));
    let unused = claim.by.iter().filter(|place| !allowed.iter().any(|(file, _)| is_in(file, &[place])));
    let faults = forbidden.iter().map(|(file, name)| format!("  {file}: {name}"));
    faults.chain(unused.map(|place| format!("  {place}: an exception that nothing needs"))).collect()
}

/// Whether a file is one of these, or in one of these folders.
fn is_in(file: &str, places: &[impl AsRef<str>]) -> bool {
    places.iter().map(AsRef::as_ref).any(|place: &str| file == place || place.ends_with('/') && file.starts_with(place))
}

/// Each file below `root` that does this, with the name that shows it.
fn acts(source: &Source, arrows: &Arrows, root: &Path, act: Act) -> BTreeSet<(String, String)> {
    let below = |file: &Path| file.strip_prefix(root).ok().map(|file| file.display().to_string());
    let in_modules = |done: &dyn Fn(&Module) -> Vec<String>| {
        let of = |module: &Module| {
            let file = below(&module.file)?;
            Some(done(module).into_iter().map(move |name| (file.clone(), name)))
        };
        source.modules.iter().filter_map(of).flatten().collect()
    };
    let last = |paths: &[Segments], is_meant: &dyn Fn(&str) -> bool| -> Vec<String> {
        paths.iter().filter_map(|path| path.last()).filter(|name| is_meant(name)).cloned().collect()
    };
    let named = |is_meant: &dyn Fn(&str, &str) -> bool| {
        let mut found = BTreeSet::new();
        for (from, all) in arrows {
            for (to, names) in all {
                let (Some(from), Some(to)) = (below(from), below(to)) else { continue };
                let meant = names.iter().filter(|name| is_meant(&to, name));
                found.extend(meant.map(|name| (from.clone(), format!("{name} of {to}"))));
            }
        }
        found
    };
    match act {
        Act::Builds(of) => in_modules(&|module| last(&module.built, &|name| name == of)),
        Act::Invokes(macros) => in_modules(&|module| last(&module.invoked, &|name| macros.contains(&name))),
        Act::Calls(method) => {
            in_modules(&|module| module.called.iter().filter(|name| *name == method).cloned().collect())
        }
        Act::NamesForeign(end) => in_modules(&|module| {
            let ends = |path: &Segments| path.len() >= end.len() && path[path.len() - end.len()..] == *end;
            module.used.iter().filter(|path| ends(path)).map(|path| path.join("::")).collect()
        }),
        Act::Names(of, item) => named(&|to, name| to == of && name == item),
        Act::Uses(of) => named(&|to, _| is_in(to, of)),
    }
}
