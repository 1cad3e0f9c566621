//! `clock`: lists timing methods and prints their source code. The tests build the examples as the
//! source code says, and run them.

use crate::support::{answer, cyclescope, folder, has, has_for_part, json, number, parse_lines, value};
use cyclescope::clock::ALL_CLOCKS;
use serde_json::Value;
use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

/// Standard output of `clock`.
fn run_clock(arguments: &[&str]) -> String {
    let answer = answer(cyclescope(&["clock"]).args(arguments));
    assert_eq!((answer.code, answer.stderr.as_str()), (Some(0), ""), "{arguments:?}");
    answer.stdout
}

/// Checks that `clock` fails with these words.
fn assert_rejected(arguments: &[&str], words: &[&str]) {
    let line = json(&[&["clock"], arguments].concat(), &[2]);
    let shown = format!("{} {}", line["text"], line["remedy"]);
    assert!(words.iter().all(|word| shown.contains(word)), "{arguments:?}: {shown}");
}

#[test]
fn clock_lists_the_same_as_the_clock_option() {
    let listed = answer(&mut cyclescope(&["--clock", "list"])).stdout;
    assert_eq!(run_clock(&[]), listed);
    assert_eq!(run_clock(&["--list"]), listed);
    let one = json(&["clock", "paper-improved"], &[0]);
    assert_eq!((&one["kind"], &one["clock"]), (&"clock".into(), &"cpuid-rdtsc-rdtscp-cpuid".into()));
}

#[test]
fn invalid_requests_are_rejected() {
    assert_rejected(&["rdtcsp", "--emit", "c"], &["unknown timing method `rdtcsp`", "did you mean rdtscp"]);
    assert_rejected(&["rdtscp", "--emit", "ruts"], &["ruts", "rust"]);
    assert_rejected(&["rdtscp", "--emit", "pascal"], &["possible values", "c++", "nasm", "gas"]);
    assert_rejected(&["--emit", "c"], &["NAME"]);
    assert_rejected(&["rdtscp", "--list"], &["cannot be used with"]);
    assert_rejected(&["rdtscp", "--emit", "c", "--quick"], &["--quick has no effect"]);
    assert_rejected(&["--clock", "rdtscp"], &["--clock has no effect"]);
    assert_rejected(&["clock-gettime", "--emit", "nasm"], &["calls a function", "c, c++, rust"]);
}

#[test]
fn only_the_source_code_is_printed() {
    let text = run_clock(&["rdtscp-lfence", "--emit", "c"]);
    assert!(text.starts_with("/*\n * rdtscp-lfence: ") && text.ends_with("#endif\n"), "{text}");
    let line = json(&["clock", "notes-rdtscp-lfence", "--emit", "c"], &[0]);
    let parts = [&line["kind"], &line["clock"], &line["language"]];
    assert_eq!(parts, ["clock.source", "rdtscp-lfence", "c"]);
    assert_eq!(line["text"].as_str().map(str::trim_end), Some(text.trim_end()));
}

#[test]
fn code_of_32_bits_has_its_own_registers_and_text() {
    let line = json(&["clock", "paper-improved", "--bits", "32"], &[0]);
    assert_eq!((&line["bits"], &line["clobbers_32"]), (&32.into(), &serde_json::json!(["eax", "ecx", "edx", "ebx"])));
    assert!(run_clock(&["paper-improved", "--bits", "32"]).contains("changes eax ecx edx ebx\n"));
    assert!(json(&["clock", "paper-improved"], &[0]).get("bits").is_none());
    let listed = json(&["clock", "clock-gettime", "--bits", "32"], &[0]);
    assert_eq!(listed["available"], false, "{listed}");
    let text = run_clock(&["rdtscp", "--bits", "32", "--emit", "nasm"]);
    assert!(text.contains("Written by: cyclescope clock rdtscp --emit nasm --bits 32"), "{text}");
    assert_eq!(json(&["clock", "rdtscp", "--bits", "32", "--emit", "nasm"], &[0])["bits"], 32);
    assert_rejected(&["rdtscp", "--bits", "31"], &["64 or 32"]);
}

/// The methods that a program of a mode can use here without preparation, with their listed facts.
fn usable(bits: &str) -> Vec<Value> {
    let lines = run_clock(&["--json", "--bits", bits]);
    let all = parse_lines(&lines);
    let here = |one: &Value| one["available"] == true && one["clock"] != "rdpmc";
    all.into_iter().filter(here).collect()
}

/// Figures of the methods' empty pairs with intervals, from `evaluate`, measured once for all tests
/// of a mode.
static EVALUATED: LazyLock<BTreeMap<String, Value>> = LazyLock::new(|| evaluate_pairs("64"));
static EVALUATED_32: LazyLock<BTreeMap<String, Value>> = LazyLock::new(|| evaluate_pairs("32"));

fn evaluate_pairs(bits: &str) -> BTreeMap<String, Value> {
    let clocks = usable(bits);
    let missing: Vec<&str> = ALL_CLOCKS
        .iter()
        .map(|clock| clock.name)
        .filter(|name| clocks.iter().all(|one| one["clock"] != *name))
        .collect();
    cyclescope_skipped::report_left_out(format_args!("a process cannot use {} here", missing.join(", ")));
    let mut figures = BTreeMap::new();
    // Under background load, two seconds aren't always enough for the interval of every overhead.
    for budget in ["2", "4", "8"] {
        let names: Vec<&str> = clocks.iter().filter_map(|one| one["clock"].as_str()).collect();
        let wanted: Vec<&str> = names.into_iter().filter(|name| !figures.contains_key(*name)).collect();
        if wanted.is_empty() {
            break;
        }
        figures.extend(evaluate_methods(&wanted, bits, budget));
    }
    figures
}

/// The lines of these methods that have an interval of the empty pair's cost, and the clocks' rates.
fn evaluate_methods(names: &[&str], bits: &str, budget: &str) -> BTreeMap<String, Value> {
    let shape = ["--quick", "--bits", bits, "--budget", budget];
    let answer = answer(cyclescope(&["evaluate", "--json", "--clock", &names.join(",")]).args(shape));
    assert!(matches!(answer.code, Some(0 | 5)), "{answer:?}");
    let whole =
        |line: &Value| line["kind"] == "evaluate" && line["overhead"]["low"].is_number() && line["rates"].is_array();
    let lines = parse_lines(&answer.stdout).into_iter().filter(whole);
    lines.map(|line| (line["clock"].as_str().expect("a name").to_string(), line)).collect()
}

/// Writes the output of `clock --emit` to one file per method. Methods that the language lacks are
/// skipped.
fn written(clocks: &[Value], language: &str, bits: &str, folder: &Path) -> Vec<(String, Value)> {
    let write = |clock: &Value| {
        let name = clock["clock"].as_str().expect("a name");
        let emitted = answer(&mut cyclescope(&["clock", name, "--emit", language, "--bits", bits]));
        (emitted.code == Some(0)).then(|| {
            let name = name.replace('-', "_");
            std::fs::write(folder.join(format!("{name}.h")), emitted.stdout).expect("a file");
            (name, clock.clone())
        })
    };
    clocks.iter().filter_map(write).collect()
}

/// Whether programs of 32-bit code can be built and run here, and timing methods in 32-bit code.
fn runs_narrow_programs() -> bool {
    let folder = folder();
    std::fs::write(folder.path().join("a.cpp"), "#include <cstdio>\nint main() { std::puts(\"\"); }\n")
        .expect("a file");
    let mut build = Command::new("g++");
    let built = build.args(["-m32", "-o", "a", "a.cpp"]).current_dir(folder.path()).output();
    let succeeds = |output: std::io::Result<std::process::Output>| output.is_ok_and(|it| it.status.success());
    let obstacle = if !succeeds(built) {
        "g++ -m32 builds no programs"
    } else if !succeeds(Command::new(folder.path().join("a")).output()) {
        "the system runs no 32-bit programs"
    } else if usable("32").is_empty() {
        "the system has no segment of 32-bit code"
    } else {
        return true;
    };
    cyclescope_skipped::report_left_out(obstacle);
    false
}

/// Readings of an ordered method increase, whichever file of the program takes them. A register
/// that the program reserves keeps its value.
#[test]
fn two_files_of_a_program_share_the_headers() {
    if ["gcc", "g++"].iter().all(|tool| has(tool)) {
        share_headers("64", &["-m64"], "rbx");
    }
}

#[test]
fn two_files_of_a_32_bit_program_share_the_headers() {
    if ["gcc", "g++"].iter().all(|tool| has(tool)) && runs_narrow_programs() {
        share_headers("32", &["-m32", "-fno-pic", "-no-pie"], "ebx");
        share_headers("32", &["-m32", "-fPIC"], "esi");
    }
}

fn share_headers(bits: &str, flags: &[&str], register: &str) {
    for (language, compiler, reading) in [("c", "gcc", "cyclescope_@_"), ("c++", "g++", "cyclescope::@::")] {
        let folder = folder();
        let methods = written(&usable(bits), language, bits, folder.path());
        let includes: String = methods.iter().map(|(name, _)| format!("#include \"{name}.h\"\n")).collect();
        let one = format!("#define _GNU_SOURCE 1\n{includes}#include <sched.h>\n");
        let (mut main, mut other) = (String::new(), String::new());
        for (name, clock) in &methods {
            let reading = reading.replace('@', name);
            other.push_str(&format!(
                "uint64_t read_{name}(void);\nuint64_t read_{name}(void) {{ return {reading}end(); }}\n"
            ));
            let orders = clock["promises"]["leading_done"] == true;
            let back =
                if orders { "if (end < start || next < end) return 1;" } else { "(void)start; (void)end; (void)next;" };
            main.push_str(&format!(
                "for (int i = 0; i < 1000; i++) {{ uint64_t start = {reading}start(), end = read_{name}(); \
                 uint64_t next = {reading}start(); if (!kept()) return 2; {back} last = next; }}\n\
                 if ({reading}end() == last - last) return 3;\n"
            ));
        }
        let declared: String = methods.iter().map(|(name, _)| format!("uint64_t read_{name}(void);\n")).collect();
        // Only GCC's C lets a program reserve a register.
        let kept = match language {
            "c" => format!(
                "register unsigned long own __asm__(\"{register}\");\n\
                 static int kept(void) {{ return own == 77; }}\n#define TAKE own = 77;\n"
            ),
            _ => "static int kept() { return 1; }\n#define TAKE\n".to_string(),
        };
        let pinned =
            "cpu_set_t set; CPU_ZERO(&set); CPU_SET(sched_getcpu(), &set); sched_setaffinity(0, sizeof set, &set);";
        let main =
            format!("{one}{declared}{kept}int main(void) {{ uint64_t last = 0; {pinned} TAKE\n{main}return 0; }}\n");
        let suffix = if language == "c" { "c" } else { "cpp" };
        let [first, second] = ["main", "other"].map(|name| format!("{name}.{suffix}"));
        std::fs::write(folder.path().join(&first), main).expect("a file");
        std::fs::write(folder.path().join(&second), format!("{one}{other}")).expect("a file");
        let mut build = Command::new(compiler);
        build.args(["-O2", "-Wall", "-Wextra", "-Werror", "-o", "program", &first, &second]).args(flags);
        let built = build.current_dir(folder.path()).output().expect("a compiler");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let ran = Command::new(folder.path().join("program")).output().expect("it runs");
        let meaning = "1: a reading went back; 2: a register changed; 3: a reading is 0";
        assert_eq!(ran.status.code(), Some(0), "{language} {flags:?}: {meaning}");
    }
}

/// Builds an example with the command in its text and runs it on one CPU. Returns its two figures:
/// an empty pair, and the added time of a hundred multiplications.
fn example(text: &str, file: &str, folder: &Path, cpu: usize) -> [i64; 2] {
    std::fs::write(folder.join(file), text).expect("a file");
    let command = text.lines().find_map(|line| line.split_once(" Example: ")).expect("a command").1;
    let command = command.replace("THIS_FILE", file);
    let mut shell = Command::new("sh");
    shell.args(["-c", &command]).current_dir(folder);
    // SAFETY: the call is async-signal-safe. If the CPU is not allowed, the example runs elsewhere.
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

/// Core cycles of a multiplication in a chain, from `run`, measured once for all tests of a mode.
static MULTIPLICATION: LazyLock<Option<f64>> =
    LazyLock::new(|| number(&["--quick", "imul rax, rax"]).map(|line| value(&line["cost"])[0]));
static MULTIPLICATION_32: LazyLock<Option<f64>> =
    LazyLock::new(|| number(&["--quick", "--bits", "32", "imul eax, eax"]).map(|line| value(&line["cost"])[0]));

/// Runs, each beside a new figure of the engine, before one that differs counts as wrong: the core
/// clock, and what shares the core, may change meanwhile.
const RUNS: usize = 6;
/// Maximum share by which the core clocks of an example and of the engine may differ; then the same
/// for the cost of CPUID, which may exit from a virtual machine.
const CLOCK_SHARE: f64 = 0.25;
const EXIT_SHARE: f64 = 0.5;
/// Core cycles of the moves that differ between an example's pair and the engine's.
const MOVES: f64 = 4.0;

/// Bounds of an example's figure that takes `low` to `high` core cycles in the engine. They add a
/// step of the counter, by which two quantized figures may differ, and the share.
fn bounds(engines: &Value, [low, high]: [f64; 2], share: f64) -> [f64; 2] {
    let step = engines["tsc_step"].as_f64().expect("a number");
    let rate = |at: usize| engines["rates"][at].as_f64().expect("a number");
    [low * rate(0) * (1.0 - share) - step, high * rate(1) * (1.0 + share) + step]
}

/// Builds and runs the examples of one language. Their pairs must cost as much as the engine's,
/// which have the same instructions in the same order with other moves. Multiplications in an
/// ordered pair must cost as much as in `run`.
#[track_caller]
fn examples(language: &str, file: &str, tools: &[&str]) {
    if tools.iter().all(|tool| has(tool)) {
        run_examples(language, file, "64");
    }
}

#[track_caller]
fn run_examples(language: &str, file: &str, bits: &str) {
    let (evaluated, multiplication) =
        if bits == "32" { (&*EVALUATED_32, *MULTIPLICATION_32) } else { (&*EVALUATED, *MULTIPLICATION) };
    let folder = folder();
    for clock in &usable(bits) {
        let name = clock["clock"].as_str().expect("a name");
        let emitted = answer(&mut cyclescope(&["clock", name, "--emit", language, "--bits", bits]));
        if emitted.code == Some(2) && name == "clock-gettime" {
            continue;
        }
        assert_eq!(emitted.code, Some(0), "{emitted:?}");
        let cpu = evaluated.get(name).and_then(|line| line["cpu"].as_u64()).unwrap_or(0) as usize;
        let run = || example(&emitted.stdout, file, folder.path(), cpu);
        let said = run();
        let Some(engines) = evaluated.get(name) else {
            cyclescope_skipped::report_left_out(format_args!("the engine has no figure of {name}"));
            continue;
        };
        let mut found = vec![compare_example(clock, engines, multiplication, said)];
        while found.last().is_some_and(Result::is_err) && found.len() < RUNS {
            // What shares the core may have changed since the engine's figure.
            let now = evaluate_methods(&[name], bits, "2").remove(name);
            found.push(compare_example(clock, now.as_ref().unwrap_or(engines), multiplication, run()));
        }
        assert!(found.last().is_some_and(Result::is_ok), "{name}: {found:?}");
    }
}

/// Compares an example's figures with the engine's. An error tells both.
fn compare_example(
    clock: &Value,
    engines: &Value,
    multiplication: Option<f64>,
    [empty, added]: [i64; 2],
) -> Result<(), String> {
    let exits = clock["clock"].as_str().is_some_and(|name| name.contains("cpuid"));
    let [low, high] = ["low", "high"].map(|end| engines["overhead"][end].as_f64().expect("a number"));
    let share = if exits { EXIT_SHARE } else { CLOCK_SHARE };
    let empty_by_engine = bounds(engines, [low - MOVES, high + MOVES], share);
    // The cost of CPUID between the ends varies more than the code.
    let promises = &clock["promises"];
    let ordered = promises["body_waits"] == true && promises["body_done"] == true && !exits;
    let one = multiplication.filter(|_| ordered);
    let added_by_engine = one.map(|one| bounds(engines, [100.0 * one; 2], CLOCK_SHARE));
    let lies = |figure: i64, [low, high]: [f64; 2]| (low..=high).contains(&(figure as f64));
    if lies(empty, empty_by_engine) && added_by_engine.is_none_or(|bounds| lies(added, bounds)) {
        return Ok(());
    }
    Err(format!("{empty} and {added}, by the engine {empty_by_engine:?} and {added_by_engine:?}: {engines}"))
}

#[test]
fn examples_in_c_run() {
    examples("c", "timer.h", &["cc"]);
}

#[test]
fn examples_in_cxx_run() {
    examples("c++", "timer.hpp", &["c++"]);
}

#[test]
fn examples_in_rust_run() {
    examples("rust", "timer.rs", &["rustc"]);
}

#[test]
fn examples_for_gnu_as_run() {
    examples("gas", "timer.s", &["as", "cc"]);
}

#[test]
fn examples_for_nasm_run() {
    examples("nasm", "timer.asm", &["nasm", "cc"]);
}

#[test]
fn examples_of_32_bit_code_run() {
    if !["cc", "c++", "as"].iter().all(|tool| has(tool)) || !runs_narrow_programs() {
        return;
    }
    for (language, file) in [("c", "timer.h"), ("c++", "timer.hpp"), ("gas", "timer.s")] {
        run_examples(language, file, "32");
    }
    if has_for_part("nasm") {
        run_examples("nasm", "timer.asm", "32");
    }
}
