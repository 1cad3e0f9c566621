//! The barriers around a worker as a table, each with its proof that it holds.

use super::namespaces::WorkerNamespaces;
use crate::protection::CodeProtection;
use cyclescope_worker::command::barrier;
use cyclescope_worker::sandbox::BarrierErrors;
use std::io;

/// How to see whether a barrier holds.
#[derive(Debug, Clone, Copy)]
enum BarrierProof {
    /// A worker without it does not start.
    Start,
    /// A field of the worker's `/proc/PID/status` has this value. Otherwise, this is the reason.
    Status(&'static str, &'static str, &'static str),
    /// The worker runs its own executable.
    OwnExecutable,
    /// The kernel made it with this flag of clone(2).
    Namespace(i32),
    /// The worker reported it before it ran any code.
    Reported(usize),
    /// The worker is in a control group with limits.
    ControlGroup,
}

/// A row of the table: its name, what it does, and its proof.
type BarrierRow = (&'static str, &'static str, BarrierProof);

const BARRIERS: &[BarrierRow] = &[
    ("own_executable", "no memory or library of the program that measures", BarrierProof::OwnExecutable),
    (
        "system_calls",
        "a filter lets the harness wait, wake, drop pages and end",
        BarrierProof::Status("Seccomp", "2", "the kernel shows no filter"),
    ),
    (
        "capabilities",
        "none, for good",
        BarrierProof::Status("CapPrm", "0000000000000000", "the kernel shows capabilities"),
    ),
    (
        "no_new_privileges",
        "no program that it might start gains rights",
        BarrierProof::Status("NoNewPrivs", "1", "the kernel does not show it"),
    ),
    (
        "own_user",
        "user and group 65534, which own nothing",
        BarrierProof::Status("Uid", "65534 65534 65534 65534", "only root, where that user exists, can become it"),
    ),
    ("resource_limits", "no file, process, core dump or locked memory", BarrierProof::Start),
    ("ends_with_caller", "it does not outlive the program that measures", BarrierProof::Start),
    ("landlock", "no name of a file, no connection", BarrierProof::Reported(barrier::LANDLOCK)),
    ("empty_root", "a root directory without files", BarrierProof::Reported(barrier::EMPTY_ROOT)),
    ("own_processes", "no other process has a number", BarrierProof::Namespace(libc::CLONE_NEWPID)),
    ("own_ipc", "no shared memory, semaphore or message queue of others", BarrierProof::Namespace(libc::CLONE_NEWIPC)),
    ("control_group", "own limits of memory and processes", BarrierProof::ControlGroup),
];

/// What is known about a worker.
pub(super) struct WorkerFacts<'a> {
    pub(super) pid: i32,
    /// Why it does not run its own executable, if it doesn't.
    pub(super) not_own: Option<String>,
    pub(super) namespaces: &'a WorkerNamespaces,
    pub(super) barriers: BarrierErrors,
    /// Why it has no control group of its own.
    pub(super) no_group: Option<String>,
}

/// The barriers around a worker.
pub(super) fn list_protections(facts: &WorkerFacts) -> Vec<CodeProtection> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", facts.pid)).unwrap_or_default();
    let row = |(what, about, proof): &BarrierRow| {
        let why_not = find_reason(*proof, facts, &status);
        CodeProtection { what, about, holds: why_not.is_none(), why_not }
    };
    BARRIERS.iter().map(row).collect()
}

/// Why a barrier does not hold; `None` if it does.
fn find_reason(proof: BarrierProof, facts: &WorkerFacts, status: &str) -> Option<String> {
    match proof {
        BarrierProof::Start => None,
        BarrierProof::Status(..) if status.is_empty() => Some("/proc does not show the worker".to_string()),
        BarrierProof::Status(field, value, reason) => (!has_value(status, field, value)).then(|| reason.to_string()),
        BarrierProof::OwnExecutable => facts.not_own.clone(),
        BarrierProof::Namespace(flag) => facts.namespaces.find_refusal(flag).err().map(describe_refusal),
        BarrierProof::Reported(number) => match facts.barriers[number] {
            0 => None,
            errno => Some(describe_refusal(errno)),
        },
        BarrierProof::ControlGroup => facts.no_group.clone(),
    }
}

fn describe_refusal(errno: i32) -> String {
    let text = io::Error::from_raw_os_error(errno).to_string();
    format!("the system refuses it: {}", text.split(" (os error").next().unwrap_or_default())
}

/// Whether a field of `/proc/PID/status` has a value, whatever the space between its words.
fn has_value(status: &str, field: &str, value: &str) -> bool {
    let value_of = |line: &str| line.strip_prefix(field)?.strip_prefix(':').map(str::to_owned);
    let found = status.lines().find_map(value_of).unwrap_or_default();
    found.split_whitespace().eq(value.split_whitespace())
}

#[cfg(test)]
mod tests {
    use super::super::UserOptions;
    use super::super::tests::one_worker;
    use super::*;
    use crate::Executor;

    fn holds(table: &[CodeProtection], what: &str) -> bool {
        table.iter().find(|row| row.what == what).unwrap_or_else(|| panic!("no {what}")).holds
    }

    #[test]
    fn the_kernel_shows_what_the_table_says_of_a_real_worker() {
        for functions in [false, true] {
            let user = one_worker(functions);
            let table = user.protections();
            let pid = user.worker_pid().expect("there is one");
            let read = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}")).expect("/proc");
            let status = read("status");
            assert_eq!(table.len(), BARRIERS.len());
            assert!(table.iter().all(|row| row.holds == row.why_not.is_none()), "{table:?}");
            assert_eq!(holds(&table, "own_executable"), !functions && user.has_own_process().known() == Some(&true));
            for what in ["system_calls", "capabilities", "no_new_privileges", "resource_limits", "ends_with_caller"] {
                assert!(holds(&table, what), "{table:?}");
            }
            assert_eq!(holds(&table, "own_user"), has_value(&status, "Uid", "65534 65534 65534 65534"));
            let limits = read("limits");
            for limit in ["Max open files", "Max processes", "Max file size", "Max core file size"] {
                let line = limits.lines().find(|line| line.starts_with(limit)).expect("a limit");
                assert!(line[limit.len()..].split_whitespace().take(2).eq(["0", "0"]), "{line}");
            }
            let link = |process: &str, name: &str| std::fs::read_link(format!("/proc/{process}/{name}"));
            for (what, name) in [("own_processes", "ns/pid"), ("own_ipc", "ns/ipc")] {
                match (link("self", name), link(&pid.to_string(), name)) {
                    (Ok(own), Ok(theirs)) => assert_eq!(holds(&table, what), own != theirs, "{what}"),
                    _ => cyclescope_skipped::report_left_out(format_args!("this process may not read {name}")),
                }
            }
            // The last number is the one in the worker's own namespace.
            let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:")).expect("Linux 4.1 or later");
            assert_eq!(holds(&table, "own_processes"), numbers.split_whitespace().count() > 1, "{numbers}");
            match link(&pid.to_string(), "root") {
                Ok(root) => {
                    assert_eq!(holds(&table, "empty_root"), root.ends_with("fdinfo"), "{root:?}");
                    let files = std::fs::read_dir(format!("/proc/{pid}/root")).map(Iterator::count);
                    assert!(!holds(&table, "empty_root") || files.is_ok_and(|files| files == 0));
                    let here = link(&pid.to_string(), "cwd").expect("as its root");
                    assert!(!holds(&table, "empty_root") || here == root, "{here:?}");
                }
                Err(_) => cyclescope_skipped::report_left_out("this process may not read the worker's root"),
            }
        }
    }

    /// Whether a process with this one's rights can make the namespaces, and change its root.
    fn can_confine() -> bool {
        // SAFETY: the child only makes system calls, and ends.
        unsafe {
            let child = libc::fork();
            if child == 0 {
                let made = libc::unshare(libc::CLONE_NEWPID | libc::CLONE_NEWIPC);
                let entered = libc::chroot(c"/proc/self/fdinfo".as_ptr());
                libc::_exit(if made == 0 && entered == 0 { 0 } else { 1 });
            }
            let mut status = 0;
            child > 0 && libc::waitpid(child, &raw mut status, 0) == child && status == 0
        }
    }

    #[test]
    fn a_worker_has_each_barrier_that_the_system_allows() {
        if !can_confine() {
            return cyclescope_skipped::report_skipped("this process may make no namespaces");
        }
        for functions in [false, true] {
            let table = one_worker(functions).protections();
            for what in ["empty_root", "own_processes", "own_ipc"] {
                assert!(holds(&table, what), "{table:?}");
            }
        }
    }

    #[test]
    #[ignore = "started as a user without rights by another test"]
    fn barriers_without_rights() {
        for functions in [false, true] {
            let table = one_worker(functions).protections();
            for what in ["empty_root", "own_processes", "own_ipc", "capabilities"] {
                assert!(holds(&table, what), "{table:?}");
            }
        }
    }

    #[test]
    fn a_user_without_rights_has_the_same_barriers_in_a_user_namespace() {
        use std::os::unix::process::CommandExt;
        const USER: u32 = 12345;
        // A file that any user may run.
        let copy = std::env::temp_dir().join(format!("cyclescope-exec-{}", std::process::id()));
        std::fs::copy(std::env::current_exe().expect("this test"), &copy).expect("a copy");
        let mut test = std::process::Command::new(&copy);
        test.args(["--ignored", "--exact", "user::protections::tests::barriers_without_rights"]).current_dir("/");
        let make_namespace = || {
            // SAFETY: takes no pointers.
            match unsafe { libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWPID | libc::CLONE_NEWIPC) } {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        };
        let mut probe = std::process::Command::new("true");
        // SAFETY: makes one system call.
        unsafe { probe.uid(USER).gid(USER).pre_exec(make_namespace) };
        if probe.status().is_ok_and(|status| status.success()) {
            let output = test.uid(USER).gid(USER).output().expect("it runs");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        } else {
            cyclescope_skipped::report_skipped("only root can become a user, and users may make no namespaces");
        }
        std::fs::remove_file(copy).expect("it is there");
    }

    #[test]
    fn each_missing_barrier_has_its_reason() {
        let mut namespaces = WorkerNamespaces::new(&UserOptions { counter: true, ..UserOptions::default() });
        assert!(namespaces.give_up(libc::EPERM));
        let mut barriers = BarrierErrors::default();
        barriers[barrier::LANDLOCK] = libc::ENOSYS;
        let no_group = Some("none is delegated".to_string());
        let not_own = Some("it calls functions".to_string());
        let table = list_protections(&WorkerFacts { pid: -1, not_own, namespaces: &namespaces, barriers, no_group });
        let reason = |what: &str| {
            let row = table.iter().find(|row| row.what == what).expect("a row");
            row.why_not.clone().unwrap_or_default()
        };
        assert_eq!(reason("own_processes"), "the system refuses it: Operation not permitted");
        assert_eq!(reason("landlock"), "the system refuses it: Function not implemented");
        assert_eq!(reason("empty_root"), "");
        assert_eq!(reason("own_executable"), "it calls functions");
        assert_eq!(reason("control_group"), "none is delegated");
        assert_eq!(reason("capabilities"), "/proc does not show the worker");
    }
}
