//! The structure of the code: files use each other without circles, and rooms only what stands below them.
//!
//! Reads the source text of every crate of the workspace. A failure prints each circle or upward arrow with the names that tie
//! it: move these names to the file that they belong in, or to a file below both.

mod arrows;
mod order;
mod planted;
mod source;

use arrows::Arrows;
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

/// The arrows of a crate, its files named from the folder of all crates.
fn arrows_of(name: &str, root: &str) -> Arrows {
    let read = |file: &Path| std::fs::read_to_string(crates().join(file)).ok();
    arrows::arrows(&Source::read(&Path::new(name).join("src").join(root), &read))
}

static LIBRARY: LazyLock<Arrows> = LazyLock::new(|| arrows_of("cyclescope", "lib.rs"));

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
    let mut circles = order::circles_of_rooms(&LIBRARY, Path::new("cyclescope/src"));
    let command_line = arrows_of("cyclescope-cli", "main.rs");
    circles.extend(order::circles_of_rooms(&command_line, Path::new("cyclescope-cli/src")));
    assert!(circles.is_empty(), "{} circles of rooms:\n{}", circles.len(), circles.join("\n"));
}

#[test]
fn arrows_point_down_the_order_of_rooms() {
    let found = order::upward(&LIBRARY, Path::new("cyclescope/src"), ORDER);
    assert!(found.is_empty(), "{} faults in the order:\n{}", found.len(), found.join("\n"));
}
