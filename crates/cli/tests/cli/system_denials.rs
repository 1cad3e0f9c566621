//! Denials by the system or its container are named, with a remedy.

use cyclescope_skipped::report_left_out;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

/// The program with a measurement.
fn measuring() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cyclescope"));
    command.args(["run", "--quick", "nop"]);
    command
}

const fn statement(code: u32, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

/// Loads a word of `struct seccomp_data` (Linux, include/uapi/linux/seccomp.h): the system call's
/// number, and the lower half of its first argument.
const NUMBER: libc::sock_filter = statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0);
const ARGUMENT: libc::sock_filter = statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 16);
const ALLOW: libc::sock_filter = statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW);

/// Skips this number of statements if the loaded word differs from `word`.
const fn unless(word: u32, skipped: u8) -> libc::sock_filter {
    libc::sock_filter { jf: skipped, ..statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, word) }
}

const fn refuse(errno: i32) -> libc::sock_filter {
    statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ERRNO | errno as u32)
}

/// The program's answer when a filter denies a system call with this error.
fn without(call: i64, errno: i32) -> Output {
    filtered(measuring(), vec![NUMBER, unless(call as u32, 1), refuse(errno), ALLOW])
}

fn filtered(mut command: Command, filter: Vec<libc::sock_filter>) -> Output {
    let close = move || {
        let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
        // SAFETY: the filter outlives both calls, which change only this process.
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
fn denied_system_call_is_named() {
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
            assert!(said.contains(&format!("the system call {name} is not available here")), "{name}: {said}");
            assert!(said.contains("seccomp=unconfined"), "{name}: {said}");
        }
    }
}

#[test]
fn denied_tracing_is_unavailable_with_a_remedy() {
    for errno in [libc::EPERM, libc::ENOSYS] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cyclescope"));
        command.args(["run", "--elf", env!("CARGO_BIN_EXE_cyclescope"), "--from", "_start", "--to", "main"]);
        let output = filtered(command, vec![NUMBER, unless(libc::SYS_ptrace as u32, 1), refuse(errno), ALLOW]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(said.contains("tracing a program was refused") && said.contains("ptrace"), "{said}");
    }
}

#[test]
fn optional_system_calls_may_be_denied() {
    // Without the last one, snippets run in a copy of the program.
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

#[test]
fn denied_starts_of_programs_have_their_own_remedy() {
    let folder = crate::support::folder();
    let file = folder.path().join("code.c");
    std::fs::write(&file, "void f(void *p) {}\n").expect("a file");
    let compile = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cyclescope"));
        command.args(["run", "--quick", "--c"]).arg(&file);
        command
    };
    let deny = |call: i64, errno: i32| {
        let output = filtered(compile(), vec![NUMBER, unless(call as u32, 1), refuse(errno), ALLOW]);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    if !crate::support::has("cc") {
        return;
    }
    for call in [libc::SYS_pidfd_open, libc::SYS_clone3] {
        let (code, said) = deny(call, libc::ENOSYS);
        assert!(matches!(code, Some(0 | 5)), "{call}: {said}");
    }
    let (code, said) = deny(libc::SYS_clone, libc::EAGAIN);
    assert!(code == Some(1) && said.contains("ulimit -u"), "{said}");
    let (code, said) = deny(libc::SYS_clone, libc::EPERM);
    assert!(code == Some(3) && said.contains("seccomp=unconfined"), "{said}");
}

/// System calls of x86-64 that Docker's default profile denies without further capabilities
/// (docs.docker.com, Seccomp security profiles for Docker, table of significant system calls).
const REFUSED: &[i64] = &[
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
/// The namespace bits with which `clone` is denied (moby, profiles/seccomp/default.json); then the
/// values of `personality` that are allowed.
const NEW_SPACES: u32 = 0x7e02_0000;
const PERSONALITIES: [u32; 5] = [0, 8, 0x2_0000, 0x2_0008, 0xffff_ffff];

fn like_docker() -> Vec<libc::sock_filter> {
    let mut filter = vec![NUMBER];
    REFUSED.iter().for_each(|call| filter.extend([unless(*call as u32, 1), refuse(libc::EPERM)]));
    // Its flags are in memory, which filters can't see; libraries fall back to `clone`.
    filter.extend([unless(libc::SYS_clone3 as u32, 1), refuse(libc::ENOSYS)]);
    let spaces = statement(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, NEW_SPACES);
    filter.extend([unless(libc::SYS_clone as u32, 5), ARGUMENT, spaces, unless(0, 1), ALLOW, refuse(libc::EPERM)]);
    filter.extend([unless(libc::SYS_personality as u32, 2 + 2 * PERSONALITIES.len() as u8), ARGUMENT]);
    PERSONALITIES.iter().for_each(|allowed| filter.extend([unless(*allowed, 1), ALLOW]));
    filter.extend([refuse(libc::EPERM), ALLOW]);
    filter
}

/// A command without root's rights.
fn without_rights(program: &std::path::Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments);
    // SAFETY: takes no pointers.
    if unsafe { libc::geteuid() } == 0 {
        // The user `nobody`.
        command.uid(65534).gid(65534);
    }
    command
}

#[test]
fn docker_default_profile_is_sufficient() {
    let folder = crate::support::folder();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).expect("a folder");
    let program = folder.path().join("cyclescope");
    std::fs::copy(env!("CARGO_BIN_EXE_cyclescope"), &program).expect("a copy");
    let refused = filtered(without_rights("unshare".as_ref(), &["-U", "true"]), like_docker());
    assert!(!refused.status.success(), "the filter refuses nothing");
    let run = filtered(without_rights(&program, &["run", "--quick", "imul rax, rax"]), like_docker());
    assert!(matches!(run.status.code(), Some(0 | 5)), "{run:?}");
    let compared = ["ab", "--quick", "--budget", "0.5", "true", "true"];
    let ab = filtered(without_rights(&program, &compared), like_docker());
    assert_eq!(ab.status.code(), Some(0), "{ab:?}");
    let said = String::from_utf8_lossy(&ab.stdout);
    assert!(said.contains("program"), "{said}");
}

#[test]
fn denied_locks_do_not_look_like_another_run() {
    let output = without(libc::SYS_flock, libc::EPERM);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 5)), "{output:?}");
    assert!(said.contains("can be locked: Operation not permitted"), "{said}");
}

/// The program's answer without `/proc`; `None` if this system doesn't let a user unmount it.
fn without_proc(further: &[&str]) -> Option<Output> {
    let mut command = measuring();
    command.args(further);
    let hide = || {
        // SAFETY: the strings outlive the calls, which change only the new process.
        let hidden = unsafe {
            libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS) == 0
                && libc::mount(c"none".as_ptr(), c"/proc".as_ptr(), c"tmpfs".as_ptr(), 0, std::ptr::null()) == 0
        };
        if hidden { Ok(()) } else { Err(io::Error::last_os_error()) }
    };
    // SAFETY: makes two system calls and allocates nothing.
    unsafe { command.pre_exec(hide) };
    command.output().ok()
}

#[test]
fn without_proc_the_remedy_asks_to_mount_it() {
    let (Some(snippet), Some(copy)) = (without_proc(&[]), without_proc(&["--clock", "clock-gettime"])) else {
        report_left_out("this system lets no user mount anything in a name space of its own");
        return;
    };
    assert!(matches!(snippet.status.code(), Some(0 | 5)), "{snippet:?}");
    let said = String::from_utf8_lossy(&copy.stderr);
    assert_eq!(copy.status.code(), Some(3), "{said}");
    assert!(said.contains("mount -t proc"), "{said}");
}
