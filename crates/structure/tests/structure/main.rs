//! The structure of the code: crates, rooms and files use only lower ones, and never each other in
//! a circle.
//!
//! Reads the source text of every crate of the workspace. A failure prints each circle or upward
//! arrow with the names that cause it. Move these names to the file that they belong in, or to a
//! file below both.

mod arrows;
mod claims;
mod contributing;
mod example_crates;
mod order;
mod platform;
mod security;
mod source;

use arrows::Arrows;
use claims::{Act, Claim, Within};
use source::Source;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// The crates from the bottom up. Each depends only on those of earlier lines.
const CRATES: &[&[&str]] = &[
    &["platform"],
    &["core", "worker", "plot"],
    &["code"],
    &["events", "marker-designs"],
    &["exec"],
    &["measure"],
    &["run", "doctor"],
    // Studies: all crates that no list names.
    &[],
    // Studies that measure with another one.
    &["ports"],
    &["cyclescope"],
    &["cli", "bench", "guest"],
];

/// The line of the studies.
const STUDIES_FLOOR: usize = 7;

/// Crates outside the order: those that users link to their programs, and those that only tests
/// use.
const OUTSIDE_ORDER: &[&str] = &["clock", "fuzz", "sim", "skipped", "structure"];

/// The rooms of crates with several floors, from the bottom up. Rooms of one line are on the same
/// floor.
const ROOMS: &[(&str, &[&[&str]])] = &[
    ("core", &[&["unit", "error", "input", "random", "statistics"], &["machine"], &["lib"]]),
    ("code", &[&["context"], &["asm"], &["pasted"], &["clock"], &["program", "snippet"], &["lib"]]),
];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate is in a folder of crates").to_path_buf()
}

/// The folder of a crate in [`CRATES`], by its name in Cargo.
fn folder(name: &str) -> Option<String> {
    let short = name.strip_prefix("cyclescope-").unwrap_or(name);
    [short, name].into_iter().find(|folder| crates().join(folder).is_dir()).map(str::to_string)
}

/// The source of all crates, with file names relative to the folder of all crates.
static SOURCE: LazyLock<Source> = LazyLock::new(|| {
    let mut source = Source::default();
    for folder in folders() {
        let name = if folder == "cyclescope" { folder.clone() } else { format!("cyclescope_{folder}") };
        let roots = ["lib.rs", "main.rs"].map(|root| Path::new(&folder).join("src").join(root));
        for root in roots.iter().filter(|root| crates().join(root).is_file()) {
            let read = |file: &Path| std::fs::read_to_string(crates().join(file)).ok();
            source.read(&name, root, &read);
        }
    }
    source
});

static ARROWS: LazyLock<Arrows> = LazyLock::new(|| arrows::arrows(&SOURCE));

/// The names of all crates' folders.
fn folders() -> Vec<String> {
    let entries = std::fs::read_dir(crates()).expect("there is a folder of crates");
    let names = entries.map(|entry| entry.expect("it can be listed").file_name());
    let mut names: Vec<String> = names.map(|name| name.into_string().expect("names are text")).collect();
    names.sort();
    names
}

/// The index of a crate in [`CRATES`]; `None` for a crate outside the order.
fn floor(name: &str) -> Option<usize> {
    let listed = CRATES.iter().position(|floor| floor.contains(&name));
    listed.or((!OUTSIDE_ORDER.contains(&name)).then_some(STUDIES_FLOOR))
}

/// The source of all crates on these floors.
fn sources(floors: std::ops::RangeInclusive<usize>) -> Vec<String> {
    let names = folders().into_iter().filter(|name| floor(name).is_some_and(|floor| floors.contains(&floor)));
    names.map(|name| format!("{name}/src/")).collect()
}

/// The studies, including the part that `run` measures with.
static STUDIES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let mut studies = sources(STUDIES_FLOOR..=STUDIES_FLOOR + 1);
    studies.push("run/src/".to_string());
    studies
});

/// The library: everything that users of the crate `cyclescope` call.
static LIBRARY: LazyLock<Vec<String>> = LazyLock::new(|| sources(0..=STUDIES_FLOOR + 2));

/// Claims of the library's comments. Each exception has its reason in a comment.
const CLAIMS: &[Claim] = &[
    Claim {
        text: "only the runner and executors build batches",
        act: Act::Builds("Batch"),
        within: Within::Library,
        by: &["exec/src/", "measure/src/schedule.rs"],
    },
    Claim {
        text: "only the runner and executors run batches",
        act: Act::Names("exec/src/batch.rs", "Batch"),
        within: Within::Library,
        by: &[
            "exec/src/",
            "measure/src/schedule.rs",
            // Evidence lies between the runner and an executor.
            "measure/src/result/",
            // Two CPUs that exchange messages each run a batch at the same time.
            "uarch/src/remotes.rs",
        ],
    },
    Claim {
        text: "only the runner receives samples while a batch runs",
        act: Act::Calls("stream"),
        within: Within::Library,
        by: &["exec/src/", "measure/src/schedule.rs", "measure/src/result/recording.rs"],
    },
    Claim {
        text: "only contents of areas, which no worker can write, are borrowed as memory",
        act: Act::Calls("contents_mut"),
        within: Within::Library,
        by: &["exec/src/user/areas/mod.rs"],
    },
    Claim {
        text: "only the policy for a busy sibling pauses a measurement",
        act: Act::Calls("pause"),
        within: Within::Library,
        // A recording passes the pause on.
        by: &["measure/src/sibling.rs", "measure/src/result/recording.rs"],
    },
    Claim {
        text: "only the policy for a busy sibling leaves out shared samples",
        act: Act::Calls("is_alone"),
        within: Within::Library,
        by: &[
            "measure/src/sibling.rs",
            // Compares the width of a core with and without a busy sibling.
            "doctor/src/siblings.rs",
            // Rounds next to a shared one are left out too.
            "evaluate/src/resolution/round_ruler.rs",
            // Shared rounds are kept separately until all passes are done.
            "instr/src/experiments/timing/round_reader.rs",
            // Reports the share of time that was shared.
            "uarch/src/conditions.rs",
        ],
    },
    Claim {
        text: "only the ruler reads raw samples in core cycles",
        act: Act::Names("exec/src/batch.rs", "Sample"),
        within: Within::Library,
        by: &[
            "exec/src/",
            "measure/src/ruler/",
            "measure/src/schedule.rs",
            "measure/src/result/",
            // The times of rounds and of samples, in raw units.
            "measure/src/rounds.rs",
            "doctor/src/siblings.rs",
            // States and executions that programs recorded instead of times.
            "measure/src/steadiness/call_paths.rs",
            "measure/src/steadiness/snippet_probe.rs",
            // The paper's figures, in raw units.
            "evaluate/src/ensemble_reader.rs",
            "evaluate/src/sampling.rs",
            "evaluate/src/trimmed_ensemble.rs",
            // Calls that a program counted instead of a time.
            "marker/src/answered_bench.rs",
            "marker/src/user.rs",
        ],
    },
    Claim {
        text: "executors and benches compute no statistics",
        act: Act::Uses(&["core/src/statistics/"]),
        within: Within::These(&["exec/src/", "marker/src/bench.rs"]),
        by: &[],
    },
    Claim {
        text: "studies name no executor",
        act: Act::Uses(&["exec/src/user/", "exec/src/kernel/", "sim/src/"]),
        within: Within::Studies,
        by: &[
            // Each bench of `marker` has code that only its executor can hold.
            "marker/src/catalog.rs",
            "marker/src/kernel/",
            "marker/src/static_program.rs",
            "marker/src/user.rs",
            // Code that the kernel module refuses is skipped for its reason.
            "instr/src/experiments/ring_0.rs",
            "instr/src/forms/privileged.rs",
            "instr/src/forms/skip.rs",
        ],
    },
    Claim {
        text: "nothing shipped sleeps in a way that panics where a filter refuses it",
        act: Act::NamesForeign(&["thread", "sleep"]),
        within: Within::Everything,
        by: &["bench/src/"],
    },
    Claim {
        text: "the library never prints",
        act: Act::Invokes(&["print", "println", "eprint", "eprintln", "dbg"]),
        within: Within::Library,
        by: &[],
    },
];

#[test]
fn no_files_use_each_other_in_a_circle() {
    let circles = order::circles_of_files(&ARROWS);
    assert!(SOURCE.roots.len() > 15, "{} crates are few", SOURCE.roots.len());
    assert!(circles.is_empty(), "{} circles of files:\n{}", circles.len(), circles.join("\n"));
}

#[test]
fn no_rooms_use_each_other_in_a_circle() {
    let circles = order::circles_of_rooms(&ARROWS, Path::new(""));
    assert!(circles.is_empty(), "{} circles of rooms:\n{}", circles.len(), circles.join("\n"));
}

#[test]
fn arrows_point_down_the_order_of_rooms() {
    for (name, floors) in ROOMS {
        let found = order::upward(&ARROWS, &Path::new(name).join("src"), floors);
        assert!(found.is_empty(), "{} faults in the order of {name}:\n{}", found.len(), found.join("\n"));
    }
}

/// The crates of the workspace that a crate ships, by their folders.
fn needed(name: &str) -> BTreeSet<String> {
    let manifest = std::fs::read_to_string(crates().join(name).join("Cargo.toml")).expect("a manifest");
    let shipped = manifest.split("\n[dependencies]\n").nth(1).unwrap_or_default();
    let shipped = shipped.split("\n[").next().unwrap_or_default();
    let names = shipped.lines().filter_map(|line| line.split(['.', ' ', '=']).next());
    names.filter(|name| name.starts_with("cyclescope")).filter_map(folder).collect()
}

#[test]
fn crates_need_only_lower_crates() {
    for name in folders().iter().filter(|name| floor(name).is_some()) {
        for below in needed(name).iter().filter(|below| *below != "clock") {
            let lower = floor(below).is_some_and(|below| Some(below) < floor(name));
            assert!(lower, "{name} needs {below}, which is not below it");
        }
    }
}

#[test]
fn nothing_simulated_is_shipped() {
    let shipped = folders().into_iter().filter(|name| floor(name).is_some());
    let simulated: Vec<String> = shipped.filter(|name| needed(name).contains("sim")).collect();
    assert!(simulated.is_empty(), "{simulated:?} ship simulated machines");
}

/// The files that a claim is about.
fn within(claim: &Claim) -> Vec<String> {
    match claim.within {
        Within::Everything => Vec::new(),
        Within::Library => LIBRARY.clone(),
        Within::Studies => STUDIES.clone(),
        Within::These(places) => places.iter().map(|place| place.to_string()).collect(),
    }
}

#[test]
fn claims_of_comments_are_true() {
    let mut found = Vec::new();
    for claim in CLAIMS {
        let faults = claims::broken(&SOURCE, &ARROWS, Path::new(""), claim, &within(claim));
        found.extend((!faults.is_empty()).then(|| format!("{}:\n{}", claim.text, faults.join("\n"))));
    }
    assert!(found.is_empty(), "{} claims are false:\n{}", found.len(), found.join("\n"));
}
