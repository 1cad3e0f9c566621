//! Each system call of three commands is refused in turn.

use crate::commands::{CommandBench, FORM, FUNCTION, MeasuredCommand, SNIPPET};
use crate::launcher::{CallDenial, CallSource, LauncherTask, check_support};
use crate::verdict::{ReferenceRun, judge_denial};
use cyclescope_skipped::{report_left_out, report_skipped};
use std::collections::BTreeSet;

/// A system call with errors of its own, beside those of filters.
struct KnownCall {
    number: i64,
    name: &'static str,
    errnos: &'static [i32],
}

/// Errors of mappings, of descriptors, of new processes, and of files on a full or broken disk.
const MAPPING: &[i32] = &[libc::ENOMEM];
const DESCRIPTOR: &[i32] = &[libc::EMFILE];
const PROCESS: &[i32] = &[libc::EAGAIN, libc::ENOMEM];
const STORAGE: &[i32] = &[libc::ENOSPC, libc::EIO];

macro_rules! known_calls {
    ($($name:ident: $errnos:expr;)*) => {
        &[$(KnownCall { number: libc::$name, name: stringify!($name), errnos: $errnos }),*]
    };
}

/// Calls of cyclescope on some machine (strace(1)). Others are refused too, and only lack a name.
const KNOWN_CALLS: &[KnownCall] = known_calls! {
    SYS_access: &[]; SYS_arch_prctl: &[]; SYS_brk: MAPPING; SYS_capget: &[]; SYS_capset: &[];
    SYS_chmod: &[]; SYS_clock_adjtime: &[]; SYS_clock_getres: &[]; SYS_clock_gettime: &[];
    SYS_clock_nanosleep: &[]; SYS_clone3: PROCESS; SYS_clone: PROCESS; SYS_close: &[];
    SYS_close_range: &[]; SYS_dup2: DESCRIPTOR; SYS_execve: &[libc::ENOMEM]; SYS_execveat: &[libc::ENOMEM];
    SYS_exit: &[]; SYS_exit_group: &[]; SYS_faccessat2: &[]; SYS_fallocate: STORAGE; SYS_fcntl: DESCRIPTOR;
    SYS_flock: &[]; SYS_fstat: &[]; SYS_fstatfs: &[]; SYS_ftruncate: STORAGE; SYS_futex: &[]; SYS_getcwd: &[];
    SYS_getdents64: &[]; SYS_geteuid: &[]; SYS_getpid: &[]; SYS_getppid: &[]; SYS_getrandom: &[];
    SYS_getrusage: &[]; SYS_gettid: &[]; SYS_ioctl: &[]; SYS_kill: &[]; SYS_landlock_create_ruleset: &[];
    SYS_landlock_restrict_self: &[]; SYS_lseek: &[]; SYS_madvise: MAPPING; SYS_memfd_create: DESCRIPTOR;
    SYS_mkdir: STORAGE; SYS_mkdirat: STORAGE; SYS_mmap: MAPPING; SYS_mprotect: MAPPING; SYS_mremap: MAPPING;
    SYS_munmap: MAPPING; SYS_nanosleep: &[]; SYS_newfstatat: &[]; SYS_open: DESCRIPTOR; SYS_openat: DESCRIPTOR;
    SYS_perf_event_open: DESCRIPTOR; SYS_pidfd_open: DESCRIPTOR; SYS_pidfd_send_signal: &[];
    SYS_pipe2: DESCRIPTOR; SYS_poll: MAPPING; SYS_ppoll: MAPPING; SYS_prctl: &[]; SYS_pread64: &[libc::EIO];
    SYS_prlimit64: &[]; SYS_read: &[libc::EIO]; SYS_readlink: &[]; SYS_recvfrom: &[]; SYS_rename: STORAGE;
    SYS_rmdir: &[]; SYS_rseq: &[]; SYS_rt_sigaction: &[]; SYS_rt_sigprocmask: &[]; SYS_rt_sigreturn: &[];
    SYS_sched_getaffinity: &[]; SYS_sched_setaffinity: &[libc::EINVAL]; SYS_seccomp: MAPPING; SYS_sendto: &[];
    SYS_set_robust_list: &[]; SYS_setgroups: &[]; SYS_setresgid: &[]; SYS_setresuid: &[libc::EAGAIN];
    SYS_setsid: &[]; SYS_sigaltstack: &[]; SYS_socketpair: DESCRIPTOR; SYS_statx: &[]; SYS_sysinfo: &[];
    SYS_syslog: &[]; SYS_umask: &[]; SYS_uname: &[]; SYS_unlink: &[]; SYS_unlinkat: &[]; SYS_vfork: PROCESS;
    SYS_wait4: &[]; SYS_waitid: &[]; SYS_write: STORAGE;
};

/// Why a refusal says nothing about this program.
fn exemption(call: i64, caller: CallSource, first: u32) -> Option<&'static str> {
    match call {
        libc::SYS_exit | libc::SYS_exit_group | libc::SYS_rt_sigreturn => Some("nothing ends without it"),
        libc::SYS_rseq | libc::SYS_set_robust_list if caller == CallSource::Program => {
            Some("the C library aborts where a thread lacks what the first one has")
        }
        libc::SYS_futex if caller == CallSource::Program => Some("the C library aborts if it can't wait"),
        // The kernel itself answers with the present end, which glibc compares with the requested one.
        libc::SYS_brk if first > 1 => Some("the C library takes an error number for the end of a larger heap"),
        _ => None,
    }
}

/// Errors with which filters refuse calls: those of old and of new containers.
const FILTER_ERRNOS: [i32; 2] = [libc::EPERM, libc::ENOSYS];
/// The first refused occurrence, and the number of refused ones.
const OCCURRENCES: [(u32, u32); 6] = [(1, u32::MAX), (2, u32::MAX), (3, u32::MAX), (1, 1), (2, 1), (4, 1)];

/// Which refusals are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DenialExtent {
    /// Each call once, with one error or another, from its first or its second occurrence on.
    Sample,
    /// Every error, at several occurrences.
    All,
}

/// The refusals of a command.
fn plan_denials(reference: &ReferenceRun, extent: DenialExtent) -> Vec<CallDenial> {
    let mut denials = Vec::new();
    for (&(caller, call), &seen) in &reference.calls {
        let own = find_known(call).map_or(&[][..], |known| known.errnos);
        let errnos: Vec<i32> = FILTER_ERRNOS.iter().chain(own).copied().collect();
        let all = errnos.iter().flat_map(|errno| OCCURRENCES.map(|(first, count)| (*errno, first, count)));
        // A tool that fails in one way or another is the same to its caller.
        let all = all.filter(|(errno, first, _)| caller != CallSource::Tool || (*first, *errno) == (1, errnos[0]));
        let usable: Vec<CallDenial> = all
            .filter(|(_, first, _)| *first <= seen && exemption(call, caller, *first).is_none())
            .map(|(errno, first, count)| CallDenial { call, caller, errno, first, count })
            .collect();
        match extent {
            DenialExtent::All => denials.extend(usable),
            DenialExtent::Sample => {
                // Which of them differs between calls.
                let step = (call as usize).wrapping_mul(7);
                let lasting: Vec<&CallDenial> =
                    usable.iter().filter(|denial| denial.count > 1 && denial.first < 3).collect();
                denials.extend((!lasting.is_empty()).then(|| *lasting[step % lasting.len()]));
            }
        }
    }
    denials
}

fn find_known(call: i64) -> Option<&'static KnownCall> {
    KNOWN_CALLS.iter().find(|known| known.number == call)
}

fn call_name(call: i64) -> String {
    let known = find_known(call).map(|known| known.name.trim_start_matches("SYS_").to_owned());
    known.unwrap_or_else(|| format!("system call {call}"))
}

/// Runs a command once for each refusal; returns what was wrong.
fn try_denials(
    bench: &CommandBench,
    command: MeasuredCommand,
    reference: &ReferenceRun,
    denials: Vec<CallDenial>,
) -> Vec<String> {
    bench.try_all(denials, |denial, cpu| {
        let outcome = bench.run(command, cpu, LauncherTask::Deny(denial), reference.limit, |_, _| {});
        let name = call_name(denial.call);
        judge_denial(&denial, &name, &outcome, reference)
            .map_err(|why| format!("{name} of {command:?}: {why}\n{}", outcome.describe()))
    })
}

/// Whether this system can refuse system calls.
fn has_support() -> bool {
    let supported = check_support();
    if let Err(error) = &supported {
        report_skipped(format_args!("this system lets no process answer the system calls of another one: {error}"));
    }
    supported.is_ok()
}

/// Whether the program that a command needs is installed.
fn has_tools(command: MeasuredCommand) -> bool {
    let is_installed = |tool: &str| std::process::Command::new(tool).arg("--version").output().is_ok();
    let missing = command.needs.filter(|tool| !is_installed(tool));
    if let Some(tool) = missing {
        report_left_out(format_args!("{tool} is not installed"));
    }
    missing.is_none()
}

/// Refuses the calls of the commands. With a sample, a call that several commands make is refused
/// in the first of them.
fn deny_calls(commands: &[MeasuredCommand], extent: DenialExtent) {
    if !has_support() {
        return;
    }
    let bench = CommandBench::new();
    let (mut wrong, mut tried, mut numbers, mut refused) = (Vec::new(), BTreeSet::new(), BTreeSet::new(), 0);
    for &command in commands {
        if !has_tools(command) {
            continue;
        }
        let reference = bench.reference(command);
        numbers.extend(reference.calls.keys().map(|(_, call)| *call));
        let mut denials = plan_denials(&reference, extent);
        denials.retain(|denial| tried.insert((denial.caller, denial.call)) || extent == DenialExtent::All);
        refused += denials.len();
        wrong.extend(try_denials(&bench, command, &reference, denials));
    }
    println!("{refused} refusals of {} system calls, {} wrong", numbers.len(), wrong.len());
    assert!(wrong.is_empty(), "{} of {refused}:\n{}", wrong.len(), wrong.join("\n"));
    // What a program with a C library needs to start, to map memory and to start a worker.
    assert!(numbers.len() >= 30, "{numbers:?}");
}

#[test]
fn each_refused_system_call_is_reported_or_done_without() {
    deny_calls(&[SNIPPET, FUNCTION, FORM], DenialExtent::Sample);
}

#[test]
fn a_thread_without_memory_names_the_refused_calls() {
    if !has_support() || !has_tools(FUNCTION) {
        return;
    }
    let bench = CommandBench::new();
    // The first thread extends its heap, and others map theirs.
    let denial =
        CallDenial { call: libc::SYS_mmap, caller: CallSource::Program, errno: libc::EPERM, first: 2, count: u32::MAX };
    let wrong = try_denials(&bench, FUNCTION, &bench.reference(FUNCTION), vec![denial]);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
#[ignore = "a thousand runs: `make fuzz`"]
fn every_refusal_to_a_snippet() {
    deny_calls(&[SNIPPET], DenialExtent::All);
}

#[test]
#[ignore = "a thousand runs: `make fuzz`"]
fn every_refusal_to_a_function() {
    deny_calls(&[FUNCTION], DenialExtent::All);
}

#[test]
#[ignore = "a thousand runs: `make fuzz`"]
fn every_refusal_to_an_instruction_form() {
    deny_calls(&[FORM], DenialExtent::All);
}
