//! Benchmark programs that are broken in many ways under `cyclescope ab`: nothing vanishes unsaid.

use crate::support::{Answer, answer, cyclescope, folder, parse_lines};
use serde_json::Value;
use std::path::Path;

/// Seconds for a benchmark: those that are the same take less, also on a busy machine.
const BUDGET: &str = "1.5";

/// A line of a shell script that writes a sample.
fn sample(name: &str, cycles: &str) -> String {
    write_line(&format!(r#"{{"name":"{name}","iterations":10,"cycles":{cycles}}}"#))
}

fn write_line(line: &str) -> String {
    format!("printf '%s\\n' '{line}' >> \"$CYCLESCOPE_AB\"")
}

/// Samples of two benchmarks, `a` and `b`.
fn both() -> String {
    format!("{}; {}", sample("a", "1000"), sample("b", "1000"))
}

/// Text before a script that counts its runs in `n`, from 1.
fn count_runs(folder: &Path, name: &str) -> String {
    let file = folder.join(name).display().to_string();
    format!("echo >> {file}; n=$(wc -l < {file})")
}

fn program(script: &str) -> String {
    shlex::try_join(["sh", "-c", script]).expect("no NUL")
}

/// Compares a good program with this one, so that any doubt fails.
fn compare(new: &str, options: &[&str]) -> Answer {
    let programs = [program(&both()), program(new)];
    let demands = ["ab", "--quick", "--budget", BUDGET, "--fail-on-slower", "1%", "--fail-on-unclear"];
    answer(cyclescope(&demands).args(programs).args(options))
}

/// The printed text of a comparison, without line breaks.
fn unwrap_lines(printed: &str) -> String {
    printed.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The JSON lines of such a comparison, which must end with this exit code.
fn compare_json(new: &str, options: &[&str], code: i32) -> Vec<Value> {
    let answer = compare(new, &[&["--json"], options].concat());
    assert_eq!(answer.code, Some(code), "{new}: {answer:?}");
    parse_lines(&answer.stdout)
}

fn verdicts(rows: &[Value]) -> Vec<[&str; 2]> {
    rows.iter().map(|row| ["name", "verdict"].map(|field| row[field].as_str().unwrap_or("?"))).collect()
}

#[test]
fn benchmarks_that_vanish_fail_and_stand_in_every_output() {
    let folder = folder();
    let out = folder.path().join("out").display().to_string();
    let gone = sample("a", "1000");
    let rows = compare_json(&gone, &["--out", &out], 5);
    assert_eq!(verdicts(&rows), [["a", "same"], ["b", "only_old"]]);
    assert_eq!(
        (&rows[1]["old"], &rows[1]["new"], &rows[1]["change"]["value"]),
        (&100.0.into(), &Value::Null, &Value::Null)
    );
    let written = std::fs::read_to_string(out).expect("a file");
    assert!(written.lines().any(|line| line.contains(r#""verdict":"only_old""#)), "{written}");
    let text = compare(&gone, &[]).stdout;
    assert!(text.contains("only old") && text.contains("0 unclear, 1 only old"), "{text}");
    let markdown = compare(&gone, &["--markdown"]).stdout;
    assert!(markdown.contains("| `b` | **only old** | - | - | 100.0 | - |"), "{markdown}");
    // Without a demand nothing fails, and a new benchmark never does.
    let [old, new] = [both(), gone.clone()].map(|script| program(&script));
    assert_eq!(answer(&mut cyclescope(&["ab", "--quick", &old, &new])).code, Some(0));
    for option in [&["--fail-on-slower", "1%"][..], &["--fail-on-unclear"]] {
        assert_eq!(answer(cyclescope(&["ab", "--quick", &old, &new]).args(option)).code, Some(5), "{option:?}");
    }
    let rows = compare_json(&format!("{}; {}", both(), sample("c", "1000")), &[], 0);
    assert_eq!(verdicts(&rows), [["a", "same"], ["b", "same"], ["c", "only_new"]]);
}

#[test]
fn benchmarks_that_come_and_go_are_counted() {
    let folder = folder();
    let sometimes = |name: &str, when: &str| {
        let count = count_runs(folder.path(), name);
        format!("{count}; {}; if [ {when} ]; then {}; fi", sample("a", "1000"), sample("b", "1000"))
    };
    let rows = compare_json(&sometimes("odd", "$((n % 2)) = 1"), &[], 0);
    let without = rows[1]["runs_without"][1].as_u64();
    assert!(rows[1]["name"] == "b" && without > Some(8) && rows[0].get("runs_without").is_none(), "{rows:?}");
    let text = unwrap_lines(&compare(&sometimes("text", "$((n % 2)) = 1"), &[]).stdout);
    assert!(text.contains("of the new program have no figure of it"), "{text}");
    // Only the first run has it, which is not timed.
    let rows = compare_json(&sometimes("first", "$n = 1"), &[], 5);
    assert_eq!(verdicts(&rows), [["a", "same"], ["b", "only_old"]]);
    // It comes late, and a row of it comes too.
    let rows =
        compare_json(&format!("{}; {}", both(), sometimes("late", "$n -gt 5").replace("\"b\"", "\"c\"")), &[], 0);
    assert_eq!(verdicts(&rows)[2], ["c", "only_new"], "{rows:?}");
}

#[test]
fn rare_failures_are_repeated_and_said() {
    let folder = folder();
    for (name, failure) in [
        ("exit", "exit 3"),
        ("crash", "kill -SEGV $$"),
        ("hang", "sleep 1000"),
        ("partial", "printf '{\"name\":\"a\",\"iter' >> \"$CYCLESCOPE_AB\"; exit 0"),
        ("nothing", "exit 0"),
    ] {
        let script = |number: usize| {
            let count = count_runs(folder.path(), &format!("{name}{number}"));
            format!("{count}; if [ $n = 5 ]; then {failure}; fi; {}", both())
        };
        let options = ["--timeout", "1"];
        let out = folder.path().join(format!("{name}.out")).display().to_string();
        let rows = compare_json(&script(1), &[&options[..], &["--out", &out]].concat(), 0);
        assert_eq!(verdicts(&rows), [["a", "same"], ["b", "same"]], "{name}");
        assert_eq!(rows[0]["failed_runs"], serde_json::json!([0, 1]), "{name}");
        let written = std::fs::read_to_string(out).expect("a file");
        assert_eq!(written.matches(r#""kind":"ab.failure","program":1"#).count(), 1, "{name}: {written}");
        let said = compare(&script(2), &options);
        assert!(unwrap_lines(&said.stdout).contains("failed and were repeated"), "{name}: {said:?}");
        assert!(said.stderr.contains("the run is repeated"), "{name}: {said:?}");
        let markdown = compare(&script(3), &[&options[..], &["--markdown"]].concat()).stdout;
        assert!(markdown.contains("- 1 of "), "{name}: {markdown}");
    }
}

#[test]
fn programs_that_always_fail_end_the_comparison() {
    let line = |text: &str| format!("{}; {}", both(), write_line(text));
    let many = "yes '{\"name\":\"a\",\"iterations\":1,\"cycles\":1}' | head -n 100001 >> \"$CYCLESCOPE_AB\"";
    for (script, code, text) in [
        ("exit 3".to_string(), 4, "exit code 3"),
        (format!("{}; exit 1", both()), 4, "exit code 1"),
        (format!("{}; kill -ABRT $$", both()), 4, "signal"),
        ("sleep 1000".to_string(), 4, "did not end"),
        ("exit 0".to_string(), 2, "wrote no samples"),
        ("echo >> \"$CYCLESCOPE_AB\"".to_string(), 4, "though it began to report"),
        (line("garbage"), 2, "line 3"),
        (format!("{}; printf '{{\"name\":' >> \"$CYCLESCOPE_AB\"", both()), 2, "line 3"),
        (line(r#"{"name":"b","iterations":0,"cycles":1}"#), 2, "no iterations"),
        (line(r#"{"name":"b","iterations":1,"cycles":NaN}"#), 2, "line 3"),
        (line(r#"{"name":"b","iterations":1,"cycles":1e400}"#), 2, "line 3"),
        (line(r#"{"name":"b","iterations":1,"cycles":-5}"#), 2, "line 3"),
        (many.to_string(), 2, "at most"),
        (format!("{}; rm \"$CYCLESCOPE_AB\"", both()), 2, "bad samples"),
        (sample("z", "1000"), 2, "no benchmark name in common"),
    ] {
        let rows = compare_json(&script, &["--timeout", "0.3"], code);
        assert_eq!((rows.len(), &rows[0]["kind"]), (1, &"error".into()), "{script}: {rows:?}");
        assert!(rows[0]["text"].as_str().is_some_and(|said| said.contains(text)), "{script}: {rows:?}");
    }
}

#[test]
fn harmless_oddities_change_nothing() {
    for script in [
        format!("{}; {}", sample("b", "1000"), sample("a", "1000")),
        format!("{}; {}", both(), both()),
        format!("head -c 3000000 /dev/zero; {}", both()),
        format!("exec >&- 2>&-; {}", both()),
        format!("cat; {}", both()),
        format!("echo >> \"$CYCLESCOPE_AB\"; {}", both()),
    ] {
        assert_eq!(verdicts(&compare_json(&script, &[], 0)), [["a", "same"], ["b", "same"]], "{script}");
    }
    let daemon = compare(&format!("setsid sleep 2 & {}", both()), &[]);
    assert!(daemon.stderr.contains("left process"), "{daemon:?}");
}

#[test]
fn doubts_about_samples_are_said() {
    // Two benchmarks of one name.
    let twice = format!("{}; {}", both(), sample("b", "9000"));
    let said = unwrap_lines(&compare(&twice, &[]).stdout);
    assert!(said.contains("Two benchmarks of a name count as one"), "{said}");
    // A benchmark that could not be measured.
    let error = write_line(r#"{"name":"threads","error":"it has two threads"}"#);
    let [old, new] = [both(), both()].map(|script| program(&format!("{script}; {error}")));
    let unmeasured = answer(&mut cyclescope(&["ab", "--quick", "--budget", BUDGET, &old, &new, "--fail-on-unclear"]));
    assert_eq!(unmeasured.code, Some(5), "{unmeasured:?}");
    assert!(unwrap_lines(&unmeasured.stdout).contains("threads: it has two threads"), "{unmeasured:?}");
    let rows = compare_json(&format!("{}; {error}", both()), &[], 5);
    assert_eq!((&rows[2]["verdict"], &rows[2]["why"]), (&"unclear".into(), &"not_measured".into()), "{rows:?}");
    // Programs that ignore the variable.
    let whole = answer(&mut cyclescope(&["ab", "--quick", "--budget", BUDGET, "true", "true"])).stdout;
    assert!(unwrap_lines(&whole).contains("wrote no samples"), "{whole}");
}

#[test]
fn a_program_of_several_that_lacks_a_benchmark_is_named() {
    let programs = [both(), sample("a", "1000"), format!("{}; {}", both(), sample("c", "1000"))];
    let programs = programs.map(|script| program(&script));
    let compared = answer(cyclescope(&["ab", "--quick", "--budget", BUDGET, "--json"]).args(&programs));
    let rows = parse_lines(&compared.stdout);
    let found: Vec<_> =
        rows.iter().map(|row| (row["name"].as_str(), row["program"].as_u64(), row["verdict"].as_str())).collect();
    let row = |name, program, verdict| (Some(name), Some(program), Some(verdict));
    let expected = [
        row("a", 1, "same"),
        row("a", 2, "same"),
        row("b", 1, "only_old"),
        row("b", 2, "same"),
        row("c", 2, "only_new"),
    ];
    assert_eq!(found, expected, "{compared:?}");
    assert_eq!(
        (&rows[2]["new_rank"], &rows[4]["old_rank"], &rows[4]["new_rank"]),
        (&Value::Null, &Value::Null, &1.into())
    );
    let demanded = answer(cyclescope(&["ab", "--quick", "--budget", BUDGET, "--fail-on-slower", "1%"]).args(&programs));
    assert_eq!(demanded.code, Some(5), "{demanded:?}");
    for option in [&[][..], &["--markdown"]] {
        let printed = answer(cyclescope(&["ab", "--quick", "--budget", BUDGET]).args(&programs).args(option)).stdout;
        assert!(printed.contains("only old") && printed.contains("only new"), "{printed}");
    }
}

#[test]
fn recorded_benchmarks_that_vanish_are_named() {
    let folder = folder();
    let file = folder.path().join("recorded").display().to_string();
    let recorded = answer(&mut cyclescope(&["ab", "--quick", "--budget", BUDGET, "--out", &file, &program(&both())]));
    assert_eq!(recorded.code, Some(0), "{recorded:?}");
    let new = program(&format!("{}; {}", sample("a", "1000"), sample("c", "1000")));
    let options = ["ab", "--quick", "--budget", BUDGET, "--json", "--fail-on-slower", "1%", "--against", &file, &new];
    let compared = answer(&mut cyclescope(&options));
    let rows = parse_lines(&compared.stdout);
    assert_eq!(verdicts(&rows), [["a", "same"], ["b", "only_old"], ["c", "only_new"]]);
    assert_eq!(compared.code, Some(5), "{compared:?}");
}
