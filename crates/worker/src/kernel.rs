//! Numbers of the kernel's interface (Linux, x86-64): system calls and their arguments.

/// System calls (`arch/x86/entry/syscalls/syscall_64.tbl`).
pub mod call {
    #![allow(missing_docs)]
    pub const READ: i64 = 0;
    pub const WRITE: i64 = 1;
    pub const CLOSE: i64 = 3;
    pub const POLL: i64 = 7;
    pub const MMAP: i64 = 9;
    pub const MUNMAP: i64 = 11;
    pub const RT_SIGACTION: i64 = 13;
    pub const RT_SIGPROCMASK: i64 = 14;
    pub const MADVISE: i64 = 28;
    pub const IOCTL: i64 = 16;
    pub const SENDMSG: i64 = 46;
    pub const WAIT4: i64 = 61;
    pub const CHDIR: i64 = 80;
    pub const GETPPID: i64 = 110;
    pub const SETGROUPS: i64 = 116;
    pub const SETRESUID: i64 = 117;
    pub const SETRESGID: i64 = 119;
    pub const CAPGET: i64 = 125;
    pub const CAPSET: i64 = 126;
    pub const SIGALTSTACK: i64 = 131;
    pub const PRCTL: i64 = 157;
    pub const ARCH_PRCTL: i64 = 158;
    pub const CHROOT: i64 = 161;
    pub const FUTEX: i64 = 202;
    pub const SCHED_SETAFFINITY: i64 = 203;
    pub const CLOCK_GETTIME: i64 = 228;
    pub const EXIT_GROUP: i64 = 231;
    pub const OPENAT: i64 = 257;
    pub const PERF_EVENT_OPEN: i64 = 298;
    pub const PRLIMIT64: i64 = 302;
    pub const SECCOMP: i64 = 317;
    pub const RSEQ: i64 = 334;
    pub const CLOSE_RANGE: i64 = 436;
    pub const LANDLOCK_CREATE_RULESET: i64 = 444;
    pub const LANDLOCK_RESTRICT_SELF: i64 = 446;
}

macro_rules! numbers {
    ($type:ty: $($name:ident = $value:expr;)*) => {
        $(#[allow(missing_docs)] pub const $name: $type = $value;)*
    };
}

numbers! { i32:
    EPERM = 1;
    EBADF = 9;
    EEXIST = 17;
    EINVAL = 22;
    EFBIG = 27;
    SIGKILL = 9;
    SIGILL = 4;
    SIGTRAP = 5;
    SIGBUS = 7;
    SIGABRT = 6;
    SIGFPE = 8;
    SIGSEGV = 11;
    SIGTERM = 15;
    SIGSYS = 31;
}

numbers! { usize:
    PROT_READ = 1;
    PROT_WRITE = 2;
    PROT_EXEC = 4;
    MAP_SHARED = 0x1;
    MAP_PRIVATE = 0x2;
    MAP_FIXED = 0x10;
    MAP_ANONYMOUS = 0x20;
    MAP_FIXED_NOREPLACE = 0x10_0000;
    MAP_HUGETLB = 0x4_0000;
    MAP_HUGE_2MB = 21 << 26;
    MADV_DONTNEED = 4;
    MADV_HUGEPAGE = 14;
    MADV_NOHUGEPAGE = 15;
    FUTEX_WAIT = 0;
    FUTEX_WAKE = 1;
    PR_SET_PDEATHSIG = 1;
    PR_SET_DUMPABLE = 4;
    PR_SET_NAME = 15;
    PR_SET_NO_NEW_PRIVS = 38;
    PR_CAP_AMBIENT = 47;
    PR_CAP_AMBIENT_RAISE = 2;
    ARCH_SET_FS = 0x1002;
    RLIMIT_FSIZE = 1;
    RLIMIT_DATA = 2;
    RLIMIT_CORE = 4;
    RLIMIT_NPROC = 6;
    RLIMIT_NOFILE = 7;
    RLIMIT_MEMLOCK = 8;
    SIG_SETMASK = 2;
    SECCOMP_SET_MODE_FILTER = 1;
    SECCOMP_FILTER_FLAG_SPEC_ALLOW = 4;
    PERF_FLAG_FD_CLOEXEC = 8;
    POLLIN = 1;
    WNOHANG = 1;
    WAIT_ALL = 0x4000_0000;
    O_RDONLY = 0;
    O_WRONLY = 1;
    CLOCK_MONOTONIC = 1;
    CLOCK_THREAD_CPUTIME_ID = 3;
}

/// `AT_FDCWD`: names are relative to the current folder.
pub const AT_FDCWD: usize = -100isize as usize;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_c_library() {
        let calls = [
            (call::READ, libc::SYS_read),
            (call::WRITE, libc::SYS_write),
            (call::CLOSE, libc::SYS_close),
            (call::POLL, libc::SYS_poll),
            (call::MMAP, libc::SYS_mmap),
            (call::MUNMAP, libc::SYS_munmap),
            (call::RT_SIGACTION, libc::SYS_rt_sigaction),
            (call::RT_SIGPROCMASK, libc::SYS_rt_sigprocmask),
            (call::IOCTL, libc::SYS_ioctl),
            (call::MADVISE, libc::SYS_madvise),
            (call::WAIT4, libc::SYS_wait4),
            (call::CHDIR, libc::SYS_chdir),
            (call::GETPPID, libc::SYS_getppid),
            (call::SETGROUPS, libc::SYS_setgroups),
            (call::SETRESUID, libc::SYS_setresuid),
            (call::SETRESGID, libc::SYS_setresgid),
            (call::CAPGET, libc::SYS_capget),
            (call::CAPSET, libc::SYS_capset),
            (call::SIGALTSTACK, libc::SYS_sigaltstack),
            (call::PRCTL, libc::SYS_prctl),
            (call::ARCH_PRCTL, libc::SYS_arch_prctl),
            (call::CHROOT, libc::SYS_chroot),
            (call::FUTEX, libc::SYS_futex),
            (call::SCHED_SETAFFINITY, libc::SYS_sched_setaffinity),
            (call::CLOCK_GETTIME, libc::SYS_clock_gettime),
            (call::EXIT_GROUP, libc::SYS_exit_group),
            (call::OPENAT, libc::SYS_openat),
            (call::PERF_EVENT_OPEN, libc::SYS_perf_event_open),
            (call::PRLIMIT64, libc::SYS_prlimit64),
            (call::SECCOMP, libc::SYS_seccomp),
            (call::RSEQ, libc::SYS_rseq),
            (call::CLOSE_RANGE, libc::SYS_close_range),
            (call::LANDLOCK_CREATE_RULESET, libc::SYS_landlock_create_ruleset),
            (call::LANDLOCK_RESTRICT_SELF, libc::SYS_landlock_restrict_self),
        ];
        for (ours, theirs) in calls {
            assert_eq!(ours, theirs);
        }
        let signed = [
            (EPERM, libc::EPERM),
            (EBADF, libc::EBADF),
            (EEXIST, libc::EEXIST),
            (EINVAL, libc::EINVAL),
            (EFBIG, libc::EFBIG),
            (SIGKILL, libc::SIGKILL),
            (SIGILL, libc::SIGILL),
            (SIGTRAP, libc::SIGTRAP),
            (SIGBUS, libc::SIGBUS),
            (SIGFPE, libc::SIGFPE),
            (SIGABRT, libc::SIGABRT),
            (SIGTERM, libc::SIGTERM),
            (SIGSEGV, libc::SIGSEGV),
            (SIGSYS, libc::SIGSYS),
        ];
        for (ours, theirs) in signed {
            assert_eq!(ours, theirs);
        }
        let unsigned = [
            (PROT_READ, libc::PROT_READ as i64),
            (PROT_WRITE, libc::PROT_WRITE.into()),
            (PROT_EXEC, libc::PROT_EXEC.into()),
            (MAP_SHARED, libc::MAP_SHARED.into()),
            (MAP_PRIVATE, libc::MAP_PRIVATE.into()),
            (MAP_FIXED, libc::MAP_FIXED.into()),
            (MAP_ANONYMOUS, libc::MAP_ANONYMOUS.into()),
            (MAP_FIXED_NOREPLACE, libc::MAP_FIXED_NOREPLACE.into()),
            (MAP_HUGETLB, libc::MAP_HUGETLB.into()),
            (MAP_HUGE_2MB, libc::MAP_HUGE_2MB.into()),
            (MADV_DONTNEED, libc::MADV_DONTNEED.into()),
            (MADV_HUGEPAGE, libc::MADV_HUGEPAGE.into()),
            (MADV_NOHUGEPAGE, libc::MADV_NOHUGEPAGE.into()),
            (FUTEX_WAIT, libc::FUTEX_WAIT.into()),
            (FUTEX_WAKE, libc::FUTEX_WAKE.into()),
            (PR_SET_PDEATHSIG, libc::PR_SET_PDEATHSIG.into()),
            (PR_SET_DUMPABLE, libc::PR_SET_DUMPABLE.into()),
            (PR_SET_NAME, libc::PR_SET_NAME.into()),
            (PR_SET_NO_NEW_PRIVS, libc::PR_SET_NO_NEW_PRIVS.into()),
            (PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT.into()),
            (PR_CAP_AMBIENT_RAISE, libc::PR_CAP_AMBIENT_RAISE.into()),
            (RLIMIT_FSIZE, libc::RLIMIT_FSIZE.into()),
            (RLIMIT_DATA, libc::RLIMIT_DATA.into()),
            (RLIMIT_CORE, libc::RLIMIT_CORE.into()),
            (RLIMIT_NPROC, libc::RLIMIT_NPROC.into()),
            (RLIMIT_NOFILE, libc::RLIMIT_NOFILE.into()),
            (RLIMIT_MEMLOCK, libc::RLIMIT_MEMLOCK.into()),
            (SIG_SETMASK, libc::SIG_SETMASK.into()),
            (SECCOMP_SET_MODE_FILTER, libc::SECCOMP_SET_MODE_FILTER.into()),
            (SECCOMP_FILTER_FLAG_SPEC_ALLOW, libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW as i64),
            (POLLIN, libc::POLLIN.into()),
            (WNOHANG, libc::WNOHANG.into()),
            (WAIT_ALL, libc::__WALL.into()),
            (O_RDONLY, libc::O_RDONLY.into()),
            (O_WRONLY, libc::O_WRONLY.into()),
            (CLOCK_MONOTONIC, libc::CLOCK_MONOTONIC.into()),
            (CLOCK_THREAD_CPUTIME_ID, libc::CLOCK_THREAD_CPUTIME_ID.into()),
            (AT_FDCWD, libc::AT_FDCWD.into()),
        ];
        for (ours, theirs) in unsigned {
            assert_eq!(ours as i64, theirs);
        }
    }
}
