//! Tests that the heap moves within a page, by the protocol of `cyclescope ab`.
#![cfg(all(feature = "std", target_os = "linux", target_env = "gnu"))]

use cyclescope_clock::ab::Samples;
use std::process::Command;

const LAYOUT: &str = "CYCLESCOPE_AB_LAYOUT";
/// Longer than the freed blocks that glibc keeps for reuse, and shorter than blocks that are mapped
/// separately (malloc(3), mallopt(3)).
const LONG: usize = 70_000;

/// Runs this test alone, with a text of `layout` bytes. Returns the distance of two allocations
/// around the first check for samples.
fn apart(layout: usize) -> i64 {
    let program = std::env::current_exe().expect("a path");
    let output = Command::new(program)
        .args(["--exact", "the_first_check_for_samples_moves_the_heap", "--nocapture", "--test-threads=1"])
        .env(LAYOUT, "x".repeat(layout))
        .output()
        .expect("it runs");
    let printed = String::from_utf8_lossy(&output.stdout);
    let number = printed.lines().find_map(|line| line.split_once("apart ")?.1.parse().ok());
    number.unwrap_or_else(|| panic!("{printed}"))
}

#[test]
fn the_first_check_for_samples_moves_the_heap() {
    if std::env::var_os(LAYOUT).is_some() {
        let before: Vec<u8> = Vec::with_capacity(LONG);
        let samples = Samples::from_environment();
        let behind: Vec<u8> = Vec::with_capacity(LONG);
        assert!(samples.is_none());
        println!("\napart {}", behind.as_ptr() as i64 - before.as_ptr() as i64);
        return;
    }
    let [without, with] = [0, 2000].map(apart);
    assert!((1984..2032).contains(&(with - without)), "{without} and {with}");
}
