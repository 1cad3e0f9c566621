//! `run --mix`: independent copies of several instructions.

use crate::support::{ATTEMPTS, answer, cyclescope, folder, json};

fn cost(line: &serde_json::Value) -> Option<f64> {
    line["cost"]["value"].as_f64()
}

#[test]
fn a_mix_costs_at_least_each_of_its_parts_and_at_most_all_in_turn() {
    let alone = |form: &str, count: &str| cost(&json(&["run", "--mix", form, "--ratio", count], &[0, 5]));
    let all_costs = || Some((time_both()?, alone("imul r64, r64", "2")?, alone("vpaddd xmm, xmm, xmm", "6")?));
    // No core multiplies as it adds vectors, and none does it before: the one takes its time beside the other. What
    // else uses the core for a while, such as its multiplier, slows one of the three.
    let mut seen = Vec::new();
    for (both, one, other) in (0..ATTEMPTS).map_while(|_| all_costs()) {
        if both > 0.9 * one.max(other) && both < 1.1 * (one + other) {
            return;
        }
        seen.push((both, one, other));
    }
    // A busy machine may disturb all rounds.
    assert!(seen.len() < ATTEMPTS, "{seen:?}");
}

/// Core cycles of two multiplications and six additions of vectors, after checks of the mix's record.
fn time_both() -> Option<f64> {
    let line = json(&["run", "--mix", "imul r64, r64; vpaddd xmm1, xmm2, xmm3", "--ratio", "2:6"], &[0, 5]);
    let mix = &line["mix"];
    let parts: Vec<_> = mix["parts"].as_array().expect("a list").iter().map(|part| part["form"].clone()).collect();
    assert_eq!(parts, ["imul r64, r64", "vpaddd xmm, xmm, xmm"]);
    let orders = mix["orders"].as_array().expect("a list");
    let fastest: Vec<_> = orders.iter().filter(|order| order["order"] == mix["fastest"]).collect();
    // A busy machine may disturb all rounds.
    let is_measured = orders.iter().any(|order| order["cost"]["value"].is_number());
    assert!(orders.len() > 3 && fastest.len() == usize::from(is_measured), "{line}");
    let least = orders.iter().filter_map(|order| order["cost"]["value"].as_f64()).fold(f64::INFINITY, f64::min);
    assert!(fastest.iter().all(|order| order["cost"]["value"].as_f64().is_none_or(|cost| cost == least)), "{line}");
    cost(&line)
}

#[test]
fn chains_are_reported() {
    let line = json(&["run", "--quick", "--mix", "mul rcx; popcnt rax, rbx"], &[0, 5]);
    let chains = line["mix"]["chains"].as_array().expect("a list");
    assert!(chains.len() == 1 && chains[0].as_str().is_some_and(|chain| chain.contains("rax")), "{line}");
    let said =
        answer(cyclescope(&["run", "--quick", "--orders", "--mix", "mul rcx; popcnt rax, rbx"]).env("NO_COLOR", "1"));
    let words = said.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("depend on each other through rax, which may limit the mix"), "{said:?}");
    assert!(words.contains("interleaved"), "{said:?}");
    assert!(said.stdout.lines().all(|line| line.chars().count() <= 80), "{said:?}");
}

#[test]
fn advice_about_a_state_names_no_option_that_mixes_lack() {
    let mix = ["run", "--quick", "--mix", "div r64; imul r64, r64", "--ratio", "1:4"];
    let line = json(&mix, &[0, 5]);
    let caveats = line["caveats"].as_array().expect("a list");
    for caveat in caveats.iter().filter(|caveat| caveat["code"] == "not_steady") {
        let text = caveat["text"].as_str().expect("text");
        assert!(text.ends_with("leave this form out of the mix") && !text.contains("--setup"), "{text}");
    }
}

#[test]
fn mixes_that_can_not_be_measured_say_why() {
    for (arguments, words) in [
        (&["--mix", ""][..], "names no instruction"),
        (&["--mix", "add"], "several forms"),
        (&["--mix", "nonsense r64"], "neither a form nor an instruction"),
        (&["--mix", "jmp rel8"], "it is a branch"),
        (&["--mix", "fadd st, st"], "x87 stack"),
        (&["--mix", "addps xmm0, xmm1; vpaddd xmm0, xmm1, xmm2"], "must not mix"),
        (&["--mix", "add r64, r64; imul r64, r64", "--ratio", "1:2:3"], "3 numbers for 2"),
        (&["--mix", "add r64, r64", "--ratio", "x"], "--ratio 'x' is invalid"),
        (&["--mix", "add r64, r64", "--table", "/nonexistent"], "/nonexistent"),
    ] {
        let answer = answer(cyclescope(&["run"]).args(arguments));
        assert_eq!((answer.code, answer.stdout.as_str()), (Some(2), ""), "{arguments:?}: {answer:?}");
        assert!(answer.stderr.contains(words) && answer.stderr.contains("help: "), "{arguments:?}: {answer:?}");
    }
    let both = answer(&mut cyclescope(&["run", "--mix", "add r64, r64", "nop"]));
    assert!(both.code == Some(2) && both.stderr.contains("cannot be used with"), "{both:?}");
    let alone = answer(&mut cyclescope(&["run", "nop", "--ratio", "1"]));
    assert!(alone.code == Some(2) && alone.stderr.contains("--mix"), "{alone:?}");
}

#[test]
fn evidence_of_a_mix_gives_the_same_result() {
    let folder = folder();
    let evidence = folder.path().join("evidence");
    let path = evidence.to_str().expect("text");
    let line = json(&["run", "--quick", "--evidence", path, "--mix", "add r64, r64; imul r64, r64"], &[0, 5]);
    let replayed = json(&["replay", path], &[0, 5]);
    assert_eq!((&replayed["cost"], &replayed["mix"]), (&line["cost"], &line["mix"]));
    let again = json(&["replay", "--measure", path], &[0, 5]);
    assert_eq!(again["mix"]["parts"], line["mix"]["parts"]);
}

#[test]
fn a_ratio_can_be_swept() {
    let said = answer(&mut cyclescope(&[
        "run",
        "--quick",
        "--json",
        "--sweep",
        "N=1,4",
        "--mix",
        "imul r64, r64; popcnt r64, r64",
        "--ratio",
        "1:{N}",
    ]));
    assert!(matches!(said.code, Some(0 | 5)), "{said:?}");
    let lines = said.stdout.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let counts: Vec<_> = lines.filter_map(|line| line["mix"]["parts"][1]["count"].as_u64()).collect();
    assert!(counts.len() == 2 && counts.contains(&1) && counts.contains(&4), "{said:?}");
}

#[test]
fn dispatch_slots_of_a_table_limit_a_mix() {
    let folder = folder();
    let file = folder.path().join("table.json");
    let path = file.to_str().expect("text");
    let forms = ["Imul_r64_rm64 r64, r64", "Popcnt_r64_rm64 r64, r64"];
    let table = answer(&mut cyclescope(&["instr", "--quick", "--out", path, forms[0], forms[1]]));
    assert_eq!(table.code, Some(0), "{table:?}");
    let mix = ["--mix", "imul r64, r64; popcnt r64, r64", "--ratio", "1:3"];
    let line = json(&[&["run", "--quick", "--table", path][..], &mix].concat(), &[0, 5]);
    let Some(bound) = line["mix"]["bounds"].get(0) else {
        cyclescope_skipped::report_left_out("the table has no dispatch slots here");
        return;
    };
    let number = |name: &str| bound[name].as_f64().expect("a number");
    assert_eq!(bound["resource"], "slots", "{line}");
    assert!(
        number("needed") >= 4.0 && (number("needed") / number("per_cycle") - number("cycles")).abs() < 1e-9,
        "{line}"
    );
    // The width is measured too.
    assert!(cost(&line).is_none_or(|cost| cost > 0.9 * number("cycles")), "{line}");
    let other = answer(cyclescope(&["run", "--quick", "--table", path]).args(["--mix", "add r64, r64"]));
    assert!(other.stderr.contains("no dispatch slots of `add r64, r64`"), "{other:?}");
}

#[test]
fn a_pair_that_can_not_be_mixed_says_why() {
    let said = answer(&mut cyclescope(&["ports", "--quick", "--pair", "vaddps xmm, xmm, xmm", "addps xmm, xmm"]));
    if said.code == Some(3) {
        return cyclescope_skipped::report_skipped(&said.stderr);
    }
    let words = said.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let whys = ["a form can't be mixed", "no mix of both has a time: legacy and VEX vector code must not mix"];
    assert!(said.code == Some(5) && whys.iter().any(|why| words.contains(&format!("why {why}"))), "{said:?}");
    let said = answer(&mut cyclescope(&["ports", "--pair", "add", "imul r64, r64"]));
    assert!(said.code == Some(2) && said.stderr.contains("`add` names several forms"), "{said:?}");
    assert_eq!(said.stderr.matches("`add r64, r64`").count(), 1, "{said:?}");
}

/// A result file of `ports` on this machine, of `imul r64, r64` with one port and `popcnt r64, r64` with
/// two, of which one is the other's, on a core of six slots. `None` if ports can't be measured here.
fn write_ports(path: &str) -> Option<Vec<serde_json::Value>> {
    let forms = ["imul r64, r64", "popcnt r64, r64"];
    let said = answer(&mut cyclescope(&["ports", "--quick", "--out", path, forms[0], forms[1]]));
    if said.code == Some(3) {
        cyclescope_skipped::report_skipped(&said.stderr);
        return None;
    }
    assert!(matches!(said.code, Some(0 | 5)), "{said:?}");
    let content = std::fs::read_to_string(path).expect("a file");
    let mut lines: Vec<serde_json::Value> =
        content.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let count = serde_json::json!({"unit": "slots", "value": 1.0, "low": 0.9, "high": 1.1});
    for line in &mut lines[1..3] {
        line["ports"] = if line["mnemonic"] == "imul" { "1*A1" } else { "1*A01" }.into();
        line["solutions"] = 1.into();
        line["slots"] = serde_json::json!({"count": count, "verdict": "exact", "whole": 1, "fillers": [], "why": null});
    }
    lines[3]["width"] = 6.0.into();
    write_lines(path, &lines);
    Some(lines)
}

fn write_lines(path: &str, lines: &[serde_json::Value]) {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(path, text).expect("a file");
}

#[test]
fn ports_of_a_file_give_the_best_assignment_of_a_mix() {
    let folder = folder();
    let [file, evidence] = ["ports.json", "evidence"].map(|name| folder.path().join(name));
    let [path, evidence] = [&file, &evidence].map(|path| path.to_str().expect("text"));
    let Some(mut lines) = write_ports(path) else { return };
    let run = ["run", "--quick", "--ports", path];
    let mix = ["--mix", "imul r64, r64; popcnt r64, r64", "--ratio", "3:2"];
    let line = json(&[&run[..], &mix, &["--evidence", evidence]].concat(), &[0, 5]);
    let ports = &line["mix"]["ports"];
    assert_eq!((&ports["cycles"], &ports["binds"]), (&3.0.into(), &serde_json::json!(["A1"])), "{line}");
    let loads = serde_json::json!([{"port": "A0", "uops": 2.0}, {"port": "A1", "uops": 3.0}]);
    assert_eq!(ports["loads"], loads, "{line}");
    let bounds: Vec<_> = line["mix"]["bounds"].as_array().expect("a list").iter().map(|b| &b["resource"]).collect();
    assert_eq!(bounds, ["A1", "slots"], "{line}");
    assert_eq!(&json(&["replay", evidence], &[0, 5])["mix"]["ports"], ports);
    let page = answer(cyclescope(&[&run[..], &mix].concat()).env("NO_COLOR", "1"));
    let words = page.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for said in ["the best assignment takes 3.000 core cycles: A1 binds", "µops on each port: A0 2.00, A1 3.00"] {
        assert!(words.contains(said), "{said}: {page:?}");
    }
    assert!(page.stdout.lines().all(|line| line.chars().count() <= 80), "{page:?}");
    // A form that the file lacks leaves no answer.
    let lacking = ["--mix", "imul r64, r64; pavgb xmm, xmm"];
    let line = json(&[&run[..], &lacking].concat(), &[5]);
    let ports = &line["mix"]["ports"];
    assert!(ports["cycles"].is_null() && ports["parts"][0]["ports"] == "1*A1", "{line}");
    assert_eq!(ports["parts"][1]["why"], "the file lacks it", "{line}");
    let page = answer(cyclescope(&[&run[..], &lacking].concat()).env("NO_COLOR", "1"));
    let words = page.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.code == Some(5) && words.contains("the ports of pavgb xmm, xmm are not known"), "{page:?}");
    // Other files are refused.
    let refused = |words: &str| {
        let said = answer(&mut cyclescope(&[&run[..], &mix].concat()));
        assert!(said.code == Some(2) && said.stderr.contains(words) && said.stderr.contains("help: "), "{said:?}");
    };
    let last = lines.pop().expect("a line");
    write_lines(path, &lines);
    refused("it has no line of ports.classes");
    write_lines(path, &[&lines[1..], std::slice::from_ref(&last)].concat());
    refused("has no first line of kind machine");
    write_lines(path, &lines[..1]);
    refused("has no ports of instructions");
    lines[0]["cpu"]["brand"]["value"] = "Another Processor".into();
    lines.push(last);
    write_lines(path, &lines);
    refused("has the results of another machine: the processor's brand was \"Another Processor\"");
    std::fs::remove_file(path).expect("a file");
    refused("ports.json");
}
