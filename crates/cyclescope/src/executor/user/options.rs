//! Options of the worker.

use std::time::Duration;

/// Number of CPUs that a set can hold.
pub(crate) const MAX_CPUS: usize = 1024;

/// Options of an executor in user mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserOptions {
    /// The CPU that measured code runs on.
    pub cpu: usize,
    /// Whether programs read the core-cycles counter with RDPMC.
    pub counter: bool,
    /// Time that batches wait for another run on that CPU before they run beside it.
    pub patience: Duration,
    /// Bytes of memory that functions may get from the system; `None` refuses them any.
    pub heap: Option<u64>,
}

impl Default for UserOptions {
    fn default() -> UserOptions {
        UserOptions { cpu: 0, counter: false, patience: Duration::from_secs(30), heap: None }
    }
}
