//! `uarch`: its output, its replay, and its errors for unknown names.

use crate::support::{answer, cyclescope, folder, json, parse_lines};
use serde_json::Value;

#[test]
fn structure_has_a_verdict_and_replay_agrees() {
    let files = folder();
    let path = files.path().join("evidence");
    let path = path.to_str().expect("text");
    let plots = files.path().join("plots");
    let pictures = plots.to_str().expect("text");
    let arguments = ["uarch", "stores_in_flight", "--quick", "--evidence", path, "--plots", pictures];
    let line = json(&arguments, &[0]);
    assert_eq!((&line["kind"], &line["test"]), (&"uarch".into(), &"stores_in_flight".into()));
    let verdict = line["verdict"].as_str().expect("a verdict");
    assert!(["found", "limited", "none", "unclear"].contains(&verdict), "{line}");
    assert_eq!(line["value"]["value"].is_number(), verdict == "found", "{line}");
    assert_eq!(line["value"]["unit"], "count");
    let fillers = line["fillers"].as_array().expect("fillers");
    assert!(fillers.len() >= 2 && fillers.iter().all(|filler| !filler["curve"][0].is_null()), "{line}");
    assert_eq!(json(&["replay", path], &[0]), line);
    let core = std::fs::read_to_string(plots.join("core.svg")).expect("the diagram");
    assert!(core.contains("stores in flight") && core.contains("not measured"), "{core}");
    let picture = std::fs::read_to_string(plots.join("uarch-stores_in_flight.svg")).expect("a picture");
    for text in
        ["How many stores", "instructions between the chains", "overlap: 1 at the same time", "movups m128, xmm"]
    {
        assert!(picture.contains(text), "no {text} in {picture}");
    }
}

#[test]
fn page_fits_a_terminal_and_explains_missing_numbers() {
    let text = answer(cyclescope(&["uarch", "branches_in_flight", "--quick"]).env("NO_COLOR", "1"));
    assert_eq!(text.code, Some(0), "{text:?}");
    let wide = text.stdout.lines().find(|line| line.chars().count() > 80);
    assert_eq!(wide, None, "{text:?}");
    let (title, rest) = text.stdout.split_once('\n').expect("lines");
    assert!(title == "In flight" && rest.starts_with("  branches in flight  "), "{text:?}");
    let row = rest.lines().next().expect("a row");
    assert!(row.contains(" entries") != text.stdout.contains("Reasons for missing numbers"), "{text:?}");
}

#[test]
fn every_record_is_printed_and_every_walk_is_plotted() {
    let files = folder();
    let path = |name: &str| files.path().join(name).to_str().expect("text").to_string();
    let arguments = ["uarch", "data_tlb", "--quick", "--out", &path("out"), "--plots", &path("plots")];
    let text = answer(cyclescope(&arguments).env("NO_COLOR", "1"));
    let lines = std::fs::read_to_string(path("out")).expect("a file");
    let lines = parse_lines(&lines);
    let records: Vec<&Value> = lines.iter().filter(|line| line["kind"] == "uarch").collect();
    let page = text.stdout.split("\n\n").next().expect("a part");
    let rows = page.lines().filter(|line| line.starts_with("  data tlb")).count();
    assert!(rows == records.len() && rows > 0, "{text:?}");
    for record in records {
        let walked = record["walks"].as_array().is_some_and(|walks| !walks.is_empty());
        let picture = files.path().join(format!("plots/uarch-{}.svg", record["what"].as_str().expect("text")));
        assert_eq!(picture.exists(), walked, "{record}");
    }
}

#[test]
fn rates_include_their_programs() {
    let files = folder();
    let plots = files.path().join("plots");
    let pictures = plots.to_str().expect("text");
    let tests = ["load_rate", "load_latency", "read_bandwidth"];
    let arguments = [&["uarch"][..], &tests, &["--quick", "--json", "--plots", pictures]].concat();
    let measured = answer(&mut cyclescope(&arguments));
    assert_eq!(measured.code, Some(0), "{measured:?}");
    let lines = measured.stdout.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let records: Vec<Value> = lines.filter(|line| line["kind"] == "uarch").collect();
    assert!(records.iter().any(|record| record["what"] == "load_rate.8_bytes"), "{records:?}");
    for record in &records {
        let found = record["verdict"] == "found";
        assert_eq!(record["value"]["value"].is_number(), found, "{record}");
        let unit = match record["test"].as_str() {
            Some("load_rate") => "per_cycle",
            Some("load_latency") => "core_cycles",
            _ => "bytes_per_cycle",
        };
        assert_eq!(record["value"]["unit"], unit, "{record}");
        let rates = record["rates"].as_array().expect("rates");
        assert!(!found || rates.len() >= 2 && rates[0]["rate"]["value"].is_number(), "{record}");
    }
    // Under background load, possibly none is measured.
    let measured = records.iter().any(|record| record["test"] == "read_bandwidth" && !record["rates"][0].is_null());
    assert_eq!(plots.join("uarch-read_bandwidth.svg").exists(), measured);
}

/// The cost of a step is a measurement like any other: the same readings give the same levels.
#[test]
fn replay_reproduces_the_levels() {
    let files = folder();
    let path = |name: &str| files.path().join(name).to_str().expect("text").to_string();
    let arguments = ["uarch", "uop_cache", "--quick", "--json", "--evidence", &path("evidence")];
    let measured = answer(&mut cyclescope(&arguments));
    assert_eq!(measured.code, Some(0), "{measured:?}");
    let again = answer(&mut cyclescope(&["replay", "--json", &path("evidence")]));
    let records = |text: &str| -> Vec<Value> {
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        lines.filter(|line| line["kind"] == "uarch").collect()
    };
    let (first, second) = (records(&measured.stdout), records(&again.stdout));
    assert!(first == second && !first.is_empty(), "{first:?} and {second:?}");
    let curve = first[0]["walks"][0]["curve"].as_array().expect("a curve");
    assert!(curve.len() > 20 && curve.iter().all(|point| point["cost"].is_number()), "{curve:?}");
}

#[test]
fn tests_are_listed_and_misspelt_names_rejected() {
    let list = answer(&mut cyclescope(&["uarch", "--list"]));
    assert!(list.stdout.contains("vector_registers_xmm\n") && list.code == Some(0), "{list:?}");
    let wrong = answer(&mut cyclescope(&["uarch", "stores"]));
    assert!(wrong.code == Some(2) && wrong.stderr.contains("did you mean stores_in_flight"), "{wrong:?}");
    let agner = answer(&mut cyclescope(&["uarch", "--list", "agner"]));
    assert!(agner.stdout.contains("fused_branch  ") && agner.stdout.contains("macro_fusion"), "{agner:?}");
    let lines = answer(&mut cyclescope(&["uarch", "--list", "agner", "--json"]));
    assert!(lines.stdout.lines().count() == 37 + 18 + 19 && lines.code == Some(0), "{lines:?}");
    let nothing = answer(&mut cyclescope(&["uarch", "--list", "--plots", "x"]));
    assert!(nothing.code == Some(2) && nothing.stderr.contains("cannot be used"), "{nothing:?}");
}

/// The words of a command, some of them between single quotes.
fn split_words(command: &str) -> Vec<String> {
    let parts = command.split('\'').enumerate();
    let words = parts.flat_map(|(number, part)| match number % 2 {
        0 => part.split_whitespace().map(str::to_string).collect::<Vec<_>>(),
        _ => vec![part.to_string()],
    });
    words.collect()
}

#[test]
fn commands_that_answer_lists_of_instructions_run() {
    let lines = answer(&mut cyclescope(&["uarch", "--list", "agner", "--json"]));
    let mut commands = 0;
    for line in lines.stdout.lines() {
        let entry: Value = serde_json::from_str(line).expect("JSON");
        for text in entry["answers"].as_array().expect("a list").iter().filter_map(Value::as_str) {
            let words = split_words(text);
            match &words[..] {
                [_, command, ..] if command == "instr" => {
                    let words: Vec<&str> = words[1..].iter().map(String::as_str).chain(["--list"]).collect();
                    let listed = answer(&mut cyclescope(&words));
                    assert!(listed.code == Some(0) && listed.stdout.contains(" forms "), "{text}: {listed:?}");
                    commands += 1;
                }
                [_, command, ..] => assert_eq!(command, "run", "{text}"),
                _ => {}
            }
        }
    }
    assert_eq!(commands, 18 + 17, "all lists but those of 32-bit code and of delays between units");
}

/// Background load may keep the CPUs from answering each other. Then there is a reason, and still a
/// picture.
#[test]
fn every_cpu_pair_has_a_number_or_a_reason() {
    let files = folder();
    let path = |name: &str| files.path().join(name).to_str().expect("text").to_string();
    let arguments = ["uarch", "core_to_core", "--quick", "--json", "--evidence", &path("evidence")];
    let measured = answer(cyclescope(&arguments).args(["--plots", &path("plots")]));
    assert_eq!(measured.code, Some(0), "{measured:?}");
    let again = answer(&mut cyclescope(&["replay", "--json", &path("evidence")]));
    let records = |text: &str| -> Vec<Value> {
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        lines.filter(|line| line["kind"] == "uarch").collect()
    };
    let (first, second) = (records(&measured.stdout), records(&again.stdout));
    assert!(first == second && !first.is_empty(), "{first:?} and {second:?}");
    for record in &first {
        let found = record["verdict"] == "found";
        assert!(record["value"]["value"].is_number() == found && record["value"]["unit"] == "ns", "{record}");
        assert!(!record["why"].as_str().expect("text").is_empty(), "{record}");
        if let Some(cpus) = record["pair"]["cpus"].as_array() {
            assert_eq!(record["what"], format!("core_to_core.{}.{}", cpus[0], cpus[1]), "{record}");
        }
    }
    let several = !first[0]["pair"].is_null();
    assert_eq!(files.path().join("plots/uarch-core_to_core.svg").exists(), several);
}

/// A process that may use only one CPU has no pair, and says so.
#[test]
fn single_cpu_has_no_pair() {
    let mut alone = assert_cmd::Command::new("taskset");
    let program = ["-c", "0", env!("CARGO_BIN_EXE_cyclescope")];
    alone.args(program).args(["uarch", "core_to_core", "false_sharing", "--quick", "--json"]);
    let Some(output) = alone.output().ok().filter(|output| output.status.success()) else {
        return cyclescope_skipped::report_skipped(format_args!("a process may not be kept on CPU 0"));
    };
    let text = String::from_utf8(output.stdout).expect("text");
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let mut records = lines.filter(|line| line["kind"] == "uarch").peekable();
    assert!(records.peek().is_some() && records.all(|record| record["verdict"] == "none"), "{text}");
}
