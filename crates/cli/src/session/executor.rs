//! Which executor a command measures with.

use crate::args::Common;
use crate::input::calling;
use crate::output::{Failure, warn};
use cyclescope::executor::{LockState, Open, OpenOptions};
use cyclescope::machine::Machine;
use cyclescope::snippet::Snippet;

/// Whose code an executor runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// Snippets of the user's.
    Snippets,
    /// Calls of functions of the user's, which may get memory from the system.
    Functions,
    /// What this program makes itself.
    Own,
}

/// A function that opens the requested executor. `counter`: whether programs read the core-cycles counter.
pub fn opening(common: &Common, machine: &Machine, counter: bool, code: Code) -> Open {
    let functions = code == Code::Functions;
    let options = OpenOptions {
        counter,
        force: common.force,
        functions,
        own_code: code == Code::Own,
        heap: functions.then_some(calling::HEAP),
        ..OpenOptions::default()
    };
    common.offer().opening(machine, options)
}

/// Refuses a snippet that the executor accepts on no machine, before the executor itself is checked.
pub fn judge(common: &Common, snippet: &Snippet, looped: bool) -> Result<(), Failure> {
    (common.offer().judge)(snippet, looped).map_err(Failure::from)
}

/// Warns where other runs on the CPU were not excluded.
pub fn warn_of_neighbours(lock: &LockState, cpu: u32) {
    match lock {
        LockState::Taken => {}
        LockState::Busy => warn(&format!("another run used CPU {cpu} at the same time; see --cpu")),
        LockState::Missing(why) => warn(&format!(
            "nothing keeps other runs off CPU {cpu}, since no file in /run/cyclescope, /tmp or \
             $XDG_RUNTIME_DIR can be locked: {why}"
        )),
    }
}
