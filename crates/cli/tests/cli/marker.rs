//! `marker`: tables, JSON, lists, plots and errors.

use crate::support::{Answer, answer, cyclescope, folder, of_kind, parse_lines};
use serde_json::Value;

fn run_marker(arguments: &[&str]) -> Answer {
    answer(&mut cyclescope(&[&["marker"], arguments].concat()))
}

/// The JSON lines of a survey.
fn lines(arguments: &[&str]) -> Vec<Value> {
    let answer = run_marker(&[arguments, &["--json"]].concat());
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let lines = parse_lines(&answer.stdout);
    assert!(lines.iter().all(|line| line["schema"] == "cyclescope/1"));
    lines
}

/// Checks a quantity in core cycles, whose parts are ordered or null.
fn is_quantity(quantity: &Value) {
    assert_eq!(quantity["unit"], "core_cycles", "{quantity}");
    let [value, low, high] = ["value", "low", "high"].map(|part| quantity[part].as_f64());
    if let (Some(value), Some(low), Some(high)) = (value, low, high) {
        assert!(low <= value && value <= high, "{quantity}");
    }
}

fn is_assembly(assembly: &Value) {
    let lines = assembly.as_array().expect("a list");
    assert!(!lines.is_empty());
    for line in lines {
        assert!(line["offset"].is_u64() && line["bytes"].is_string() && line["text"].is_string(), "{line}");
        assert!(["likely", "unlikely", "padding"].contains(&line["path"].as_str().expect("text")), "{line}");
    }
}

/// Checks the fields that every line of kind `marker` has.
fn is_row(row: &Value) {
    for field in ["design", "state", "context", "guard", "compiler", "clock", "cpu_model", "repro"] {
        assert!(row[field].as_str().is_some_and(|text| !text.is_empty()), "{field}: {row}");
    }
    for quantity in [&row["cost"], &row["step"]["cost"], &row["base"], &row["site"]] {
        is_quantity(quantity);
    }
    for field in ["likely_bytes", "unlikely_bytes", "visits", "cpu", "seed"] {
        assert!(row[field].is_u64(), "{field}: {row}");
    }
    assert!(row["function_likely_bytes"].is_i64() && row["function_unlikely_bytes"].is_i64(), "{row}");
    assert!(row["cache_lines"]["both"].as_u64() >= row["cache_lines"]["likely"].as_u64());
    is_assembly(&row["assembly"]);
    is_assembly(&row["base_assembly"]);
    let placements = row["placements"].as_array().expect("a list");
    assert!(placements.len() >= 16);
    for placement in placements {
        assert!(placement["offset"].is_u64(), "{placement}");
        is_quantity(&placement["cost"]);
    }
    if let (Some(best), Some(worst), Some(cost)) =
        (row["best"].as_f64(), row["worst"].as_f64(), row["cost"]["value"].as_f64())
    {
        assert!(best <= cost && cost <= worst, "{row}");
    }
    if let Some(calls) = row["calls"].as_object() {
        assert_eq!((&calls["loops"], &calls["counted"]), (&1000.into(), &calls["expected"]), "{row}");
    }
    assert_eq!(row["executor"], "user");
}

#[test]
fn every_state_of_a_design_is_a_row() {
    let lines = lines(&["immediate", "--quick", "--seed", "7"]);
    let rows = of_kind(&lines, "marker");
    assert_eq!((&lines[0]["kind"], rows.len()), (&"machine".into(), 2 * 9));
    rows.iter().for_each(|row| is_row(row));
    for row in &rows {
        let dormant = row["state"] == "dormant";
        assert_eq!(row["calls"]["counted"], if dormant { 0 } else { 1000 }, "{row}");
        assert_eq!(row["step"]["over"].is_null(), dormant);
        // As the document counts them: mov al, imm8; test al, al; jne.
        assert_eq!(row["likely_bytes"], 6);
        assert_eq!(row["repro"], "cyclescope marker --quick --seed 7 -- immediate");
    }
    let [published] = of_kind(&lines, "marker.conclusions")[..] else { panic!("one line") };
    let figures = published["figures"].as_array().expect("a list");
    assert!(figures.iter().all(|figure| figure["design"] == "immediate"));
    let figure = figures.iter().find(|figure| figure["published"] == 48.11).expect("the figure of the document");
    // On a busy machine a state may have no number.
    let is_measured = rows.iter().all(|row| row["cost"]["value"].is_f64() && row["base"]["value"].is_f64());
    assert!(figure["cycles"]["value"].is_f64() || !is_measured, "{figure} of {rows:?}");
    let conclusions = published["conclusions"].as_array().expect("a list");
    assert_eq!(conclusions.len(), 7);
    for conclusion in conclusions {
        is_quantity(&conclusion["difference"]);
        // Without the flag, there is nothing to compare the immediate value with.
        let needs_flag = conclusion["name"].as_str().expect("text").contains("generic");
        assert!(!needs_flag || conclusion["measured"] == false, "{conclusion}");
        assert!(conclusion["measured"] == true || conclusion["holds"].is_null(), "{conclusion}");
    }
}

#[test]
fn repro_repeats_the_measurement() {
    let plan = ["none", "usdt*", "--quick", "--context", "l1", "--state", "base,dormant"];
    let first = lines(&plan);
    let repro = of_kind(&first, "marker")[0]["repro"].as_str().expect("text").to_string();
    let words = shlex::split(&repro).expect("words of a shell");
    assert_eq!(words[..2], ["cyclescope", "marker"]);
    let words: Vec<&str> = ["--json"].into_iter().chain(words[2..].iter().map(String::as_str)).collect();
    let again = run_marker(&words);
    assert_eq!(again.code, Some(0), "{again:?}");
    let again = parse_lines(&again.stdout);
    let names = |lines: &[Value]| -> Vec<String> {
        let name = |row: &&Value| ["design", "state", "context", "repro"].map(|part| row[part].to_string()).join(" ");
        of_kind(lines, "marker").iter().map(name).collect()
    };
    assert_eq!(names(&first), names(&again));
    assert_eq!(names(&first).len(), 3);
    of_kind(&first, "marker").iter().for_each(|row| is_row(row));
}

#[test]
fn report_fits_80_columns_and_is_complete() {
    let answer = run_marker(&["none", "flag", "immediate", "--quick"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    for part in [
        "Context empty, in core cycles per loop",
        "a loop of memcpy of 4096 bytes",
        "guarded-format",
        "none/base is the control",
        "4 dormant markers called nothing in 1000 loops",
        "cycles per loop for marker",
        "1298.16",
        "adds bytes in the likely path",
        "has 51, from 0x13",
        "The document's conclusions, tested here",
        "(document 48.11)",
    ] {
        // Paragraphs may wrap anywhere.
        let flat = answer.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(part), "{part}: {}", answer.stdout);
    }
    for line in answer.stdout.lines() {
        assert!(line.chars().count() <= 80 && !line.contains('\x1b'), "{line}");
    }
}

#[test]
fn code_is_printed_without_a_measurement() {
    let answer = run_marker(&["flag", "immediate", "--assembly"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    for part in ["flag in empty", "immediate in memcpy", "without the marker:", "likely*", "unlikely*"] {
        assert!(answer.stdout.contains(part), "{part}: {}", answer.stdout);
    }
    assert!(!answer.stdout.contains("core cycles"), "{}", answer.stdout);
    assert!(answer.stdout.lines().all(|line| line.chars().count() <= 80), "{}", answer.stdout);
    let lines = lines(&["flag", "--assembly"]);
    let codes = of_kind(&lines, "marker.code");
    assert_eq!(codes.len(), lines.len());
    for code in codes {
        is_assembly(&code["assembly"]);
        assert!(code["likely_bytes"].as_u64().is_some_and(|bytes| bytes > 0) && code.get("cost").is_none(), "{code}");
    }
    let plots = run_marker(&["flag", "--assembly", "--plots", "x"]);
    assert_eq!(plots.code, Some(2), "{plots:?}");
}

#[test]
fn designs_states_and_contexts_are_listed() {
    let answer = run_marker(&["--list"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    for part in ["usdt-semaphore", "guarded-varargs", "dormant-filtered", "branchy", "--context"] {
        assert!(answer.stdout.contains(part), "{part}: {}", answer.stdout);
    }
    assert!(answer.stdout.lines().all(|line| line.chars().count() <= 80), "{}", answer.stdout);
    let lines = lines(&["flag", "--list"]);
    let designs = of_kind(&lines, "marker.design");
    assert_eq!((designs.len(), &designs[0]["design"]), (1, &"flag".into()));
    assert_eq!(designs[0]["states"].as_array().expect("a list").len(), 9);
    let contexts = of_kind(&lines, "marker.context");
    assert_eq!(contexts.iter().filter(|context| context["usual"] == true).count(), 2);
}

#[test]
fn every_context_gets_a_plot() {
    let files = folder();
    let directory = files.path().join("new");
    let answer = run_marker(&["usdt", "--quick", "--plots", directory.to_str().expect("text")]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    for name in ["marker-empty.svg", "marker-memcpy.svg"] {
        let svg = std::fs::read_to_string(directory.join(name)).expect("a picture");
        assert!(svg.starts_with("<svg") && svg.contains("usdt") && svg.contains("dormant"), "{svg}");
    }
}

#[test]
fn wrong_options_are_rejected_with_a_remedy() {
    let files = folder();
    let blocked = files.path().join("file");
    std::fs::write(&blocked, "").expect("a file");
    let cases: [(&[&str], &str); 9] = [
        (&["imediate"], "did you mean immediate?"),
        (&["zzzzzz*"], "choose from flag, function-entry"),
        (&["--context", "empty,memcopy"], "did you mean memcpy?"),
        (&["--context", "x", "--all"], "cannot be used"),
        (&["flag", "--state", "guarded-emty"], "did you mean guarded-empty?"),
        (&["flag", "--state", "sink"], "unknown state `sink`"),
        (&["--list", "--plots", "x"], "cannot be used"),
        (&["usdt", "--plots", blocked.to_str().expect("text")], "writable"),
        (&["--clock", "rdtsc,rdtscp"], "only one --clock"),
    ];
    for (arguments, says) in cases {
        let answer = run_marker(arguments);
        assert_eq!(answer.code, Some(2), "{arguments:?}: {answer:?}");
        assert!(answer.stderr.contains(says), "{arguments:?}: {}", answer.stderr);
        assert!(answer.stdout.is_empty(), "{arguments:?}");
    }
    assert_eq!(run_marker(&["flag", "--executor", "kernel"]).code, Some(3));
}

#[test]
fn closed_pipe_is_not_an_error() {
    use std::process::{Command, Stdio};
    for arguments in [&["usdt", "--quick"][..], &["usdt", "--quick", "--json"], &["--list"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cyclescope"));
        command.arg("marker").args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program runs");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(0) && !said.contains("error"), "{arguments:?}: {said}");
    }
}
