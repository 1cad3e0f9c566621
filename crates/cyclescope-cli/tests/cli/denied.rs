//! What the system or its container refuses: named, with what helps.

use cyclescope_skipped::left_out;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

/// The program, measuring.
fn measuring() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cyclescope"));
    command.args(["run", "--quick", "nop"]);
    command
}

/// The program's answer where a filter refuses a system call with this error.
fn without(call: i64, errno: i32) -> Output {
    filtered(measuring(), &[call], errno)
}

/// A command's answer where a filter refuses these system calls with this error.
fn filtered(mut command: Command, calls: &[i64], errno: i32) -> Output {
    let statement = |code: u32, k| libc::sock_filter { code: code as u16, jt: 0, jf: 0, k };
    // Offset 0 of `struct seccomp_data` is the number of the call.
    let mut filter = vec![statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0)];
    for call in calls {
        let compared = statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, *call as u32);
        filter.push(libc::sock_filter { jf: 1, ..compared });
        filter.push(statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | errno as u32));
    }
    filter.push(statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW));
    let close = move || {
        let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
        // SAFETY: the filter lives through both calls, which change nothing but this process.
        let done = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
        };
        if done { Ok(()) } else { Err(io::Error::last_os_error()) }
    };
    // SAFETY: makes two system calls and allocates nothing.
    unsafe { command.pre_exec(close) };
    command.output().expect("the program runs")
}

#[test]
fn a_system_call_that_is_refused_is_named() {
    for (call, name) in [
        (libc::SYS_sched_setaffinity, "sched_setaffinity"),
        (libc::SYS_memfd_create, "memfd_create"),
        (libc::SYS_getpid, "getpid"),
        (libc::SYS_getppid, "getppid"),
        (libc::SYS_prlimit64, "prlimit64"),
        (libc::SYS_seccomp, "seccomp"),
        (libc::SYS_capset, "capset"),
    ] {
        for errno in [libc::EPERM, libc::ENOSYS] {
            let output = without(call, errno);
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(3), "{name}: {said}");
            assert!(
                said.contains(&format!("the system call {name} is not available here")),
                "{name}: {said}"
            );
            assert!(said.contains("seccomp=unconfined"), "{name}: {said}");
        }
    }
}

#[test]
fn what_is_not_needed_may_be_refused() {
    // Without the last one snippets run in a copy of the program.
    let calls = [
        libc::SYS_perf_event_open,
        libc::SYS_close_range,
        libc::SYS_pidfd_send_signal,
        libc::SYS_landlock_create_ruleset,
        libc::SYS_execveat,
    ];
    for call in calls {
        let output = without(call, libc::EPERM);
        assert!(matches!(output.status.code(), Some(0 | 5)), "{call}: {output:?}");
    }
}

/// What Docker's default profile refuses without further capabilities (docs.docker.com, Seccomp security profiles for Docker, table of
/// significant system calls), of what x86-64 has.
const REFUSED_BY_DOCKER: &[i64] = &[
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_bpf,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_finit_module,
    libc::SYS_get_mempolicy,
    libc::SYS_init_module,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_ioperm,
    libc::SYS_iopl,
    libc::SYS_kcmp,
    libc::SYS_kexec_file_load,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_lookup_dcookie,
    libc::SYS_mbind,
    libc::SYS_mount,
    libc::SYS_move_pages,
    libc::SYS_nfsservctl,
    libc::SYS_open_by_handle_at,
    libc::SYS_perf_event_open,
    libc::SYS_personality,
    libc::SYS_pivot_root,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_set_mempolicy,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_sysfs,
    libc::SYS__sysctl,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_uselib,
    libc::SYS_userfaultfd,
    libc::SYS_ustat,
];

#[test]
fn nothing_is_needed_that_docker_refuses() {
    let mut compared = Command::new(env!("CARGO_BIN_EXE_cyclescope"));
    compared.args(["ab", "--quick", "--budget", "0.5", "true", "true"]);
    for command in [measuring(), compared] {
        let output = filtered(command, REFUSED_BY_DOCKER, libc::EPERM);
        assert!(matches!(output.status.code(), Some(0 | 5)), "{output:?}");
    }
}

#[test]
fn locks_that_are_refused_are_no_other_run() {
    let output = without(libc::SYS_flock, libc::EPERM);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 5)), "{output:?}");
    assert!(said.contains("can be locked: Operation not permitted"), "{said}");
}

/// The program's answer to these further arguments in a system without `/proc`; none where this one lets no user take it away.
fn without_proc(further: &[&str]) -> Option<Output> {
    let mut command = measuring();
    command.args(further);
    let hide = || {
        // SAFETY: the strings live through the calls, which change nothing outside of the new process.
        let hidden = unsafe {
            libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS) == 0
                && libc::mount(c"none".as_ptr(), c"/proc".as_ptr(), c"tmpfs".as_ptr(), 0, std::ptr::null())
                    == 0
        };
        if hidden { Ok(()) } else { Err(io::Error::last_os_error()) }
    };
    // SAFETY: makes two system calls and allocates nothing.
    unsafe { command.pre_exec(hide) };
    command.output().ok()
}

#[test]
fn without_proc_its_mount_is_asked_for_where_it_is_needed() {
    let (Some(snippet), Some(copy)) = (without_proc(&[]), without_proc(&["--clock", "clock-gettime"])) else {
        left_out("this system lets no user mount anything in a name space of its own");
        return;
    };
    assert!(matches!(snippet.status.code(), Some(0 | 5)), "{snippet:?}");
    let said = String::from_utf8_lossy(&copy.stderr);
    assert_eq!(copy.status.code(), Some(3), "{said}");
    assert!(said.contains("mount -t proc"), "{said}");
}
