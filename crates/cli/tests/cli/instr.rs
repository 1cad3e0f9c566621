//! `instr`: tables, lists, exports and explanations.

use crate::support::{Answer, answer, cyclescope, folder, measure_until, of_kind, parse_lines, value_if_any};
use serde_json::Value;
use std::collections::BTreeSet;

fn run_instr(arguments: &[&str]) -> Answer {
    answer(&mut cyclescope(&[&["instr"], arguments].concat()))
}

/// The JSON lines of a survey.
fn lines(arguments: &[&str]) -> Vec<Value> {
    let answer = run_instr(&[arguments, &["--json"]].concat());
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let lines = parse_lines(&answer.stdout);
    assert!(lines.iter().all(|line| line["schema"] == "cyclescope/1"));
    lines
}

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

#[test]
fn table_has_a_row_per_form() {
    let answer = run_instr(&["add r64, r64", "Imul_r64_rm64", "hlt", "--quick"]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    for part in [
        "(Add_r64_rm64)",
        "(Add_rm64_r64)",
        "imul r64, r64",
        "imul r64, m64",
        "skipped:",
        "5 forms: 4 measured, 1 skipped, 0 failed",
    ] {
        assert!(answer.stdout.contains(part), "{part}: {}", answer.stdout);
    }
    // Every sign in the table is explained below it.
    for mark in ['≤', '~'] {
        assert!(answer.stdout.matches(mark).count() != 1, "{mark}: {}", answer.stdout);
    }
    for line in answer.stdout.lines() {
        assert!(line.chars().count() <= 80 && !line.contains('\x1b'), "{line}");
    }
}

#[test]
fn rows_are_json_lines_between_the_machine_and_the_summary() {
    let lines = lines(&["Add_r64_rm64", "hlt", "--quick", "--seed", "7"]);
    assert_eq!((&lines[0]["kind"], &lines[lines.len() - 1]["kind"]), (&"machine".into(), &"instr.summary".into()));
    let (machine, summary) = (&lines[0], &lines[lines.len() - 1]);
    assert!(machine["cpu"]["brand"].is_object() && machine["gauge"]["links"][0]["name"].is_string());
    assert_eq!((&machine["survey"]["seed"], &machine["survey"]["quick"]), (&7.into(), &true.into()));
    let rows = of_kind(&lines, "instr");
    assert_eq!((rows.len(), lines.len()), (3, 5));
    for row in &rows {
        let expected = "schema kind code mnemonic operands encoding executor isa implicit bytes immediate tried status \
                        reason latency throughput slots tags caveats repro";
        assert_eq!(keys(row), expected.split_whitespace().collect());
    }
    let counts = ["forms", "measured", "skipped", "failed"].map(|name| summary[name].as_u64().expect("a count"));
    assert_eq!(counts, [3, 2, 1, 0]);
    assert_eq!(summary["skipped_by_reason"][0]["reason"], "privileged");
    let row = rows.iter().find(|row| row["operands"] == "r64, r64").expect("the form");
    let latency = row["latency"].as_array().expect("a list").iter().find(|latency| latency["to"] == "op1");
    let latency = latency.expect("a latency to the destination");
    assert_eq!(keys(latency), "from to cost bound variant immediate chain regimes".split(' ').collect());
    assert_eq!(latency["cost"]["unit"], "core_cycles");
    // The chain of additions defines the core cycle.
    if let Some(cycles) = value_if_any(&latency["cost"]) {
        assert!((cycles - 1.0).abs() < 0.2, "{latency}");
    }
}

#[test]
fn row_names_the_command_that_repeats_it() {
    for filter in ["Lea_r64_m r64, [b+i*s+d8]", "EVEX_Vaddps_zmm*, m32{1to16}", "Nopd", "Movs?_m64_m64"] {
        let answer = run_instr(&[filter, "--quick", "--seed", "3", "--json"]);
        let first = parse_lines(&answer.stdout);
        let rows = of_kind(&first, "instr");
        // A CPU without AVX-512 has no figure of a form of it.
        let none = rows.iter().all(|row| row["status"] == "skipped");
        assert_eq!(answer.code, Some(if none { 3 } else { 0 }), "{answer:?}");
        assert!(!rows.is_empty(), "{filter}");
        for row in rows {
            let words = shell_words(row["repro"].as_str().expect("text"));
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            assert_eq!(words[..2], ["cyclescope", "instr"]);
            assert!(words.contains(&"--quick") && words[words.len() - 2..] == ["--seed", "3"], "{words:?}");
            let again = lines(&[&words[2..], &["--list"]].concat());
            let name = |form: &Value| ["code", "operands"].map(|part| form[part].to_string());
            assert_eq!(again.iter().map(name).collect::<Vec<_>>(), [name(row)]);
        }
    }
}

/// Splits words as a shell does; only single quotes are supported.
fn shell_words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            c => words.last_mut().expect("one").push(c),
        }
    }
    words
}

#[test]
fn forms_are_listed_without_measuring() {
    let answer = run_instr(&["add r64*", "hlt", "--list"]);
    assert_eq!((answer.code, answer.stderr.as_str()), (Some(0), ""));
    for part in ["Add_r64_rm64", "skip:", "privileged", "5 forms would be measured, 1 skipped"] {
        assert!(answer.stdout.contains(part), "{part}: {}", answer.stdout);
    }
    let listed = lines(&["--all", "--list"]);
    assert!(listed.len() > 10_000 && listed.iter().all(|line| line["kind"] == "instr.form"));
    let expected = "schema kind code mnemonic operands encoding isa skip".split(' ').collect();
    assert_eq!(keys(&listed[0]), expected);
    let names: BTreeSet<(String, String)> =
        listed.iter().map(|form| (form["code"].to_string(), form["operands"].to_string())).collect();
    assert_eq!(names.len(), listed.len());
}

#[test]
fn filters_combine_and_isa_restricts() {
    let count = |arguments: &[&str]| lines(&[arguments, &["--list"]].concat()).len();
    let (add, sub) = (count(&["add"]), count(&["--mnemonic", "sub"]));
    assert!(add > 10 && sub > 10);
    assert_eq!(count(&["ADD", "--mnemonic", "sub,sub"]), add + sub);
    let forms = lines(&["vpadd?", "--isa", "avx2,sse2", "--list"]);
    assert!(!forms.is_empty() && forms.iter().all(|form| form["isa"] == "avx2"), "{forms:?}");
}

#[test]
fn empty_selections_are_rejected_with_a_remedy() {
    let files = folder();
    let path = |name: &str| files.path().join(name).display().to_string();
    std::fs::write(path("list.csv"), "instruction,operands\nadd,\"r64, r64\"\nimull,r64\n").expect("a file");
    let (list, missing, nowhere) = (path("list.csv"), path("missing"), path("no/a.csv"));
    let cases: [(&[&str], &str); 16] = [
        (&[], "--all"),
        (&["imull"], "did you mean imul"),
        (&["zz*"], "no form matches"),
        (&["--mnemonic", "vpad"], "did you mean"),
        (&["add", "--isa", "avx512bv"], "did you mean avx512bw"),
        (&["add", "--isa", "avx512bw"], "leave out --isa"),
        (&["add", "--all"], "leave out --all"),
        (&["--explain", "add", "--evidence", "x"], "--evidence can't be combined with --explain"),
        (&["add", "--out", "a", "--resume", "a"], "cannot be used"),
        (&["--explain", "v*"], "too many to explain"),
        (&["--explain", "add", "--out", "a"], "cannot be used"),
        (&["--from", &list], "line 3: there is no instruction `imull`"),
        (&["--from", &missing], "No such file"),
        (&["--resume", &missing], "No such file"),
        (&["nop", "--csv", &nowhere], "No such file"),
        (&["nop", "--clock", "rdtsc,rdtscp"], "only one --clock"),
    ];
    for (arguments, says) in cases {
        let answer = run_instr(arguments);
        assert_eq!(answer.code, Some(2), "{arguments:?}: {answer:?}");
        assert!(answer.stderr.contains(says), "{arguments:?}: {}", answer.stderr);
        assert!(answer.stdout.is_empty(), "{arguments:?}");
    }
    assert_eq!(run_instr(&["add", "--executor", "kernel"]).code, Some(3));
    let left: Vec<_> = std::fs::read_dir(files.path()).expect("a folder").collect();
    assert_eq!(left.len(), 1);
}

#[test]
fn custom_lists_are_measured_as_specified() {
    let files = folder();
    let list = files.path().join("a list.csv");
    let text = "Operands,instruction,init,measure\n# division\nr32,div,xor edx edx,throughput\n";
    std::fs::write(&list, text).expect("a file");
    let list = list.to_str().expect("text");
    let answer = run_instr(&["--from", list, "--quick"]);
    assert_eq!(answer.code, Some(2));
    assert!(answer.stderr.contains("line 3") && answer.stderr.contains("init"), "{}", answer.stderr);
    let text = "Operands,instruction,init,measure\nr32,div,\"xor edx, edx; mov eax, 7\",throughput\n\
                \"r64, r64\",Add_r64_rm64,,latency\n,nop,,\n";
    std::fs::write(list, text).expect("a file");
    let lines = lines(&["--from", list, "--quick"]);
    let rows = of_kind(&lines, "instr");
    let row = |code: &str| *rows.iter().find(|row| row["code"] == code).expect("the form");
    assert!(row("Div_rm32")["latency"].as_array().expect("a list").is_empty());
    assert!(row("Div_rm32")["throughput"].is_object());
    assert!(row("Add_r64_rm64")["throughput"].is_null());
    assert!(!row("Add_r64_rm64")["latency"].as_array().expect("a list").is_empty());
    assert!(row("Div_rm32")["repro"].as_str().expect("text").contains("--from"));
    // Filters select from the list.
    assert_eq!(self::lines(&["--from", list, "add", "--list"]).len(), 1);
}

#[test]
fn code_of_a_list_leaves_no_traces_for_its_other_rows() {
    let files = folder();
    let list = files.path().join("list.csv").display().to_string();
    // The second row fails where the first one has run.
    let rows = "sequence,init\n\"add rax, rbx\",\"mov rcx, 1; mov qword ptr fs:[64], rcx\"\n\
                \"imul rax, rbx\",\"cmp qword ptr fs:[64], 0; je 1f; ud2; 1: nop\"\n";
    std::fs::write(&list, rows).expect("a file");
    let lines = self::lines(&["--from", &list, "--quick", "--seed", "3"]);
    let rows = of_kind(&lines, "instr");
    assert_eq!(rows.len(), 2);
    assert!(rows.iter().all(|row| row["status"] != "failed"), "{rows:?}");
}

#[test]
fn every_immediate_gets_a_row() {
    let files = folder();
    let path = |name: &str| files.path().join(name).display().to_string();
    let (list, out, csv) = (path("list.csv"), path("a.jsonl"), path("a.csv"));
    std::fs::write(&list, "instruction,operands,immediate\nrol,\"r64, imm8\",1 7\n").expect("a file");
    let answer = run_instr(&["--from", &list, "--quick", "--out", &out, "--csv", &csv]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let whole = std::fs::read_to_string(&out).expect("a file");
    let rows = |text: &str| -> Vec<Value> {
        let lines = parse_lines(text);
        of_kind(&lines, "instr").into_iter().cloned().collect()
    };
    let mut named: Vec<[String; 3]> =
        rows(&whole).iter().map(|row| ["operands", "immediate", "tried"].map(|name| row[name].to_string())).collect();
    named.sort();
    let expected = ["0x1", "0x7"].map(|value| [format!("\"r64, {value}\""), format!("\"{value}\""), "[]".into()]);
    assert_eq!(named, expected);
    for text in ["rol r64, 0x1", "rol r64, 0x7"] {
        assert!(answer.stdout.contains(text), "{answer:?}");
    }
    // The command of a row measures only this row.
    let words = shell_words(rows(&whole)[0]["repro"].as_str().expect("text"));
    let words: Vec<&str> = words[2..].iter().map(String::as_str).chain(["--list"]).collect();
    let again = lines(&words);
    assert_eq!((again.len(), &again[0]["operands"]), (1, &rows(&whole)[0]["operands"]));
    // If a file has one of them, the other remains to be measured.
    let half: Vec<&str> = whole.lines().take(2).collect();
    std::fs::write(&out, half.join("\n") + "\n").expect("a file");
    let resumed = run_instr(&["--resume", &out, "--json"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert!(resumed.stdout.contains("\"resumed\":1"), "{resumed:?}");
    assert_eq!(rows(&std::fs::read_to_string(&out).expect("a file")).len(), 2);
    // The two rows aren't compared with each other.
    for other in [&out, &csv] {
        let compared = self::answer(&mut cyclescope(&["compare", &out, other, "--json"]));
        let first: Value = serde_json::from_str(compared.stdout.lines().next().expect("a line")).expect("JSON");
        assert_eq!(first["forms"]["both"], 2, "{compared:?}");
    }
}

#[test]
fn sequence_is_a_row_with_its_dependency() {
    let files = folder();
    let path = |name: &str| files.path().join(name).display().to_string();
    let (list, evidence) = (path("list.csv"), path("evidence"));
    let text = "sequence,instruction,operands,immediate\n\"imul rax, rbx; add rax, 1\",,,\n,rol,\"r64, imm8\",7\n\
                \"popcnt rax, rbx; add rax, 1\",,,\n";
    std::fs::write(&list, text).expect("a file");
    let lines = lines(&["--from", &list, "--quick", "--evidence", &evidence]);
    let rows = of_kind(&lines, "instr");
    let row = |code: &str| *rows.iter().find(|row| row["code"] == code).expect("the sequence");
    let (carried, free) = (row("imul rax, rbx; add rax, 1"), row("popcnt rax, rbx; add rax, 1"));
    assert_eq!((&carried["encoding"], &carried["operands"]), (&"sequence".into(), &"".into()));
    assert_eq!((&carried["latency"][0]["from"], &carried["latency"][0]["to"]), (&"rax".into(), &"rax".into()));
    assert!(free["latency"].as_array().expect("a list").is_empty() && free["throughput"].is_object(), "{free}");
    // A sequence that waits for its previous repetition takes longer than one that doesn't.
    let [latency, rate] = [&carried["latency"][0], &carried["throughput"]].map(|one| value_if_any(&one["cost"]));
    if let (Some(latency), Some(rate)) = (latency, rate) {
        assert!(latency > rate && rate > 0.0, "{carried}");
    }
    let again = self::answer(&mut cyclescope(&["replay", &evidence]));
    assert_eq!(again.code, Some(0), "{again:?}");
    let words = shell_words(carried["repro"].as_str().expect("text"));
    let words: Vec<&str> = words[2..].iter().map(String::as_str).chain(["--list"]).collect();
    let listed = self::lines(&words);
    assert_eq!((listed.len(), &listed[0]["code"]), (1, &carried["code"]));
}

#[test]
fn row_is_explained_by_its_programs() {
    let parts = ["latency op1→op1", "one turn", "median ", " * ", "not taken", "--explain", "exact: each"];
    let explain = || run_instr(&["--explain", "Add_r64_rm64 r64, r64", "--quick"]);
    // Programs without a figure have no median, and slots without one are not exact.
    let answer = measure_until(explain, |answer| parts.iter().all(|part| answer.stdout.contains(part)));
    assert_eq!(answer.code, Some(0), "{answer:?}");
    for part in parts {
        assert!(answer.stdout.contains(part), "{part}: {}", answer.stdout);
    }
    assert!(answer.stdout.lines().all(|line| line.chars().count() <= 80));
    let measure = || lines(&["--explain", "Add_r64_rm64", "--quick"]);
    let has_rate = |line: &Value| line["row"]["throughput"]["cost"]["value"].is_number();
    let lines = measure_until(measure, |lines| lines.iter().all(has_rate));
    assert_eq!((lines.len(), of_kind(&lines, "instr.explain").len()), (2, 2));
    for line in &lines {
        let programs = line["programs"].as_array().expect("a list");
        let taken =
            |question: &str| programs.iter().filter(|one| one["question"] == question && one["taken"] == true).count();
        // Where a row has no rate, none of its programs is taken.
        assert_eq!(taken("throughput"), usize::from(has_rate(line)), "{line}");
        if !has_rate(line) {
            cyclescope_skipped::report_left_out("the machine is too busy for the rate of an addition");
        }
        let latencies = line["row"]["latency"].as_array().expect("a list");
        assert!(taken("latency") >= latencies.len() && !latencies.is_empty(), "{line}");
        for program in programs {
            assert!(!program["why"].as_str().expect("text").is_empty() && program["passes"].is_array());
            assert!(!program["assembly"].as_str().expect("text").is_empty());
        }
    }
    // None of the requested forms can be measured here.
    let none = run_instr(&["hlt", "--quick"]);
    assert!(none.code == Some(3) && none.stdout.contains("runs in ring 0 only"), "{none:?}");
    let skipped = run_instr(&["--explain", "hlt", "--quick"]);
    assert!(skipped.code == Some(0) && skipped.stdout.contains("privileged"), "{skipped:?}");
}

#[test]
fn tables_are_exported() {
    let files = folder();
    let path = |name: &str| files.path().join(name).display().to_string();
    let (out, csv, markdown) = (path("a.jsonl"), path("a.csv"), path("a.md"));
    let answer = run_instr(&["add r64, *", "--quick", "--out", &out, "--csv", &csv, "--markdown", &markdown]);
    assert_eq!(answer.code, Some(0), "{answer:?}");
    // The exported table agrees with the results.
    let compared = self::answer(&mut cyclescope(&["compare", &out, &csv, "--fail-on-diff", "--json"]));
    assert_eq!(compared.code, Some(0), "{compared:?}");
    let summary: Value = serde_json::from_str(compared.stdout.lines().next().expect("a line")).expect("JSON");
    assert_eq!((&summary["a"]["entries"], &summary["differences"]), (&5.into(), &0.into()));
    let text = std::fs::read_to_string(&markdown).expect("a file");
    let (rows, cells) = (text.lines().count(), |line: &str| line.matches(" |").count());
    assert_eq!(rows, 2 + 5);
    assert!(text.lines().skip(2).all(|line| line.starts_with("| add r64, ") && cells(line) == 6), "{text}");
}

#[test]
fn closed_pipe_is_not_an_error() {
    use std::process::{Command, Stdio};
    let cases: [&[&str]; 4] =
        [&["nop", "--quick"], &["nop", "--quick", "--json"], &["--all", "--list"], &["--explain", "nop", "--quick"]];
    for arguments in cases {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cyclescope"));
        command.arg("instr").args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program runs");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("it ends");
        // There may be a warning that another test used the CPU at the same time.
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(0) && !said.contains("error"), "{arguments:?}: {said}");
    }
}
