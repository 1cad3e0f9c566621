//! Where in a page the heap goes on, by the protocol of `cyclescope ab`.
#![cfg(all(feature = "std", target_os = "linux", target_env = "gnu"))]

use cyclescope_clock::ab::Samples;
use std::process::Command;

const LAYOUT: &str = "CYCLESCOPE_AB_LAYOUT";
/// Longer than what glibc keeps of freed blocks for the next of that length, and shorter than what is mapped by itself (malloc(3), mallopt(3)).
const LONG: usize = 70_000;

/// Runs this test alone, with a text of so many bytes, and returns how far from each other two allocations were around the first look for
/// samples.
fn apart(layout: usize) -> i64 {
    let program = std::env::current_exe().expect("a path");
    let output = Command::new(program)
        .args(["--exact", "the_first_look_for_samples_moves_the_heap", "--nocapture", "--test-threads=1"])
        .env(LAYOUT, "x".repeat(layout))
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout);
    let number = said.lines().find_map(|line| line.split_once("apart ")?.1.parse().ok());
    number.unwrap_or_else(|| panic!("{said}"))
}

#[test]
fn the_first_look_for_samples_moves_the_heap() {
    if std::env::var_os(LAYOUT).is_some() {
        let before: Vec<u8> = Vec::with_capacity(LONG);
        let samples = Samples::from_environment();
        let behind: Vec<u8> = Vec::with_capacity(LONG);
        assert!(samples.is_none());
        println!("\napart {}", behind.as_ptr() as i64 - before.as_ptr() as i64);
        return;
    }
    let [none, some] = [0, 2000].map(apart);
    assert!((1984..2032).contains(&(some - none)), "{none} and {some}");
}
