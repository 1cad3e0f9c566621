//! The namespaces and the control group that a worker is kept in, as far as the system allows them.

use super::control_group::WorkerGroup;
use super::namespaces::WorkerNamespaces;
use super::options::UserOptions;
use cyclescope_core::machine::fact::SystemFiles;

/// What the workers of one executor are kept in.
#[derive(Debug)]
pub(super) struct WorkerConfinement {
    pub(super) namespaces: WorkerNamespaces,
    /// The control group, or why there is none.
    pub(super) group: Result<WorkerGroup, String>,
}

/// What clone(2) takes for a worker.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConfinementArguments {
    /// Flags for its namespaces.
    pub(super) namespaces: i32,
    /// The descriptor of its control group.
    pub(super) group: Option<i32>,
}

impl WorkerConfinement {
    /// As much as this process may ask for.
    pub(super) fn new(options: &UserOptions) -> WorkerConfinement {
        WorkerConfinement {
            namespaces: WorkerNamespaces::new(options),
            group: WorkerGroup::make(&SystemFiles::system()),
        }
    }

    /// Limits the memory of the next worker to this number of bytes, if it has a group.
    pub(super) fn limit_memory(&mut self, bytes: impl FnOnce() -> u64) {
        if let Ok(group) = &mut self.group
            && let Err(why) = group.limit_memory(bytes())
        {
            // Somebody else may have removed it.
            self.group = Err(why);
        }
    }

    /// What the next worker is kept in.
    pub(super) fn arguments(&self) -> ConfinementArguments {
        let group = self.group.as_ref().ok().map(WorkerGroup::descriptor);
        ConfinementArguments { namespaces: self.namespaces.flags(), group }
    }

    /// Does without something after the system has refused a worker with this error. False if nothing
    /// is left to do without.
    pub(super) fn give_up(&mut self, errno: i32) -> bool {
        // The system does not say what it refuses. Without namespaces, it was the group.
        if self.namespaces.give_up(errno) {
            return true;
        }
        let has_group = self.group.is_ok();
        if has_group {
            let refused = std::io::Error::from_raw_os_error(errno);
            self.group = Err(format!("no process can be made in it: {refused}"));
            self.namespaces.try_all_again();
        }
        has_group
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{assert_still_runs, spawn};
    use super::*;
    use crate::Executor;
    use cyclescope_core::machine::fact::Fact;

    #[test]
    fn a_copy_keeps_the_namespaces_that_the_executable_does_not_run_in() {
        const OWN_USER: i32 = libc::CLONE_NEWUSER | libc::CLONE_NEWPID;
        let mut user = spawn();
        // SAFETY: takes no pointers.
        assert_eq!(unsafe { libc::fchmod(user.regions.image_fd(), 0o600) }, 0);
        user.confinement.namespaces = WorkerNamespaces::from_candidates(vec![OWN_USER, 0]);
        user.renew_process();
        assert_still_runs(&mut user);
        assert_eq!(user.has_own_process(), Fact::Known(false));
        // A system may refuse user namespaces, but no executable.
        let refused = user.confinement.namespaces.find_refusal(libc::CLONE_NEWPID);
        assert_ne!(refused, Err(libc::EACCES));
    }
}
