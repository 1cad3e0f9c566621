//! Options of the user-mode executor.

use std::time::Duration;

/// Options of an executor in user mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserOptions {
    /// The CPU that measured code runs on.
    pub cpu: usize,
    /// Whether programs read the core-cycles counter with RDPMC.
    pub counter: bool,
    /// Time that batches wait for another run on that CPU. After it, both run at the same time.
    pub patience: Duration,
    /// Whether code calls functions of this process. Workers are then copies of it, with its
    /// libraries and all of its memory; otherwise they share nothing with it.
    pub functions: bool,
    /// Whether all code comes from this program itself. Otherwise no worker runs code after code of
    /// another batch that could have changed it.
    pub own_code: bool,
    /// Whether batches between two calls of [`Executor::begin_subject`](crate::Executor) share a
    /// worker, whatever their code.
    pub announced: bool,
    /// Bytes of memory that functions may get from the system; `None` refuses them any.
    pub heap: Option<u64>,
}

impl Default for UserOptions {
    fn default() -> UserOptions {
        UserOptions {
            cpu: 0,
            counter: false,
            patience: Duration::from_secs(30),
            functions: false,
            own_code: false,
            announced: false,
            heap: None,
        }
    }
}
