//! `counters`, and `run --counters`, with events of the kernel, which need no hardware counter.

use crate::support::{answer, cyclescope, json, parse_lines};
use serde_json::Value;

/// Whether this machine counts events of the kernel; a skipped test otherwise.
fn counts_kernel_events() -> bool {
    let listed = answer(&mut cyclescope(&["counters", "list", "--json"])).stdout;
    let counts = listed.lines().any(|line| line.contains(r#""counter":"task-clock""#));
    if !counts {
        cyclescope_skipped::report_skipped("the kernel's events are forbidden here (kernel.perf_event_paranoid)");
    }
    counts
}

#[test]
fn each_missing_event_has_its_reason_and_remedy() {
    let listed = answer(&mut cyclescope(&["counters", "list", "--all", "--json"])).stdout;
    let lines = parse_lines(&listed);
    let (events, summary) = lines.split_at(lines.len() - 1);
    assert!(events.len() > 50 && events.iter().all(|event| event["kind"] == "counter"));
    for event in events {
        let reasons = ["cause", "why_not", "remedy"].map(|field| event[field].is_string());
        assert_eq!(reasons, [event["available"] == false; 3], "{event}");
    }
    assert_eq!(summary[0]["kind"], "counters");
    assert!(summary[0]["sets"].as_array().expect("a list").contains(&"@ports".into()));
}

#[test]
fn unknown_events_have_near_names() {
    for (events, near) in
        [("page-fualts", "page-faults"), ("@defualt", "@default"), ("cycles/instrutions", "instructions")]
    {
        let error = json(&["run", "nop", "--quick", "--counters", events], &[2]);
        assert!(error["remedy"].as_str().is_some_and(|text| text.contains(near)), "{error}");
    }
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), "one | event=0x12\ntwo\n").expect("it can be written");
    let error = json(&["run", "nop", "--counters", "one", "--events", &file.path().display().to_string()], &[2]);
    assert!(error["text"].as_str().is_some_and(|text| text.contains("line 2")), "{error}");
}

#[test]
fn run_counts_events_of_the_kernel() {
    if !counts_kernel_events() {
        return;
    }
    let events = "page-faults,task-clock,dummy,dummy/task-clock";
    let line = json(&["run", "imul rax, rax", "--quick", "--seed", "4", "--counters", events], &[0, 5]);
    let counters = line["counters"].as_array().expect("a list");
    let names: Vec<&str> = counters.iter().filter_map(|counter| counter["name"].as_str()).collect();
    assert_eq!(names, ["page-faults", "task-clock", "dummy", "dummy/task-clock"]);
    assert_eq!(counters[2]["value"], 0.0);
    // A multiplication takes time, and no memory.
    assert!(counters[0]["value"].as_f64().expect("a number").abs() < 0.01, "{line}");
    assert!(counters[1]["high"].as_f64().expect("a number") > 0.0, "{line}");
    assert_eq!(line["counter_passes"], 1);
    let plain = json(&["run", "imul rax, rax", "--quick", "--seed", "4"], &[0, 5]);
    if let (Some(with), Some(without)) = (line["cost"]["value"].as_f64(), plain["cost"]["value"].as_f64()) {
        assert!((with / without - 1.0).abs() < 0.02, "{with} with counters, {without} without");
    }
}

#[test]
fn counting_of_other_programs_starts_and_stops() {
    if !counts_kernel_events() {
        return;
    }
    let home = tempfile::tempdir().expect("a folder");
    let run = |arguments: &[&str]| {
        let mut command = cyclescope(&[&["counters"], arguments].concat());
        answer(command.env("XDG_RUNTIME_DIR", home.path()))
    };
    let started = run(&["start", "task-clock,page-faults", "--json"]);
    match started.code {
        Some(0) => {}
        // Another test or user counts, or only root may count other programs.
        Some(2 | 3) => return cyclescope_skipped::report_skipped(started.stdout.trim()),
        _ => panic!("{started:?}"),
    }
    let again = run(&["start", "task-clock"]);
    let value = |answer: &str| {
        let line: Value = serde_json::from_str(answer.lines().next().expect("a line")).expect("JSON");
        assert_eq!((&line["kind"], &line["counter"]), (&"counters.count".into(), &"task-clock".into()));
        line["value"].as_u64().expect("a count")
    };
    let first = value(&run(&["status", "--json"]).stdout);
    let stopped = run(&["stop", "--json"]);
    assert!(value(&stopped.stdout) > first, "{stopped:?}");
    assert_eq!((again.code, run(&["status"]).code), (Some(2), Some(2)));
}
