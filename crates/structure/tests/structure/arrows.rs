//! Arrows between files: `a` → `b` where `a`'s code uses a name that `b` defines.
//!
//! A name is followed through imports and re-exports (`pub use`) to the file that defines it. A
//! module that re-exports a name of its own children does not depend on it, nor does a module that
//! only declares its children.
//!
//! Limits: the types of values are not known. A method call is an arrow only if the method is in an
//! `impl` outside its type's file, and no other type has a method of that name.

use crate::source::{Module, Name, Segments, Source};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// From a file to the files that it uses, with the names it takes from each.
pub type Arrows = BTreeMap<PathBuf, BTreeMap<PathBuf, BTreeSet<String>>>;

/// The target of a path: the defining module, the item's name, and the function of the item, if
/// any.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Target {
    module: usize,
    item: String,
    member: Option<String>,
}

/// All arrows between files of these crates.
pub fn arrows(source: &Source) -> Arrows {
    let functions = Functions::of(source);
    let mut arrows = Arrows::new();
    for (index, module) in source.modules.iter().enumerate() {
        let mut draw = |to: usize, name: &str| {
            let to = &source.modules[to].file;
            if *to != module.file {
                let names = arrows.entry(module.file.clone()).or_default().entry(to.clone()).or_default();
                names.insert(name.to_string());
            }
        };
        let globs = module.globs.iter().map(|path| (path, false));
        let used = module.used.iter().map(|path| (path, false));
        let handed_on = module.handed_on.iter().map(|path| (path, true));
        for (path, on) in used.chain(handed_on).chain(globs) {
            for target in follow(source, index, path) {
                let own = source.modules[target.module].path.starts_with(&module.path);
                if !(on && own) {
                    for to in functions.homes(&target) {
                        draw(to, &target.item);
                    }
                }
            }
        }
        for method in &module.called {
            if let Some(home) = functions.apart(source, index, method) {
                draw(home, method);
            }
        }
    }
    arrows
}

/// Functions of types. The key is the type's module and name and the function's name; the values
/// are the defining modules and whether the function is private there.
struct Functions {
    homes: BTreeMap<(usize, String, String), BTreeMap<usize, bool>>,
}

impl Functions {
    fn of(source: &Source) -> Functions {
        let mut homes: BTreeMap<_, BTreeMap<usize, bool>> = BTreeMap::new();
        for (index, module) in source.modules.iter().enumerate() {
            for function in &module.functions {
                for target in follow(source, index, &function.of) {
                    let key = (target.module, target.item, function.name.clone());
                    homes.entry(key).or_default().insert(index, function.private);
                }
            }
        }
        Functions { homes }
    }

    /// The modules that define a target: the item's own, and that of its function.
    fn homes(&self, target: &Target) -> BTreeSet<usize> {
        let mut homes = BTreeSet::from([target.module]);
        if let Some(member) = &target.member {
            let key = (target.module, target.item.clone(), member.clone());
            homes.extend(self.homes.get(&key).into_iter().flat_map(BTreeMap::keys));
        }
        homes
    }

    /// The module that defines a method outside its type's module. `None` if another type has a
    /// method of that name that `caller` can see.
    fn apart(&self, source: &Source, caller: usize, method: &str) -> Option<usize> {
        let caller = &source.modules[caller].path;
        let sees = |home: usize, private: bool| !private || caller.starts_with(&source.modules[home].path);
        let named = self.homes.iter().filter(|((.., name), _)| name == method);
        let all = named.flat_map(|((of, ..), homes)| homes.iter().map(|(home, private)| (*of, *home, *private)));
        let mut seen = all.filter(|(_, home, private)| sees(*home, *private));
        let (of, home, _) = seen.next()?;
        let alone = seen.next().is_none();
        (alone && source.modules[of].file != source.modules[home].file).then_some(home)
    }
}

fn follow(source: &Source, from: usize, path: &Segments) -> BTreeSet<Target> {
    let mut targets = BTreeSet::new();
    Search { source, seen: BTreeSet::new(), targets: &mut targets }.walk(from, path, Start::Written);
    targets
}

/// How a path's first segment is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    /// As written in a module: `crate`, `self` and `super`, and any name in scope.
    Written,
    /// The same without globs, because the path is an import's own.
    Import,
    /// Inside the module of the previous segments.
    Inside,
}

struct Search<'a> {
    source: &'a Source,
    /// Imports being followed, so that circular imports end.
    seen: BTreeSet<(usize, Segments)>,
    targets: &'a mut BTreeSet<Target>,
}

impl Search<'_> {
    fn walk(&mut self, from: usize, path: &[String], start: Start) {
        let Some((segment, rest)) = path.split_first() else { return };
        if !self.seen.insert((from, path.to_vec())) {
            return;
        }
        let module: &Module = &self.source.modules[from];
        match segment.as_str() {
            "crate" if start != Start::Inside => self.walk(module.root, rest, Start::Inside),
            "self" if start != Start::Inside => self.walk(from, rest, Start::Inside),
            "super" => {
                if let Some(parent) = module.parent {
                    self.walk(parent, rest, Start::Inside);
                }
            }
            _ => {
                let names = module.names.get(segment).map_or(&[][..], Vec::as_slice);
                let is_module = names.iter().any(|name| matches!(name, Name::Module(_)));
                for name in names {
                    match name {
                        Name::Module(module) => self.walk(*module, rest, Start::Inside),
                        // A path leads through the module, not through the function of that name.
                        _ if is_module && !rest.is_empty() => {}
                        Name::Item => {
                            let (item, member) = (segment.clone(), rest.first().cloned());
                            self.targets.insert(Target { module: from, item, member });
                        }
                        // `use name;` and `use name::{self}` lead out of the crate, not back to
                        // themselves.
                        Name::Import(import) if import.first() == Some(segment) && !is_module => {}
                        Name::Import(import) => {
                            self.walk(from, &[import, rest].concat(), Start::Import);
                        }
                    }
                }
                let other = self.source.roots.get(segment).filter(|_| start != Start::Inside && !is_module);
                if let Some(root) = other {
                    self.walk(*root, rest, Start::Inside);
                }
                let globs = if start == Start::Import { &[] } else { module.globs.as_slice() };
                for glob in globs {
                    self.walk(from, &[glob, path].concat(), Start::Import);
                }
            }
        }
    }
}
