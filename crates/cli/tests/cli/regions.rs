//! `run --elf --from --to`: regions of a running program, with its registers and memory.

use crate::support::{Running, answer, cyclescope, folder, gone, has, number, refused, value, within_patience};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// Loops that change what they read, in all ways in which code accesses memory. Each returns a
/// number that depends on every value that it read, so that it differs if one is not restored.
const CODE: &str = r#"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#define ALONE __attribute__((noinline, noclone))
static long numbers[600], others[600], state = 1;
static unsigned char bits[512];
static double reals[64];
static int indexes[64], values[1024];
static __thread long of_thread = 3;

ALONE long chain(long n) {
  long value = 3;
  __asm__ volatile(
    ".globl chain_start\n.type chain_start, @function\nchain_start:\n"
    "1: imul %0, %0\nimul %0, %0\ndec %1\njnz 1b\n"
    ".globl chain_end\n.type chain_end, @function\nchain_end:\nnop\nnop\nnop\nnop\nnop\n"
    "mov $9, %1\n"
    ".type short_head, @function\nshort_head: nop\n.type short_second, @function\nshort_second: nop\n"
    ".type short_next, @function\nshort_next: dec %1\njnz short_head\n"
    : "+r"(value), "+r"(n));
  return value;
}
ALONE long update(void) {
  long sum = 0;
  for (int i = 0; i < 600; i++) { numbers[i] = numbers[i] * 3 + state; sum = sum * 5 + numbers[i]; }
  state += sum;
  return sum + state;
}
ALONE long thread_local_variable(void) { return of_thread = of_thread * 5 + 1; }
ALONE long strings(void) {
  char buffer[300]; void *to = buffer; const void *from = numbers; long n = sizeof buffer, sum = 0;
  __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) :: "memory");
  for (int i = 0; i < 300; i++) sum = sum * 31 + buffer[i];
  to = numbers; n = 37;
  __asm__ volatile("rep stosq" : "+D"(to), "+c"(n) : "a"(sum) : "memory");
  return sum + numbers[0] + numbers[37];
}
ALONE long bit_string(void) {
  long sum = 0;
  for (long i = 0; i < 4096; i += 37) {
    unsigned char was;
    __asm__ volatile("btcq %2, %1; setc %0" : "=q"(was), "+m"(bits) : "r"(i) : "memory");
    sum = sum * 2 + was;
  }
  return sum;
}
ALONE long library(void) { memmove(others, others + 3, 4000); return strlen((char *)others) + others[5]; }
ALONE long floats(double factor) {
  double sum = 0; long result;
  for (int i = 0; i < 64; i++) { sum += reals[i] * factor; reals[i] = sum; }
  memcpy(&result, &sum, sizeof sum);
  return result;
}
ALONE long old_floats(void) {
  long double sum = reals[3]; double end; long result;
  for (int i = 0; i < 64; i++) { sum = sum * 1.25L + reals[i]; reals[i] = sum; }
  end = sum; memcpy(&result, &end, sizeof end);
  return result;
}
__attribute__((target("avx2"), noinline, noclone)) long gather(void) {
  int sum = 0, out[8];
  for (int i = 0; i < 64; i += 8) {
    __asm__ volatile("vmovdqu %1, %%ymm1\nvpcmpeqd %%ymm2, %%ymm2, %%ymm2\nvpgatherdd %%ymm2, (%2,%%ymm1,4), %%ymm3\n"
      "vmovdqu %%ymm3, %0\nvzeroupper" : "=m"(out) : "m"(indexes[i]), "r"(values) : "xmm1", "xmm2", "xmm3", "memory");
    for (int j = 0; j < 8; j++) sum = sum * 3 + out[j];
    values[i] += sum;
  }
  return sum;
}
ALONE long system_call(void) { return getppid(); }
ALONE long clock_read(void) { return __builtin_ia32_rdtsc(); }
ALONE long null_read(volatile long *at) { return at[0] + at[1]; }
static volatile long shared;
static void *count(void *all) { for (;;) shared++; return all; }
ALONE long watch(void) { long first = shared; while (shared == first) {} return first; }
ALONE long save_flags(void) { long flags; __asm__ volatile("pushfq\npopq %0" : "=r"(flags)); return flags; }
ALONE void end(void) { __asm__ volatile("" ::: "memory"); }
ALONE void never(void) { __asm__ volatile("" ::: "memory"); }
static void *work(void *all) { for (int i = 0; i < 4; i++) numbers[0] += chain(100); return all; }

int main(int argc, char **argv) {
  char what = argc > 1 ? argv[1][0] : 0;
  for (int i = 0; i < 600; i++) { numbers[i] = i * 77; others[i] = i * 0x0101010101010101; }
  for (int i = 0; i < 64; i++) { indexes[i] = i * 37 % 1024; reals[i] = 1 + i * 1e-3; }
  for (int i = 0; i < 1024; i++) values[i] = i * i;
  if (what == 't') { pthread_t other; pthread_create(&other, 0, work, 0); pthread_join(other, 0); return 0; }
  if (what == 'f') { if (!fork()) { chain(200); _exit(0); } wait(0); return 0; }
  if (what == 'w') { fprintf(stderr, "%d\n", getpid()); sleep(1000); }
  if (what == 'a') abort();
  if (what == 'o') { pthread_t other; pthread_create(&other, 0, count, 0); while (!shared) usleep(1000); watch(); end(); return 0; }
  if (what == 'n') null_read((long *)8);
  long sum = chain(argc > 2 ? atol(argv[2]) : 1000);
  for (int i = 0; i < 2; i++) {
    sum += update(); end(); sum += thread_local_variable(); end(); sum += strings(); end();
    sum += bit_string(); end(); sum += library(); end(); sum += floats(1.25); end(); sum += old_floats(); end();
    if (__builtin_cpu_supports("avx2")) sum += gather();
    end();
  }
  sum += system_call(); end(); sum += clock_read(); end(); sum += save_flags(); end();
  printf("%ld\n", sum);
  return 3;
}
"#;

/// Compiles the program with these flags; `None` if this compiler can't.
fn build(folder: &TempDir, name: &str, flags: &[&str]) -> Option<String> {
    let source = folder.path().join("code.c");
    std::fs::write(&source, CODE).expect("a file");
    let output = folder.path().join(name);
    let words = ["-O1", "-fno-tree-loop-distribute-patterns", "-pthread"];
    let built = Command::new("cc").args(words).args(flags).arg("-o").arg(&output).arg(&source).output();
    let built = built.expect("a compiler");
    if !built.status.success() {
        cyclescope_skipped::report_left_out(format_args!("{flags:?}: {}", String::from_utf8_lossy(&built.stderr)));
        return None;
    }
    Some(output.to_str().expect("text").to_string())
}

/// The program, if it can be compiled and traced here.
#[track_caller]
fn traceable(folder: &TempDir) -> Option<String> {
    if !has("cc") {
        return None;
    }
    let program = build(folder, "program", &[])?;
    let tried = answer(&mut cyclescope(&["run", "--quick", "--elf", &program, "--from", "chain", "--to", "chain_end"]));
    if tried.code == Some(3) {
        cyclescope_skipped::report_skipped(tried.stderr);
        return None;
    }
    Some(program)
}

/// Measures a region of the program, precisely or not.
fn region(program: &str, from: &str, to: &str, more: &[&str]) -> Value {
    let arguments = ["run", "--json", "--quick", "--elf", program, "--from", from, "--to", to];
    let answer = answer(cyclescope(&arguments).args(more));
    assert!(matches!(answer.code, Some(0 | 5)), "{from}, {more:?}: {answer:?}");
    serde_json::from_str(&answer.stdout).expect("JSON")
}

#[test]
fn a_loop_costs_per_iteration_what_its_code_costs_as_a_snippet() {
    let folder = folder();
    let Some(program) = traceable(&folder) else { return };
    let Some(line) = number(&["--elf", &program, "--from", "chain_start", "--to", "chain_end"]) else { return };
    let region = &line["region"];
    assert_eq!((&region["instructions"], &region["hit"]), (&4000.into(), &1.into()), "{line}");
    let [iterations] = &region["loops"].as_array().expect("a list")[..] else { panic!("{line}") };
    // The loop's start has two names.
    assert!(iterations["place"].as_str().expect("text").starts_with("chain"), "{line}");
    assert_eq!(iterations["iterations"], 1000, "{line}");
    let [cost, half] = value(&iterations["cost"]);
    let Some(snippet) = number(&["imul rax, rax; imul rax, rax"]) else { return };
    let [known, _] = value(&snippet["cost"]);
    // The loop's last branch is mispredicted, and the chain begins behind a fence: some ten cycles in
    // a thousand iterations of the two multiplications.
    assert!((cost / known - 1.0).abs() < 0.03 + half / known, "{cost} ± {half}, as a snippet {known}");
    assert!(line["empty_call"]["value"].as_f64().is_some_and(|excluded| excluded > 0.0), "{line}");
}

#[test]
fn an_iteration_begins_and_ends_at_the_same_address() {
    let folder = folder();
    let Some(program) = traceable(&folder) else { return };
    for hit in ["1", "7"] {
        let arguments = ["run", "--json", "--quick", "--elf", &program, "--from", "chain_start", "--to", "chain_start"];
        let answer = answer(cyclescope(&arguments).args(["--hit", hit]));
        assert!(matches!(answer.code, Some(0 | 5)), "{answer:?}");
        let line: Value = serde_json::from_str(&answer.stdout).expect("JSON");
        // Two multiplications and the decrement.
        assert_eq!(line["region"]["instructions"], 3, "{line}");
        let to = line["region"]["to"].as_str().expect("text");
        assert!(answer.stderr.contains(&format!("ends before its jump back, as with --to {to}")), "{answer:?}");
        let named = region(&program, "chain_start", to, &["--hit", hit]);
        assert_eq!(named["region"]["instructions"], 3, "{named}");
    }
}

#[test]
fn a_region_finds_what_it_changes_restored() {
    let folder = folder();
    let Some(program) = traceable(&folder) else { return };
    let changing =
        ["update", "thread_local_variable", "strings", "bit_string", "library", "floats", "old_floats", "gather"];
    for from in changing {
        for hit in ["1", "2"] {
            let arguments = ["--layouts", "2", "--budget", "0.001", "--hit", hit];
            if from == "gather"
                && answer(&mut cyclescope(&["run", "--quick", "vpaddd ymm0, ymm0, ymm1"])).code == Some(3)
            {
                cyclescope_skipped::report_left_out("this CPU has no AVX2");
                continue;
            }
            // It fails if a register differs at its end.
            let line = region(&program, from, "end", &arguments);
            let restored = line["region"]["restored_bytes"].as_u64().expect("a number");
            assert!(restored >= 8, "{from}: {line}");
        }
    }
}

#[test]
fn regions_of_threads_children_and_programs_of_all_kinds_are_found() {
    let folder = folder();
    let Some(program) = traceable(&folder) else { return };
    let iterations = |line: &Value| line["region"]["loops"][0]["iterations"].as_u64();
    for (arguments, hit, expected) in [("t", "3", 100), ("f", "1", 200), ("x '77'", "1", 77)] {
        let line = region(&program, "chain_start", "chain_end", &["--args", arguments, "--hit", hit]);
        // The first iteration of a later arrival is the loop's next one.
        assert_eq!(iterations(&line), Some(expected - hit.parse::<u64>().expect("a number") + 1), "{line}");
        assert!(line["repro"].as_str().expect("text").contains("--from chain_start"), "{line}");
    }
    for flags in [&["-static"][..], &["-no-pie"], &["-static-pie"]] {
        let Some(other) = build(&folder, "other", flags) else { continue };
        assert_eq!(iterations(&region(&other, "chain", "chain_end", &[])), Some(1000), "{flags:?}");
        region(&other, "update", "end", &[]);
    }
    // Without names, addresses still work.
    let text = Command::new("nm").arg(&program).output();
    let Some(names) = text.ok().map(|output| String::from_utf8_lossy(&output.stdout).into_owned()) else {
        return cyclescope_skipped::report_left_out("nm is not installed");
    };
    let address = |name: &str| {
        let line = names.lines().find(|line| line.ends_with(&format!(" {name}"))).expect("a symbol");
        line.split(' ').next().expect("an address").to_string()
    };
    let [start, end] = ["chain_start", "chain_end"].map(address);
    let Some(stripped) = build(&folder, "stripped", &["-s"]) else { return };
    assert_eq!(iterations(&region(&stripped, &start, &end, &[])), Some(1000));
    let line = refused(&["--elf", &stripped, "--from", "chain", "--to", &end], 2);
    assert!(line["remedy"].as_str().expect("text").contains("stripped"), "{line}");
}

#[test]
fn evidence_of_a_region_is_replayed_and_not_measured_again() {
    let folder = folder();
    let Some(program) = traceable(&folder) else { return };
    let evidence = folder.path().join("evidence").to_str().expect("text").to_string();
    let line = region(&program, "update", "end", &["--evidence", &evidence]);
    let replayed = answer(&mut cyclescope(&["replay", "--json", &evidence]));
    let replayed: Value = serde_json::from_str(replayed.stdout.lines().next().expect("a line")).expect("JSON");
    assert_eq!((&replayed["cost"], &replayed["region"]), (&line["cost"], &line["region"]));
    let again = answer(&mut cyclescope(&["replay", "--measure", &evidence]));
    assert!(again.code == Some(2) && again.stderr.contains("manifest.json"), "{again:?}");
    let swept = ["run", "--json", "--quick", "--elf", &program, "--from", "chain", "--to", "chain_end"];
    let swept = answer(cyclescope(&swept).args(["--sweep", "N=20,40", "--args", "x {N}"]));
    // The points come in random order.
    let mut iterations: Vec<u64> = (swept.stdout.lines().skip(1))
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"))
        .map(|line| line["region"]["loops"][0]["iterations"].as_u64().expect("a number"))
        .collect();
    iterations.sort_unstable();
    assert_eq!(iterations, [20, 40]);
}

#[test]
fn places_that_are_no_region_are_refused_with_a_reason() {
    let folder = folder();
    let Some(program) = traceable(&folder) else { return };
    for (from, to, more, code, expected) in [
        ("chain+1", "end", &[][..], 2, "is inside the instruction at chain, `"),
        ("chain", "end+0x100000", &[], 2, "is outside the code of"),
        ("0x10", "end", &[], 2, "is outside the code of"),
        ("chain", "nothing", &[], 2, "has no function `nothing`"),
        ("12g", "end", &[], 2, "`12g` is no address"),
        ("chain+", "end", &[], 2, "`chain+` is no address"),
        // It comes back by no jump.
        ("end", "end", &[], 2, "to which no single jump leads back"),
        ("never", "end", &[], 2, "ended with exit code 3 and never arrived at --from, never"),
        ("update", "end", &["--hit", "3"], 2, "ended with exit code 3 and arrived at --from, update, only 2 times"),
        ("chain", "end", &["--args", "a"], 4, "ended by SIGABRT and never arrived"),
        ("null_read", "end", &["--args", "n"], 4, "raised SIGSEGV in the region at null_read"),
        ("chain", "end", &["--args", "w", "--timeout", "0.5"], 4, "ran for 0.5 s and never arrived"),
        ("system_call", "end", &[], 2, "makes a system call at "),
        ("watch", "end", &["--args", "o"], 4, "the region did not end as in the run"),
        ("save_flags", "end", &[], 2, "saves the flags at save_flags"),
        ("clock_read", "end", &[], 2, "reads a clock or a counter at clock_read: rdtsc"),
        (
            "chain_start",
            "never",
            &["--args", "x 90000000", "--timeout", "5"],
            2,
            "did not arrive at --to, never, within ",
        ),
        ("short_second", "short_head", &[], 2, "uses the bytes at --to, short_head"),
        // There is only room for a short jump.
        ("short_next", "short_head", &[], 0, ""),
    ] {
        let arguments = ["run", "--json", "--quick", "--elf", &program, "--from", from, "--to", to];
        let answer = answer(cyclescope(&arguments).args(more));
        if code == 0 {
            assert!(matches!(answer.code, Some(0 | 5)), "{from}, {to}: {answer:?}");
            continue;
        }
        assert_eq!(answer.code, Some(code), "{from}, {to}: {answer:?}");
        let line: Value = serde_json::from_str(&answer.stdout).expect("JSON");
        assert!(line["text"].as_str().expect("text").contains(expected), "{line}");
        assert!(line["remedy"].as_str().is_some_and(|remedy| !remedy.is_empty()), "{line}");
    }
    refused(&["--elf", &program, "--from", "chain"], 2);
    let line = refused(&["--elf", "/etc/passwd", "--from", "chain", "--to", "end"], 2);
    assert!(line["text"].as_str().expect("text").contains("is not an x86-64 executable"), "{line}");
    let line = refused(&["--executor", "kernel", "--elf", &program, "--from", "chain", "--to", "end"], 3);
    assert!(line["text"].as_str().expect("text").contains("region"), "{line}");
}

#[test]
fn interrupt_ends_the_traced_program() {
    let folder = folder();
    let Some(program) = traceable(&folder) else { return };
    for signal in [libc::SIGINT, libc::SIGKILL] {
        let running = Running::start(&["run", "--elf", &program, "--from", "chain", "--to", "end", "--args", "w"]);
        let own = Path::new(&program).canonicalize().expect("a path");
        let traced = within_patience(|| {
            let all = std::fs::read_dir("/proc").expect("a folder").flatten();
            let mut numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
            numbers.find(|number| std::fs::read_link(format!("/proc/{number}/exe")).is_ok_and(|path| path == own))
        });
        let (status, _) = running.signal(signal);
        assert!(signal == libc::SIGKILL || status.code() == Some(130), "{status}");
        gone(traced);
    }
}
