//! Judges how a command ended where something was refused.

use crate::launcher::{CallDenial, CallSource, Outcome};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

/// A run where nothing was refused.
pub struct ReferenceRun {
    /// The calls that it made.
    pub calls: BTreeMap<(CallSource, i64), u32>,
    /// `None` if the run was too noisy for costs to compare with.
    costs: Option<Vec<Cost>>,
    /// Wall time after which a run with a refusal counts as hung.
    pub limit: Duration,
}

/// A cost and its interval.
#[derive(Debug, Clone, Copy)]
struct Cost {
    value: f64,
    low: f64,
    high: f64,
}

/// Wall time in which every run ends on a quiet machine, and what a busy one may take beyond it, in
/// runs without a refusal.
const LIMIT: Duration = Duration::from_secs(10);
const BUSY_RUNS: u32 = 20;

impl ReferenceRun {
    /// Checks that the run is right.
    pub fn new(outcome: Outcome) -> ReferenceRun {
        assert!(matches!(outcome.code(), Some(0 | 5)), "{}", outcome.describe());
        assert!(outcome.survivors.is_empty() && outcome.files.is_empty(), "{}", outcome.describe());
        ReferenceRun {
            costs: (outcome.code() == Some(0)).then(|| find_costs(&outcome.stdout)),
            limit: LIMIT + BUSY_RUNS * outcome.wall,
            calls: outcome.calls,
        }
    }

    /// Whether it has costs to compare with.
    pub fn is_precise(&self) -> bool {
        self.costs.is_some()
    }
}

/// The costs of chains in lines of results, in their order. Rates are left out: who shares the core
/// takes some of its units.
fn find_costs(lines: &str) -> Vec<Cost> {
    let lines = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut costs = Vec::new();
    for line in lines.filter(|line| line["kind"] == "run" || line["kind"] == "instr") {
        let latencies = line["latency"].as_array().into_iter().flatten();
        let figures = latencies.map(|row| &row["cost"]).chain([&line["cost"]]);
        costs.extend(figures.filter_map(|cost| {
            let [value, low, high] = ["value", "low", "high"].map(|part| cost[part].as_f64());
            Some(Cost { value: value?, low: low?, high: high? })
        }));
    }
    costs
}

/// Relative difference of two costs that counts as none. A busy machine widens intervals that are
/// estimated from few layouts by less than it moves them.
const TOLERANCE: f64 = 0.1;

fn agree(a: Cost, b: Cost) -> bool {
    let overlap = a.low <= b.high && b.low <= a.high;
    overlap || (a.value - b.value).abs() <= TOLERANCE * a.value.abs().max(b.value.abs())
}

/// The error that a command reported: its text and its remedy, in a line of JSON or as text.
fn find_error(outcome: &Outcome) -> Option<(String, String)> {
    let mut json = outcome.stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let json = json.rfind(|line| line["kind"] == "error").map(|line| {
        let part = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
        (part("text"), part("remedy"))
    });
    let after = |start: &str| outcome.stderr.split_once(start).map(|(_, rest)| rest.lines().next().unwrap_or_default());
    let text = || Some((after("error: ")?.to_owned(), after("help: ").unwrap_or_default().to_owned()));
    json.or_else(text)
}

/// Words of remedies that help against an error, one of which must occur.
fn right_words(errno: i32) -> &'static [&'static str] {
    match errno {
        libc::EPERM | libc::EACCES => &["filter", "container", "$TMPDIR"],
        libc::ENOSYS => &["filter"],
        libc::ENOMEM => &["memory"],
        libc::EMFILE => &["open files"],
        libc::EAGAIN => &["processes"],
        libc::ENOSPC => &["space", "$TMPDIR"],
        libc::EIO => &["dmesg", "space", "$TMPDIR"],
        libc::EINVAL => &["--cpu", "allowed CPUs"],
        _ => &[],
    }
}

/// The error that the C library's function reports where its system call failed with another one.
fn reported_errno(errno: i32) -> [i32; 2] {
    // pthread_create(3).
    if errno == libc::ENOMEM { [errno, libc::EAGAIN] } else { [errno; 2] }
}

fn error_text(errno: i32) -> String {
    let text = io::Error::from_raw_os_error(errno).to_string();
    text.split(" (").next().unwrap_or_default().to_owned()
}

/// What is wrong with the end of a run, whatever was refused.
fn judge_end(outcome: &Outcome, reference: &ReferenceRun) -> Result<i32, String> {
    let Some(status) = outcome.status else { return Err(format!("it did not end within {:?}", reference.limit)) };
    if let Some(survivor) = outcome.survivors.first() {
        return Err(format!("a process outlived it: {survivor}"));
    }
    // A compiler's own files are its own to remove.
    if let Some(file) = outcome.files.iter().find(|file| file.starts_with('.')) {
        return Err(format!("it left {file}"));
    }
    for word in ["panicked", "unwrap", "RUST_BACKTRACE", "fatal runtime error"] {
        if outcome.stderr.contains(word) {
            return Err(format!("its standard error contains `{word}`"));
        }
    }
    status.code().ok_or_else(|| "a signal ended it".to_owned())
}

/// What is wrong with a result.
fn judge_result(outcome: &Outcome, reference: &ReferenceRun) -> Result<(), String> {
    let Some(expected) = reference.costs.as_ref().filter(|_| outcome.code() == Some(0)) else { return Ok(()) };
    let found = find_costs(&outcome.stdout);
    if found.len() != expected.len() {
        return Err(format!("it has {} costs instead of {}", found.len(), expected.len()));
    }
    match found.iter().zip(expected).find(|(found, expected)| !agree(**found, **expected)) {
        Some((found, expected)) => Err(format!("{found:?} is not {expected:?}")),
        None => Ok(()),
    }
}

/// What is wrong with a run in which a call was refused.
pub fn judge_denial(
    denial: &CallDenial,
    name: &str,
    outcome: &Outcome,
    reference: &ReferenceRun,
) -> Result<(), String> {
    let code = judge_end(outcome, reference)?;
    // Without `write` nothing can be said.
    if denial.call == libc::SYS_write && denial.caller == CallSource::Program && matches!(code, 1 | 3) {
        return Ok(());
    }
    match (code, denial.caller) {
        (0 | 5, _) => return judge_result(outcome, reference),
        // A tool that fails is the user's to look at: its own words are the error.
        (1..=3, CallSource::Tool) | (1 | 3, _) => {}
        _ => return Err(format!("exit code {code}")),
    }
    let (text, remedy) = find_error(outcome).ok_or("it reports no error")?;
    if denial.caller == CallSource::Tool {
        return Ok(());
    }
    let all = format!("{text} {remedy}");
    let errnos = reported_errno(denial.errno);
    // A CPU that is offline, or not among those of the process.
    let names_cpu = denial.call == libc::SYS_sched_setaffinity && text.contains("the CPU");
    let names_error = errnos.iter().any(|errno| all.contains(&error_text(*errno)));
    if !(all.contains(name) || names_error || names_cpu) {
        return Err("the error names neither the call nor its failure".to_owned());
    }
    let helps = errnos.iter().flat_map(|errno| right_words(*errno)).any(|word| remedy.contains(word));
    if helps { Ok(()) } else { Err("the remedy does not help".to_owned()) }
}

/// What is wrong with a run that lacked memory.
pub fn judge_memory(outcome: &Outcome, reference: &ReferenceRun) -> Result<(), String> {
    let code = judge_end(outcome, reference)?;
    match code {
        0 | 5 => judge_result(outcome, reference),
        // The dynamic loader has no memory for the program.
        127 if outcome.stderr.contains("error while loading shared libraries") => Ok(()),
        1 | 3 => {
            let (text, remedy) = find_error(outcome).ok_or("it reports no error")?;
            let helps = text.contains("memory") || remedy.contains("memory");
            if helps { Ok(()) } else { Err("neither the error nor its remedy names memory".to_owned()) }
        }
        _ => Err(format!("exit code {code}")),
    }
}
