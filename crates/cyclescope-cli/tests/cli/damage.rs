//! Damaged evidence: a clean error or an honest number, never a panic.

use crate::evidence::keep;
use crate::support::{Answer, answer, cyclescope, folder};
use std::path::Path;

const FILES: [&str; 4] = ["plan.json", "run.json", "layouts.jsonl", "samples.jsonl"];

/// Replays evidence in which one file has other bytes, and puts them back.
fn replay_with(directory: &Path, file: &str, bytes: &[u8]) -> Answer {
    let path = directory.join(file);
    let whole = std::fs::read(&path).expect("a file");
    std::fs::write(&path, bytes).expect("a file");
    let answer = answer(&mut cyclescope(&["replay", directory.to_str().expect("text")]));
    std::fs::write(&path, whole).expect("a file");
    answer
}

#[test]
fn files_cut_short_are_refused() {
    let folder = folder();
    let directory = folder.path().join("evidence");
    keep(directory.to_str().expect("text"), &["imul rax, rax"]);
    for file in FILES {
        let whole = std::fs::read(directory.join(file)).expect("a file");
        for length in [0, 1, whole.len() / 3, whole.len() / 2, whole.len() - 3] {
            let answer = replay_with(&directory, file, &whole[..length]);
            assert_eq!(answer.code, Some(2), "{file} cut to {length} bytes: {answer:?}");
            assert!(answer.stderr.contains("damaged"), "{answer:?}");
        }
        std::fs::rename(directory.join(file), directory.join("gone")).expect("a file");
        let answer = answer(&mut cyclescope(&["replay", directory.to_str().expect("text")]));
        assert_eq!(answer.code, Some(2), "without {file}: {answer:?}");
        std::fs::rename(directory.join("gone"), directory.join(file)).expect("a file");
    }
}

#[test]
fn numbers_out_of_range_never_panic() {
    let folder = folder();
    let directory = folder.path().join("evidence");
    keep(directory.to_str().expect("text"), &["imul rax, rax"]);
    for file in ["plan.json", "layouts.jsonl"] {
        let whole = std::fs::read_to_string(directory.join(file)).expect("a file");
        let line = whole.lines().next().expect("a line");
        let content: serde_json::Value = serde_json::from_str(line).expect("JSON");
        for pointer in pointers(&content) {
            for value in ["0", "-1", "18446744073709551615", "1e308", "-0.5", "null"] {
                let mut changed = content.clone();
                let place = changed.pointer_mut(&pointer).expect("a place");
                *place = serde_json::from_str(value).expect("JSON");
                let text = whole.replacen(line, &changed.to_string(), 1);
                let answer = replay_with(&directory, file, text.as_bytes());
                assert!(matches!(answer.code, Some(0 | 1 | 2 | 5)), "{file} {pointer} {value}: {answer:?}");
            }
        }
    }
}

/// Where the numbers of a value are, but of a list only the first.
fn pointers(value: &serde_json::Value) -> Vec<String> {
    let below = |name: &str, value| {
        pointers(value).into_iter().map(|pointer| format!("/{name}{pointer}")).collect::<Vec<_>>()
    };
    match value {
        serde_json::Value::Object(fields) => {
            fields.iter().flat_map(|(name, value)| below(name, value)).collect()
        }
        serde_json::Value::Array(items) => items.first().map_or(Vec::new(), |item| below("0", item)),
        serde_json::Value::Number(_) => vec![String::new()],
        _ => Vec::new(),
    }
}

#[test]
fn flipped_bits_never_panic() {
    let folder = folder();
    let directory = folder.path().join("evidence");
    keep(directory.to_str().expect("text"), &["imul rax, rax"]);
    let mut state = 1u64;
    let mut random = move |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for file in FILES {
        let whole = std::fs::read(directory.join(file)).expect("a file");
        for _ in 0..25 {
            let mut changed = whole.clone();
            let at = random(changed.len());
            changed[at] ^= 1 << random(8);
            let answer = replay_with(&directory, file, &changed);
            assert!(matches!(answer.code, Some(0 | 1 | 2 | 5)), "{file} byte {at}: {answer:?}");
        }
    }
}

#[test]
fn another_number_than_the_one_beside_it_is_an_error() {
    let folder = folder();
    let directory = folder.path().join("evidence");
    let kept = keep(directory.to_str().expect("text"), &["imul rax, rax"]);
    let Some(value) = kept["cost"]["value"].as_f64() else {
        println!("skipped: this machine is too noisy for a number");
        return;
    };
    let whole = std::fs::read_to_string(directory.join("run.json")).expect("a file");
    let changed = whole.replacen(&value.to_string(), "0.125", 1);
    assert_ne!(whole, changed);
    let answer = replay_with(&directory, "run.json", changed.as_bytes());
    assert_eq!(answer.code, Some(1), "{answer:?}");
    assert!(answer.stderr.contains("0.125"), "{answer:?}");
}
