//! Which executor a command measures with.

use crate::args::Common;
use crate::failure::{Failure, warn};
use cyclescope::executor::{Capabilities, LockState, Open, OpenOptions};
use cyclescope::machine::Machine;
use cyclescope::snippet::Snippet;

/// What the executor that was asked for can do, as far as that is known before it is opened.
pub fn capabilities(common: &Common, machine: &Machine) -> Capabilities {
    (common.offer().capabilities)(machine)
}

/// Opens the executor that was asked for when it is called. `counter`: whether programs read the core-cycles counter.
pub fn opening(common: &Common, machine: &Machine, counter: bool) -> Open {
    common.offer().opening(machine, OpenOptions { counter, force: common.force, ..OpenOptions::default() })
}

/// Refuses a snippet that the executor would not survive on any machine, before it is asked whether this one has it.
pub fn judge(common: &Common, snippet: &Snippet, looped: bool) -> Result<(), Failure> {
    (common.offer().judge)(snippet, looped).map_err(Failure::from)
}

/// Says so where other runs on the CPU were not kept away.
pub fn warn_of_neighbours(lock: &LockState, cpu: u32) {
    match lock {
        LockState::Taken => {}
        LockState::Busy => warn(&format!("another run used CPU {cpu} at the same time; see --cpu")),
        LockState::Missing(why) => warn(&format!(
            "nothing keeps other runs off CPU {cpu}, since there is no lock file in /tmp or \
             $XDG_RUNTIME_DIR: {why}"
        )),
    }
}
