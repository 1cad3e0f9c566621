//! What a caller says about the worker.

use std::time::Duration;

/// CPUs that can be named.
pub(crate) const MAX_CPUS: usize = 1024;

/// How to make an executor in user mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserOptions {
    /// The CPU that measured code runs on.
    pub cpu: usize,
    /// Whether programs read the core-cycles counter with RDPMC.
    pub counter: bool,
    /// How long batches wait for another run on that CPU before they run beside it.
    pub patience: Duration,
}

impl Default for UserOptions {
    fn default() -> UserOptions {
        UserOptions { cpu: 0, counter: false, patience: Duration::from_secs(30) }
    }
}
