//! `--out` and `--resume` of `instr` and `uarch`: an interrupted command resumes, and its file has
//! every result exactly once.

use crate::support::{Answer, Running, answer, cyclescope, folder, parse_lines};
use serde_json::Value;
use std::collections::BTreeSet;
use tempfile::TempDir;

fn run_program(arguments: &[&str]) -> Answer {
    answer(&mut cyclescope(&[&["instr"], arguments].concat()))
}

/// A folder, and the path of a file in it.
fn file() -> (TempDir, String) {
    let folder = folder();
    let path = folder.path().join("a file.jsonl").display().to_string();
    (folder, path)
}

fn content(path: &str) -> String {
    std::fs::read_to_string(path).expect("a file")
}

/// The forms in a file after its first line, and whether each occurs once.
fn forms(path: &str) -> (BTreeSet<(String, String)>, bool) {
    let text = content(path);
    assert!(text.ends_with('\n'));
    let lines = parse_lines(&text);
    assert_eq!(lines[0]["kind"], "machine");
    let forms: BTreeSet<(String, String)> = lines[1..]
        .iter()
        .map(|row| {
            assert_eq!(row["kind"], "instr");
            (row["code"].to_string(), row["operands"].to_string())
        })
        .collect();
    let once = forms.len() == lines.len() - 1;
    (forms, once)
}

/// The forms of a selection.
fn listed(arguments: &[&str]) -> BTreeSet<(String, String)> {
    let answer = run_program(&[arguments, &["--list", "--json"]].concat());
    let forms = answer.stdout.lines().map(|line| {
        let form: Value = serde_json::from_str(line).expect("JSON");
        (form["code"].to_string(), form["operands"].to_string())
    });
    forms.collect()
}

/// Globs of forms that take some seconds; every x86-64 has most of them.
const LONG: &[&str] = &["padd*", "sub*"];

#[test]
fn file_truncated_anywhere_is_completed() {
    let (_folder, path) = file();
    let selection = ["add r64, r64", "hlt", "--quick", "--seed", "5"];
    assert_eq!(run_program(&[&selection[..], &["--out", &path]].concat()).code, Some(0));
    let whole = std::fs::read(&path).expect("a file");
    let expected = listed(&selection[..2]);
    assert_eq!(forms(&path), (expected.clone(), true));
    let ends: Vec<usize> = whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at).collect();
    let first = ends[0] + 1;
    // Before and behind each end of a line, after the first byte of a row, and within each.
    let cuts = ends[1..].iter().flat_map(|end| [*end, end + 1]);
    let within = ends.windows(2).map(|line| line[0].midpoint(line[1]));
    for cut in cuts.chain(within).chain([first, first + 1]) {
        std::fs::write(&path, &whole[..cut]).expect("a file");
        let answer = run_program(&["--resume", &path, "--json"]);
        assert_eq!(answer.code, Some(0), "{cut}: {answer:?}");
        assert_eq!(forms(&path), (expected.clone(), true), "{cut}");
        // Complete lines stay unchanged.
        let kept = whole[..cut].iter().rposition(|byte| *byte == b'\n').expect("a line") + 1;
        assert_eq!(std::fs::read(&path).expect("a file")[..kept], whole[..kept], "{cut}");
        let lines = parse_lines(&answer.stdout);
        let count = |kind: &str| lines.iter().filter(|line| line["kind"] == kind).count();
        assert_eq!([count("machine"), count("instr"), count("instr.summary")], [1, expected.len(), 1]);
        let resumed = whole[first..kept].iter().filter(|byte| **byte == b'\n').count();
        assert_eq!(lines[lines.len() - 1]["resumed"], resumed, "{cut}");
    }
}

#[test]
fn file_truncated_in_its_first_line_needs_the_forms_again() {
    let (_folder, path) = file();
    let selection = ["add r64, r64", "--quick"];
    assert_eq!(run_program(&[&selection[..], &["--out", &path]].concat()).code, Some(0));
    let whole = std::fs::read(&path).expect("a file");
    for cut in [0, 1, 60, 900] {
        std::fs::write(&path, &whole[..cut]).expect("a file");
        let answer = run_program(&["--resume", &path]);
        assert!(answer.code == Some(2) && answer.stderr.contains("name the forms again"), "{answer:?}");
        std::fs::write(&path, &whole[..cut]).expect("a file");
        let answer = run_program(&[&selection[..], &["--resume", &path]].concat());
        assert_eq!(answer.code, Some(0), "{answer:?}");
        assert_eq!(forms(&path), (listed(&selection[..1]), true));
    }
}

#[test]
fn killed_survey_resumes_where_it_stopped() {
    let (folder, path) = file();
    let journal = format!("{path}.journal");
    let mut running = Running::start(&[&["instr"], LONG, &["--out", &path]].concat());
    running.until(&journal, 20);
    running.signal(libc::SIGKILL);
    assert_eq!(content(&path).lines().count(), 1);
    // In its first pass, and again in its last.
    for (file, lines) in [(&journal, 40), (&path, 20)] {
        let mut running = Running::start(&["instr", "--resume", &path]);
        running.until(file, lines);
        running.signal(libc::SIGKILL);
    }
    let before = content(&path);
    let whole = &before[..before.rfind('\n').expect("a line") + 1];
    let answer = run_program(&["--resume", &path]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(content(&path).starts_with(whole));
    assert_eq!(forms(&path), (listed(LONG), true));
    let left: Vec<_> = std::fs::read_dir(folder.path()).expect("a folder").collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn interrupted_survey_prints_the_resume_command() {
    let (_folder, path) = file();
    let mut running = Running::start(&[&["instr", "--quick"], LONG, &["--out", &path]].concat());
    running.until(&path, 2);
    let (status, said) = running.signal(libc::SIGINT);
    assert_eq!(status.code(), Some(130));
    assert!(said.contains(&format!("cyclescope instr --resume '{path}'")), "{said}");
}

#[test]
fn file_has_only_one_writer() {
    let (_folder, path) = file();
    let mut running = Running::start(&[&["instr"], LONG, &["--out", &path]].concat());
    running.until(&path, 1);
    for option in ["--out", "--resume"] {
        let answer = run_program(&["nop", option, &path]);
        assert_eq!(answer.code, Some(2), "{answer:?}");
        assert!(answer.stderr.contains("another cyclescope is writing"), "{answer:?}");
    }
    running.signal(libc::SIGKILL);
    assert!(run_program(&["nop", "--out", &path]).stderr.contains("--resume"));
}

#[test]
fn only_the_same_survey_resumes() {
    let (folder, path) = file();
    let selection = ["add r64, *", "--quick", "--seed", "5"];
    assert_eq!(run_program(&[&selection[..], &["--out", &path]].concat()).code, Some(0));
    let cases: [(&[&str], &str); 5] = [
        (&["--seed", "6"], "seed was 5 and is 6"),
        (&["add r64*"], "filters was"),
        (&["--isa", "x64"], "isa was"),
        (&["--clock", "rdtscp"], "clock was"),
        (&["--all"], "all was false"),
    ];
    let before = content(&path);
    for (more, says) in cases {
        let answer = run_program(&[&["--resume", &path], more].concat());
        assert_eq!(answer.code, Some(2), "{answer:?}");
        assert!(answer.stderr.contains(says), "{more:?}: {}", answer.stderr);
    }
    assert_eq!(content(&path), before);
    assert_eq!(run_program(&[&selection[..], &["--resume", &path]].concat()).code, Some(0));
    let facts = [("\"family\":", "\"family\":9"), ("\"version\":\"", "\"version\":\"9")];
    for (from, to) in facts {
        let other = folder.path().join("other.jsonl");
        std::fs::write(&other, before.replacen(from, to, 1)).expect("a file");
        let answer = run_program(&["--resume", other.to_str().expect("text")]);
        assert_eq!(answer.code, Some(2), "{from}: {answer:?}");
        assert!(answer.stderr.contains(from.trim_matches(['"', ':'])), "{from}: {}", answer.stderr);
    }
    let answer = run_program(&["nop", "--out", &path]);
    assert!(answer.code == Some(2) && answer.stderr.contains("already exists"), "{answer:?}");
    assert_eq!(content(&path), before);
}

#[test]
fn full_disk_is_an_error() {
    let answer = run_program(&["nop", "--quick", "--out", "/dev/full"]);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    assert!(answer.stderr.contains("No space left") && answer.stderr.contains("--resume"), "{answer:?}");
}

/// Core tests of two seconds or less. The second one has several lines, and a size is written last.
const CORE: &[&str] = &["uop_cache", "decode_rate", "decode_double", "loop_buffer"];

/// The tests in a file in order, each once for all of its lines.
fn tests(path: &str) -> Vec<String> {
    let text = content(path);
    let lines = parse_lines(&text);
    assert_eq!(lines[0]["kind"], "machine");
    let mut tests: Vec<String> = Vec::new();
    let mut rest = &lines[1..];
    while let Some(first) = rest.first() {
        let (own, behind) = rest.split_at(first["records"].as_u64().expect("a number") as usize);
        assert!(own.iter().all(|line| line["test"] == first["test"]), "{text}");
        tests.push(first["test"].as_str().expect("text").to_string());
        rest = behind;
    }
    tests
}

#[test]
fn uarch_resumes_after_its_last_complete_test() {
    let (folder, path) = file();
    let arguments = [&["uarch"], CORE, &["--quick", "--seed", "7", "--out", &path]].concat();
    let mut running = Running::start(&arguments);
    running.until(&path, 2);
    running.signal(libc::SIGKILL);
    let killed = content(&path);
    let whole = &killed[..killed.rfind('\n').expect("a line") + 1];
    let done = answer(cyclescope(&["uarch", "--resume", &path]).env("NO_COLOR", "1"));
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(tests(&path), CORE, "{done:?}");
    let first = whole.lines().nth(1).expect("a line");
    assert!(content(&path).contains(first) && done.stdout.contains("µop cache"), "{done:?}");

    // A test without all of its lines is measured again; the others stay unchanged.
    let complete = content(&path);
    let ends: Vec<usize> = complete.match_indices('\n').map(|(end, _)| end + 1).collect();
    let first_of = |test: &str| {
        let of_test = |line: &str| serde_json::from_str::<Value>(line).expect("JSON")["test"] == test;
        complete.lines().position(of_test).expect("it was measured")
    };
    let [second, third, last] = [CORE[1], CORE[2], CORE[3]].map(first_of);
    assert!(third - second > 1, "{complete}");
    // How many lines the last test has depends on what was found.
    for (lines, kept) in [(second + 1, second), (ends.len() - 1, last), (1, 1)] {
        std::fs::write(&path, &complete[..ends[lines - 1] + 9]).expect("a file");
        let again = answer(&mut cyclescope(&["uarch", "--resume", &path, "--json"]));
        assert_eq!(again.code, Some(0), "{again:?}");
        assert_eq!(tests(&path), CORE, "{again:?}");
        assert!(content(&path).starts_with(&complete[..ends[kept - 1]]), "{lines}");
        assert_eq!(again.stdout.lines().count(), content(&path).lines().count() - 1, "{again:?}");
    }
    let left: Vec<_> = std::fs::read_dir(folder.path()).expect("a folder").collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn only_the_same_uarch_study_resumes() {
    let (folder, path) = file();
    let uarch = |more: &[&str]| answer(&mut cyclescope(&[&["uarch"], more].concat()));
    let done = uarch(&["decode_rate", "--quick", "--seed", "7", "--out", &path]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let before = content(&path);
    let evidence = folder.path().join("evidence").display().to_string();
    let cases: [(&[&str], &str); 5] = [
        (&["--seed", "8"], "seed was 7 and is 8"),
        (&["--clock", "rdtscp"], "clock was"),
        (&["loop_buffer"], "subjects was"),
        (&["--evidence", &evidence], "--evidence can't be combined with --resume"),
        (&["--out", &path], "cannot be used with"),
    ];
    for (more, says) in cases {
        let refused = uarch(&[more, &["--resume", &path]].concat());
        assert!(refused.code == Some(2) && refused.stderr.contains(says), "{more:?}: {refused:?}");
    }
    let other = folder.path().join("other.jsonl").display().to_string();
    let foreign = [
        (before.replacen("\"family\":", "\"family\":9", 1), "family"),
        (before.replacen("\"version\":\"", "\"version\":\"9", 1), "version"),
        (before.replacen("\"executor\":\"user\"", "\"executor\":\"kernel\"", 1), "add --executor kernel"),
        (before.replace("\"kind\":\"uarch\"", "\"kind\":\"run\""), "was not written by"),
        (before.replacen("\"session\":", "\"survey\":", 1), "was not written by"),
        (String::new(), "no complete first line"),
    ];
    for (text, says) in foreign {
        std::fs::write(&other, &text).expect("a file");
        let refused = uarch(&["--resume", &other]);
        assert!(refused.code == Some(2) && refused.stderr.contains(says), "{says}: {refused:?}");
        assert_eq!(content(&other), text);
    }
    let done = uarch(&["--resume", &path, "--json"]);
    assert_eq!((done.code, content(&path)), (Some(0), before), "{done:?}");
    assert!(uarch(&["--out", &path]).stderr.contains("--resume"));
}

#[test]
fn interrupted_uarch_study_prints_the_resume_command() {
    // Also before any test is complete. If the signal comes too late for that, another study gets
    // it.
    const ATTEMPTS: usize = 5;
    for _ in 0..ATTEMPTS {
        let (_folder, path) = file();
        let mut running = Running::start(&["uarch", "--out", &path]);
        running.until(&path, 1);
        std::thread::sleep(std::time::Duration::from_millis(50));
        let (status, said) = running.signal(libc::SIGINT);
        assert_eq!(status.code(), Some(130));
        assert!(said.contains(&format!("cyclescope uarch --resume '{path}'")), "{said}");
        if content(&path).lines().count() == 1 {
            return;
        }
    }
    panic!("each of {ATTEMPTS} studies had done a test before its signal");
}
