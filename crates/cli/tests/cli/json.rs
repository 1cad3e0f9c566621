//! The JSON lines have the documented fields.

use crate::support::{answer, cyclescope, first_with_cost, measured, refused};
use serde_json::Value;

const CAVEATS: [&str; 17] = [
    "interval_not_reached",
    "frequency_moved",
    "migrated",
    "layout_dependent",
    "two_modes",
    "other_speed",
    "rulers_disagree",
    "nonlinear",
    "upper_bound",
    "sibling_busy",
    "not_repeatable",
    "not_steady",
    "passes_disagree",
    "not_trained",
    "returned_at_once",
    "emulated",
    "noisy",
];

fn is_quantity(quantity: &Value, unit: &str) {
    assert_eq!(quantity["unit"], unit, "{quantity}");
    assert_eq!(quantity.as_object().expect("an object").len(), 4, "{quantity}");
    let [value, low, high] = ["value", "low", "high"].map(|part| quantity[part].as_f64());
    if let (Some(value), Some(low), Some(high)) = (value, low, high) {
        assert!(low <= value && value <= high, "{quantity}");
    }
}

#[test]
fn run_line_has_every_field() {
    let line = measured(&["--quick", "--seed", "7", "imul rax, rax"]);
    is_quantity(&line["cost"], "core_cycles");
    is_quantity(&line["ticks"], "tsc_ticks");
    is_quantity(&line["time"], "ns");
    is_quantity(&line["ruler"]["add_link"], "core_cycles");
    is_quantity(&line["looped"], "core_cycles");
    is_quantity(&line["unrolled"], "core_cycles");
    for (field, value) in [
        ("snippet", Value::from("imul rax, rax")),
        ("bytes", "48 0f af c0".into()),
        ("init", "".into()),
        ("executor", "user".into()),
        ("seed", 7.into()),
        ("confidence", 0.95.into()),
        ("empty_call", Value::Null),
        ("throughput", Value::Null),
        ("latency", Value::Null),
        ("latency_by", Value::Null),
    ] {
        assert_eq!(line[field], value, "{field}");
    }
    for field in ["unroll", "loop", "layouts", "samples", "dropped", "warm_up", "cpu"] {
        assert!(line[field].is_u64(), "{field}");
    }
    for field in ["clock", "cpu_model", "repro"] {
        assert!(line[field].as_str().is_some_and(|text| !text.is_empty()), "{field}");
    }
    assert!(line["modes"].is_array() && line["elapsed_s"].is_f64());
}

#[test]
fn caveats_are_from_the_closed_list_and_explain_noise() {
    let measure = || measured(&["--quick", "--layouts", "2", "--interval", "1e-9", "imul rax, rax"]);
    // A busy machine may disturb all rounds of two layouts; then there is no interval.
    let Some(line) = first_with_cost(measure) else { return };
    let caveats = line["caveats"].as_array().expect("a list");
    assert!(caveats.iter().any(|caveat| caveat["code"] == "interval_not_reached"), "{line}");
    for caveat in caveats {
        assert!(CAVEATS.contains(&caveat["code"].as_str().expect("text")), "{caveat}");
        assert!(!caveat["text"].as_str().expect("text").is_empty());
    }
}

/// Runs the command in a record, and returns the new record.
fn rerun(line: &Value) -> Value {
    let words = shlex::split(line["repro"].as_str().expect("text")).expect("words of a shell");
    assert_eq!(words[..2], ["cyclescope", "run"]);
    let words: Vec<&str> = words[2..].iter().map(String::as_str).collect();
    measured(&words)
}

#[test]
fn repro_repeats_the_measurement() {
    let plan = ["--quick", "--seed", "9", "--samples", "5", "--loop", "3", "--init", "mov rax, 1", "it: nop"];
    let line = measured(&plan);
    let new = rerun(&line);
    for field in ["bytes", "init", "seed", "loop", "clock", "cpu", "confidence", "repro"] {
        assert_eq!(line[field], new[field], "{field}");
    }
}

#[test]
fn repro_of_standard_input_contains_the_snippet() {
    let text = "nop # it's one\nimul rax, rax\n";
    let answer = answer(cyclescope(&["run", "--quick", "--json", "-"]).write_stdin(text));
    let line: Value = serde_json::from_str(&answer.stdout).expect("JSON");
    assert_eq!(line["bytes"], rerun(&line)["bytes"]);
}

#[test]
fn error_line_has_every_field() {
    let line = refused(&["nop; imull rax"], 2);
    let fields = ["code", "exit", "text", "remedy", "signal", "address", "instruction"];
    for field in fields {
        assert!(line.get(field).is_some(), "{field}");
    }
    assert_eq!((&line["code"], &line["line"], &line["column"]), (&"bad_snippet".into(), &1.into(), &6.into()));
}

#[test]
fn fault_has_its_signal_address_and_instruction() {
    let line = refused(&["nop; mov rax, [8]"], 4);
    assert_eq!((&line["code"], &line["signal"], &line["address"]), (&"fault".into(), &"SIGSEGV".into(), &"0x8".into()));
    assert!(line["instruction"].as_str().expect("text").starts_with("mov rax, [8]"), "{line}");
    assert!(line["remedy"].as_str().is_some_and(|text| !text.is_empty()), "{line}");
}

#[test]
fn wrong_options_are_reported_in_one_line() {
    for arguments in [&["--unroll", "0", "nop"][..], &["--nonsense"], &["nop", "nop"], &["--cold", "x", "nop"]] {
        let line = refused(arguments, 2);
        let text = line["text"].as_str().expect("text");
        assert!(!text.starts_with("error") && !text.contains("Usage") && !text.contains('\n'), "{text}");
    }
}

#[test]
fn clocks_are_listed_one_per_line() {
    let answer = answer(&mut cyclescope(&["run", "--clock", "list", "--json"]));
    assert_eq!(answer.code, Some(0));
    for line in answer.stdout.lines() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(line["kind"], "clock");
        assert!(line["available"] == true || line["why_not"].is_string(), "{line}");
    }
    assert!(answer.stdout.lines().count() > 5);
}
