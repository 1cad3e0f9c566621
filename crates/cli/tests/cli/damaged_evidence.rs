//! Damaged evidence gives a clean error or a correct number, never a panic.

use crate::evidence::keep;
use crate::support::{Answer, answer, cyclescope, folder, forged, write_forged};
use cyclescope::executor::Sample;
use cyclescope::result::container::ContainerWriter;
use std::path::Path;

const FILES: [&str; 5] = ["manifest.json", "programs.jsonl.gz", "records.jsonl.gz", "layouts.jsonl.gz", "readings.gz"];

/// Replays evidence with other bytes in one file, and restores the file.
fn replay_with(directory: &Path, file: &str, bytes: &[u8]) -> Answer {
    let path = directory.join(file);
    let whole = std::fs::read(&path).expect("a file");
    std::fs::write(&path, bytes).expect("a file");
    let answer = answer(&mut cyclescope(&["replay", directory.to_str().expect("text")]));
    std::fs::write(&path, whole).expect("a file");
    answer
}

#[test]
fn truncated_files_are_rejected() {
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
fn edited_manifest_is_rejected() {
    let folder = folder();
    let directory = folder.path().join("evidence");
    keep(directory.to_str().expect("text"), &["imul rax, rax"]);
    let whole = std::fs::read_to_string(directory.join("manifest.json")).expect("a file");
    for (before, after) in [
        (r#""text": "imul rax, rax""#, r#""text": "imul rbx, rbx""#),
        (r#""code": "48 0f af c0""#, r#""code": "48 0f af c1""#),
        (r#""confidence": 0.95"#, r#""confidence": 0.5"#),
        (r#""version": ""#, r#""version": "9"#),
        (r#""family": "#, r#""family": 1"#),
    ] {
        let changed = whole.replacen(before, after, 1);
        assert_ne!(changed, whole, "{before}");
        let answer = replay_with(&directory, "manifest.json", changed.as_bytes());
        assert_eq!(answer.code, Some(2), "{before}: {answer:?}");
        assert!(answer.stderr.contains("sha256") && answer.stderr.contains("unchanged copy"), "{answer:?}");
    }
}

#[test]
fn numbers_out_of_range_never_panic() {
    let folder = folder();
    let directory = folder.path().join("evidence");
    keep(directory.to_str().expect("text"), &["imul rax, rax"]);
    let container = cyclescope::result::container::EvidenceContainer::open(&directory).expect("whole evidence");
    let bad = folder.path().join("bad");
    for pointer in pointers(&container.manifest.facts) {
        for value in ["0", "-1", "18446744073709551615", "1e308", "-0.5", "null"] {
            let odd = |facts: &mut serde_json::Value| {
                *facts.pointer_mut(&pointer).expect("a place") = serde_json::from_str(value).expect("JSON");
            };
            write_forged(&container, &bad, odd, |_, _| (), |_| ());
            let answer = answer(&mut cyclescope(&["replay", bad.to_str().expect("text")]));
            std::fs::remove_dir_all(&bad).expect("a directory");
            assert!(matches!(answer.code, Some(0 | 1 | 2 | 5)), "{pointer} {value}: {answer:?}");
        }
    }
}

/// Numbers that no field expects.
const ODD: [&str; 6] = ["0", "3", "1152921504606846976", "18446744073709551615", "1e308", "-0.5"];

/// Replays evidence of a study with other numbers in its plan and in the machine's first answers.
/// The command must end, whatever it computes and prints.
fn forge_numbers(command: &[&str], step: usize) {
    let folder = folder();
    let [good, bad] = ["good", "bad"].map(|name| folder.path().join(name));
    let kept = answer(cyclescope(command).args(["--seed", "7", "--evidence", good.to_str().expect("text")]));
    assert!(matches!(kept.code, Some(0 | 5)), "{kept:?}");
    let container = cyclescope::result::container::EvidenceContainer::open(&good).expect("whole evidence");
    let (manifest, mut events) = (&container.manifest, container.events().expect("events"));
    let mut all = Vec::new();
    while let Some(event) = events.take_event(usize::MAX).expect("an event") {
        all.push(event);
    }
    let event = |number: usize| serde_json::to_value(&all[number].0).expect("plain data");
    let mut places: Vec<(Option<usize>, String)> =
        pointers(&manifest.facts).into_iter().map(|pointer| (None, pointer)).collect();
    for number in 0..all.len().min(4) {
        places.extend(pointers(&event(number)).into_iter().map(|pointer| (Some(number), pointer)));
    }
    let odd = places.iter().flat_map(|place| ODD.map(|value| (place, value)));
    for ((number, pointer), value) in odd.step_by(step) {
        let (mut facts, mut events) = (manifest.facts.clone(), all.clone());
        let odd: serde_json::Value = serde_json::from_str(value).expect("JSON");
        match number {
            None => *facts.pointer_mut(pointer).expect("a place") = odd,
            Some(number) => {
                let mut changed = event(*number);
                *changed.pointer_mut(pointer).expect("a place") = odd;
                let Ok(changed) = serde_json::from_value(changed) else { continue };
                events[*number].0 = changed;
            }
        }
        let _ = std::fs::remove_dir_all(&bad);
        let mut writer = ContainerWriter::create(&bad, manifest.origin.clone()).expect("a new directory");
        writer.set_facts(&facts).expect("plain data");
        writer.copy_batches(&container).expect("whole evidence");
        events.iter().for_each(|(event, samples)| writer.add_event(event, samples).expect("room"));
        container.records().expect("records").for_each(|line| {
            writer.add_result_line(&line.expect("a record").to_string()).expect("room");
        });
        writer.finish().expect("room");
        let answer = answer(&mut cyclescope(&["replay", bad.to_str().expect("text")]));
        let ended = matches!(answer.code, Some(0..=5));
        assert!(ended, "{command:?}: {number:?} {pointer} = {value}: {answer:?}");
    }
}

const STUDIES: [&[&str]; 4] = [
    &["run", "--quick", "--sweep", "N=1,2", "add rax, {N}"],
    &["instr", "--quick", "add r64, r64"],
    &["marker", "--quick", "flag"],
    &["evaluate", "--quick", "--ensembles", "2", "--samples", "100", "--budget", "1", "rdtscp-lfence"],
];

#[test]
fn sampled_odd_numbers_in_evidence_never_panic() {
    STUDIES.iter().for_each(|command| forge_numbers(command, 83));
}

#[test]
#[ignore = "takes minutes; the sample above runs every time"]
fn all_odd_numbers_in_evidence_never_panic() {
    STUDIES.iter().for_each(|command| forge_numbers(command, 1));
}

/// Pointers to the numbers in a value; of a list, only its first element.
fn pointers(value: &serde_json::Value) -> Vec<String> {
    let below =
        |name: &str, value| pointers(value).into_iter().map(|pointer| format!("/{name}{pointer}")).collect::<Vec<_>>();
    match value {
        serde_json::Value::Object(fields) => fields.iter().flat_map(|(name, value)| below(name, value)).collect(),
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
            assert_eq!(answer.code, Some(2), "{file} byte {at}: {answer:?}");
        }
    }
}

#[test]
fn stored_number_that_differs_from_its_readings_is_an_error() {
    let folder = folder();
    let directory = folder.path().join("evidence");
    let kept = keep(directory.to_str().expect("text"), &["imul rax, rax"]);
    let Some(value) = kept["cost"]["value"].as_f64() else {
        cyclescope_skipped::report_skipped("this machine is too noisy for a number");
        return;
    };
    assert_ne!(value, 0.125);
    forged(&directory, |_| (), |_, _| (), |record| record["cost"]["value"] = 0.125.into());
    let answer = answer(&mut cyclescope(&["replay", directory.to_str().expect("text")]));
    assert_eq!(answer.code, Some(1), "{answer:?}");
    assert!(answer.stderr.contains("0.125"), "{answer:?}");
}

#[test]
fn changed_reading_is_an_error() {
    let folder = folder();
    let directory = folder.path().join("evidence");
    let kept = keep(directory.to_str().expect("text"), &["imul rax, rax"]);
    let longer = |_: u64, samples: &mut Vec<Sample>| {
        samples.iter_mut().step_by(3).for_each(|sample| sample.end += (sample.end - sample.start) / 3);
    };
    forged(&directory, |_| (), longer, |_| ());
    let answer = answer(&mut cyclescope(&["replay", directory.to_str().expect("text")]));
    assert_eq!(answer.code, Some(1), "{kept} {answer:?}");
}
