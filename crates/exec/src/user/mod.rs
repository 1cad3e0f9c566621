//! The user-mode executor: snippets run in a pinned child process behind a sandbox.
//!
//! The child is a worker, with an executable of its own (`cyclescope_worker`). It maps shared
//! memory at addresses that the caller chose, and gives up its rights, files, signals and system
//! calls. Then it runs commands: all layouts of a batch in one round trip. The caller writes code
//! through a mapping of its own; the worker can execute it but not write.
//!
//! The worker's executable is mapped into a copy of the calling program instead if code calls
//! functions, or if the system runs no executable from memory. Such a worker contains the libraries
//! that are loaded when it is made, at the same addresses. Their functions can be called as long as
//! they make no system calls, except those that get memory, if allowed. Make such an executor
//! early: copying a program that uses much memory takes long (about 10 ms per GiB in small pages).
//!
//! A fault, a hang or a damaged fence ends the worker and is reported as a typed error; the next
//! batch gets a new worker. So does a batch without the code of the last one, which may have
//! changed its worker: no snippet affects another.
//!
//! 32-bit code runs in the same 64-bit worker, whose memory then lies below 4 GiB: see `narrow_code`.
//!
//! This guards against stray stores, wild jumps, any instruction, any system call. It does not
//! guard against an attacker who measures himself: code can write the readings that judge it, and
//! VMCALL and VMMCALL reach the hypervisor unnoticed.

mod answer_wait;
mod areas;
mod chunk;
#[cfg_attr(windows, path = "windows/confinement.rs")]
mod confinement;
#[cfg(unix)]
mod control_group;
mod faults;
#[cfg(unix)]
mod filter;
#[cfg(all(test, unix))]
mod frozen_group;
#[cfg(windows)]
#[path = "windows/handle.rs"]
mod handle;
#[cfg_attr(windows, path = "windows/launch.rs")]
mod launch;
#[cfg(unix)]
mod namespaces;
mod narrow_code;
#[cfg(unix)]
mod narrow_memory;
mod options;
#[cfg_attr(windows, path = "windows/process.rs")]
mod process;
#[cfg_attr(windows, path = "windows/process_clock.rs")]
mod process_clock;
#[cfg_attr(windows, path = "windows/protections.rs")]
mod protections;
mod reading_window;
mod region_contents;
#[cfg_attr(windows, path = "windows/regions.rs")]
mod regions;
#[cfg_attr(windows, path = "windows/setup.rs")]
mod setup;
mod time_limit;
mod user_capabilities;
mod user_executor;
#[cfg(windows)]
#[path = "windows/worker.rs"]
mod worker;
mod worker_answer;
#[cfg(windows)]
#[path = "windows/worker_contents.rs"]
mod worker_contents;
#[cfg_attr(windows, path = "windows/worker_events.rs")]
mod worker_events;

#[cfg(all(test, unix))]
mod tests;

pub(crate) use cyclescope_worker::sandbox::MOST_CPUS as MAX_CPUS;
pub use faults::signal_name;
pub use narrow_code::{find_narrow_segment, reserve_narrow_addresses};
#[cfg(unix)]
pub use narrow_memory::{NARROW_PAGE, NarrowMemory, PageRights};
pub use options::UserOptions;
pub use user_capabilities::user_capabilities;
pub use user_executor::UserExecutor;
#[cfg(windows)]
pub use worker_contents::{ImageParts, ImagePlace, load_library, place_code};

use super::{ExecutorOffer, OpenOptions};

/// How the user executor is offered.
pub const USER_OFFER: ExecutorOffer = ExecutorOffer {
    name: user_capabilities::NAME,
    about: "A sandboxed process",
    place: "user mode",
    takes_force: false,
    capabilities: user_capabilities,
    // If the TSC is forbidden, so is the system's clock, which deadlines need.
    check: |machine| machine.tsc.require(),
    // The sandbox survives any code.
    judge: |_, _| Ok(()),
    open: |machine, options| {
        let OpenOptions { counter, patience, functions, own_code, announced, heap, .. } = *options;
        let cpu = machine.target_cpu() as usize;
        let options = UserOptions { cpu, counter, patience, functions, own_code, announced, heap };
        Ok(Box::new(UserExecutor::spawn_on(machine.clone(), &options)?))
    },
};
