//! `clock`: lists of timing methods, and their source text, whose examples are built as they say themselves and run.

use crate::support::{answer, cyclescope, folder, has, json};
use cyclescope::clock::ALL;
use serde_json::Value;
use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

/// What `clock` answers on stdout.
fn said(arguments: &[&str]) -> String {
    let answer = answer(cyclescope(&["clock"]).args(arguments));
    assert_eq!((answer.code, answer.stderr.as_str()), (Some(0), ""), "{arguments:?}");
    answer.stdout
}

/// The refusal of `clock`, with these words.
fn refused(arguments: &[&str], words: &[&str]) {
    let line = json(&[&["clock"], arguments].concat(), &[2]);
    let told = format!("{} {}", line["text"], line["remedy"]);
    assert!(words.iter().all(|word| told.contains(word)), "{arguments:?}: {told}");
}

#[test]
fn methods_are_listed_as_the_option_lists_them() {
    let listed = answer(&mut cyclescope(&["--clock", "list"])).stdout;
    assert_eq!(said(&[]), listed);
    assert_eq!(said(&["--list"]), listed);
    let one = json(&["clock", "paper-improved"], &[0]);
    assert_eq!((&one["kind"], &one["clock"]), (&"clock".into(), &"cpuid-rdtsc-rdtscp-cpuid".into()));
}

#[test]
fn what_cannot_be_written_is_refused() {
    refused(&["rdtcsp", "--emit", "c"], &["no clock rdtcsp", "did you mean rdtscp"]);
    refused(&["rdtscp", "--emit", "ruts"], &["ruts", "rust"]);
    refused(&["rdtscp", "--emit", "pascal"], &["possible values", "c++", "nasm", "gas"]);
    refused(&["--emit", "c"], &["NAME"]);
    refused(&["rdtscp", "--list"], &["cannot be used with"]);
    refused(&["rdtscp", "--emit", "c", "--quick"], &["--quick has no effect"]);
    refused(&["--clock", "rdtscp"], &["--clock has no effect"]);
    refused(&["clock-gettime", "--emit", "nasm"], &["calls a function", "c, c++, rust"]);
}

#[test]
fn the_text_alone_is_printed() {
    let text = said(&["rdtscp-lfence", "--emit", "c"]);
    assert!(text.starts_with("/*\n * rdtscp-lfence: ") && text.ends_with("#endif\n"), "{text}");
    let line = json(&["clock", "notes-rdtscp-lfence", "--emit", "c"], &[0]);
    let parts = [&line["kind"], &line["clock"], &line["language"]];
    assert_eq!(parts, ["clock.source", "rdtscp-lfence", "c"]);
    assert_eq!(line["text"].as_str().map(str::trim_end), Some(text.trim_end()));
}

/// The methods that a program can use here without preparation, with their listed facts.
fn usable() -> Vec<Value> {
    let lines = said(&["--json"]);
    let all: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let here = |one: &Value| one["available"] == true && one["clock"] != "rdpmc";
    all.into_iter().filter(here).collect()
}

/// The figures that `evaluate` has of the methods' empty pairs, measured one time for all tests.
static EVALUATED: LazyLock<BTreeMap<String, Value>> = LazyLock::new(|| {
    let clocks = usable();
    let missing: Vec<&str> = ALL
        .iter()
        .map(|clock| clock.name)
        .filter(|name| clocks.iter().all(|one| one["clock"] != *name))
        .collect();
    cyclescope_skipped::left_out(format_args!("a process cannot use {} here", missing.join(", ")));
    let names: Vec<&str> = clocks.iter().filter_map(|one| one["clock"].as_str()).collect();
    let shape = ["--quick", "--ensembles", "12", "--samples", "1000"];
    let answer = answer(cyclescope(&["evaluate", "--json", "--clock", &names.join(",")]).args(shape));
    assert!(matches!(answer.code, Some(0 | 5)), "{answer:?}");
    let lines = answer.stdout.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let figures = lines.filter(|line| line["kind"] == "evaluate");
    figures.map(|line| (line["clock"].as_str().expect("a name").to_string(), line)).collect()
});

/// Writes what `clock --emit` has of each method into one file a method; those that the language has not are left out.
fn written(clocks: &[Value], language: &str, folder: &Path) -> Vec<(String, Value)> {
    let write = |clock: &Value| {
        let name = clock["clock"].as_str().expect("a name");
        let emitted = answer(&mut cyclescope(&["clock", name, "--emit", language]));
        (emitted.code == Some(0)).then(|| {
            let name = name.replace('-', "_");
            std::fs::write(folder.join(format!("{name}.h")), emitted.stdout).expect("a file");
            (name, clock.clone())
        })
    };
    clocks.iter().filter_map(write).collect()
}

/// Readings of a method that waits for earlier ones go up, whichever file of the program takes them; and a register that the
/// program has taken from the compiler keeps its value.
#[test]
fn two_files_of_a_program_share_the_headers() {
    if !["gcc", "g++"].iter().all(|tool| has(tool)) {
        return;
    }
    for (language, compiler, reading) in [("c", "gcc", "cyclescope_@_"), ("c++", "g++", "cyclescope::@::")] {
        let folder = folder();
        let methods = written(&usable(), language, folder.path());
        let includes: String = methods.iter().map(|(name, _)| format!("#include \"{name}.h\"\n")).collect();
        let one = format!("#define _GNU_SOURCE 1\n{includes}#include <sched.h>\n");
        let (mut main, mut other) = (String::new(), String::new());
        for (name, clock) in &methods {
            let reading = reading.replace('@', name);
            other.push_str(&format!(
                "uint64_t read_{name}(void);\nuint64_t read_{name}(void) {{ return {reading}end(); }}\n"
            ));
            let orders = clock["promises"]["leading_done"] == true;
            let back = if orders {
                "if (end < start || next < end) return 1;"
            } else {
                "(void)start; (void)end; (void)next;"
            };
            main.push_str(&format!(
                "for (int i = 0; i < 1000; i++) {{ uint64_t start = {reading}start(), end = read_{name}(); \
                 uint64_t next = {reading}start(); if (!kept()) return 2; {back} }}\n"
            ));
        }
        let declared: String =
            methods.iter().map(|(name, _)| format!("uint64_t read_{name}(void);\n")).collect();
        // GCC has registers for a program's own only in C.
        let kept = match language {
            "c" => {
                "register uint64_t own __asm__(\"rbx\");\nstatic int kept(void) { return own == 77; }\n#define TAKE own = 77;\n"
            }
            _ => "static int kept() { return 1; }\n#define TAKE\n",
        };
        let pinned = "cpu_set_t set; CPU_ZERO(&set); CPU_SET(sched_getcpu(), &set); sched_setaffinity(0, sizeof set, &set);";
        let main = format!("{one}{declared}{kept}int main(void) {{ {pinned} TAKE\n{main}return 0; }}\n");
        let suffix = if language == "c" { "c" } else { "cpp" };
        let [first, second] = ["main", "other"].map(|name| format!("{name}.{suffix}"));
        std::fs::write(folder.path().join(&first), main).expect("a file");
        std::fs::write(folder.path().join(&second), format!("{one}{other}")).expect("a file");
        let mut build = Command::new(compiler);
        build.args(["-O2", "-Wall", "-Wextra", "-Werror", "-o", "program", &first, &second]);
        let built = build.current_dir(folder.path()).output().expect("a compiler");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let ran = Command::new(folder.path().join("program")).output().expect("it runs");
        assert_eq!(ran.status.code(), Some(0), "{language}: 1: a reading went back; 2: RBX changed");
    }
}

/// Builds the example of a text by the command that the text names and runs it on one CPU. Returns its two figures: an empty
/// pair, and what a hundred multiplications add.
fn example(text: &str, file: &str, folder: &Path, cpu: usize) -> [i64; 2] {
    std::fs::write(folder.join(file), text).expect("a file");
    let command = text.lines().find_map(|line| line.split_once(" Example: ")).expect("a command").1;
    let command = command.replace("THIS_FILE", file);
    let mut shell = Command::new("sh");
    shell.args(["-c", &command]).current_dir(folder);
    // SAFETY: the call is async-signal-safe; where the CPU is not allowed the example runs elsewhere.
    unsafe {
        shell.pre_exec(move || {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(cpu, &mut set);
            libc::sched_setaffinity(0, size_of_val(&set), &set);
            Ok(())
        });
    }
    let output = shell.output().expect("a shell");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{command}: {said}{}", String::from_utf8_lossy(&output.stderr));
    ["an empty pair: ", "100 dependent multiplications: "].map(|what| {
        let number = said.split_once(what).and_then(|(_, rest)| rest.split_whitespace().next());
        number.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{command}: {said}"))
    })
}

/// Builds and runs the examples of one language. Its pairs take the time of the engine's, which are the same instructions in
/// the same order with other moves: within some steps and a half, for the core clock may change between the two.
#[track_caller]
fn examples(language: &str, file: &str, tools: &[&str], engine: &str) {
    if !tools.iter().all(|tool| has(tool)) {
        return;
    }
    let folder = folder();
    for clock in &usable() {
        let name = clock["clock"].as_str().expect("a name");
        let Some(engines) = EVALUATED.get(name) else { continue };
        let emitted = answer(&mut cyclescope(&["clock", name, "--emit", language]));
        if emitted.code == Some(2) && name == "clock-gettime" {
            continue;
        }
        assert_eq!(emitted.code, Some(0), "{emitted:?}");
        let cpu = engines["cpu"].as_u64().expect("a number") as usize;
        let [empty, added] = example(&emitted.stdout, file, folder.path(), cpu);
        let step = engines["tsc_step"].as_f64().expect("a number");
        let expected = engines[engine].as_f64().expect("a number");
        let most = 4.0 * step + 0.5 * expected.max(empty as f64);
        assert!(
            (empty as f64 - expected).abs() <= most,
            "{name}: {empty}, the engine {expected}, step {step}"
        );
        // Where both ends are ordered the code is between them. A CPUID between them may vary by more than the code takes.
        let promises = &clock["promises"];
        let ordered = promises["body_waits"] == true && promises["body_done"] == true;
        if ordered && !name.contains("cpuid") {
            assert!(added > 0, "{name}: {empty}, {added}");
        }
    }
}

#[test]
fn examples_in_c_run() {
    examples("c", "timer.h", &["cc"], "p50");
}

#[test]
fn examples_in_cxx_run() {
    examples("c++", "timer.hpp", &["c++"], "p50");
}

#[test]
fn examples_in_rust_run() {
    examples("rust", "timer.rs", &["rustc"], "p50");
}

#[test]
fn examples_for_gnu_as_run() {
    examples("gas", "timer.s", &["as", "cc"], "overhead_min");
}

#[test]
fn examples_for_nasm_run() {
    examples("nasm", "timer.asm", &["nasm", "cc"], "overhead_min");
}
