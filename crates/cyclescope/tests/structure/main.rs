//! The structure of the code: files use each other without circles, and rooms only what stands below them.
//!
//! Reads the source text of every crate of the workspace. A failure prints each circle or upward arrow with the names that tie
//! it: move these names to the file that they belong in, or to a file below both.

mod arrows;
mod claims;
mod order;
mod planted;
mod source;

use arrows::Arrows;
use claims::{Act, Claim};
use source::Source;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// The library's rooms from the bottom up; those of one line stand on the same floor.
const ORDER: &[&[&str]] = &[
    &["unit", "error", "input", "random", "statistics", "context", "plot"],
    &["machine"],
    &["asm"],
    &["clock"],
    &["program", "snippet"],
    &["executor"],
    &["ruler", "placement"],
    &["measure"],
    &["result", "run", "doctor", "study"],
    &["scope"],
    &["lib"],
];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate is in a folder of crates").to_path_buf()
}

/// What comments of the library claim. Whoever else does it has a reason beside its name.
const CLAIMS: &[Claim] = &[
    Claim {
        text: "only the runner and executors build batches",
        act: Act::Builds("Batch"),
        within: &[],
        by: &["executor/", "measure/schedule.rs"],
    },
    Claim {
        text: "only the runner and executors run batches",
        act: Act::Names("executor/batch.rs", "Batch"),
        within: &[],
        by: &[
            "executor/",
            "measure/schedule.rs",
            // Evidence stands between the runner and an executor.
            "result/",
            // Two CPUs that exchange messages run a batch each at the same time.
            "study/uarch/remotes.rs",
        ],
    },
    Claim {
        text: "only the runner has samples handed over while a batch runs",
        act: Act::Calls("stream"),
        within: &[],
        by: &["executor/", "measure/schedule.rs", "result/recording.rs"],
    },
    Claim {
        text: "only the policy beside a busy sibling pauses a measurement",
        act: Act::Calls("pause"),
        within: &[],
        // A recording hands the pause on.
        by: &["measure/sibling.rs", "result/recording.rs"],
    },
    Claim {
        text: "only the policy beside a busy sibling leaves out what was shared",
        act: Act::Calls("is_alone"),
        within: &[],
        by: &[
            "measure/sibling.rs",
            // Of the width of one core beside another.
            "doctor/siblings.rs",
            // Rounds next to a shared one are left out too.
            "study/evaluate/resolution/ruled.rs",
            // Shared rounds are kept apart until all passes are done.
            "study/instr/experiments/timing.rs",
            // How much of the time it was shared.
            "study/uarch/conditions.rs",
        ],
    },
    Claim {
        text: "only the ruler reads raw samples in core cycles",
        act: Act::Names("executor/batch.rs", "Sample"),
        within: &[],
        by: &[
            "executor/",
            "ruler/",
            "measure/schedule.rs",
            "result/",
            // The moments of rounds and of samples, in raw units.
            "measure/rounds.rs",
            "doctor/siblings.rs",
            // The paper's figures, in raw units.
            "study/evaluate/reader.rs",
            "study/evaluate/sampling.rs",
            "study/evaluate/trimmed.rs",
            // Calls that a program counted in place of a time.
            "study/marker/answered.rs",
            "study/marker/user.rs",
        ],
    },
    Claim {
        text: "executors and benches compute no statistics",
        act: Act::Uses(&["statistics/"]),
        within: &["executor/", "study/marker/bench.rs"],
        by: &[],
    },
    Claim {
        text: "studies name no executor",
        act: Act::Uses(&["executor/user/", "executor/kernel/", "executor/mock/"]),
        within: &["study/"],
        by: &[
            // Each of marker's benches has code that only its executor can hold.
            "study/marker/catalog.rs",
            "study/marker/kernel/",
            "study/marker/user.rs",
            // What the kernel module refuses is skipped for its reason.
            "study/instr/experiments/ring_0.rs",
            "study/instr/forms/privileged.rs",
            "study/instr/forms/skip.rs",
        ],
    },
    Claim {
        text: "the library never prints",
        act: Act::Invokes(&["print", "println", "eprint", "eprintln", "dbg"]),
        within: &[],
        by: &[],
    },
];

/// A crate, its files named from the folder of all crates.
fn read(name: &str, root: &str) -> Source {
    let read = |file: &Path| std::fs::read_to_string(crates().join(file)).ok();
    Source::read(&Path::new(name).join("src").join(root), &read)
}

/// The arrows of a crate.
fn arrows_of(name: &str, root: &str) -> Arrows {
    arrows::arrows(&read(name, root))
}

static SOURCE: LazyLock<Source> = LazyLock::new(|| read("cyclescope", "lib.rs"));
static LIBRARY: LazyLock<Arrows> = LazyLock::new(|| arrows::arrows(&SOURCE));

#[test]
fn no_files_use_each_other_in_a_circle() {
    let mut circles = order::circles_of_files(&LIBRARY);
    for name in ["cyclescope-cli", "cyclescope-bench", "cyclescope-guest"] {
        circles.extend(order::circles_of_files(&arrows_of(name, "main.rs")));
    }
    circles.extend(order::circles_of_files(&arrows_of("cyclescope-worker", "lib.rs")));
    assert!(circles.is_empty(), "{} circles of files:\n{}", circles.len(), circles.join("\n"));
}

#[test]
fn no_rooms_use_each_other_in_a_circle() {
    let circles = order::circles_of_rooms(&LIBRARY, Path::new("cyclescope/src"));
    assert!(circles.is_empty(), "{} circles of rooms:\n{}", circles.len(), circles.join("\n"));
}

#[test]
fn arrows_point_down_the_order_of_rooms() {
    let found = order::upward(&LIBRARY, Path::new("cyclescope/src"), ORDER);
    assert!(found.is_empty(), "{} faults in the order:\n{}", found.len(), found.join("\n"));
}

#[test]
fn what_comments_claim_is_so() {
    let mut found = Vec::new();
    for claim in CLAIMS {
        let faults = claims::broken(&SOURCE, &LIBRARY, Path::new("cyclescope/src"), claim);
        found.extend((!faults.is_empty()).then(|| format!("{}:\n{}", claim.text, faults.join("\n"))));
    }
    assert!(found.is_empty(), "{} claims are false:\n{}", found.len(), found.join("\n"));
}
