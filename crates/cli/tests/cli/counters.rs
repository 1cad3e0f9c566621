//! `counters`, and `run --counters`, with events of the kernel, which need no hardware counter.

use crate::support::{answer, cyclescope, json, parse_lines};
use serde_json::Value;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, MutexGuard, PoisonError};

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

/// Events of the kernel that no code of a test causes, and one that passes with time.
const KERNEL_EVENTS: &str = "dummy,context-switches,page-faults,task-clock";

/// Requires that a line has the counts of [`KERNEL_EVENTS`].
fn require_counts(line: &Value) {
    let counters = line["counters"].as_array().unwrap_or_else(|| panic!("no counters: {line}"));
    let names: Vec<&str> = counters.iter().filter_map(|counter| counter["name"].as_str()).collect();
    assert_eq!(names.join(","), KERNEL_EVENTS);
    assert_eq!(counters[0]["value"], 0.0, "{line}");
    assert!(counters[3]["value"].is_number(), "{line}");
}

/// The JSON lines of a kind that a command prints.
fn lines_of(arguments: &[&str], kind: &str) -> Vec<Value> {
    let printed = answer(&mut cyclescope(arguments));
    let lines = printed.stdout.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let found: Vec<Value> = lines.filter(|line| line["kind"] == kind).collect();
    assert!(!found.is_empty(), "{printed:?}");
    found
}

#[test]
fn instr_counts_events_of_each_form_and_resumes_with_them() {
    if !counts_kernel_events() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (file, table, evidence) = (path("rows.jsonl"), path("rows.csv"), path("evidence"));
    let asked = ["instr", "imul r64, r64", "nop", "--quick", "--seed", "4", "--counters", KERNEL_EVENTS];
    let rows = lines_of(&[&asked[..], &["--json", "--out", &file, "--csv", &table]].concat(), "instr");
    rows.iter().for_each(require_counts);
    let csv = std::fs::read_to_string(&table).expect("it was written");
    assert!(csv.lines().next().is_some_and(|heading| heading.contains("count_page-faults,count_page-faults_low")));
    // The last row is lost. The file alone says what is counted.
    let whole = std::fs::read_to_string(&file).expect("it was written");
    let kept: Vec<&str> = whole.lines().take(whole.lines().count() - 2).collect();
    std::fs::write(&file, kept.join("\n") + "\n").expect("it can be written");
    let again = lines_of(&["instr", "--resume", &file, "--json"], "instr");
    assert_eq!(again.len(), rows.len());
    again.iter().for_each(require_counts);
    assert!(again.iter().any(|row| row["counters"] == rows[0]["counters"]), "a resumed row is the same");
    let text = answer(&mut cyclescope(&[&asked[..], &["--evidence", &evidence]].concat())).stdout;
    assert!(text.contains("Events per instruction") && text.contains("page-faults"), "{text}");
    let replayed = answer(&mut cyclescope(&["replay", &evidence])).stdout;
    assert!(replayed.contains("Events per instruction"), "{replayed}");
}

#[test]
fn uarch_evaluate_and_marker_count_events() {
    if !counts_kernel_events() {
        return;
    }
    let counted = ["--quick", "--seed", "4", "--json", "--counters", KERNEL_EVENTS];
    let markers = lines_of(&[&["marker", "flag", "--context", "empty"], &counted[..]].concat(), "marker");
    markers.iter().for_each(require_counts);
    let few = ["--ensembles", "100", "--samples", "1000", "--budget", "3"];
    let methods = lines_of(&[&["evaluate", "rdtscp-lfence"], &few[..], &counted[..]].concat(), "evaluate");
    methods.iter().for_each(|line| {
        require_counts(line);
        assert_eq!(line["counter_ensembles"].as_array().map(Vec::len), Some(8));
    });
    let sizes = lines_of(&[&["uarch", "uop_cache"], &counted[..]].concat(), "uarch");
    for size in sizes.iter().filter(|size| size["verdict"] == "found" && size["value"]["unit"] == "count") {
        let Some(counters) = size["counters"].as_array() else {
            // A wide interval leaves no steps of the walk before it or behind it.
            let [low, high] = ["low", "high"].map(|end| size["value"][end].as_f64().expect("a number"));
            let walk = sizes.iter().find_map(|size| size["walks"][0]["curve"].as_array()).expect("a walk");
            let steps: Vec<f64> = walk.iter().map(|point| point["n"].as_f64().expect("a number")).collect();
            let has_both = steps.iter().any(|n| *n <= 0.75 * low) && steps.iter().any(|n| *n >= 1.5 * high);
            assert!(!has_both, "no counters: {size}");
            continue;
        };
        assert_eq!((counters.len(), &counters[0]["name"]), (4, &"dummy".into()));
        assert_eq!((&counters[0]["before"]["value"], &counters[0]["behind"]["value"]), (&0.0.into(), &0.0.into()));
    }
}

#[test]
fn every_output_has_the_counts() {
    if !counts_kernel_events() {
        return;
    }
    let output = |arguments: &[&str]| {
        let answer = answer(&mut cyclescope(&[&["run", "--quick", "--counters", "dummy"], arguments].concat()));
        assert!(matches!(answer.code, Some(0 | 5)), "{answer:?}");
        answer.stdout
    };
    let sweep = ["--sweep", "N=1..2", "add rax, {N}"];
    assert!(output(&sweep).contains("dummy"));
    let table = output(&[&["--csv", "-"][..], &sweep].concat());
    assert!(table.lines().next().is_some_and(|heading| heading.ends_with(",dummy,dummy_low,dummy_high")), "{table}");
    let folder = tempfile::tempdir().expect("a folder");
    let evidence = folder.path().join("evidence");
    let evidence = evidence.to_str().expect("text");
    let lines = output(&["--json", "--evidence", evidence, "--versus", "imul rbx, rbx", "imul rax, rax"]);
    let line: Value = serde_json::from_str(lines.lines().last().expect("a line")).expect("JSON");
    assert_eq!((&line["counters"][0]["value"], &line["versus"]["counters"][0]["value"]), (&0.0.into(), &0.0.into()));
    let replayed = answer(&mut cyclescope(&["replay", evidence, "--json"]));
    assert!(matches!(replayed.code, Some(0 | 5)) && replayed.stdout.contains(r#""counters""#), "{replayed:?}");
    let cold = json(&["run", "--quick", "--cold", "data", "--counters", "dummy", "nop"], &[0, 5]);
    assert_eq!(cold["counters"][0]["value"], 0.0, "{cold}");
    let refused = json(&["run", "--cold", "code", "--counters", "dummy", "nop"], &[2]);
    assert!(refused["text"].as_str().is_some_and(|text| text.contains("--counters needs code")), "{refused}");
}

#[test]
fn counting_of_other_programs_starts_and_stops() {
    let test = ResidentTest::new();
    if !counts_kernel_events() || !test.starts("task-clock,page-faults") {
        return;
    }
    let run = |arguments: &[&str]| answer(&mut test.command(arguments));
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

/// Starts and stops of counters, in a directory of their own unless the user is root.
struct ResidentTest {
    home: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl ResidentTest {
    /// Waits for other tests, because root has one process for counters.
    fn new() -> ResidentTest {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        ResidentTest { home: tempfile::tempdir().expect("a folder"), _alone: alone }
    }

    /// The number of the process that holds the counters.
    fn process(&self) -> i32 {
        // SAFETY: it only returns a number.
        let is_root = unsafe { libc::geteuid() } == 0;
        let directory = if is_root { "/run".into() } else { self.home.path().to_path_buf() };
        let mut stream = UnixStream::connect(directory.join("cyclescope/counters.sock")).expect("it answers");
        stream.write_all(b"status").expect("a request");
        stream.shutdown(std::net::Shutdown::Write).expect("its end");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let answer: Value = serde_json::from_str(&answer).expect("JSON");
        answer["process"].as_i64().expect("a number") as i32
    }

    fn command(&self, arguments: &[&str]) -> assert_cmd::Command {
        let mut command = cyclescope(&[&["counters"], arguments].concat());
        command.env("XDG_RUNTIME_DIR", self.home.path());
        command
    }

    /// Whether counters of this name start here; a skipped test otherwise.
    fn starts(&self, name: &str) -> bool {
        let started = answer(&mut self.command(&["start", name, "--json"]));
        match started.code {
            Some(0) => true,
            // Another test or user counts, or only root may count other programs.
            Some(2 | 3) => {
                cyclescope_skipped::report_skipped(started.stdout.trim());
                false
            }
            _ => panic!("{started:?}"),
        }
    }
}

#[test]
fn counters_start_again_after_their_process_was_killed() {
    let test = ResidentTest::new();
    if !counts_kernel_events() || !test.starts("task-clock") {
        return;
    }
    // SAFETY: a signal touches no memory.
    assert_eq!(unsafe { libc::kill(test.process(), libc::SIGKILL) }, 0);
    let begun = std::time::Instant::now();
    while answer(&mut test.command(&["status"])).code != Some(2) && begun.elapsed().as_secs() < 10 {}
    assert_eq!(answer(&mut test.command(&["stop"])).code, Some(2));
    assert!(test.starts("task-clock"));
    assert_eq!(answer(&mut test.command(&["stop"])).code, Some(0));
}

#[test]
fn of_several_starts_at_once_one_counts() {
    let test = ResidentTest::new();
    if !counts_kernel_events() || !test.starts("task-clock") {
        return;
    }
    assert_eq!(answer(&mut test.command(&["stop"])).code, Some(0));
    let starts: Vec<_> = (0..4).map(|_| test.command(&["start", "task-clock", "--json"])).collect();
    let codes: Vec<Option<i32>> = std::thread::scope(|scope| {
        let running: Vec<_> =
            starts.into_iter().map(|mut start| scope.spawn(move || answer(&mut start).code)).collect();
        running.into_iter().map(|start| start.join().expect("it ends")).collect()
    });
    assert_eq!(answer(&mut test.command(&["stop"])).code, Some(0));
    assert_eq!(codes.iter().filter(|code| **code == Some(0)).count(), 1, "{codes:?}");
    assert!(codes.iter().all(|code| matches!(code, Some(0 | 2))), "{codes:?}");
    assert_eq!(answer(&mut test.command(&["stop"])).code, Some(2));
}
