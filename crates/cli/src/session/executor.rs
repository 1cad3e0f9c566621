//! Chooses the executor that a command measures with.

use crate::args::CommonArgs;
use crate::input::call_parameters;
use crate::output::{Failure, print_warning};
use cyclescope::executor::{ExecutorOpener, LockState, OpenOptions};
use cyclescope::machine::Machine;
use cyclescope::snippet::Snippet;

/// Whose code an executor runs. It decides for all commands which batches may share a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeOrigin {
    /// Snippets of others: the user's, or those of a list.
    Snippets,
    /// Snippets in the rows of a list. Programs of one row may see each other.
    Rows,
    /// Calls of the user's functions, which may allocate memory.
    Functions,
    /// Code that this program generates.
    Own,
}

impl CodeOrigin {
    /// The origin of code that this program generates, perhaps with snippets of others in it.
    // For commands that Windows lacks.
    #[cfg_attr(windows, allow(dead_code))]
    pub fn of_generated(has_foreign_code: bool) -> CodeOrigin {
        if has_foreign_code { CodeOrigin::Snippets } else { CodeOrigin::Own }
    }

    /// The same for the rows of a study that announces each row.
    // For commands that Windows lacks.
    #[cfg_attr(windows, allow(dead_code))]
    pub fn of_generated_rows(has_foreign_code: bool) -> CodeOrigin {
        if has_foreign_code { CodeOrigin::Rows } else { CodeOrigin::Own }
    }

    /// Whether batches may share a worker even if their code differs: what one leaves there does
    /// not harm the others.
    pub fn shares_workers(self) -> bool {
        self == CodeOrigin::Own
    }
}

/// Returns a function that opens the requested executor. `counter`: whether programs read the
/// core-cycles counter.
pub fn executor_opener(common: &CommonArgs, machine: &Machine, counter: bool, code: CodeOrigin) -> ExecutorOpener {
    let functions = code == CodeOrigin::Functions;
    let options = OpenOptions {
        counter,
        force: common.force,
        functions,
        own_code: code.shares_workers(),
        announced: code == CodeOrigin::Rows,
        heap: functions.then_some(call_parameters::HEAP_BYTES),
        ..OpenOptions::default()
    };
    common.offer().make_opener(machine, options)
}

/// Rejects a snippet that the executor accepts on no machine, before the executor itself is
/// checked.
pub fn require_runnable(common: &CommonArgs, snippet: &Snippet) -> Result<(), Failure> {
    let copy = snippet.join_setup();
    (common.offer().judge)(&copy, copy.loop_plan_with_moves().ok()).map_err(Failure::from)
}

/// Warns if other runs on the CPU were possible.
pub fn warn_if_cpu_shared(lock: &LockState, cpu: u32) {
    match lock {
        LockState::Taken => {}
        LockState::Busy => print_warning(&format!("another run used CPU {cpu} at the same time; see --cpu")),
        LockState::Missing(why) => print_warning(&format!(
            "other runs may use CPU {cpu}, because no file in /run/cyclescope, /tmp or $XDG_RUNTIME_DIR \
             can be locked: {why}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_code_shares_workers() {
        // A list's init code and sequences, and a loop of the user's around markers.
        for foreign in [CodeOrigin::Snippets, CodeOrigin::Functions, CodeOrigin::of_generated(true)] {
            assert!(!foreign.shares_workers(), "{foreign:?}");
        }
        assert!(CodeOrigin::of_generated(false).shares_workers());
    }
}
