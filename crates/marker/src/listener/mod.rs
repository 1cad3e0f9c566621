//! Who listens to markers that are made with Rust's libraries `log` and `tracing`.
//!
//! Both take a logger or a subscriber once a process and keep it. So a state's `world` says who listens, and each
//! worker of the user-mode executor is in one world for good:
//!
//! 1. [`prepare_listeners`], in each thread that will run batches, makes what needs memory;
//! 2. an executor for each world; its worker is a copy of this process as it was then;
//! 3. programs whose init code calls the design's `switch` with the number of a state of that world. The first call
//!    installs the listener in the worker, later ones find it there.
//!
//! What is made raises the maximum level of `tracing` in this process, where nobody listens; a worker asks anew.
//!
//! A switch makes no system call and takes no memory. It can't report a failure: it executes UD2 where the worker is in
//! another world, where nothing was prepared, and where the host program has installed a logger or subscriber before.
//!
//! The sinks write to memory, for the worker may not write to a file; they lock a mutex as standard output's do, and
//! tell no time.

mod listener_world;
pub(super) mod log;
mod log_memory;
#[cfg(test)]
mod tests;
pub(super) mod tracing;

pub(crate) use listener_world::hits_address;

/// Makes what listeners need, before executors are made. It costs little where it was called before.
pub(crate) fn prepare_listeners() {
    tracing::prepare_subscribers();
}
