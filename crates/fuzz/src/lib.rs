//! Mutated inputs for readers of files, random from a seed, on any toolchain.
//!
//! A reader gets mutated copies of good inputs, and must answer each with a value or an error. A
//! panic or an input that takes too long is a finding, whose bytes are written to a file. The
//! printed line shows unbounded use of memory.
//!
//! By default a run is short, so that it is part of every test run.
//! `CYCLESCOPE_FUZZ_INPUTS=1000000` sets the number of inputs of each reader and lifts the time
//! limit. `CYCLESCOPE_FUZZ_CORPUS=DIR` writes the good inputs to a folder per reader, where the
//! targets of `fuzz/` start.

mod bytes;
mod fields;
mod json;
mod obedience;
mod random;

pub use obedience::{find_formula, find_terminal_command};
pub use random::FuzzRandom;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::Duration;

/// The format of a reader's inputs, which decides on their mutations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputShape {
    /// Any bytes: they change, and pieces are removed, repeated, or taken from another input.
    Bytes,
    /// A JSON value: fields change, are removed or repeated, or get the value of another field.
    /// Half of the inputs are mutated as bytes.
    Json,
    /// Lines of JSON, mutated as values and as bytes.
    JsonLines,
    /// A JSON value that was parsed before the reader gets it, so that it is never cut.
    WholeJson,
    /// A table in CSV: cells change, and half of the inputs are mutated as bytes.
    Table,
    /// Lines of JSON or a table that stay whole: only fields change, in their types, numbers and
    /// texts.
    Fields,
}

/// Largest number of inputs of a short run.
const SHORT_RUN_INPUTS: u64 = 3_000;
/// Largest processor time of a short run.
const SHORT_RUN_TIME: Duration = Duration::from_millis(1_500);
/// Processor time after which an input counts as a hang.
const HANG_TIME: Duration = Duration::from_secs(20);

/// Feeds a reader with mutated copies of these inputs, after the inputs themselves.
///
/// # Panics
///
/// At the first finding, with the name of the file that holds the input.
pub fn fuzz_reader(name: &str, shape: InputShape, seeds: &[Vec<u8>], read: impl Fn(&[u8])) {
    write_corpus(name, seeds);
    let asked = std::env::var("CYCLESCOPE_FUZZ_INPUTS").ok().and_then(|text| text.parse().ok());
    let first = std::env::var("CYCLESCOPE_FUZZ_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let (inputs, time) = asked.map_or((SHORT_RUN_INPUTS, SHORT_RUN_TIME), |inputs| (inputs, Duration::MAX));
    let begun = thread_time();
    let (mut longest, mut number) = (Duration::ZERO, 0);
    while number < inputs && thread_time() - begun < time {
        let input = make_input(shape, seeds, first, number);
        let started = thread_time();
        let answer = catch_unwind(AssertUnwindSafe(|| read(&input)));
        let took = thread_time() - started;
        longest = longest.max(took);
        let why = if answer.is_err() { "a panic" } else { "it takes too long" };
        assert!(
            answer.is_ok() && took < HANG_TIME,
            "{name}, input {number} of seed {first}: {why}; see {}",
            write_finding(name, number, &input).display()
        );
        number += 1;
    }
    println!(
        "fuzz: {name}: {number} inputs in {:.1} s, the longest took {:.1} ms, memory up to {} MiB",
        (thread_time() - begun).as_secs_f64(),
        longest.as_secs_f64() * 1e3,
        peak_memory_mib()
    );
}

/// A copy of a file of lines or of a table with changed fields, the same for each number.
pub fn mutate_real_file(seed: &[u8], number: u64) -> Vec<u8> {
    fields::mutate_fields(seed, seed, &mut FuzzRandom::new(1, number))
}

/// The processor time of this thread, which other programs on a busy machine do not lengthen.
pub fn thread_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure lives through the call.
    let done = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(done, 0, "every Linux has this clock");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The input of this number.
fn make_input(shape: InputShape, seeds: &[Vec<u8>], first: u64, number: u64) -> Vec<u8> {
    if let Some(seed) = seeds.get(number as usize) {
        return seed.clone();
    }
    let random = &mut FuzzRandom::new(first, number);
    let seed = random.pick(seeds);
    let other = random.pick(seeds);
    match shape {
        InputShape::Bytes => bytes::mutate_bytes(seed, other, random),
        InputShape::Json | InputShape::JsonLines if random.below(2) == 0 => bytes::mutate_bytes(seed, other, random),
        InputShape::Json | InputShape::JsonLines if random.below(2) == 0 => fields::mutate_fields(seed, other, random),
        InputShape::Json | InputShape::WholeJson => json::mutate_json(seed, other, random),
        InputShape::JsonLines => json::mutate_lines(seed, other, random),
        InputShape::Table if random.below(2) == 0 => bytes::mutate_bytes(seed, other, random),
        InputShape::Table | InputShape::Fields => fields::mutate_fields(seed, other, random),
    }
}

fn write_corpus(name: &str, seeds: &[Vec<u8>]) {
    let Some(folder) = std::env::var_os("CYCLESCOPE_FUZZ_CORPUS") else { return };
    let folder = PathBuf::from(folder).join(name);
    std::fs::create_dir_all(&folder).expect("the folder can be made");
    for (number, seed) in seeds.iter().enumerate() {
        std::fs::write(folder.join(format!("seed-{number}")), seed).expect("the folder has room");
    }
}

/// Writes an input that is a finding to a file.
fn write_finding(name: &str, number: u64, input: &[u8]) -> PathBuf {
    let path = std::env::temp_dir().join(format!("cyclescope-finding-{name}-{number}-{}", std::process::id()));
    // Its number identifies the input, even if no file could be written.
    let _ = std::fs::write(&path, input);
    path
}

/// The peak memory of this process.
fn peak_memory_mib() -> u64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: fills the structure, which lives through the call.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    usage.ru_maxrss as u64 >> 10
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn inputs_are_reproducible_and_mostly_mutated() {
        let seed = br#"{"a": [1, 2.5, "x"], "b": {"c": null}}"#.to_vec();
        for shape in [
            InputShape::Bytes,
            InputShape::Json,
            InputShape::JsonLines,
            InputShape::WholeJson,
            InputShape::Table,
            InputShape::Fields,
        ] {
            let all: Vec<Vec<u8>> =
                (0..500).map(|number| make_input(shape, std::slice::from_ref(&seed), 1, number)).collect();
            assert_eq!(all[0], seed);
            let again = (0..500).map(|number| make_input(shape, std::slice::from_ref(&seed), 1, number));
            assert!(again.eq(all.iter().cloned()));
            let others: std::collections::BTreeSet<_> = all.iter().collect();
            assert!(others.len() > 150, "{shape:?} {}", others.len());
            let is_json = |input: &Vec<u8>| serde_json::from_slice::<Value>(input).is_ok();
            assert!(shape != InputShape::WholeJson || all.iter().all(is_json));
        }
    }

    #[test]
    fn mutated_fields_leave_most_lines_readable() {
        let seed = br#"{"kind":"a","cost":{"value":2.5,"low":2,"high":3,"unit":"ns"},"name":"x","list":[1]}"#.to_vec();
        let all: Vec<Vec<u8>> =
            (1..2_000).map(|number| make_input(InputShape::Fields, std::slice::from_ref(&seed), 1, number)).collect();
        let read = |input: &Vec<u8>| serde_json::from_slice::<Value>(input).ok();
        let values: Vec<Value> = all.iter().filter_map(read).collect();
        assert!(values.len() > all.len() / 2, "{}", values.len());
        let has = |is: &dyn Fn(&Value) -> bool| values.iter().any(is);
        assert!(has(&|line| line["cost"]["value"].is_string()) && has(&|line| line["name"].is_number()));
        assert!(has(&|line| line["cost"]["low"].as_f64() > line["cost"]["high"].as_f64()));
        assert!(has(&|line| line["name"].as_str().is_some_and(|name| name.contains('\u{1b}'))));
        assert!(has(&|line| line.get("cost").is_none()) && has(&|line| line["cost"]["unit"] == "core_cycles"));
        let contains = |part: &[u8]| all.iter().any(|input| input.windows(part.len()).any(|own| own == part));
        assert!(
            contains(b"1e400") && contains(b"\\ud800") && contains(b"\xff") && contains(b"\"kind\":\"a\",\"kind\"")
        );
    }

    #[test]
    fn a_reader_that_panics_is_found_with_its_input() {
        let read = |input: &[u8]| assert!(input.len() != 2);
        let found = catch_unwind(|| fuzz_reader("planted", InputShape::Bytes, &[vec![1, 2, 3]], read));
        let said = *found.expect_err("the reader panics").downcast::<String>().expect("a text");
        let (what, file) = said.split_once("; see ").expect("the file of the finding");
        assert!(what.ends_with("a panic"), "{said}");
        assert_eq!(std::fs::read(file).expect("a file").len(), 2);
        std::fs::remove_file(file).expect("a file");
    }
}
