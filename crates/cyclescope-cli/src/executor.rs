//! Which executor a command measures with.

use crate::args::Common;
use crate::failure::{Failure, warn};
use cyclescope::executor::kernel::refused::{self, Judged, Rules};
use cyclescope::executor::kernel::{Kernel, KernelOptions};
use cyclescope::executor::user::{User, UserOptions};
use cyclescope::executor::{Executor, LockState, Mode};
use cyclescope::snippet::Snippet;

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

/// Enough copies for everything that the first ones of a body show.
const COPIES: usize = 4;

/// Refuses a snippet that ring 0 would not survive on any machine, before it is asked whether this one has ring 0.
pub fn judge(common: &Common, snippet: &Snippet, looped: bool) -> Result<(), Failure> {
    if common.mode() == Mode::User {
        return Ok(());
    }
    let judged =
        Judged { init: snippet.init(), snippet: snippet.code(), copies: COPIES, looped, following: &[] };
    refused::judge(judged, Rules::default()).map_err(|refusal| refusal.into_error().into())
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
