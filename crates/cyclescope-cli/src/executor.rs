//! Which executor a command measures with.

use crate::args::Common;
use crate::failure::{Failure, warn};
use cyclescope::executor::{Capabilities, Executor, LockState, OpenError, OpenOptions};
use cyclescope::machine::Machine;
use cyclescope::snippet::Snippet;

/// What the executor that was asked for can do, as far as that is known before it is opened.
pub fn capabilities(common: &Common, machine: &Machine) -> Capabilities {
    (common.offer().capabilities)(machine)
}

/// Opens the executor that was asked for. `counter`: whether programs read the core-cycles counter.
pub fn open(common: &Common, machine: &Machine, counter: bool) -> Result<Box<dyn Executor>, Failure> {
    let options = OpenOptions { counter, force: common.force, ..OpenOptions::default() };
    (common.offer().open)(machine, &options).map_err(|error| match error {
        OpenError::Unavailable(error) => error.into(),
        OpenError::Failed(error) => error.into(),
    })
}

/// Refuses a snippet that the executor would not survive on any machine, before it is asked whether this one has it.
pub fn judge(common: &Common, snippet: &Snippet, looped: bool) -> Result<(), Failure> {
    (common.offer().judge)(snippet, looped).map_err(Failure::from)
}

/// Says so where other runs on the CPU were not kept away.
pub fn warn_of_neighbours(executor: &dyn Executor, cpu: u32) {
    match executor.lock_state() {
        None | Some(LockState::Taken) => {}
        Some(LockState::Busy) => warn(&format!("another run used CPU {cpu} at the same time; see --cpu")),
        Some(LockState::Missing(why)) => warn(&format!(
            "nothing keeps other runs off CPU {cpu}, since there is no lock file in /tmp or \
             $XDG_RUNTIME_DIR: {why}"
        )),
    }
}
