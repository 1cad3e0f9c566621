//! Listeners for markers of Rust's libraries `log` and `tracing`.
//!
//! Both accept a logger or a subscriber once per process and keep it. So a state's `world`
//! identifies the listener, and each worker of the user-mode executor stays in one world:
//!
//! 1. [`prepare_listeners`] allocates all necessary memory, in each thread that will run batches.
//! 2. Each world gets an executor. Its worker is a copy of this process at that time.
//! 3. Programs call the design's `switch` in their init code, with the number of a state of that
//!    world. The first call installs the listener in the worker; later ones find it installed.
//!
//! Preparation raises the maximum level of `tracing` in this process, which has no listener. A
//! worker computes it anew.
//!
//! A switch makes no system call and allocates no memory. It cannot report a failure. It executes
//! UD2 if the worker is in another world, if nothing was prepared, or if the host program has
//! already installed a logger or subscriber.
//!
//! The sinks write to memory, because the worker may not write to a file. They lock a mutex, like
//! those of standard output, and record no time.

mod listener_world;
pub(crate) mod log;
mod log_memory;
pub(crate) mod tracing;

pub use listener_world::hits_address;

/// Prepares the listeners before executors start. Repeated calls are cheap.
pub fn prepare_listeners() {
    tracing::prepare_subscribers();
}
