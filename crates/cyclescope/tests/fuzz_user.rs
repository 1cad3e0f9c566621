//! Random bytes and random instructions as snippets: each is a result or a typed error, and the calling process loses nothing.
//!
//! `CYCLESCOPE_FUZZ_SNIPPETS` sets how many, `CYCLESCOPE_FUZZ_SEED` which. VMCALL and VMMCALL are left out:
//! they reach the hypervisor, and no filter of this system sees them.

#[path = "worker/support.rs"]
mod support;

use cyclescope::error::RunError;
use iced_x86::{Decoder, DecoderOptions};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use support::*;

/// `vmcall` and `vmmcall`.
const HYPERVISOR_CALLS: [&[u8]; 2] = [&[0x0f, 0x01, 0xc1], &[0x0f, 0x01, 0xd9]];

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// SplitMix64.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn bytes(state: &mut u64, length: u64) -> Vec<u8> {
    (0..length).map(|_| random(state) as u8).collect()
}

/// Bytes as they come, or a few instructions found among them, which get further before they fault.
fn snippet(state: &mut u64) -> Vec<u8> {
    if random(state) & 1 == 0 {
        let length = 1 + random(state) % 16;
        return bytes(state, length);
    }
    let mut snippet = Vec::new();
    for _ in 0..1 + random(state) % 6 {
        snippet.extend(loop {
            let bytes = bytes(state, 15);
            let instruction = Decoder::new(64, &bytes, DecoderOptions::NONE).decode();
            if !instruction.is_invalid() {
                break bytes[..instruction.len()].to_vec();
            }
        });
    }
    snippet
}

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("/proc").count()
}

fn children() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").expect("/proc");
    let of_task = |task: std::io::Result<std::fs::DirEntry>| {
        let path = task.expect("a task").path().join("children");
        std::fs::read_to_string(path).map_or(0, |list| list.split_whitespace().count())
    };
    tasks.map(of_task).sum()
}

fn kind(result: &Result<Vec<cyclescope::executor::Sample>, RunError>) -> String {
    match result {
        Ok(_) => "ended".to_owned(),
        Err(RunError::Fault { signal, .. }) => (*signal).to_owned(),
        Err(RunError::Hung { .. }) => "hung".to_owned(),
        Err(RunError::DirtyCanary { fence }) => format!("{fence} damaged"),
        Err(RunError::WorkerLost { how }) => format!("worker lost: {how}"),
        Err(
            error @ (RunError::System { .. }
            | RunError::Machinery { .. }
            | RunError::Refused { .. }
            | RunError::BadBatch(_)
            | RunError::Replay { .. }
            | RunError::Unavailable(_)
            | RunError::Exception { .. }
            | RunError::Late { .. }),
        ) => {
            panic!("{error}")
        }
    }
}

#[test]
fn random_bytes_do_no_harm() {
    let count = from_environment("CYCLESCOPE_FUZZ_SNIPPETS", 20_000);
    let mut state = from_environment("CYCLESCOPE_FUZZ_SEED", 1);
    let before = (open_files(), children());
    let mut user = spawn();
    let mut outcomes: BTreeMap<String, (u64, Duration)> = BTreeMap::new();
    let start = Instant::now();
    for number in 0..count {
        let bytes = snippet(&mut state);
        if HYPERVISOR_CALLS.iter().any(|call| bytes.windows(3).any(|window| window == *call)) {
            continue;
        }
        let one = Instant::now();
        let result = run_once(&mut user, &bytes, Duration::from_millis(20));
        let outcome = outcomes.entry(kind(&result)).or_default();
        outcome.0 += 1;
        outcome.1 += one.elapsed();
        if number % 2_000 == 1_999 {
            assert_measures(&mut user, &format!("snippet {number}: {bytes:02x?}"));
        }
    }
    println!("{count} snippets, {:.0} per second", count as f64 / start.elapsed().as_secs_f64());
    for (outcome, (count, time)) in &outcomes {
        println!("{count:8} {outcome}, {:.0} µs each", time.as_micros() as f64 / *count as f64);
    }
    drop(user);
    assert_eq!((open_files(), children()), before, "open files and children");
    assert!(outcomes.contains_key("ended") && outcomes.contains_key("SIGSEGV"), "{outcomes:?}");
}
