//! Which executor a command measures with.

use crate::args::Common;
use crate::failure::{Failure, warn};
use cyclescope::executor::kernel::{Kernel, KernelOptions};
use cyclescope::executor::user::{User, UserOptions};
use cyclescope::executor::{Executor, LockState, Mode};

/// Makes the executor that was asked for. `counter`: whether programs read the core-cycles counter.
pub fn spawn(common: &Common, cpu: u32, counter: bool) -> Result<Box<dyn Executor>, Failure> {
    let cpu = cpu as usize;
    Ok(match common.mode() {
        Mode::User => Box::new(User::spawn(&UserOptions { cpu, counter, ..UserOptions::default() })?),
        Mode::Kernel => {
            let options = KernelOptions { cpu, force: common.force, ..KernelOptions::default() };
            Box::new(Kernel::open(&options)?)
        }
    })
}

/// Says so where other runs on the CPU were not kept away.
pub fn warn_of_neighbours(executor: &dyn Executor, cpu: u32) {
    match executor.lock_state() {
        None | Some(LockState::Taken) => {}
        Some(LockState::Busy) => warn(&format!("another run used CPU {cpu} at the same time; see --cpu")),
        Some(LockState::Missing(why)) => warn(&format!(
            "runs on CPU {cpu} can't be kept apart, since there is no lock file in /tmp or \
             $XDG_RUNTIME_DIR: {why}"
        )),
    }
}
