//! The namespaces of its own that a worker gets where the system allows them.
//!
//! They are a second barrier, in case that the filter of system calls fails: without it, a worker
//! could send signals to processes of its user, trace them, and use their shared memory. A process
//! that is not root may make namespaces only in a user namespace of its own. Systems that refuse
//! them get a worker without.
//!
//! Other kinds protect nothing that a worker without files, capabilities and a root directory could
//! reach: network, mounts, host name, control groups. A network takes 300 µs to make.

use super::options::UserOptions;

/// Own process numbers, and own System V and POSIX message queues, semaphores and shared memory.
const OWN_NAMESPACES: i32 = libc::CLONE_NEWPID | libc::CLONE_NEWIPC;

/// The namespaces that the next worker gets.
#[derive(Debug)]
pub(super) struct WorkerNamespaces {
    /// Flags of clone(2) to try, the preferred ones first; none at the end.
    candidates: Vec<i32>,
    /// The number of the candidate to try next.
    next: usize,
    /// The error of the last candidate that the system refused.
    refused: Option<i32>,
}

impl WorkerNamespaces {
    /// The namespaces for workers with these options.
    pub(super) fn new(options: &UserOptions) -> WorkerNamespaces {
        let root = rustix::process::geteuid().is_root();
        // Root becomes the user `nobody`, whom a new user namespace lacks. The right to open a
        // counter does not reach into one.
        let within_user = (!root && !options.counter).then_some(libc::CLONE_NEWUSER | OWN_NAMESPACES);
        let candidates = [OWN_NAMESPACES].into_iter().chain(within_user).chain([0]).collect();
        WorkerNamespaces::from_candidates(candidates)
    }

    /// The first of these that the system does not refuse.
    pub(super) fn from_candidates(candidates: Vec<i32>) -> WorkerNamespaces {
        WorkerNamespaces { candidates, next: 0, refused: None }
    }

    /// Flags of clone(2) for the next worker.
    pub(super) fn flags(&self) -> i32 {
        self.candidates.get(self.next).copied().unwrap_or(0)
    }

    /// Turns to the next candidate after this error. False if there is none.
    pub(super) fn give_up(&mut self, errno: i32) -> bool {
        if self.next + 1 >= self.candidates.len() {
            return false;
        }
        log::info!("the worker gets fewer namespaces: {}", std::io::Error::from_raw_os_error(errno));
        self.next += 1;
        self.refused = Some(errno);
        true
    }

    /// Begins with the preferred candidate again, because something else was refused.
    pub(super) fn try_all_again(&mut self) {
        (self.next, self.refused) = (0, None);
    }

    /// Whether workers are in a namespace of this kind; otherwise the error.
    pub(super) fn find_refusal(&self, flag: i32) -> Result<(), i32> {
        if self.flags() & flag != 0 { Ok(()) } else { Err(self.refused.unwrap_or(0)) }
    }

    /// Whether workers are in a user namespace of their own.
    pub(super) fn has_user_namespace(&self) -> bool {
        self.flags() & libc::CLONE_NEWUSER != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_namespace_is_given_up_and_its_error_kept() {
        let mut namespaces = WorkerNamespaces::from_candidates(vec![OWN_NAMESPACES, 0]);
        assert_eq!(namespaces.find_refusal(libc::CLONE_NEWIPC), Ok(()));
        assert!(namespaces.give_up(libc::EPERM));
        assert_eq!(namespaces.flags(), 0);
        assert_eq!(namespaces.find_refusal(libc::CLONE_NEWPID), Err(libc::EPERM));
        assert!(!namespaces.give_up(libc::ENOSPC), "nothing is left to give up");
        assert_eq!(namespaces.find_refusal(libc::CLONE_NEWPID), Err(libc::EPERM));
        namespaces.try_all_again();
        assert_eq!((namespaces.flags(), namespaces.refused), (OWN_NAMESPACES, None));
    }

    #[test]
    fn a_counter_needs_the_users_own_namespace() {
        let candidates = |counter| WorkerNamespaces::new(&UserOptions { counter, ..UserOptions::default() }).candidates;
        let has_user = |candidates: &[i32]| candidates.iter().any(|flags| flags & libc::CLONE_NEWUSER != 0);
        assert!(!has_user(&candidates(true)));
        assert_eq!(has_user(&candidates(false)), !rustix::process::geteuid().is_root());
    }
}
