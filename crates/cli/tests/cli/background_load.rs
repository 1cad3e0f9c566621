//! `--beside`: background load on another CPU, and what is rejected.

use crate::support::{answer, cyclescope, folder, has, has_for_part, json, parse_lines};
use serde_json::Value;

/// Whether this process may use two CPUs. If not, reports that the test is skipped.
#[track_caller]
fn two_cpus() -> bool {
    let two = std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() >= 2);
    if !two {
        cyclescope_skipped::report_skipped(format_args!("this process may use one CPU only"));
    }
    two
}

#[test]
fn background_load_is_reported_with_its_share_of_time() {
    if !two_cpus() {
        return;
    }
    let arguments = ["run", "imul rax, rax", "--quick", "--beside", "mov rbx, [r14]", "--json"];
    let output = answer(&mut cyclescope(&arguments));
    let lines = parse_lines(&output.stdout);
    let kinds: Vec<&str> = lines.iter().filter_map(|line| line["kind"].as_str()).collect();
    assert!(kinds.contains(&"run") && kinds.last() == Some(&"beside"), "{output:?}");
    let beside = lines.last().expect("a line");
    let share = beside["share"].as_f64().expect("a share");
    assert!(share > 0.0 && share <= 1.0, "{beside}");
    assert_eq!(beside["snippet"], "mov rbx, [r14]");
    let run = lines.iter().find(|line| line["kind"] == "run").expect("a result");
    assert!(run["cpu"] != beside["cpu"], "{beside}");
    let text = answer(cyclescope(&arguments[..5]).env("NO_COLOR", "1"));
    assert!(text.stdout.contains("Background load: `mov rbx, [r14]` ran "), "{text:?}");
    assert!(text.stdout.lines().all(|line| line.chars().count() <= 80), "{text:?}");
}

#[test]
fn invalid_background_load_is_named() {
    if !two_cpus() {
        return;
    }
    for (snippet, code, named) in [
        ("ud2", 4, "background load `ud2` on CPU "),
        ("mov rax, [0]", 4, "SIGSEGV"),
        ("foo", 2, "there is no instruction `foo`"),
        ("", 2, "the snippet of --beside has no instructions"),
    ] {
        let output = answer(&mut cyclescope(&["run", "nop", "--quick", "--beside", snippet]));
        assert_eq!(output.code, Some(code), "{snippet}: {output:?}");
        assert!(output.stderr.contains(named) && output.stdout.is_empty(), "{snippet}: {output:?}");
    }
}

#[test]
fn unavailable_cpus_are_rejected_before_measuring() {
    let many: Vec<&str> = ["--beside", "nop"].into_iter().cycle().take(2 * 4096).collect();
    let many = [&["run", "nop"], &many[..]].concat();
    let run = json(&["run", "nop", "--quick"], &[0, 5]);
    let measured = run["cpu"].to_string();
    for (arguments, named) in [
        (&["run", "nop", "--beside-cpu", "0"][..], "more --beside-cpu than --beside"),
        (&["run", "nop", "--beside", "nop", "--beside-cpu", &measured], "can't run this snippet"),
        (&many, "available for them"),
        (&["doctor", "--beside", "nop"], "nothing is measured"),
        (&["doctor", "--beside-cpu", "1"], "more --beside-cpu than --beside"),
        (&["uarch", "--list", "--beside", "nop"], "nothing is measured"),
        (&["uarch", "rob", "--out", "/nowhere/file", "--beside", "nop"], "can't record the background load"),
        (&["run", "nop", "--beside", "cmovz r15, rbx; test rcx, rdx"], "uses R15"),
    ] {
        let output = answer(&mut cyclescope(arguments));
        assert_eq!(output.code, Some(2), "{arguments:?}: {output:?}");
        assert!(output.stderr.contains(named) && output.stdout.is_empty(), "{arguments:?}: {output:?}");
    }
}

#[test]
fn load_may_use_the_register_that_usually_counts() {
    if !two_cpus() {
        return;
    }
    // If R15 counted this load, it would never end.
    let output = answer(&mut cyclescope(&["run", "nop", "--quick", "--json", "--beside", "mov r15, 5"]));
    let last: Value = serde_json::from_str(output.stdout.lines().last().expect("a line")).expect("JSON");
    assert!(last["share"].as_f64() > Some(0.0), "{output:?}");
}

#[test]
fn functions_are_measured_with_background_load() {
    if !two_cpus() || !has("cc") {
        return;
    }
    let files = folder();
    let path = files.path().join("f.c");
    std::fs::write(&path, "int f(int *p) { return p[0] + p[1]; }").expect("a file");
    let path = path.to_str().expect("text");
    let output = answer(&mut cyclescope(&["run", "--c", path, "--quick", "--beside", "imul rbx, rbx"]));
    assert!(matches!(output.code, Some(0 | 5)), "{output:?}");
    assert!(output.stdout.contains("Background load: `imul rbx, rbx` ran "), "{output:?}");
}

/// The lines of a run with background load.
fn lines_with(arguments: &[&str]) -> Vec<Value> {
    let output = answer(cyclescope(&["run", "--quick", "--json"]).args(arguments));
    assert!(matches!(output.code, Some(0 | 5)), "{output:?}");
    parse_lines(&output.stdout)
}

#[test]
fn load_takes_what_a_run_takes_and_reports_its_own_time() {
    if !two_cpus() {
        return;
    }
    let files = folder();
    let path = |name: &str, text: &str| {
        let path = files.path().join(name);
        std::fs::write(&path, text).expect("a file");
        path.to_str().expect("text").to_string()
    };
    let data = path("data.s", "section .data\nx: dd 1, 2\nsection .text\nmov eax, [x]\n");
    let c = path("f.c", "void f(double *p) { double x = *p; CYCLESCOPE_BODY({ x = x * 1.5; CYCLESCOPE_KEEP(x); }) }");
    let function = path("g.c", "long g(long *p, long n) { for (long i = 0; i < n; i++) p[i]++; return p[0]; }");
    let mut loads = vec![
        "addq %rbx, %rax".to_string(),
        "run --syntax att 'addq %rbx, %rax'".to_string(),
        "run --hex '48 01 d8'".to_string(),
        format!("run --file {data} --init 'xor ecx, ecx'"),
    ];
    if has_for_part("cc") {
        loads.push(format!("run --c {c}"));
        loads.push(format!("run --c {function} --call 'g(buffer, 100)' --buffer 64K"));
    }
    loads.extend(has_for_part("nasm").then(|| "run --assembler nasm 'times 3 nop'".to_string()));
    let mut with_cost = 0;
    for load in &loads {
        let Some(beside) = undisturbed_load(load) else {
            cyclescope_skipped::report_left_out(format_args!("too noisy for the cost of the load `{load}`"));
            continue;
        };
        assert_eq!(beside["kind"], "beside", "{load}");
        assert!(beside["ticks"].as_f64().is_some_and(|ticks| ticks > 0.0), "{load}: {beside}");
        let cost = ["low", "value", "high"].map(|part| beside["cost"][part].as_f64().unwrap_or(f64::NAN));
        assert!(cost.is_sorted() && cost[0] > 0.0, "{load}: {beside}");
        assert_eq!(beside["cost"]["unit"], "core_cycles", "{load}");
        with_cost += 1;
    }
    assert!(with_cost > 0, "in five results of each of {} loads, none has a cost", loads.len());
}

/// The first of five results in which the load has a cost. Beside other programs, or a busy sibling, it may have none.
fn undisturbed_load(load: &str) -> Option<Value> {
    let mut loads = (0..5).map(|_| lines_with(&["nop", "--beside", load]).pop().expect("a line"));
    loads.find(|beside| beside["cost"].is_object())
}

#[test]
fn code_that_is_no_load_is_refused() {
    if !two_cpus() {
        return;
    }
    for (load, named) in [
        ("run nop --cpu 0", "takes no --cpu"),
        ("run nop --layouts 4", "takes no --layouts"),
        ("run nop --versus nop", "takes no --versus"),
        ("run --sweep N=1..2 'mov eax, {N}'", "takes no --sweep"),
        ("run 'nop", "unclosed quote"),
        ("run -", "no standard input"),
        ("run --nonsense", "in --beside"),
        ("run --file /nowhere", "/nowhere"),
    ] {
        let output = answer(&mut cyclescope(&["run", "nop", "--quick", "--beside", load]));
        assert_eq!(output.code, Some(2), "{load}: {output:?}");
        assert!(output.stderr.contains(named) && output.stderr.contains("help: "), "{load}: {output:?}");
    }
}

#[test]
fn load_is_reported_in_core_cycles_of_its_own_cpu() {
    if !two_cpus() {
        return;
    }
    // The same code on both sides, each by its own ruler. Other work may lengthen one of them, so one
    // of several tries is enough.
    let cost = |record: &Value| record["cost"]["value"].as_f64();
    let agrees = |_| {
        let lines = lines_with(&["imul rax, rax", "--beside", "imul rax, rax"]);
        let run = lines.iter().find(|line| line["kind"] == "run").and_then(cost)?;
        Some(cost(lines.last()?)? / run)
    };
    let ratios: Vec<f64> = (0..5).filter_map(agrees).collect();
    assert!(ratios.is_empty() || ratios.iter().any(|ratio| (ratio - 1.0).abs() < 0.1), "{ratios:?}");
}

#[test]
fn functions_as_load_are_refused_like_those_that_are_measured() {
    if !two_cpus() || !has("cc") {
        return;
    }
    let files = folder();
    let path = files.path().join("f.c");
    let text = "#include <stdlib.h>\nlong f(long *p) { return *p; } void g(void) { abort(); }";
    std::fs::write(&path, text).expect("a file");
    let load = |call: &str| format!("run --c {} --call '{call}'", path.display());
    for (call, options, code, named) in [
        ("g()", &[][..], 4, "background load"),
        ("f(1, 2)", &[], 2, "f"),
        ("missing()", &[], 2, "no function `missing`"),
        ("f(buffer)", &["--beside-shared"], 2, "memory of its own"),
    ] {
        let output = answer(cyclescope(&["run", "nop", "--quick", "--beside", &load(call)]).args(options));
        assert_eq!(output.code, Some(code), "{call}: {output:?}");
        assert!(output.stderr.contains(named) && output.stdout.is_empty(), "{call}: {output:?}");
    }
    // Every command takes it, and a file that is written at the end is complete.
    let elf = files.path().join("program");
    let written = ["run", "nop", "--quick", "--beside", &load("f(buffer)"), "--write-elf"];
    let output = answer(cyclescope(&written).arg(&elf));
    assert!(matches!(output.code, Some(0 | 5)) && elf.exists(), "{output:?}");
    let output = answer(&mut cyclescope(&["uarch", "copy_rate", "--quick", "--beside", &load("f(buffer)")]));
    assert!(matches!(output.code, Some(0 | 5)), "{output:?}");
    assert!(output.stdout.contains("Background load: `run --c "), "{output:?}");
}

#[test]
fn shared_lines_are_contended_and_own_ones_are_not() {
    if !two_cpus() {
        return;
    }
    let add = "lock add [r14], rax";
    // The largest of some ratios counts, and only those whose load a busy machine did not stop.
    let ratio = |_| {
        let cost = |options: &[&str]| {
            let lines = lines_with(&[&[add, "--beside", add][..], options].concat());
            let beside = lines.last().expect("a line");
            assert_eq!(beside["shared"] == true, !options.is_empty());
            beside["share"].as_f64().filter(|share| *share > 0.9)?;
            lines[0]["ticks"]["value"].as_f64().or(lines[0]["cost"]["value"].as_f64())
        };
        Some(cost(&["--beside-shared"])? / cost(&[])?)
    };
    let ratios: Vec<f64> = (0..5).filter_map(ratio).collect();
    if ratios.is_empty() {
        cyclescope_skipped::report_left_out("other programs stopped the load");
    }
    // Both pass the line to each other. Without a share of the same core it takes much longer.
    assert!(ratios.is_empty() || ratios.iter().any(|ratio| *ratio > 1.2), "{ratios:?}");
    // In 32-bit code, another register than R14 points there.
    let beside = "run --bits 64 'mov rax, [r14]'";
    let narrow = ["run", "--quick", "--bits", "32", "mov eax, [ebx]", "--beside-shared", "--beside", beside];
    let said = answer(&mut cyclescope(&narrow));
    let words = said.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.code == Some(3) || words.contains("in memory that both share"), "{said:?}");
    for (arguments, named) in [
        (&["run", "nop", "--beside-shared"][..], "--beside"),
        (&["evaluate", "--beside-shared", "--beside", "nop"], "only the snippet of run"),
    ] {
        let output = answer(&mut cyclescope(arguments));
        assert_eq!(output.code, Some(2), "{arguments:?}: {output:?}");
        assert!(output.stderr.contains(named), "{arguments:?}: {output:?}");
    }
}
