//! `cyclescope ab`. The compared programs write their own samples, so verdicts don't depend on this
//! machine.

use crate::support::{Answer, Running, answer, cyclescope, folder, gone, has_for_part, parse_lines};
use serde_json::Value;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// A program that reports these core cycles for each benchmark; a shell computes the numbers.
fn reporting_program(benchmarks: &[(&str, &str)]) -> String {
    let line = |(name, cycles): &(&str, &str)| {
        let sample = format!(r#"{{"name":"{name}","iterations":10,"cycles":"#);
        format!("printf '%s%s}}\\n' '{sample}' {cycles} >> \"${{CYCLESCOPE_AB:-/dev/null}}\"")
    };
    let script = benchmarks.iter().map(line).collect::<Vec<_>>().join("; ");
    shlex::try_join(["sh", "-c", &script]).expect("no NUL")
}

fn ab(arguments: &[&str]) -> Answer {
    answer(cyclescope(&["ab", "--quick", "--budget", "0.5"]).args(arguments))
}

/// The JSON lines of a comparison, which must end with this exit code.
fn lines(arguments: &[&str], code: i32) -> Vec<Value> {
    let answer = ab(&[&["--json"], arguments].concat());
    assert_eq!(answer.code, Some(code), "{arguments:?}: {answer:?}");
    parse_lines(&answer.stdout)
}

/// The error of a comparison, which must end with this exit code.
fn refused(arguments: &[&str], code: i32) -> Value {
    let mut lines = lines(arguments, code);
    assert_eq!((lines.len(), &lines[0]["kind"]), (1, &"error".into()), "{lines:?}");
    lines.remove(0)
}

/// Cycles that vary by up to a half from run to run, because they depend on the process number.
const NOISY: &str = "$((1000 + $$ * 62 % 97 * 5))";

#[test]
fn every_benchmark_gets_a_verdict() {
    let old = reporting_program(&[("a", "1000"), ("b", "1000"), ("c", "1000"), ("gone", "1")]);
    let new = reporting_program(&[("a", "1020"), ("b", "980"), ("c", "1001"), ("new", "1")]);
    let found = lines(&[&old, &new, "--seed", "7"], 0);
    let verdicts: Vec<_> = found.iter().map(|line| [&line["name"], &line["verdict"]]).collect();
    let expected = [["a", "slower"], ["b", "faster"], ["c", "same"], ["gone", "only_old"], ["new", "only_new"]];
    assert_eq!(verdicts, expected);
    let slower = &found[0];
    assert_eq!((&slower["schema"], &slower["kind"]), (&"cyclescope/1".into(), &"ab".into()));
    let change = &slower["change"];
    for part in ["value", "low", "high"] {
        assert!((change[part].as_f64().expect("a number") - 0.02).abs() < 1e-9, "{change}");
    }
    assert_eq!((&change["unit"], &slower["old"], &slower["new"]), (&"share".into(), &100.0.into(), &102.0.into()));
    assert_eq!((&slower["pairs"], &found[2]["pairs"]), (&serde_json::json!([12, 12]), &serde_json::json!([12, 0])));
    assert!(slower["repro"].as_str().is_some_and(|repro| repro.contains("--seed 7")), "{slower}");
    let output = ab(&[&old, &new]);
    assert!(output.stdout.lines().all(|line| line.chars().count() <= 80), "{}", output.stdout);
    let summary = "1 slower, 1 faster, 1 the same within 1 %, 0 unclear, 1 only old, 1 only new";
    assert!(output.stdout.contains(summary), "{}", output.stdout);
}

#[test]
fn exit_codes_follow_the_fail_on_options() {
    let [same, slower, noisy] = ["1000", "1020", NOISY].map(|cycles| reporting_program(&[("a", cycles)]));
    let both = reporting_program(&[("a", "1020"), ("b", NOISY)]);
    let against_both = reporting_program(&[("a", "1000"), ("b", NOISY)]);
    for (arguments, code) in [
        (vec![&*same, &*slower], 0),
        (vec![&*same, &*slower, "--fail-on-slower", "1%"], 6),
        (vec![&*same, &*slower, "--fail-on-slower", "0.02"], 6),
        (vec![&*same, &*slower, "--fail-on-slower", "3%"], 0),
        (vec![&*slower, &*same, "--fail-on-slower", "1%"], 0),
        (vec![&*same, &*same, "--fail-on-unclear", "--fail-on-slower", "1%"], 0),
        (vec![&*noisy, &*noisy], 0),
        (vec![&*noisy, &*noisy, "--fail-on-unclear"], 5),
        (vec![&*against_both, &*both, "--fail-on-unclear", "--fail-on-slower", "1%"], 6),
    ] {
        let answer = ab(&arguments);
        assert_eq!(answer.code, Some(code), "{arguments:?}: {answer:?}");
    }
    // By chance, noise looks like a difference at first, which is then not confirmed.
    let compare = |_| lines(&[&noisy, &noisy], 0).remove(0);
    let is_noisy = |line: &Value| line["verdict"] == "unclear" && line["why"] == "too_noisy";
    let unclear = (0..5).map(compare).find(is_noisy).expect("one of five comparisons");
    assert_eq!(unclear["caveats"][0]["code"], "interval_not_reached");
}

#[test]
fn programs_without_samples_are_compared_by_cpu_time() {
    let work = |turns: &str| format!("sh -c 'i=0; while [ $i -lt {turns} ]; do i=$((i+1)); done'");
    let found = lines(&[&work("2000"), &work("8000"), "--within", "5%"], 0);
    assert_eq!((&found[0]["name"], &found[0]["verdict"]), (&"program".into(), &"slower".into()), "{found:?}");
    assert!(found[0]["user_us"].is_array() && found[0]["new"].as_f64() > found[0]["old"].as_f64(), "{found:?}");
    // This also works for programs with benchmarks.
    let output = reporting_program(&[("a", "1000")]);
    assert_eq!(lines(&[&output, &output, "--whole"], 0)[0]["name"], "program");
}

#[test]
fn difference_in_only_some_builds_is_not_a_change() {
    let of = |cycles: &str| reporting_program(&[("a", cycles)]);
    let (moved, more) = (of("$((1000 + {build} % 2 * 20))"), of("$((1050 + {build} % 2))"));
    let found = |old: &str, new: &str| lines(&[old, new, "--builds", "4"], 0).remove(0);
    let itself = found(&moved, &moved);
    assert_eq!(itself["verdict"], "unclear", "{itself}");
    let slower = found(&of("$((1000 + {build} % 2))"), &more);
    assert_eq!(slower["verdict"], "slower", "{slower}");
    // All builds of the old program have a good placement, and every build of the new one has
    // another.
    let unlike = found(&of("$((1000 + {build} - {build}))"), &of("$((1000 + {build} / 3 * 20))"));
    assert_ne!(unlike["verdict"], "slower", "{unlike}");
    refused(&[&moved, "true", "--builds", "4"], 2);
}

#[test]
fn more_than_two_programs_are_ranked() {
    let programs = [["1000", "1000"], ["1020", "1001"], ["980", NOISY]];
    let programs = programs.map(|[a, b]| reporting_program(&[("a", a), ("b", b)]));
    let arguments: Vec<&str> = programs.iter().map(String::as_str).collect();
    let found = lines(&arguments, 0);
    let fields = |line: &Value| ["name", "program", "old_rank", "new_rank", "verdict"].map(|name| line[name].clone());
    let expected: [[Value; 5]; 3] = [
        ["a".into(), 1.into(), 2.into(), 3.into(), "slower".into()],
        ["a".into(), 2.into(), 2.into(), 1.into(), "faster".into()],
        ["b".into(), 1.into(), 1.into(), 1.into(), "same".into()],
    ];
    assert_eq!(found.iter().take(3).map(fields).collect::<Vec<_>>(), expected);
    assert_eq!((found.len(), &found[3]["name"], &found[3]["program"]), (4, &"b".into(), &2.into()), "{found:?}");
    // All programs run in the same rounds. Six comparisons need more certainty for `same` than one.
    assert_eq!((&found[0]["pairs"], &found[0]["old"]), (&serde_json::json!([12, 12]), &100.0.into()));
    assert!(found[2]["pairs"][0].as_u64() > Some(12), "{}", found[2]);
    // Two programs have no rank.
    assert!(
        lines(&arguments[..2], 0).iter().all(|line| line.get("program").is_none() && line.get("old_rank").is_none())
    );
    for (limit, code) in [("1%", 6), ("3%", 0)] {
        // The third program is faster in one benchmark, and unclear or slower in the other.
        let exit =
            ab(&[&arguments[..2], &[&*reporting_program(&[("a", "980"), ("b", "980")])], &["--fail-on-slower", limit]]
                .concat());
        assert_eq!(exit.code, Some(code), "{exit:?}");
    }
    let text = ab(&arguments);
    assert!(text.stdout.lines().all(|line| line.chars().count() <= 80), "{}", text.stdout);
    let rows: Vec<Vec<&str>> = text.stdout.lines().map(|line| line.split_whitespace().take(3).collect()).collect();
    let first = rows.iter().position(|row| *row == ["rank", "program", "verdict"]).expect("a heading");
    assert_eq!(rows[first + 1..first + 4], [["1", "3", "faster"], ["2", "1", "first"], ["3", "2", "slower"]]);
    let markdown = ab(&[&arguments[..], &["--markdown"]].concat());
    let row = "| `a` | 3 | 2 | **slower** | +2.00 % | +2.00 % to +2.00 % | 102.0 |";
    assert!(markdown.stdout.lines().any(|line| line == row), "{markdown:?}");
}

#[test]
fn text_for_a_shell_is_refused_with_a_remedy_that_works() {
    let folder = folder();
    let file = folder.path().join("file").display().to_string();
    let good = reporting_program(&[("a", "1000")]);
    for text in [
        format!("true && true > {file}"),
        format!("N='1 2' sh -c 'echo \"$N\" > {file}'"),
        format!("true; echo $HOME `true` \"$(true)\" *.c > {file}"),
        format!("sh -c 'test $1 = 2 && true > {file}' {{1,2}}"),
        format!("test 3 -eq {{1..1}}3 || true > {file}"),
    ] {
        if text.contains("{1") && !has_for_part("bash") {
            continue;
        }
        let failure = refused(&[&text, &good], 2);
        assert!(failure["text"].as_str().is_some_and(|text| text.contains("of a shell")), "{failure}");
        let remedy = failure["remedy"].as_str().expect("a remedy");
        let program =
            remedy.strip_prefix("write ").and_then(|rest| rest.split_once(" to run it")).expect("a program").0;
        let words = shlex::split(program).expect("a quoted word");
        assert_eq!(words.len(), 1, "{remedy}");
        assert!(!Path::new(&file).exists(), "{text} ran");
        lines(&[&words[0], "true"], 0);
        assert!(Path::new(&file).exists(), "{text} did not run");
        std::fs::remove_file(&file).expect("a file");
    }
}

#[test]
fn markdown_cells_stay_intact() {
    let [old, new] = ["1000", "1020"].map(|cycles| reporting_program(&[("a|b`", cycles)]));
    let output = ab(&[&old, &new, "--markdown"]);
    let row = output.stdout.lines().find(|line| line.contains("a\\|b'")).expect("a row");
    assert_eq!(row, "| `a\\|b'` | **slower** | +2.00 % | +2.00 % to +2.00 % | 100.0 | 102.0 |", "{output:?}");
    assert_eq!(output.stdout.lines().next(), Some("**1 slower, 0 faster, 0 the same within 1 %, 0 unclear**"));
}

#[test]
fn invalid_options_are_rejected_before_anything_runs() {
    let folder = folder();
    let file = folder.path().join("ran").display().to_string();
    let touch = format!("touch {file}");
    let there = folder.path().join("there").display().to_string();
    std::fs::write(&there, "something\n").expect("a file");
    for arguments in [
        vec![&*touch],
        vec![&*touch; 17],
        vec![&touch, "touch a && touch b"],
        vec![&touch, &touch, "--against", &there],
        vec![&touch, "--against", &there],
        vec![&touch, &touch, "--evidence", "x"],
        vec![&touch, &touch, "--clock", "rdtsc"],
        vec![&touch, &touch, "--beside", "nop"],
        vec![&touch, &touch, "--within", "0"],
        vec![&touch, &touch, "--fail-on-slower", "200%"],
        vec![&touch, &touch, "--out", &there],
        vec![&touch, "'unclosed"],
        vec!["", &touch],
    ] {
        refused(&arguments, 2);
        assert!(!Path::new(&file).exists(), "{arguments:?} ran");
    }
    let missing = refused(&["/no/such/program", "true"], 2);
    assert!(missing["text"].as_str().is_some_and(|text| text.contains("/no/such/program")), "{missing}");
}

#[test]
fn failing_programs_exit_with_4() {
    let failed = refused(&["true", "sh -c 'exit 3'"], 4);
    assert!(failed["text"].as_str().is_some_and(|text| text.contains("exit code 3")), "{failed}");
    let faulted = refused(&["sh -c 'kill -SEGV $$'", "true"], 4);
    assert_eq!(faulted["signal"], "SIGSEGV");
    let begun = Instant::now();
    let hung = refused(&["sleep 1000", "true", "--timeout", "0.2"], 4);
    assert_eq!(hung["code"], "hang");
    assert!(begun.elapsed() < Duration::from_secs(20));
}

#[test]
fn invalid_samples_are_rejected_with_their_line() {
    let good = reporting_program(&[("a", "1000")]);
    for cycles in ["0", "nonsense", "-1"] {
        let bad = reporting_program(&[("a", "1000"), ("a", cycles)]);
        let refused = refused(&[&good, &bad], 2);
        assert!(refused["text"].as_str().is_some_and(|text| text.contains("line 2")), "{refused}");
    }
    let apart = refused(&[&good, &reporting_program(&[("b", "1000")])], 2);
    assert!(apart["remedy"].as_str().is_some_and(|remedy| remedy.contains("--whole")), "{apart}");
    // A program may replace the file by anything.
    let elsewhere = "sh -c 'rm \"$CYCLESCOPE_AB\"; ln -s /dev/zero \"$CYCLESCOPE_AB\"'";
    refused(&[&good, elsewhere], 2);
}

#[test]
fn later_runs_are_compared_with_recorded_ones() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let [same, slower] = ["1000", "1020"].map(|cycles| reporting_program(&[("a", cycles)]));
    let recorded = ab(&[&same, "--out", &path("one")]);
    assert_eq!((recorded.code, recorded.stdout.contains("runs are recorded")), (Some(0), true), "{recorded:?}");
    let found = &lines(&["--against", &path("one"), &slower, "--fail-on-slower", "1%"], 6)[0];
    assert_eq!((&found["verdict"], &found["interleaved"]), (&"slower".into(), &false.into()), "{found}");
    let output = ab(&["--against", &path("one"), &same]).stdout;
    assert!(output.contains("1 the same") && output.contains("The old runs were recorded"), "{output}");
    // Of two recorded programs, the last one counts.
    lines(&[&same, &slower, "--out", &path("two")], 0);
    assert_eq!(lines(&["--against", &path("two"), &slower], 0)[0]["verdict"], "same");
    let kinds: Vec<Value> = std::fs::read_to_string(path("two"))
        .expect("a file")
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["kind"].clone())
        .collect();
    assert_eq!((&kinds[0], kinds.last()), (&"ab.session".into(), Some(&"ab".into())));
    assert_eq!(kinds.iter().filter(|kind| **kind == "ab.run").count(), 48);
    refused(&["--against", &path("two"), "true"], 2);
}

#[test]
fn output_of_programs_is_kept_separate() {
    let file = folder();
    let path = file.path().join("said").display().to_string();
    let says = "sh -c 'echo out; echo err >&2'";
    let output = ab(&[says, says, "--json", "--output", &path]);
    assert!(!output.stdout.contains("out\n") && output.stderr.is_empty(), "{output:?}");
    assert!(std::fs::read_to_string(path).expect("a file").starts_with("out\nerr\nout\nerr\n"));
}

/// A program sees the same signal state in /proc, whether this test or `ab` starts it. A signal
/// that `ab` doesn't handle is blocked.
#[test]
fn programs_inherit_the_callers_signal_state() {
    const SHOWS: [&str; 4] = ["grep", "-E", "Sig(Blk|Ign|Cgt)", "/proc/self/status"];
    let said = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        // SAFETY: the calls are allowed between fork and exec, and the set outlives them.
        unsafe {
            command.args(arguments).pre_exec(|| {
                let mut set = std::mem::zeroed();
                libc::sigemptyset(&mut set);
                libc::sigaddset(&mut set, libc::SIGUSR1);
                libc::signal(libc::SIGINT, libc::SIG_DFL);
                libc::signal(libc::SIGHUP, libc::SIG_IGN);
                libc::sigprocmask(libc::SIG_SETMASK, &set, std::ptr::null_mut());
                Ok(())
            });
        }
        String::from_utf8(command.output().expect("it runs").stdout).expect("text")
    };
    let alone = said(SHOWS[0], &SHOWS[1..]);
    assert!(alone.contains("SigBlk:\t0000000000000200\n"), "{alone}");
    // SIGHUP is 1, SIGINT is 2.
    let ignored = alone.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:\t")?, 16).ok());
    assert_eq!(ignored.map(|ignored| ignored & 0b11), Some(0b01), "{alone}");
    let file = folder();
    let path = file.path().join("said").display().to_string();
    let program = shlex::try_join(SHOWS).expect("no NUL");
    let options = ["ab", "--quick", "--budget", "0.5", "--output", &path, &program, &program];
    said(env!("CARGO_BIN_EXE_cyclescope"), &options);
    let output = std::fs::read_to_string(path).expect("a file");
    let first: String = output.split_inclusive('\n').take(3).collect();
    assert_eq!(first, alone);
}

#[test]
fn process_that_a_program_leaves_behind_is_named_once() {
    let output = ab(&["sh -c 'setsid sleep 3 & true'", "true"]);
    assert_eq!(output.stderr.matches("behind, which may disturb the runs").count(), 1, "{output:?}");
    assert!(output.stderr.contains("left process "), "{output:?}");
}

#[test]
fn samples_longer_than_their_run_are_refused() {
    let long = reporting_program(&[("a", "1e15")]);
    refused(&[&long, &long], 2);
}

#[test]
fn closed_pipe_is_not_an_error() {
    let same = reporting_program(&[("a", "1000")]);
    let program = env!("CARGO_BIN_EXE_cyclescope");
    let script = "{ \"$0\" ab --quick \"$1\" \"$1\"; echo $? >&2; } | true";
    let ended = std::process::Command::new("sh").args(["-c", script, program, &same]).output().expect("a shell");
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "0\n");
}

#[test]
fn interrupt_leaves_no_process() {
    let (code, number) = ended_by(libc::SIGINT, "sh -c 'sleep 1000 & echo $! >> PATH; wait'");
    assert_eq!(code, Some(130));
    gone(number);
}

#[test]
fn program_dies_when_cyclescope_is_killed() {
    let (_, number) = ended_by(libc::SIGKILL, "sh -c 'echo $$ >> PATH; exec sleep 1000'");
    gone(number);
}

/// Sends a signal while a program runs that writes a process number to PATH. Returns the exit code
/// and that number.
fn ended_by(signal: i32, program: &str) -> (Option<i32>, i32) {
    let folder = folder();
    let path = folder.path().join("numbers").display().to_string();
    let mut running = Running::start(&["ab", &program.replace("PATH", &path), "true"]);
    running.until(&path, 1);
    let (status, _) = running.signal(signal);
    let number = std::fs::read_to_string(&path).expect("a number");
    (status.code(), number.trim().parse().expect("a number"))
}

/// A stand-in for GitHub's command: it stores comments in the folder that `STORE` names, as `gh api` takes them. It refuses
/// with a token that may not write.
const STUB_OF_GH: &str = r#"#!/bin/sh
[ "$GH_TOKEN" = reader ] && exit 1
case " $* " in
    *" --paginate "*) [ -e "$STORE/comment" ] && head -n 1 "$STORE/comment" | grep -qF -e "$MARKER" && echo 7 ;;
    *" PATCH repos/o/r/issues/comments/7 "*) cp "${7#body=@}" "$STORE/comment"; echo replaced >>"$STORE/log" ;;
    *" POST repos/o/r/issues/5/comments "*) cp "${7#body=@}" "$STORE/comment"; echo new >>"$STORE/log" ;;
    *) echo "unexpected: $*" >&2; exit 1 ;;
esac
exit 0
"#;

#[test]
fn the_action_comments_once_and_keeps_the_exit_code() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder();
    let stub = folder.path().join("gh");
    std::fs::write(&stub, STUB_OF_GH).expect("a file");
    std::fs::set_permissions(&stub, std::fs::Permissions::from_mode(0o755)).expect("rights");
    let program = Path::new(env!("CARGO_BIN_EXE_cyclescope"));
    let rest = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{}:{rest}", folder.path().display(), program.parent().expect("a folder").display());
    let run = |new: &str, options: &str, token: &str| {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.github/actions/ab/compare");
        let mut command = assert_cmd::Command::new(script);
        command
            .env("PATH", &path)
            .env("STORE", folder.path())
            .env("GITHUB_STEP_SUMMARY", folder.path().join("summary"));
        command.env("OLD", reporting_program(&[("a|b", "1000")])).env("NEW", new).env("OPTIONS", options);
        command
            .env("TITLE", "Speed --> here")
            .env("GITHUB_REPOSITORY", "o/r")
            .env("PULL_REQUEST", "5")
            .env("GH_TOKEN", token);
        answer(&mut command)
    };
    let text = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect("a file");
    let slower = reporting_program(&[("a|b", "1050")]);
    let first = run(&slower, "--quick --budget 0.5 --fail-on-slower '2%'", "writer");
    assert_eq!(first.code, Some(6), "{first:?}");
    assert!(text("comment").starts_with("<!-- cyclescope ab: Speed ___ here -->\n## Speed"), "{}", text("comment"));
    assert!(text("comment").contains("slower") && text("comment") == text("summary"), "{}", text("comment"));
    let second = run(&slower, "--quick --budget 0.5", "writer");
    assert_eq!((second.code, text("log").as_str()), (Some(0), "new\nreplaced\n"), "{second:?}");
    let fork = run(&slower, "--quick --budget 0.5", "reader");
    assert!(fork.code == Some(0) && fork.stdout.contains("::warning::no comment was written"), "{fork:?}");
    let failed = run("false", "--quick --budget 0.5", "writer");
    assert!(failed.code == Some(4) && text("comment").contains("failed with exit code 4"), "{failed:?}");
    // Options are words, and no shell runs them.
    let hostile = run(&slower, "--budget '$(touch pwned)'", "writer");
    assert!(hostile.code == Some(2) && !Path::new("pwned").exists(), "{hostile:?}");
}
