//! `compare`: two result files, or one with a published table.

use crate::support::{Answer, answer, cyclescope, folder, parse_lines};
use serde_json::{Value, json};
use std::path::PathBuf;
use tempfile::TempDir;

/// A number of core cycles with an interval of a hundredth to either side.
fn cost(value: f64) -> Value {
    json!({"value": value, "low": value - 0.01, "high": value + 0.01, "unit": "core_cycles"})
}

/// A headline latency: from, to, core cycles and bound.
type Latency<'a> = (&'a str, &'a str, f64, &'a str);

fn row(name: &str, operands: &str, latencies: &[Latency<'_>], throughput: f64) -> Value {
    let latencies: Vec<Value> = latencies
        .iter()
        .map(|(from, to, value, bound)| {
            json!({"from": from, "to": to, "cost": cost(*value), "bound": bound, "variant": null,
                   "chain": format!("{name} {operands}; in a circle")})
        })
        .collect();
    json!({
        "schema": "cyclescope/1", "kind": "instr", "code": format!("{name}_code"), "mnemonic": name,
        "operands": operands, "encoding": "legacy", "isa": "x64", "implicit": [], "bytes": "90",
        "status": "measured", "reason": null, "latency": latencies,
        "throughput": {"cost": cost(throughput), "recipe": "8 copies in a loop"},
        "tags": [], "caveats": [{"code": "two_modes", "text": "the layouts form two clusters"}],
        "repro": format!("cyclescope instr {name}"),
    })
}

fn add(value: f64, throughput: f64) -> Value {
    row("add", "r64, r64", &[("op1", "op1", 1.0, "exact"), ("op2", "op1", value, "exact")], throughput)
}

fn nop() -> Value {
    row("nop", "", &[], 0.2)
}

fn load() -> Value {
    row("mov", "r64, m64", &[("mem_addr", "op1", 5.0, "exact"), ("mem_data", "op1", 4.0, "upper")], 0.5)
}

/// A folder of files to compare.
struct Files(TempDir);

impl Files {
    fn new() -> Files {
        Files(folder())
    }

    fn write(&self, name: &str, content: &str) -> String {
        let path: PathBuf = self.0.path().join(name);
        std::fs::write(&path, content).expect("a file");
        path.to_str().expect("text").to_string()
    }

    fn results(&self, name: &str, rows: &[Value]) -> String {
        let machine = json!({"schema": "cyclescope/1", "kind": "machine", "cpu": {"brand": {"value": "A Processor"}}});
        let lines = std::iter::once(&machine).chain(rows).map(|line| format!("{line}\n"));
        self.write(name, &lines.collect::<String>())
    }

    fn csv(&self, columns: &str, lines: &[&str]) -> String {
        self.write("table.csv", &format!("{columns}\n{}\n", lines.join("\n")))
    }
}

fn run_compare(arguments: &[&str]) -> Answer {
    answer(&mut cyclescope(&[&["compare"], arguments].concat()))
}

/// The JSON lines of a comparison: the summary and the differences.
fn lines(arguments: &[&str]) -> (Value, Vec<Value>) {
    let answer = run_compare(&[&["--json"], arguments].concat());
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let mut lines = parse_lines(&answer.stdout);
    assert!(lines.iter().all(|line| line["schema"] == "cyclescope/1" && line["kind"] == "compare"));
    let differences = lines.split_off(1);
    assert_eq!(lines[0]["part"], "summary");
    assert!(differences.iter().all(|line| line["part"] == "difference"));
    assert_eq!(lines[0]["differences"], differences.len());
    (lines.remove(0), differences)
}

/// The counts of agree, differ, only in A, only in B.
fn counts(summary: &Value, kind: &str) -> [u64; 4] {
    let tallies = summary["quantities"].as_array().expect("a list");
    let tally = tallies.iter().find(|tally| tally["kind"] == kind).expect("the kind");
    ["agree", "differ", "only_a", "only_b"].map(|field| tally[field].as_u64().expect("a count"))
}

fn forms(summary: &Value) -> [u64; 3] {
    ["both", "only_a", "only_b"].map(|field| summary["forms"][field].as_u64().expect("a count"))
}

#[test]
fn file_agrees_with_itself() {
    let files = Files::new();
    let a = files.results("a.jsonl", &[add(1.0, 0.25), load(), nop()]);
    let answer = run_compare(&[&a, &a, "--fail-on-diff"]);
    assert_eq!((answer.code, answer.stderr.as_str()), (Some(0), ""));
    assert!(answer.stdout.contains("3 in both, 0 only in A, 0 only in B"), "{}", answer.stdout);
    assert!(answer.stdout.contains("A Processor") && !answer.stdout.contains("core cycles\n instruction"));
    let (summary, differences) = lines(&[&a, &a]);
    assert_eq!(counts(&summary, "latency_exact"), [3, 0, 0, 0]);
    assert_eq!(counts(&summary, "latency_upper"), [1, 0, 0, 0]);
    assert_eq!(counts(&summary, "throughput"), [3, 0, 0, 0]);
    assert!(differences.is_empty());
    // A byte order mark from an editor doesn't change the comparison.
    let text = std::fs::read_to_string(&a).expect("a file");
    std::fs::write(&a, format!("\u{feff}{text}")).expect("a file");
    let answer = run_compare(&[&a, &a, "--fail-on-diff"]);
    assert_eq!((answer.code, answer.stderr.as_str()), (Some(0), ""));
}

#[test]
fn reports_differences_and_forms_of_only_one_file() {
    let files = Files::new();
    let a = files.results("a.jsonl", &[add(1.0, 0.25), nop()]);
    let b = files.results("b.jsonl", &[add(2.0, 0.26), load()]);
    let (summary, differences) = lines(&[&a, &b]);
    assert_eq!(counts(&summary, "latency_exact"), [1, 1, 0, 1]);
    assert_eq!(counts(&summary, "latency_upper"), [0, 0, 0, 1]);
    assert_eq!(counts(&summary, "throughput"), [1, 0, 1, 1]);
    assert_eq!(forms(&summary), [1, 1, 1]);
    let throughput = &summary["quantities"][3];
    assert_eq!((&throughput["intervals"], &throughput["overlap"]), (&1.into(), &1.into()));
    let only = &differences[0];
    assert_eq!((&only["code"], &only["from"], &only["to"]), (&"add_code".into(), &"op2".into(), &"op1".into()));
    assert_eq!((&only["a"]["value"], &only["b"]["value"]), (&1.0.into(), &2.0.into()));
    assert_eq!((&only["difference"], &only["relative"]), (&(-1.0).into(), &(-0.5).into()));
    assert_eq!(only["a"]["how"], "add r64, r64; in a circle");
    // Differences fail only on request.
    assert_eq!(run_compare(&[&a, &b]).code, Some(0));
    assert_eq!(run_compare(&[&a, &b, "--fail-on-diff"]).code, Some(1));
    assert_eq!(run_compare(&[&a, &b, "--fail-on-diff", "--json"]).code, Some(1));
    assert_eq!(run_compare(&[&a, &b, "--fail-on-diff", "--tolerance", "1.5"]).code, Some(0));
    assert_eq!(run_compare(&[&a, &b, "--fail-on-diff", "--tolerance", "0.001,60%"]).code, Some(0));
}

#[test]
fn bounds_and_ranges_of_a_published_table_are_respected() {
    let files = Files::new();
    let a = files.results("a.jsonl", &[add(1.0, 0.25), load()]);
    let cases = [
        ("add,\"R64, R64\",1,0.25", "latency_exact", [1, 0]),
        ("add,\"reg64,reg64\",1.05,", "latency_exact", [1, 0]),
        ("add,\"r64, r64\",1.06,", "latency_exact", [0, 1]),
        ("ADD,\"r64, r64\",1-3,", "latency_exact", [1, 0]),
        ("add,\"r64, r64\",2-3,", "latency_exact", [0, 1]),
        ("add,\"r64, r64\",<=7,", "latency_upper", [1, 0]),
        ("add,\"r64, r64\",≤0.5,", "latency_upper", [0, 1]),
        ("mov,\"r64, mem64\",5,", "latency_exact", [1, 0]),
        ("add,\"r64, r64\",,0.26", "throughput", [1, 0]),
        ("add,\"r64, r64\",,0.5", "throughput", [0, 1]),
    ];
    for (line, kind, expected) in cases {
        let csv = files.csv("mnemonic,operands,latency_cycles,rthroughput_cycles", &[line]);
        let (summary, differences) = lines(&[&a, &csv]);
        assert_eq!(counts(&summary, kind)[..2], expected, "{line}");
        assert_eq!(differences.len() as u64, expected[1], "{line}");
    }
}

#[test]
fn columns_of_a_published_table_may_have_any_order() {
    let files = Files::new();
    let a = files.results("a.jsonl", &[add(1.0, 0.25), nop()]);
    let columns = "Notes,TO,from,RThroughput_cycles,latency_cycles,Encoding,Operands,MNEMONIC";
    let table = ["x,op1,op2,,3,,\"r64, r64\",add", "x,op1,op1,,1,vex,\"r64, r64\",add", "x,,,0.2,,legacy,,nop"];
    let (summary, differences) = lines(&[&a, &files.csv(columns, &table)]);
    assert_eq!(counts(&summary, "latency_exact"), [0, 1, 1, 1]);
    assert_eq!(counts(&summary, "throughput"), [1, 0, 1, 0]);
    assert_eq!(forms(&summary), [2, 0, 1]);
    assert_eq!((&differences[0]["b"]["line"], &differences[0]["b"]["written"]), (&2.into(), &"3".into()));
}

#[test]
fn largest_differences_come_first_and_all_are_shown_on_request() {
    let files = Files::new();
    let of = |value: &dyn Fn(usize) -> f64| -> Vec<Value> {
        (0..25).map(|n| row(&format!("x{n}"), "zmm{k}{z}, zmm, m512{1to16}, imm8", &[], value(n))).collect()
    };
    let a = files.results("a.jsonl", &of(&|n| 2.0 + n as f64));
    let b = files.results("b.jsonl", &of(&|_| 1.0));
    let shown = |arguments: &[&str]| {
        let text = run_compare(&[&[a.as_str(), b.as_str()], arguments].concat()).stdout;
        let rows: Vec<String> =
            text.lines().map(str::trim).filter(|line| line.starts_with('x')).map(str::to_string).collect();
        for line in text.lines() {
            assert!(line.chars().count() <= 80 && !line.contains('\x1b'), "{line}");
        }
        rows
    };
    let (few, all) = (shown(&[]), shown(&["--all"]));
    assert_eq!((few.len(), all.len()), (20, 25));
    assert!(all[0].starts_with("x24 ") && all[24].starts_with("x0 ") && all[..20] == few);
    assert!(all[0].contains("26.000") && all[0].ends_with("+2500 %"), "{}", all[0]);
}

#[test]
fn differences_are_explained() {
    let files = Files::new();
    let a = files.results("a.jsonl", &[add(1.0, 0.25)]);
    let csv = files.csv("mnemonic,operands,from,to,latency_cycles", &["add,\"r64, r64\",op2,op1,2"]);
    let plain = run_compare(&[&a, &csv]).stdout;
    let text = run_compare(&[&a, &csv, "--explain"]).stdout;
    assert!(text.starts_with(&plain));
    let more = &text[plain.len()..];
    for part in [
        "add r64, r64 (add_code, legacy): op2→op1",
        "1.000 (0.990 to 1.010) core cycles, exact",
        "add r64, r64; in a circle",
        "two_modes: the layouts form two clusters",
        "2 core cycles, line 2 of",
        "cyclescope instr --explain add_code",
    ] {
        assert!(more.contains(part), "{part}: {more}");
    }
    let b = files.results("b.jsonl", &[add(1.0, 0.5)]);
    assert!(run_compare(&[&a, &b, "--explain"]).stdout.contains("8 copies in a loop"));
}

#[test]
fn only_the_last_line_may_be_incomplete() {
    let files = Files::new();
    let whole = files.results("a.jsonl", &[add(1.0, 0.25), nop()]);
    let text = std::fs::read_to_string(&whole).expect("a file");
    let cut = files.write("cut.jsonl", &text[..text.len() - 40]);
    let answer = run_compare(&[&whole, &cut]);
    assert_eq!(answer.code, Some(0));
    assert!(answer.stderr.starts_with("warning: ") && answer.stderr.contains("line 3"), "{}", answer.stderr);
    assert!(answer.stdout.contains("1 in both, 1 only in A"), "{}", answer.stdout);
    let lines: Vec<&str> = text.lines().collect();
    let damaged = files.write("damaged.jsonl", &format!("{}\n{}\n{}\n", lines[0], &lines[1][..99], lines[2]));
    let answer = run_compare(&[&whole, &damaged, "--json"]);
    let error: Value = serde_json::from_str(&answer.stdout).expect("one line");
    assert_eq!((answer.code, &error["kind"], &error["line"]), (Some(2), &"error".into(), &2.into()));
    assert!(error["text"].as_str().expect("text").contains("damaged.jsonl, line 2"), "{error}");
}

#[test]
fn incomparable_files_are_rejected_with_a_remedy() {
    let files = Files::new();
    let a = files.results("a.jsonl", &[nop()]);
    let missing = files.0.path().join("missing");
    let empty = files.write("empty", "");
    let none = files.results("none.jsonl", &[]);
    let csv = |name: &str, text: &str| files.write(name, text);
    let misspelt = csv("1", "mnemonc,operands,latency_cycles\n");
    let without = csv("2", "mnemonic,operands,latency\n");
    let wrong = csv("3", "mnemonic,operands,latency_cycles\nnop,,1\nnop,,many\n");
    let unquoted = csv("4", "mnemonic,operands,latency_cycles\nadd,r64, r64,1\n");
    let good = csv("5", "mnemonic,operands,latency_cycles\nnop,,1\n");
    let cases: [(&[&str], &str); 13] = [
        (&[&a, missing.to_str().expect("text")], "No such file"),
        (&[&a, files.0.path().to_str().expect("text")], "directory"),
        (&[&a, &empty], "name the columns"),
        (&[&none, &a], "contains no instructions"),
        (&[&a, &misspelt], "did you mean `mnemonic`"),
        (&[&a, &without], "did you mean `latency_cycles`"),
        (&[&a, &wrong], "line 3: `many`"),
        (&[&a, &unquoted], "double quotes"),
        (&[&good, &a], "then the published table"),
        (&[&a, &a, "--tolerance", "0"], "--tolerance"),
        (&[&a, &a, "--tolerance", "1,2"], "one share"),
        (&[&a, &a, "--cpu", "0"], "--cpu has no effect"),
        (&[&a], "required"),
    ];
    for (arguments, says) in cases {
        let answer = run_compare(arguments);
        assert_eq!(answer.code, Some(2), "{arguments:?}: {answer:?}");
        assert!(answer.stderr.contains(says), "{arguments:?}: {}", answer.stderr);
        assert!(answer.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn possibly_misspelt_column_causes_a_warning() {
    let files = Files::new();
    let a = files.results("a.jsonl", &[nop()]);
    let csv = files.csv("mnemonic,operands,rthroughput_cycles,latency_cycels", &["nop,,0.2,1"]);
    let answer = run_compare(&[&a, &csv]);
    assert_eq!(answer.code, Some(0));
    assert!(answer.stderr.contains("did you mean `latency_cycles`"), "{}", answer.stderr);
}

#[test]
fn names_in_a_file_cannot_control_the_terminal() {
    let files = Files::new();
    let evil = "\x1b[31m\n; rm x";
    let a = files.results("a.jsonl", &[row(evil, "r64", &[], 1.0)]);
    let b = files.results("b.jsonl", &[row(evil, "r64", &[], 2.0)]);
    let answer = run_compare(&[&a, &b, "--explain"]);
    assert_eq!(answer.code, Some(0));
    assert!(!answer.stdout.contains('\x1b') && answer.stdout.contains("--explain '"), "{}", answer.stdout);
}

#[test]
fn closed_pipe_is_not_an_error() {
    use std::process::{Command, Stdio};
    let files = Files::new();
    let a = files.results("a.jsonl", &[add(1.0, 0.25)]);
    let b = files.results("b.jsonl", &[add(2.0, 0.5)]);
    for more in [&[][..], &["--json"], &["--explain"]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cyclescope"));
        command.args(["compare", &a, &b]).args(more).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program runs");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("it ends");
        assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0), "{more:?}");
    }
}

/// A line of `uarch`: a number of entries with its interval, or only a verdict.
fn entries(what: &str, number: Option<[f64; 3]>) -> Value {
    let part = |place: usize| number.map(|number| number[place]);
    json!({
        "schema": "cyclescope/1", "kind": "uarch", "test": what, "what": what,
        "verdict": if number.is_some() { "found" } else { "unclear" },
        "value": {"value": part(0), "low": part(1), "high": part(2), "unit": "count"},
        "limited_by": null, "why": "no two fillers agree", "cpuid": null, "fillers": [], "witnesses": [],
    })
}

#[test]
fn two_cores_are_compared_by_number() {
    let files = Files::new();
    let (rob, stores) = (entries("rob", Some([498.0, 498.0, 500.0])), entries("stores_in_flight", None));
    let loads = |value| entries("loads_in_flight", Some([value; 3]));
    let a = files.results("a.jsonl", &[rob.clone(), loads(192.0), entries("stores_in_flight", Some([112.0; 3]))]);
    let b = files.results("b.jsonl", &[loads(128.0), rob, stores, entries("branches_in_flight", Some([128.0; 3]))]);
    let text = run_compare(&[&a, &b]);
    assert_eq!((text.code, text.stderr.as_str()), (Some(0), ""), "{text:?}");
    let rows = |name: &str| -> Vec<&str> {
        let rows = text.stdout.lines().filter(|line| line.trim_start().starts_with(name));
        rows.flat_map(str::split_whitespace).skip(name.split(' ').count()).collect()
    };
    assert_eq!(rows("reorder buffer"), ["498", "(498-500)", "498", "(498-500)"], "{text:?}");
    assert_eq!(rows("loads in flight"), ["192", "128", "differ"], "{text:?}");
    assert_eq!(rows("branches in flight"), ["-", "128", "only", "B"], "{text:?}");
    assert!(text.stdout.contains("B: unclear: no two fillers agree"), "{text:?}");
    assert!(text.stdout.lines().all(|line| line.chars().count() <= 80), "{text:?}");
    for (words, code, shown) in [
        (vec![&a[..], &b, "--fail-on-diff"], 1, ""),
        (vec![&a, &a, "--fail-on-diff"], 0, ""),
        (vec![&a, &b, "--tolerance", "1"], 2, "--tolerance has no effect"),
        (vec![&a, &files.results("c.jsonl", &[nop()])], 2, "numbers of a core"),
        (vec![&files.results("d.jsonl", &[nop()]), &a], 2, "numbers of a core"),
    ] {
        let answer = run_compare(&words);
        assert!(answer.code == Some(code) && answer.stderr.contains(shown), "{words:?}: {answer:?}");
    }
    let lines = run_compare(&["--json", &a, &b]).stdout;
    let lines = parse_lines(&lines);
    assert_eq!(
        ["both", "only_b", "same", "differ", "verdict"].map(|name| lines[0][name].as_u64()),
        [3, 1, 1, 1, 1].map(Some)
    );
    let outcomes: Vec<&Value> = lines[1..].iter().map(|line| &line["outcome"]).collect();
    assert_eq!(outcomes, ["same", "differ", "verdict", "only_b"]);
    assert_eq!((&lines[2]["a"]["value"]["value"], &lines[4]["a"]), (&json!(192.0), &Value::Null));
}
