//! The structure of the code: crates, rooms and files use only what stands below them, and never each other in a circle.
//!
//! Reads the source text of every crate of the workspace. A failure prints each circle or upward arrow with the names that tie
//! it: move these names to the file that they belong in, or to a file below both.

mod arrows;
mod order;
mod planted;
mod source;

use arrows::Arrows;
use source::Source;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// The crates from the bottom up: each depends on those of lower lines alone.
const CRATES: &[&[&str]] = &[
    &["core", "cyclescope-worker", "plot"],
    &["code", "ab"],
    &["exec"],
    &["measure"],
    &["run", "marker", "uarch", "doctor"],
    &["evaluate", "instr"],
    &["cyclescope"],
    &["cyclescope-cli", "cyclescope-bench", "cyclescope-guest"],
];

/// The rooms of crates that have several floors, from the bottom up; those of one line stand on the same floor.
const ROOMS: &[(&str, &[&[&str]])] = &[
    ("core", &[&["unit", "error", "input", "random", "statistics"], &["machine"], &["lib"]]),
    ("code", &[&["context"], &["asm"], &["clock"], &["program", "snippet"], &["lib"]]),
];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate is in a folder of crates").to_path_buf()
}

/// The folder of a crate in [`CRATES`], by the name that Cargo has for it.
fn folder(name: &str) -> Option<String> {
    let short = name.strip_prefix("cyclescope-").unwrap_or(name);
    [short, name].into_iter().find(|folder| crates().join(folder).is_dir()).map(str::to_string)
}

/// The source of each crate; a crate of a library and a program has two.
fn sources() -> Vec<(String, Source)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(crates()).expect("there is a folder of crates") {
        let name = entry.expect("it can be listed").file_name().into_string().expect("names are text");
        let roots = ["lib.rs", "main.rs"].map(|root| Path::new(&name).join("src").join(root));
        for root in roots.iter().filter(|root| crates().join(root).is_file()) {
            let read = |file: &Path| std::fs::read_to_string(crates().join(file)).ok();
            all.push((name.clone(), Source::read(root, &read)));
        }
    }
    all
}

/// The arrows of each crate, its files named from the folder of all crates.
static ARROWS: LazyLock<BTreeMap<String, Arrows>> = LazyLock::new(|| {
    let (mut all, sources) = (BTreeMap::new(), sources());
    for (name, source) in &sources {
        let others = sources.iter().filter(|(other, _)| other != name);
        let elsewhere = others.flat_map(|(_, source)| arrows::methods(source)).collect();
        all.entry(name.clone()).or_insert_with(Arrows::new).extend(arrows::arrows(source, &elsewhere));
    }
    all
});

#[test]
fn no_files_use_each_other_in_a_circle() {
    let circles: Vec<String> = ARROWS.values().flat_map(order::circles_of_files).collect();
    assert!(ARROWS.len() > 15, "{} crates are few", ARROWS.len());
    assert!(circles.is_empty(), "{} circles of files:\n{}", circles.len(), circles.join("\n"));
}

#[test]
fn no_rooms_use_each_other_in_a_circle() {
    let rooms =
        |(name, arrows): (&String, &Arrows)| order::circles_of_rooms(arrows, &Path::new(name).join("src"));
    let circles: Vec<String> = ARROWS.iter().flat_map(rooms).collect();
    assert!(circles.is_empty(), "{} circles of rooms:\n{}", circles.len(), circles.join("\n"));
}

#[test]
fn arrows_point_down_the_order_of_rooms() {
    for (name, floors) in ROOMS {
        let found = order::upward(&ARROWS[*name], &Path::new(name).join("src"), floors);
        assert!(found.is_empty(), "{} faults in the order of {name}:\n{}", found.len(), found.join("\n"));
    }
}

/// The crates of the workspace that a crate needs for what it ships, by their folders.
fn needed(name: &str) -> BTreeSet<String> {
    let manifest = std::fs::read_to_string(crates().join(name).join("Cargo.toml")).expect("a manifest");
    let shipped = manifest.split("\n[dependencies]\n").nth(1).unwrap_or_default();
    let shipped = shipped.split("\n[").next().unwrap_or_default();
    let names = shipped.lines().filter_map(|line| line.split(['.', ' ', '=']).next());
    names.filter(|name| name.starts_with("cyclescope")).filter_map(folder).collect()
}

#[test]
fn crates_need_those_below_them_alone() {
    let floor = |name: &str| CRATES.iter().position(|floor| floor.contains(&name));
    for name in CRATES.iter().copied().flatten() {
        for below in needed(name).iter().filter(|below| *below != "cyclescope-clock") {
            let lower = floor(below).is_some_and(|below| Some(below) < floor(name));
            assert!(lower, "{name} needs {below}, which does not stand below it");
        }
    }
}

#[test]
fn nothing_simulated_is_shipped() {
    let simulated: Vec<&String> = ARROWS.keys().filter(|name| needed(name).contains("sim")).collect();
    assert!(simulated.is_empty(), "{simulated:?} ship simulated machines");
}
