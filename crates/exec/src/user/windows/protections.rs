//! The barriers around a worker as a table.
//!
//! Windows has no filter of system calls: code with their instructions is refused instead. Code that
//! jumps into the middle of an instruction, or writes new code, is not seen.

use super::confinement::NoNamespaces;
use crate::protection::CodeProtection;
use cyclescope_worker::sandbox::BarrierErrors;
use std::io;

/// Index of the low integrity level among the barriers that a worker reports.
pub(super) const LOW_INTEGRITY: usize = 0;

/// What is known about a worker. The table of Linux uses all of it.
#[expect(dead_code, reason = "the executor tells the same on all systems")]
pub(super) struct WorkerFacts<'a> {
    pub(super) pid: i32,
    /// Why it is not a process of its own, if it isn't.
    pub(super) not_own: Option<String>,
    pub(super) namespaces: &'a NoNamespaces,
    pub(super) barriers: BarrierErrors,
    /// Why it is in no job.
    pub(super) no_group: Option<String>,
}

/// The barriers around a worker.
pub(super) fn list_protections(facts: &WorkerFacts) -> Vec<CodeProtection> {
    let refusal = |errno: i32| (errno != 0).then(|| io::Error::from_raw_os_error(errno).to_string());
    let row = |what, about, why_not: Option<String>| CodeProtection { what, about, holds: why_not.is_none(), why_not };
    let unfiltered = "Windows has no filter; code with such instructions is refused before it runs";
    vec![
        row("own_process", "no memory of the program that measures", None),
        row("job", "own limits of memory and processes, no windows, ends with its caller", facts.no_group.clone()),
        row("low_integrity", "no changes of the user's files and settings", refusal(facts.barriers[LOW_INTEGRITY])),
        row("system_calls", "a filter of system calls", Some(unfiltered.to_string())),
    ]
}
