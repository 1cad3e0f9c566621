//! `cyclescope doctor` as its user sees it. Findings depend on the machine and aren't asserted.

use assert_cmd::Command;
use serde_json::Value;

fn doctor(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("cyclescope").expect("the program is built");
    command.arg("doctor").args(arguments);
    command
}

/// Standard output of a command, which must exit with this code.
fn output(arguments: &[&str], code: i32) -> String {
    let assert = doctor(arguments).assert().code(code);
    String::from_utf8(assert.get_output().stdout.clone()).expect("text")
}

#[test]
fn json_is_two_lines_of_known_kinds() {
    let text = output(&["--quick", "--json", "--seed", "7"], 0);
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), 2);
    for (line, kind) in lines.iter().zip(["machine", "doctor"]) {
        assert_eq!((&line["schema"], &line["kind"]), (&"cyclescope/1".into(), &kind.into()));
    }
    let (machine, doctor) = (&lines[0], &lines[1]);
    for field in ["cpu", "features", "tsc", "topology", "hypervisor", "kernel", "kernel_module", "target", "cpuid"] {
        assert!(machine.get(field).is_some(), "{field}");
    }
    let fields = [
        "cpu",
        "cpu_model",
        "executor",
        "clock",
        "tsc",
        "core",
        "phases",
        "counters",
        "executors",
        "kernel_module",
        "siblings",
        "exclusive",
        "protections",
        "noise",
        "during",
        "runnable",
        "state",
        "findings",
        "seed",
        "elapsed_s",
        "repro",
    ];
    for field in fields {
        assert!(doctor.get(field).is_some(), "{field}");
    }
    for finding in doctor["findings"].as_array().expect("a list") {
        assert!(["ok", "advice", "problem"].contains(&finding["state"].as_str().expect("a word")));
        assert!(!finding["name"].as_str().expect("a name").is_empty());
        assert!(!finding["text"].as_str().expect("a text").is_empty());
    }
    let barriers = doctor["protections"].as_array().expect("a list");
    assert!(barriers.iter().all(|row| row["holds"] == row["why_not"].is_null()), "{barriers:?}");
    let holds = |what: &str| barriers.iter().any(|row| row["what"] == what && row["holds"] == true);
    assert!(barriers.is_empty() || holds("system_calls") && holds("capabilities"), "{barriers:?}");
    assert_eq!(doctor["seed"], 7);
    assert_eq!(doctor["repro"], "cyclescope doctor --quick --seed 7");
}

#[test]
fn quantities_have_an_interval_around_the_value() {
    let text = output(&["--quick", "--json"], 0);
    let doctor: Value = serde_json::from_str(text.lines().nth(1).expect("two lines")).expect("JSON");
    let core = &doctor["core"]["value"];
    if core.is_null() {
        cyclescope_skipped::report_skipped(format_args!("no code can be measured here: {}", doctor["core"]["why"]));
        return;
    }
    for (name, unit) in [("core_clock", "MHz"), ("per_core_cycle", "tsc_ticks"), ("imul_latency", "adds")] {
        let part = |part: &str| core[name][part].as_f64().expect("a number");
        assert!(part("low") <= part("value") && part("value") <= part("high"), "{name}");
        assert_eq!(core[name]["unit"], unit);
    }
}

#[test]
fn text_is_plain_and_fits_80_columns() {
    let text = output(&["--quick"], 0);
    assert!(!text.contains('\x1b'));
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{} columns: {line}", line.chars().count());
        assert_eq!(line, line.trim_end());
    }
    for title in [
        "Processor",
        "Time stamp counter",
        "Core clock",
        "Counters",
        "Executors",
        "Sandbox",
        "Ring 0",
        "Surroundings",
        "Findings",
    ] {
        assert!(text.lines().any(|line| line.starts_with(title)), "{title}");
    }
}

#[test]
fn cpu_can_be_chosen_and_an_invalid_one_is_rejected() {
    let text = output(&["--quick", "--json"], 0);
    let machine: Value = serde_json::from_str(text.lines().next().expect("a line")).expect("JSON");
    let first = machine["topology"]["allowed"]["value"][0].to_string();
    let text = output(&["--quick", "--json", "--cpu", &first], 0);
    let doctor: Value = serde_json::from_str(text.lines().nth(1).expect("two lines")).expect("JSON");
    assert_eq!(doctor["cpu"].to_string(), first);
    for impossible in ["1000", "99999"] {
        let text = output(&["--json", "--cpu", impossible], 3);
        let error: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!((&error["kind"], &error["exit"]), (&"error".into(), &3.into()));
        assert!(error["remedy"].as_str().expect("a remedy").contains("allowed CPUs"));
    }
}

#[test]
fn unavailable_features_are_rejected() {
    let refused = [
        (["--clock", "cpuid-rdtsc-cr0-rdtsc"], 3, "ring 0"),
        (["--clock", "no-such-clock"], 2, "unknown timing method"),
        (["--evidence", "somewhere"], 2, "no evidence"),
        (["--cpu", "two"], 2, "invalid value"),
    ];
    for (arguments, code, words) in refused {
        let assert = doctor(&arguments).assert().code(code);
        let output = assert.get_output();
        assert!(output.stdout.is_empty());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn closed_pipe_is_not_an_error() {
    use std::process::{Command, Stdio};
    for format in [&["doctor", "--quick"][..], &["doctor", "--quick", "--json"]] {
        let mut child = Command::new(assert_cmd::cargo::cargo_bin("cyclescope"))
            .args(format)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("it ends");
        assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
    }
}
