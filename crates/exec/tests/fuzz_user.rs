//! Random bytes, random instructions and result forgers as snippets. Each ends with a result or a
//! typed error, and the calling process loses nothing.
//!
//! A forger keeps writing a worker's answer and readings, whether requested or not. Whatever it
//! achieves for itself, the next snippet's result must be genuine.
//!
//! `CYCLESCOPE_FUZZ_SNIPPETS` sets their number, `CYCLESCOPE_FUZZ_SEED` the seed. VMCALL and
//! VMMCALL are left out: they reach the hypervisor, and no filter of this system sees them.

#[path = "worker/support.rs"]
mod support;

use cyclescope_core::error::RunError;
use cyclescope_exec::user::UserExecutor;
use cyclescope_worker::command::{FENCED_AT, SAMPLES_FENCE};
use cyclescope_worker::view;
use iced_x86::{Decoder, DecoderOptions};
use std::collections::{BTreeMap, BTreeSet};
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

/// Where `run_once` puts a program in the arena.
const PROGRAM_AT: usize = 4096;
/// Bytes of a forger's first instruction.
const LEA: usize = 7;

/// Code that overwrites the memory it shares with its caller.
fn forger(state: &mut u64) -> Vec<u8> {
    let body = once(&[0x90]).body_range().start;
    // From the end of the first instruction.
    let distance = |offset: usize| {
        let here = view::ARENA_AT + PROGRAM_AT + body + LEA;
        (offset as i32 - here as i32).to_le_bytes()
    };
    // lea rax, [status]; lea rcx, [command]; lea rdx, [samples]
    let mut code = [&[0x48, 0x8d, 0x05][..], &distance(view::STATUS_AT + FENCED_AT)].concat();
    code.extend([&[0x48, 0x8d, 0x88][..], &offset(view::STATUS_AT + FENCED_AT, view::COMMAND_AT)].concat());
    let samples = view::SAMPLES_AT + SAMPLES_FENCE;
    code.extend([&[0x48, 0x8d, 0x90][..], &offset(view::STATUS_AT + FENCED_AT, samples)].concat());
    let again = code.len();
    // mov ebx, [rcx] (this command's number or the next one's); mov [rdx], rsp; mov qword [rdx +
    // 8], random
    code.extend([0x8b, 0x19]);
    if random(state) & 1 == 0 {
        // inc ebx
        code.extend([0xff, 0xc3]);
    }
    code.extend([0x48, 0x89, 0x22, 0x48, 0xc7, 0x42, 0x08]);
    code.extend(&random(state).to_le_bytes()[..4]);
    for field in 1..=7 {
        // mov dword [rax + 4 * field], value
        let value = if random(state) & 1 == 0 { random(state) % 6 } else { random(state) } as u32;
        code.extend([0xc7, 0x40, 4 * field]);
        code.extend(value.to_le_bytes());
    }
    // mov [rax], ebx; in an endless loop, or once
    code.extend([0x89, 0x18]);
    if random(state) & 3 != 0 {
        code.extend([0xe9]);
        code.extend((again as i32 - code.len() as i32 - 4).to_le_bytes());
    }
    code
}

fn offset(from: usize, to: usize) -> [u8; 4] {
    (to as i32 - from as i32).to_le_bytes()
}

/// Asserts that endless code is reported, and that the next readings are genuine.
fn assert_own_result(user: &mut UserExecutor, after: &[u8]) {
    let result = run_once(user, &[0x0f, 0x0b], Duration::from_millis(200));
    assert!(matches!(result, Err(RunError::Fault { signal: "SIGILL", .. })), "{result:?} after {after:02x?}");
    let samples = run_once(user, &[0x90], Duration::from_millis(200)).expect("a nop runs");
    // A forged reading is a stack pointer or a random number, far apart.
    let plausible = |sample: &cyclescope_exec::Sample| sample.end.wrapping_sub(sample.start) < 1 << 40;
    assert!(samples.len() == 1 && samples.iter().all(plausible), "{samples:?} after {after:02x?}");
}

/// Random bytes, or a few instructions found among them, which get further before they fault.
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

fn kind(result: &Result<Vec<cyclescope_exec::Sample>, RunError>) -> String {
    match result {
        Ok(_) => "ended".to_owned(),
        Err(RunError::Fault { signal, .. }) => (*signal).to_owned(),
        Err(RunError::Hung { .. }) => "hung".to_owned(),
        Err(RunError::DirtyCanary { fence }) => format!("{fence} damaged"),
        Err(RunError::WorkerLost { how }) => format!("worker lost: {how}"),
        Err(RunError::ImplausibleReadings { .. }) => "implausible".to_owned(),
        Err(
            error @ (RunError::System { .. }
            | RunError::Machinery { .. }
            | RunError::Refused { .. }
            | RunError::BadBatch(_)
            | RunError::Replay { .. }
            | RunError::TooBusy { .. }
            | RunError::Unavailable(_)
            | RunError::Exception { .. }
            | RunError::Unsteady { .. }
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
    let mut forged = BTreeSet::new();
    let start = Instant::now();
    for number in 0..count {
        let forges = number % 64 == 0;
        let bytes = if forges { forger(&mut state) } else { snippet(&mut state) };
        if HYPERVISOR_CALLS.iter().any(|call| bytes.windows(3).any(|window| window == *call)) {
            continue;
        }
        let one = Instant::now();
        let result = run_once(&mut user, &bytes, Duration::from_millis(20));
        let outcome = outcomes.entry(kind(&result)).or_default();
        outcome.0 += 1;
        outcome.1 += one.elapsed();
        if forges {
            forged.insert(kind(&result));
            assert_own_result(&mut user, &bytes);
        }
        if number % 2_000 == 1_999 {
            assert_measures(&mut user, &format!("snippet {number}: {bytes:02x?}"));
        }
    }
    println!("{count} snippets, {:.0} per second", count as f64 / start.elapsed().as_secs_f64());
    for (outcome, (count, time)) in &outcomes {
        println!("{count:8} {outcome}, {:.0} µs each", time.as_micros() as f64 / *count as f64);
    }
    println!(
        "forgers got: {}",
        Vec::from_iter(&forged).iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(", ")
    );
    assert!(forged.len() > 3, "forgers write answers of all kinds: {forged:?}");
    drop(user);
    assert_eq!((open_files(), children()), before, "open files and children");
    assert!(outcomes.contains_key("ended") && outcomes.contains_key("SIGSEGV"), "{outcomes:?}");
}
