//! Real files of every command with changed fields, given to the real program.

use crate::support::{Answer, answer, cyclescope, folder, parse_lines};
use cyclescope_fuzz::{find_formula, find_terminal_command, mutate_real_file};
use serde_json::Value;
use std::fs;
use std::time::{Duration, Instant};

/// Most changed files of each command, and the time for them. `CYCLESCOPE_FUZZ_RUNS` sets another
/// number and lifts the limit of time.
const SHORT_RUN_FILES: u64 = 5;
const SHORT_RUN_TIME: Duration = Duration::from_millis(300);
/// Time after which a run counts as a hang.
const HANG_TIME: Duration = Duration::from_secs(60);

/// Runs a command, and checks that it ends in time, with a known code, and obeys nothing.
fn run_harmless(arguments: &[&str], what: &str) -> Answer {
    let begun = Instant::now();
    let output = cyclescope(arguments).output().expect("the program runs");
    assert!(begun.elapsed() < HANG_TIME, "{what}");
    for printed in [&output.stdout, &output.stderr] {
        assert_eq!(find_terminal_command(printed), None, "{what}");
    }
    let text = |bytes| String::from_utf8(bytes).expect("it was checked");
    let answer = Answer { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) };
    assert!(matches!(answer.code, Some(0..=5)) && !answer.stderr.contains("panicked"), "{what}: {answer:?}");
    assert!(answer.code != Some(1) || answer.stderr.contains("help: "), "{what}: {answer:?}");
    answer
}

#[test]
fn hostile_fields_reach_no_terminal() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).to_str().expect("text").to_string();
    let [changed, csv, markdown, plots] = ["changed", "t.csv", "t.md", "plots"].map(path);
    fs::write(path("snippets"), "name,snippet,init\nsum,\"add rax, rbx\",\nodd,nopp,\"mov ebx, 1\"\n").expect("a file");
    fs::write(
        path("forms"),
        "instruction,operands,measure,init\nadd,\"r64, r64\",both,\nimul,,latency,\"mov eax, 1\"\n",
    )
    .expect("a file");
    fs::write(
        path("published"),
        "mnemonic,operands,rthroughput_cycles,latency_cycles\nadd,\"r64, r64\",0.5,2\nnop,,<=9,\n",
    )
    .expect("a file");
    let sweep = ["run", "--quick", "--sweep", "N=1,2", "add rax, {N}", "--versus", "imul rax, rax"];
    let made: [(&str, &[&str]); 6] = [
        ("points", &sweep),
        ("instr", &["instr", "--quick", "add r64, r64", "nop", "hlt"]),
        ("ports", &["ports", "--quick", "imul r64, r64", "nop", "div r64"]),
        ("uarch", &["uarch", "--quick", "cache_line"]),
        ("core", &["uarch", "--quick", "stores_in_flight", "cache_line"]),
        ("runs", &["ab", "--quick", "--budget", "0.1", "true", "true"]),
    ];
    for (name, arguments) in made {
        let made = answer(&mut cyclescope(&[arguments, &["--out", &path(name)]].concat()));
        assert!(matches!(made.code, Some(0 | 5)), "{name}: {made:?}");
    }
    let (instr, core, ports) = (path("instr"), path("core"), path("ports"));
    // The file, and the command that reads the changed one.
    let commands: [(&str, &[&str]); 16] = [
        ("instr", &["compare", "--all", "--explain", &changed, &instr]),
        ("instr", &["compare", "--json", &changed, &instr]),
        ("points", &["compare", "--explain", &changed, &changed]),
        ("core", &["compare", &changed, &core]),
        ("core", &["compare", "--json", &core, &changed]),
        ("ports", &["compare", "--all", &changed, &ports]),
        ("ports", &["compare", "--json", &ports, &changed]),
        ("published", &["compare", "--explain", &instr, &changed]),
        ("points", &["run", "--resume", &changed, "--csv", &csv]),
        ("instr", &["instr", "--resume", &changed, "--csv", &csv, "--markdown", &markdown]),
        ("ports", &["ports", "--resume", &changed, "--csv", &csv, "--markdown", &markdown]),
        ("uarch", &["uarch", "--resume", &changed, "--plots", &plots]),
        ("uarch", &["uarch", "--json", "--resume", &changed]),
        ("runs", &["ab", "--quick", "--budget", "0.1", "--markdown", "--against", &changed, "true"]),
        ("snippets", &["run", "--quick", "--from", &changed, "--csv", "-"]),
        ("forms", &["instr", "--list", "--from", &changed]),
    ];
    let asked = std::env::var("CYCLESCOPE_FUZZ_RUNS").ok().and_then(|text| text.parse().ok());
    let (files, time) = asked.map_or((SHORT_RUN_FILES, SHORT_RUN_TIME), |files| (files, Duration::MAX));
    let (mut refused, mut runs) = (0, 0);
    for (name, arguments) in commands {
        let (seed, begun) = (fs::read(path(name)).expect("a file"), Instant::now());
        for number in 0..files {
            if begun.elapsed() > time {
                break;
            }
            // The other files of the run before.
            for file in [&csv, &markdown, &format!("{changed}.journal")] {
                let _ = fs::remove_file(file);
            }
            let bytes = mutate_real_file(&seed, number);
            fs::write(&changed, &bytes).expect("there is room");
            let what = format!("{arguments:?}, input {number}: {:?}", find_difference(&seed, &bytes));
            let answer = run_harmless(arguments, &what);
            refused += u32::from(answer.code == Some(2));
            runs += 1;
            let written = [&csv, &markdown].into_iter().filter_map(|file| fs::read(file).ok());
            for bytes in written.chain([answer.stdout.into_bytes()].into_iter().filter(|_| arguments.contains(&"-"))) {
                assert_eq!(find_terminal_command(&bytes), None, "{what}");
                assert!(arguments.contains(&"--markdown") || find_formula(&bytes).is_none(), "{what}");
            }
        }
    }
    assert!(runs > 16 && refused > 0, "{refused} of {runs}");
    println!("hostile fields: {runs} runs, {refused} refused");
}

/// The text from the first changed byte on.
fn find_difference(seed: &[u8], changed: &[u8]) -> String {
    let same = seed.iter().zip(changed).take_while(|(one, other)| one == other).count();
    let part = &changed[same.saturating_sub(60)..changed.len().min(same + 100)];
    String::from_utf8_lossy(part).into_owned()
}

#[test]
fn renamed_rows_are_measured_again() {
    let folder = folder();
    let path = folder.path().join("a.jsonl").to_str().expect("text").to_string();
    let made = answer(&mut cyclescope(&["instr", "--quick", "--out", &path, "cqo", "cdq"]));
    assert_eq!(made.code, Some(0), "{made:?}");
    let whole = fs::read_to_string(&path).expect("a file");
    for (field, other) in [("code", "Cwd"), ("operands", "r64"), ("mnemonic", "cwd"), ("encoding", "vex")] {
        let rename = |line: &str| {
            let mut line: Value = serde_json::from_str(line).expect("JSON");
            if line["mnemonic"] == "cdq" {
                line[field] = other.into();
            }
            format!("{line}\n")
        };
        fs::write(&path, whole.lines().map(rename).collect::<String>()).expect("a file");
        let resumed = answer(&mut cyclescope(&["instr", "--json", "--resume", &path]));
        assert_eq!(resumed.code, Some(0), "{field}: {resumed:?}");
        let lines = parse_lines(&resumed.stdout);
        let rows: Vec<&Value> = lines.iter().filter(|line| line["kind"] == "instr").collect();
        let has = |mnemonic: &str| rows.iter().any(|row| row["mnemonic"] == mnemonic && row["encoding"] == "legacy");
        assert!(rows.len() == 2 && has("cqo") && has("cdq"), "{field}: {rows:?}");
    }
}
