//! Untrusted files: every reader handles any input without a panic. For longer runs see
//! `cyclescope_fuzz`.

mod dossier;
mod readers;
mod resealed;
mod seeds;

use cyclescope_fuzz::{fuzz_reader, thread_time};
use readers::READERS;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

fn check(name: &str) {
    let reader = READERS.iter().find(|reader| reader.name == name).expect("a reader");
    let seeds = seeds::inputs_of(name);
    if seeds.is_empty() {
        return cyclescope_skipped::report_skipped(format_args!("there are no good inputs for {name} here"));
    }
    // What libFuzzer found once.
    read_regressions(name).iter().for_each(|bytes| (reader.read)(bytes));
    fuzz_reader(name, reader.shape, &seeds, reader.read);
}

/// The stored inputs that a reader once failed on.
fn read_regressions(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/regressions").join(name);
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    entries.flatten().map(|entry| std::fs::read(entry.path()).expect("a file")).collect()
}

#[test]
fn any_assembly_is_handled() {
    check("assembly");
}

#[test]
fn any_evidence_of_an_evaluation_is_handled() {
    check("evidence_evaluate");
}

#[test]
fn any_evidence_of_a_survey_is_handled() {
    check("evidence_instr");
}

#[test]
fn any_evidence_of_markers_is_handled() {
    check("evidence_marker");
}

#[test]
fn any_evidence_of_points_is_handled() {
    check("evidence_points");
}

#[test]
fn any_evidence_of_ports_is_handled() {
    check("evidence_ports");
}

#[test]
fn any_evidence_of_a_run_is_handled() {
    check("evidence_run");
}

#[test]
fn any_evidence_of_a_core_is_handled() {
    check("evidence_uarch");
}

#[test]
fn any_list_of_instructions_is_handled() {
    check("forms");
}

#[test]
fn any_manifest_is_handled() {
    check("manifest");
}

#[test]
fn any_names_of_ports_are_handled() {
    check("port_names");
}

#[test]
fn any_ports_are_handled() {
    check("ports");
}

#[test]
fn any_published_table_is_handled() {
    check("published");
}

#[test]
fn any_readings_are_handled() {
    check("readings");
}

#[test]
fn any_results_are_handled() {
    check("results");
}

#[test]
fn any_samples_of_benchmarks_are_handled() {
    check("samples");
}

#[test]
fn any_first_line_is_handled() {
    check("session");
}

#[test]
fn any_list_of_snippets_is_handled() {
    check("snippets");
}

#[test]
fn any_pasted_text_is_handled() {
    check("pasted");
}

/// Finds the numbers in a value; in long lists only those of the first items.
fn numbers(value: &Value, pointer: &str, found: &mut Vec<String>) {
    const ITEMS: usize = 3;
    match value {
        Value::Number(_) => found.push(pointer.to_string()),
        Value::Array(items) => {
            let first = items.iter().enumerate().take(ITEMS);
            first.for_each(|(at, item)| numbers(item, &format!("{pointer}/{at}"), found));
        }
        Value::Object(fields) => {
            fields.iter().for_each(|(name, field)| numbers(field, &format!("{pointer}/{name}"), found));
        }
        _ => {}
    }
}

/// In these studies the plan and the first answers decide how much is requested.
#[test]
fn each_number_of_a_plan_may_have_any_value() {
    const VALUES: [&str; 7] = ["0", "3", "-1", "1152921504606846976", "18446744073709551615", "1e308", "-0.5"];
    for name in
        ["evidence_instr", "evidence_marker", "evidence_points", "evidence_ports", "evidence_run", "evidence_uarch"]
    {
        let Some(seed) = seeds::inputs_of(name).into_iter().next() else { continue };
        let mut good: Value = serde_json::from_slice(&seed).expect("JSON");
        let mut pointers = Vec::new();
        numbers(&good["facts"], "/facts", &mut pointers);
        numbers(&good["events"][0][0], "/events/0/0", &mut pointers);
        assert!(pointers.len() > 10, "{name}");
        // All but the first event are the same each time.
        let events: Vec<_> = good["events"].as_array().into_iter().flatten().map(dossier::event).collect();
        good["events"].as_array_mut().expect("events").truncate(1);
        // A short run takes every other value, others for the next place.
        let is_short = std::env::var_os("CYCLESCOPE_FUZZ_INPUTS").is_none();
        let each = |pointer: &String| {
            let is_taken = |number: usize| !is_short || (number + pointer.len()).is_multiple_of(2);
            for value in VALUES.into_iter().enumerate().filter(|(number, _)| is_taken(*number)).map(|(_, value)| value)
            {
                let mut changed = good.clone();
                *changed.pointer_mut(pointer).expect("a place") = serde_json::from_str(value).expect("JSON");
                let first = dossier::event(&changed["events"][0]);
                let all: Vec<_> = std::iter::once(&first).chain(&events[1..]).collect();
                let read = || dossier::replayed_events(&changed, &all);
                let begun = thread_time();
                assert!(std::panic::catch_unwind(read).is_ok(), "{name}: {pointer} = {value}");
                assert!(thread_time() - begun < Duration::from_secs(20), "{name}: {pointer} = {value}");
            }
        };
        let at_once = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            for part in pointers.chunks(pointers.len().div_ceil(at_once)) {
                scope.spawn(|| part.iter().for_each(each));
            }
        });
    }
}
