//! What a worker is kept in: a job with limits.

use super::options::UserOptions;
use std::io;

/// What the workers of one executor are kept in.
#[derive(Debug)]
pub(super) struct WorkerConfinement {
    pub(super) namespaces: NoNamespaces,
    /// The job, or why there is none.
    pub(super) group: Result<(), String>,
    memory: u64,
}

/// Windows has no namespaces: nothing to ask for, nothing to do without.
#[derive(Debug)]
pub(super) struct NoNamespaces;

impl NoNamespaces {
    pub(super) fn has_user_namespace(&self) -> bool {
        false
    }

    pub(super) fn give_up(&mut self, _errno: i32) -> bool {
        false
    }

    pub(super) fn try_all_again(&mut self) {}
}

/// Limits of the next worker.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConfinementArguments {
    /// Bytes of memory that it may take.
    pub(super) memory: u64,
    /// Whether it is made in a job.
    pub(super) in_job: bool,
}

impl WorkerConfinement {
    /// As much as this process may ask for.
    pub(super) fn new(_options: &UserOptions) -> WorkerConfinement {
        WorkerConfinement { namespaces: NoNamespaces, group: Ok(()), memory: 0 }
    }

    /// Limits the memory of the next worker to this number of bytes.
    pub(super) fn limit_memory(&mut self, bytes: impl FnOnce() -> u64) {
        self.memory = bytes();
    }

    /// Limits of the next worker.
    pub(super) fn arguments(&self) -> ConfinementArguments {
        ConfinementArguments { memory: self.memory, in_job: self.group.is_ok() }
    }

    /// Does without a job after the system has refused it with this error. False if that is done
    /// already.
    pub(super) fn give_up(&mut self, errno: i32) -> bool {
        let had_job = self.group.is_ok();
        self.group = Err(format!("the system refuses the job: {}", io::Error::from_raw_os_error(errno)));
        had_job
    }
}
