//! Evidence is written completely or not at all, and reproduces the same number.

use crate::support::{answer, cyclescope, folder, has, json, measured, within_patience};

/// Measures with evidence in a folder, and returns the result.
pub fn keep(directory: &str, more: &[&str]) -> serde_json::Value {
    let plan = ["--quick", "--layouts", "3", "--samples", "4", "--seed", "7", "--evidence", directory];
    measured(&[&plan, more].concat())
}

#[test]
fn replay_reproduces_the_number_to_the_last_bit() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).to_str().expect("text").to_string();
    for (name, snippet) in [
        ("plain", &["imul rax, rax"][..]),
        ("looped", &["--loop", "9", "imul rax, rax"]),
        ("other-clock", &["--clock", "clock-gettime", "imul rax, rax"]),
        ("cold", &["--cold", "branches,code", "imul rax, rax"]),
        ("init", &["--init", "xor eax, eax", "imul rax, rax"]),
        ("setup", &["--setup", "mov eax, 3", "imul rax, rax"]),
        ("unsteady", &["xor edx, edx; div rcx", "--init", "mov eax, 1000; mov ecx, 2"]),
    ] {
        let kept = keep(&path(name), snippet);
        let again = json(&["replay", &path(name)], &[0, 5]);
        assert_eq!(kept, again, "{name}");
    }
}

#[test]
fn evidence_of_a_function_reproduces_its_number() {
    if !has("cc") {
        return;
    }
    let folder = folder();
    let path = |name: &str| folder.path().join(name).to_str().expect("text").to_string();
    std::fs::write(path("code.c"), "void f(void *p) { *(volatile int *)p = 1; }").expect("a file");
    let kept = keep(&path("evidence"), &["--c", &path("code.c")]);
    assert_eq!(kept, json(&["replay", &path("evidence")], &[0, 5]));
    let manifest = std::fs::read_to_string(folder.path().join("evidence/manifest.json")).expect("a file");
    assert!(manifest.contains("cyclescope run --c"), "{manifest}");
    json(&["replay", "--measure", &path("evidence")], &[2]);
}

#[test]
fn evidence_is_measured_again_with_its_plan() {
    let folder = folder();
    let path = folder.path().join("evidence");
    let path = path.to_str().expect("text");
    keep(path, &["--loop", "5", "imul rax, rax"]);
    let again = json(&["replay", "--measure", path], &[0, 5]);
    assert_eq!((&again["loop"], &again["seed"], &again["bytes"]), (&5.into(), &7.into(), &"48 0f af c0".into()));
    let other = json(&["replay", "--measure", "--clock", "clock-gettime", "--seed", "8", path], &[0, 5]);
    assert_eq!((&other["clock"], &other["seed"]), (&"clock-gettime".into(), &8.into()));
    let words = shlex::split(other["repro"].as_str().expect("text")).expect("words of a shell");
    let words: Vec<&str> = words[1..].iter().map(String::as_str).collect();
    assert_eq!(json(&words, &[0, 5])["repro"], other["repro"]);
}

#[test]
fn options_without_effect_are_rejected() {
    let folder = folder();
    let path = folder.path().join("evidence");
    let path = path.to_str().expect("text");
    keep(path, &["nop"]);
    for option in [
        &["--clock", "rdtscp"][..],
        &["--cpu", "0"],
        &["--seed", "1"],
        &["--quick"],
        &["--executor", "kernel"],
        &["--evidence", "other"],
    ] {
        let line = json(&[&["replay", path], option].concat(), &[2]);
        assert!(line["text"].as_str().expect("text").starts_with(option[0]), "{line}");
    }
}

#[test]
fn unusable_directory_is_rejected_before_measuring() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).to_str().expect("text").to_string();
    std::fs::create_dir(path("full")).expect("a directory");
    std::fs::write(path("full/file"), "").expect("a file");
    for (place, why) in [
        (&path("full"), "not empty"),
        (&path("full/file"), "File exists"),
        (&path("none/new"), "none does not exist"),
        (&"/proc/nowhere".to_string(), "/proc"),
    ] {
        let line = json(&["run", "--evidence", place, "nop"], &[2]);
        assert!(line["remedy"].is_string() && line["text"].as_str().expect("text").contains(why), "{line}");
    }
    assert!(!folder.path().join("none").exists());
}

#[test]
fn failed_run_leaves_no_directory() {
    let folder = folder();
    let path = folder.path().join("evidence");
    for (snippet, code) in [("ud2", 4), ("bad", 2), ("--cpu=1023", 2)] {
        json(&["run", "--quick", "--evidence", path.to_str().expect("text"), snippet], &[code]);
        assert!(!path.exists(), "{snippet}");
    }
    // A directory that existed before stays.
    std::fs::create_dir(&path).expect("a directory");
    json(&["run", "--quick", "--evidence", path.to_str().expect("text"), "ud2"], &[4]);
    assert!(path.exists());
}

#[test]
fn directories_without_evidence_are_rejected() {
    let folder = folder();
    for place in ["/nowhere", "/etc/passwd", folder.path().to_str().expect("text")] {
        let answer = answer(&mut cyclescope(&["replay", place]));
        assert_eq!(answer.code, Some(2), "{answer:?}");
        assert!(answer.stderr.contains("there is no evidence"), "{answer:?}");
    }
}

/// The lines of one kind that a command prints; it must exit with 0.
fn lines(arguments: &[&str], kind: &str) -> Vec<serde_json::Value> {
    let answer = answer(cyclescope(&arguments[..1]).arg("--json").args(&arguments[1..]));
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let lines = answer.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    lines.filter(|line: &serde_json::Value| line["kind"] == kind).collect()
}

#[test]
fn replay_reproduces_instruction_rows() {
    let folder = folder();
    let path = folder.path().join("evidence");
    let path = path.to_str().expect("text");
    let forms = ["add r64, *", "hlt", "ud2"];
    let rows = lines(&[&["instr", "--quick", "--evidence", path], &forms[..]].concat(), "instr");
    assert!(rows.len() > 3);
    assert_eq!(lines(&["replay", path], "instr"), rows);
    let words = answer(&mut cyclescope(&["replay", path]));
    assert!(words.code == Some(0) && words.stdout.contains("r64"), "{words:?}");
    json(&["replay", "--measure", path], &[2]);
    let resumed = json(&["instr", "--quick", "--evidence", "x", "--resume", "y"], &[2]);
    assert!(resumed["text"].as_str().expect("text").contains("--resume"), "{resumed}");
}

#[test]
fn replay_reproduces_marker_records() {
    let folder = folder();
    let path = folder.path().join("evidence");
    let path = path.to_str().expect("text");
    let rows = lines(&["marker", "--quick", "flag", "--context", "empty", "--evidence", path], "marker");
    assert_eq!(lines(&["replay", path], "marker"), rows);
    let again = lines(&["replay", path], "marker.replay");
    let costs = |rows: &[serde_json::Value]| rows.iter().map(|row| row["cost"].clone()).collect::<Vec<_>>();
    assert!(!rows.is_empty());
    assert_eq!(costs(&again), costs(&rows));
    json(&["replay", "--measure", path], &[2]);
}

#[test]
fn evidence_is_complete_if_printing_fails() {
    let folder = folder();
    for json in [&["--json"][..], &[]] {
        let path = folder.path().join(format!("evidence{}", json.len()));
        let text = path.to_str().expect("text");
        let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin("cyclescope"));
        command.args(["run", "--quick", "--evidence", text, "imul rax, rax"]).args(json);
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("a full device");
        let ended = command.stdout(full).stderr(std::process::Stdio::null()).status().expect("it runs");
        assert_eq!(ended.code(), Some(1));
        answer_of_replay(text);
    }
}

/// Fails if the answer isn't that of a whole run.
fn answer_of_replay(text: &str) {
    let answer = answer(&mut cyclescope(&["replay", text]));
    assert!(matches!(answer.code, Some(0 | 5)), "{answer:?}");
}

#[test]
fn killed_command_leaves_no_result() {
    let folder = folder();
    let path = folder.path().join("evidence");
    let text = path.to_str().expect("text");
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin("cyclescope"))
        .args(["run", "--budget", "50", "--interval", "1e-9", "--evidence", text, "imul rax, rax"])
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("the program runs");
    within_patience(|| path.join("manifest.json").exists().then_some(()));
    child.kill().expect("it runs");
    child.wait().expect("it has ended");
    let refused = json(&["replay", text], &[2]);
    assert!(refused["text"].as_str().expect("text").contains("unfinished"), "{refused}");
}
