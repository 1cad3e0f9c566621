//! `--beside`: code that runs on another CPU meanwhile, and what is refused.

use crate::support::{answer, cyclescope, json};
use serde_json::Value;

/// Whether this process may use two CPUs.
fn two_cpus() -> bool {
    std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() >= 2)
}

#[test]
fn what_ran_beside_is_told_with_its_share_of_the_time() {
    if !two_cpus() {
        eprintln!("skipped: there is one CPU");
        return;
    }
    let arguments = ["run", "imul rax, rax", "--quick", "--beside", "mov rbx, [r14]", "--json"];
    let told = answer(&mut cyclescope(&arguments));
    let lines: Vec<Value> =
        told.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let kinds: Vec<&str> = lines.iter().filter_map(|line| line["kind"].as_str()).collect();
    assert!(kinds.contains(&"run") && kinds.last() == Some(&"beside"), "{told:?}");
    let beside = lines.last().expect("a line");
    let share = beside["share"].as_f64().expect("a share");
    assert!(share > 0.0 && share <= 1.0, "{beside}");
    assert_eq!(beside["snippet"], "mov rbx, [r14]");
    let run = lines.iter().find(|line| line["kind"] == "run").expect("a result");
    assert!(run["cpu"] != beside["cpu"], "{beside}");
    let text = answer(cyclescope(&arguments[..5]).env("NO_COLOR", "1"));
    assert!(text.stdout.contains("Beside it, `mov rbx, [r14]` ran "), "{text:?}");
    assert!(text.stdout.lines().all(|line| line.chars().count() <= 80), "{text:?}");
}

#[test]
fn what_can_not_run_beside_is_named() {
    if !two_cpus() {
        eprintln!("skipped: there is one CPU");
        return;
    }
    for (snippet, code, named) in [
        ("ud2", 4, "beside it, `ud2` on CPU "),
        ("mov rax, [0]", 4, "SIGSEGV"),
        ("foo", 2, "there is no instruction `foo`"),
        ("", 2, "the snippet of --beside has no instructions"),
    ] {
        let told = answer(&mut cyclescope(&["run", "nop", "--quick", "--beside", snippet]));
        assert_eq!(told.code, Some(code), "{snippet}: {told:?}");
        assert!(told.stderr.contains(named) && told.stdout.is_empty(), "{snippet}: {told:?}");
    }
}

#[test]
fn cpus_that_are_not_free_are_refused_before_anything_is_measured() {
    let many: Vec<&str> = ["--beside", "nop"].into_iter().cycle().take(2 * 4096).collect();
    let many = [&["run", "nop"], &many[..]].concat();
    let run = json(&["run", "nop", "--quick"], &[0, 5]);
    let measured = run["cpu"].to_string();
    for (arguments, named) in [
        (&["run", "nop", "--beside-cpu", "0"][..], "for which there is no --beside"),
        (&["run", "nop", "--beside", "nop", "--beside-cpu", &measured], " is taken"),
        (&many, "there are CPUs for"),
        (&["doctor", "--beside", "nop"], "beside nothing"),
    ] {
        let told = answer(&mut cyclescope(arguments));
        assert_eq!(told.code, Some(2), "{arguments:?}: {told:?}");
        assert!(told.stderr.contains(named) && told.stdout.is_empty(), "{arguments:?}: {told:?}");
    }
}
