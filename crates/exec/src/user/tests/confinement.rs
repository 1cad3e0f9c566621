//! What a worker may not do.

use super::super::UserExecutor;
use super::{assert_still_runs, one_worker, run, spawn};
use cyclescope_core::error::RunError;
use cyclescope_worker::view;
use std::time::Duration;

#[test]
fn a_worker_keeps_no_files_and_ignores_ctrl_c() {
    keeps_no_files(false);
    keeps_no_files(true);
}

fn keeps_no_files(functions: bool) {
    let (read, write) = rustix::pipe::pipe().expect("a pipe");
    let user = one_worker(functions);
    drop(write);
    let mut end = [0];
    rustix::io::ioctl_fionbio(&read, true).expect("a read that does not wait");
    // Workers of other tests, forked meanwhile, have the pipe for a moment.
    let closed = (0..2000).any(|_| {
        std::thread::sleep(Duration::from_millis(1));
        rustix::io::read(&read, &mut end) == Ok(0)
    });
    assert!(closed, "the worker keeps the pipe open");
    let worker = user.worker.as_ref().expect("a worker");
    worker.send_signal(rustix::process::Signal::INT);
    std::thread::sleep(Duration::from_millis(20));
    assert!(!worker.has_ended());
}

/// A field of the worker's `/proc/PID/status`.
fn status_of(user: &UserExecutor, field: &str) -> String {
    let pid = user.worker_pid().expect("there is one");
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("/proc");
    let value = |line: &str| Some(line.strip_prefix(field)?.strip_prefix(':')?.trim().to_string());
    status.lines().find_map(value).unwrap_or_else(|| panic!("no {field} in {status}"))
}

#[test]
fn a_worker_has_no_rights() {
    for functions in [false, true] {
        let user = one_worker(functions);
        for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
            assert_eq!(u64::from_str_radix(&status_of(&user, set), 16), Ok(0), "{set}");
        }
        assert_eq!(status_of(&user, "NoNewPrivs"), "1");
        // If memory runs out, it ends first.
        let pid = user.worker_pid().expect("there is one");
        let score = std::fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).expect("/proc");
        assert_eq!(score.trim(), "1000");
        assert_eq!(status_of(&user, "Seccomp"), "2");
        // SAFETY: takes no pointers.
        let root = unsafe { libc::geteuid() } == 0;
        let maps = std::fs::read_to_string("/proc/self/uid_map").expect("/proc");
        let everyone = maps.split_whitespace().nth(2).is_some_and(|count| count == "4294967295");
        if root && everyone {
            assert_eq!(status_of(&user, "Uid"), "65534\t65534\t65534\t65534");
            assert_eq!(status_of(&user, "Gid"), "65534\t65534\t65534\t65534");
            assert_eq!(status_of(&user, "Groups"), "");
        }
    }
}

#[test]
fn a_worker_may_open_and_start_nothing() {
    for functions in [false, true] {
        let user = one_worker(functions);
        let process = format!("/proc/{}", user.worker_pid().expect("there is one"));
        let limits = std::fs::read_to_string(format!("{process}/limits")).expect("/proc");
        for name in ["Max open files", "Max processes"] {
            let values = limits.lines().find_map(|line| line.strip_prefix(name)).expect("a limit");
            assert_eq!(values.split_whitespace().take(2).collect::<Vec<_>>(), ["0", "0"], "{name}");
        }
        // As another user, this process may not look.
        if let Ok(files) = std::fs::read_dir(format!("{process}/fd")) {
            assert_eq!(files.count(), 0, "open files");
        }
    }
}

#[test]
fn a_worker_cannot_be_traced() {
    use std::os::unix::fs::MetadataExt;
    for functions in [false, true] {
        let user = one_worker(functions);
        let process = format!("/proc/{}", user.worker_pid().expect("there is one"));
        // The files of a process that its user may not trace belong to root (proc(5)).
        assert_eq!(std::fs::metadata(format!("{process}/mem")).expect("/proc").uid(), 0);
    }
}

/// `mov eax, number; mov rdi, …; mov rsi, …; mov rdx, …; mov rcx, CALL_AT; call rcx`
pub(super) fn system_call(number: i64, arguments: [u64; 3]) -> Vec<u8> {
    let load = |prefix: [u8; 2], value: u64| [&prefix[..], &value.to_le_bytes()].concat();
    let [first, second, third] = arguments;
    [
        load([0x48, 0xb8], number as u64),
        load([0x48, 0xbf], first),
        load([0x48, 0xbe], second),
        load([0x48, 0xba], third),
        load([0x48, 0xb9], view::CALL_AT),
        vec![0xff, 0xd1],
    ]
    .concat()
}

#[test]
fn only_the_system_calls_of_the_harness_are_allowed() {
    const HWPOISON: i32 = 100;
    let mut user = spawn();
    let page = user.regions.worker_address(view::THREAD_AT);
    let word = user.regions.worker_address(view::STATUS_AT + 64);
    let wake = system_call(libc::SYS_futex, [word, libc::FUTEX_WAKE as u64, 1]);
    let drop = system_call(libc::SYS_madvise, [page, 4096, libc::MADV_DONTNEED as u64]);
    let read = |clock: i32| system_call(libc::SYS_clock_gettime, [clock as u64, page, 0]);
    for call in [wake, drop, read(libc::CLOCK_MONOTONIC), read(libc::CLOCK_THREAD_CPUTIME_ID)] {
        assert_eq!(run(&mut user, &call).map(|samples| samples.len()), Ok(1));
    }
    let futex = |operation: i32| system_call(libc::SYS_futex, [word, operation as u64, 1]);
    let advice = |advice: i32| system_call(libc::SYS_madvise, [page, 4096, advice as u64]);
    let refused = [
        futex(libc::FUTEX_LOCK_PI),
        futex(libc::FUTEX_REQUEUE),
        futex(libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG),
        advice(HWPOISON),
        advice(HWPOISON + 1),
        advice(libc::MADV_REMOVE),
        advice(libc::MADV_DOFORK),
        read(libc::CLOCK_REALTIME),
        system_call(libc::SYS_mmap, [0, 4096, libc::PROT_READ as u64]),
    ];
    for call in refused {
        let result = run(&mut user, &call);
        assert!(matches!(result, Err(RunError::Fault { signal: "SIGSYS", .. })), "{result:?}");
        assert_still_runs(&mut user);
    }
}
