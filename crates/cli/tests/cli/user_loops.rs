//! Markers in the user's own loops.

use crate::support::{answer, cyclescope, folder, has, json, value_if_any};
use serde_json::Value;
use std::path::PathBuf;

/// A C file in its own folder.
struct Source {
    _folder: tempfile::TempDir,
    file: PathBuf,
}

impl Source {
    fn new(text: &str) -> Source {
        let folder = folder();
        let file = folder.path().join("loop.c");
        std::fs::write(&file, text).expect("a file");
        Source { _folder: folder, file }
    }

    fn name(&self) -> &str {
        self.file.to_str().expect("text")
    }
}

/// The records of these designs in a loop.
fn records(designs: &[&str], source: &[&str]) -> Vec<Value> {
    let answer = answer(&mut cyclescope(&[&["marker", "--json", "--quick"], designs, source].concat()));
    assert_eq!(answer.code, Some(0), "{answer:?}");
    let lines = answer.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    lines.filter(|line: &Value| line["kind"] == "marker").collect()
}

fn state<'a>(records: &'a [Value], design: &str, state: &str) -> &'a Value {
    let found = records.iter().find(|record| record["design"] == design && record["state"] == state);
    found.unwrap_or_else(|| panic!("{design} {state} in {records:?}"))
}

/// Compiles a loop that fails with this exit code, and returns the error's text.
fn loop_error(text: &str, code: i32) -> String {
    let source = Source::new(text);
    let line = json(&["marker", "--quick", "static-key-5", "--around", source.name()], &[code]);
    assert_eq!(line["kind"], "error", "{line}");
    line["text"].as_str().expect("text").to_string()
}

#[test]
fn marker_follows_the_loop_body_or_replaces_its_macro() {
    if !has("cc") {
        return;
    }
    // Names of the header that a user may also define, and 20 links of one chain through a register:
    // through memory, some cores forward stores faster at some addresses (Raptor Cove).
    let head = "#define _GNU_SOURCE\n#define barrier() 1\n#define unlikely(x) (x)\n#include <sched.h>\n\
                static void work(long *p) { long x = *p; for (int i = 0; i < 20; i++) \
                __asm__ volatile(\"imul $3, %0, %0\" : \"+r\"(x)); *(volatile long *)p = x; }\n";
    for (body, calls) in [
        ("void around(void *memory) { work(memory); }", 1000),
        ("static inline void around(long *p) { work(p); if (*(volatile long *)p != 1) { MARKER(); } work(p); }", 1000),
        ("static void around(void *memory) { for (int i = 0; i < 3; i++) { MARKER(); work(memory); } }", 3000),
    ] {
        let source = Source::new(&format!("{head}{body}\n"));
        let all = records(&["none", "static-key-5", "function-entry"], &["--around", source.name()]);
        assert!(all.iter().all(|record| record["context"] == "around"), "{body}");
        for design in ["static-key-5", "function-entry"] {
            let [dormant, enabled] = ["dormant", "empty"].map(|it| state(&all, design, it));
            assert_eq!(
                (&dormant["calls"]["counted"], &enabled["calls"]["counted"]),
                (&0.into(), &calls.into()),
                "{body}"
            );
            assert!(dormant["likely_bytes"].as_u64().is_some_and(|bytes| bytes >= 5), "{body}");
        }
        let none = state(&all, "none", "base");
        if let (Some(cost), Some(base)) = (value_if_any(&none["cost"]), value_if_any(&none["base"])) {
            let ratio = cost / base;
            assert!(ratio.abs() < 0.1, "nothing costs {ratio} of the loop: {body}");
        }
    }
}

#[test]
fn snippet_keeps_its_registers_around_the_marker() {
    if !has("cc") {
        return;
    }
    // A chain with three times as many links takes three times as long, with or without a marker in
    // the loop.
    let cost = |snippet| {
        let all = records(&["none", "flag"], &["--around-snippet", snippet]);
        assert_eq!(state(&all, "flag", "empty")["calls"]["counted"], 1000);
        [&state(&all, "none", "base")["base"], &state(&all, "flag", "dormant")["site"]].map(value_if_any)
    };
    let (one, three) = (cost("imul rax, rax; imul rax, rax"), cost(&"imul rax, rax;".repeat(6)));
    for (one, three) in one.into_iter().zip(three).filter_map(|(one, three)| Some((one?, three?))) {
        assert!((2.7..3.3).contains(&(three / one)), "{one} {three}");
    }
}

#[test]
fn errors_in_a_loop_name_its_file() {
    if !has("cc") {
        return;
    }
    assert!(loop_error("static void around(void *memory) {\n\treturn }", 2).contains("loop.c:2:"));
    assert!(loop_error("int x;", 2).contains("loop.c does not define the function `around`"));
    assert!(loop_error("void h(void) { MARKER(); }\nvoid around(void *p) { h(); }", 2).contains("loop.c:1:"));
    assert!(loop_error("void around(void *p) { MARKER(); MARKER(); }", 2).contains("more than one MARKER()"));
    assert!(loop_error("void h(void); void around(void *p) { h(); }", 2).contains("undefined symbol: h"));
    assert!(loop_error("void around(void *p) { *(volatile int *)0 = 1; }", 4).contains("SIGSEGV"));
    let ends = "#include <stdlib.h>\n__attribute__((constructor)) void c(void) { exit(3); }\nvoid around(void *p) {}";
    assert!(loop_error(ends, 4).contains("exit status 3"));
    json(&["marker", "--quick", "--around", "/nowhere.c"], &[2]);
    json(&["marker", "--quick", "--around", "/"], &[2]);
    json(&["marker", "--quick", "--around-snippet", "imull rax"], &[2]);
    json(&["marker", "--quick", "--around-snippet", ""], &[2]);
    json(&["marker", "--quick", "none", "--around-snippet", "ud2"], &[4]);
}
