//! Allocations of the program are refused: each once, and all beyond a limit.
//!
//! A library in front of the C library's allocator refuses the n-th allocation (`LD_PRELOAD`).

use crate::commands::{CommandBench, FORM, SNIPPET};
use crate::launcher::{LauncherTask, Outcome, check_support};
use crate::verdict::{ReferenceRun, judge_memory};
use cyclescope_skipped::report_skipped;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The allocator in front. Its caller's children do not get it.
const REFUSING_ALLOCATOR: &str = r#"
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

static unsigned long refused, seen;
static int counts = -1;
static pid_t owner;

__attribute__((constructor)) static void begin(void)
{
    const char *number = getenv("REFUSED_ALLOCATION"), *file = getenv("ALLOCATIONS_FILE");
    refused = number ? strtoul(number, NULL, 10) : 0;
    if (file)
        counts = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    unsetenv("LD_PRELOAD");
    owner = getpid();
    seen = 0;
}

__attribute__((destructor)) static void end(void)
{
    if (counts >= 0 && getpid() == owner)
        dprintf(counts, "%lu", seen);
}

static int is_refused(void)
{
    int answer = __atomic_add_fetch(&seen, 1, __ATOMIC_RELAXED) == refused;
    if (answer)
        errno = ENOMEM;
    return answer;
}

void *malloc(size_t bytes) { return is_refused() ? NULL : __libc_malloc(bytes); }
void *calloc(size_t count, size_t bytes) { return is_refused() ? NULL : __libc_calloc(count, bytes); }
void *realloc(void *old, size_t bytes) { return is_refused() ? NULL : __libc_realloc(old, bytes); }
void *aligned_alloc(size_t to, size_t bytes) { return is_refused() ? NULL : __libc_memalign(to, bytes); }
int posix_memalign(void **memory, size_t to, size_t bytes)
{
    return is_refused() || !(*memory = __libc_memalign(to, bytes)) ? ENOMEM : 0;
}
"#;

/// The folder with the allocator, and its file.
fn build_allocator() -> Option<(tempfile::TempDir, PathBuf)> {
    let folder = tempfile::tempdir().expect("a folder");
    let [source, library] = ["allocator.c", "allocator.so"].map(|name| folder.path().join(name));
    std::fs::write(&source, REFUSING_ALLOCATOR).expect("a file");
    let built = Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(&source).output();
    match built {
        Err(_) => report_skipped("cc is not installed"),
        Ok(output) if !output.status.success() => report_skipped("cc builds no library here"),
        Ok(_) => return Some((folder, library)),
    }
    None
}

/// Numbers of allocations: all of the first ones, then in growing steps.
fn pick_allocations(total: u64, all: u64, growth: f64) -> Vec<u64> {
    let mut picked: Vec<u64> = (1..=all.min(total)).collect();
    let mut at = all as f64;
    while {
        at = (at * growth).max(at + 1.0);
        at <= total as f64
    } {
        picked.push(at as u64);
    }
    picked
}

/// A judged outcome, with its description where it is wrong.
fn judge(outcome: &Outcome, reference: &ReferenceRun) -> Result<(), String> {
    judge_memory(outcome, reference).map_err(|why| format!("{why}\n{}", outcome.describe()))
}

/// A result file is missing, or has complete lines only.
fn check_lines(file: &Path) -> Result<(), String> {
    let Ok(text) = std::fs::read_to_string(file) else { return Ok(()) };
    let is_whole = |line: &str| serde_json::from_str::<serde_json::Value>(line).is_ok();
    if text.is_empty() || text.ends_with('\n') && text.lines().all(is_whole) {
        Ok(())
    } else {
        Err(format!("a broken line in the result file: {text:?}"))
    }
}

fn refuse_allocations(all: u64, growth: f64, form_growth: f64) {
    if let Err(error) = check_support() {
        report_skipped(format_args!("this system lets no process answer the system calls of another one: {error}"));
        return;
    }
    let Some((folder, library)) = build_allocator() else { return };
    let bench = CommandBench::new();
    let prepare = |command: &mut Command, refused: u64| {
        command.env("LD_PRELOAD", &library).env("REFUSED_ALLOCATION", refused.to_string());
    };
    let mut failed = Vec::new();
    let mut tried = 0;
    for (command, all, growth) in [(SNIPPET, all, growth), (FORM, 0, form_growth)] {
        let reference = bench.reference(command);
        let counted = folder.path().join("allocations");
        bench.run(command, bench.first_cpu(), LauncherTask::Locks, reference.limit, |command, _| {
            prepare(command, 0);
            command.env("ALLOCATIONS_FILE", &counted);
        });
        let total = std::fs::read_to_string(&counted).ok().and_then(|text| text.parse().ok());
        let Some(total) = total else {
            report_skipped("the C library lets no other allocator in front of its own");
            return;
        };
        let picked = pick_allocations(total, all.max(1), growth);
        tried += picked.len();
        failed.extend(bench.try_all(picked, |refused, cpu| {
            let file = folder.path().join(format!("result-{refused}-{cpu}.jsonl"));
            let outcome = bench.run(command, cpu, LauncherTask::Locks, reference.limit, |command, _| {
                prepare(command, refused);
                if all == 0 {
                    command.arg("--out").arg(&file);
                }
            });
            judge(&outcome, &reference)?;
            check_lines(&file)
        }));
    }
    println!("{tried} refused allocations");
    assert!(failed.is_empty(), "{} of {tried}:\n{}", failed.len(), failed.join("\n"));
}

#[test]
fn a_refused_allocation_ends_the_program_cleanly() {
    refuse_allocations(25, 1.6, 3.0);
}

#[test]
#[ignore = "thousands of runs: `make fuzz`"]
fn each_refused_allocation_ends_the_program_cleanly() {
    refuse_allocations(400, 1.02, 1.1);
}

/// Limits the memory of a command: `RLIMIT_AS` or `RLIMIT_DATA`.
fn limit_memory(command: &mut Command, what: libc::__rlimit_resource_t, bytes: u64) {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
    // SAFETY: `setrlimit` may be called between fork and exec, and the limit outlives it.
    unsafe {
        command.pre_exec(move || match libc::setrlimit(what, &limit) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        })
    };
}

/// Whether the program reaches its own code with this limit. Below it, the kernel or the dynamic
/// loader ends it.
fn starts_within(what: libc::__rlimit_resource_t, bytes: u64) -> bool {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cyclescope"));
    command.arg("--version");
    limit_memory(&mut command, what, bytes);
    command.output().is_ok_and(|output| matches!(output.status.code(), Some(0 | 1)))
}

/// Bytes of memory: from too little to start to more than enough, each half as much again as the
/// one before.
const LEAST_BYTES: u64 = 1 << 20;
const MEMORY_STEPS: u32 = 18;

#[test]
fn little_memory_ends_the_program_cleanly() {
    if let Err(error) = check_support() {
        report_skipped(format_args!("this system lets no process answer the system calls of another one: {error}"));
        return;
    }
    let bench = CommandBench::new();
    let reference = bench.reference(SNIPPET);
    let sizes = (0..MEMORY_STEPS).map(|step| (LEAST_BYTES as f64 * 1.5f64.powi(step as i32)) as u64);
    let limits = [libc::RLIMIT_AS, libc::RLIMIT_DATA].into_iter();
    let limits = limits.flat_map(|what| sizes.clone().map(move |bytes| (what, bytes)));
    let limits: Vec<_> = limits.filter(|&(what, bytes)| starts_within(what, bytes)).collect();
    assert!(!limits.is_empty(), "the program starts with {LEAST_BYTES} bytes and more");
    let failed = bench.try_all(limits, |(what, bytes), cpu| {
        let prepare = |command: &mut Command, _: &PathBuf| limit_memory(command, what, bytes);
        judge(&bench.run(SNIPPET, cpu, LauncherTask::Locks, reference.limit, prepare), &reference)
    });
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
