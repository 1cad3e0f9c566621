//! The filter of the worker's system calls.
//!
//! It allows these calls, and only from one instruction of the harness: to wait for a word of
//! memory and to wake a waiter (`futex`), to drop pages (`madvise`), to read two clocks, and to end. In a copy of this
//! process, `clock_gettime` may come from anywhere, because the vDSO falls back to it. If functions
//! may allocate, they may map, move and unmap private anonymous memory from anywhere, without code
//! and at addresses that the kernel chooses. They may also wake waiters of their own process, which
//! has none: `pthread_once` does so, and with it C++ exceptions. All other calls are refused, also
//! 32-bit and x32 calls.

use cyclescope_worker::view::CALL_AT;
use libc::sock_filter;

const AUDIT_ARCH_X86_64: u32 = 0xc000_003e;
/// Offsets in `struct seccomp_data` (Linux, `seccomp.h`); of an argument, its lower half.
const NUMBER_AT: u32 = 0;
const ARCH_AT: u32 = 4;
const ADDRESS_AT: u32 = 8;
const FIRST_ARGUMENT_AT: u32 = 16;
const SECOND_ARGUMENT_AT: u32 = 24;
const THIRD_ARGUMENT_AT: u32 = 32;
const FOURTH_ARGUMENT_AT: u32 = 40;

/// The next step after a test.
#[derive(Clone, Copy)]
enum FilterTarget {
    /// The next step.
    Next,
    Trap,
    Allow,
    /// The check of the instruction that calls.
    Origin,
    /// The check of a futex operation.
    Waiting,
    /// The check of the clock that is read.
    Timing,
    /// The check of `madvise`'s advice.
    Advising,
    /// The check of a new mapping.
    Mapping,
    /// The check of a moved mapping.
    Moving,
}

/// One instruction of the filter: its code, its number, and its targets if the test is true or
/// false.
struct FilterStep(u32, u32, [FilterTarget; 2]);

const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
const EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
const ANY_BIT: u32 = libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K;
const AND: u32 = libc::BPF_ALU | libc::BPF_AND | libc::BPF_K;
const RETURN: u32 = libc::BPF_RET | libc::BPF_K;

/// The operation that wakes waiters of the same process.
const WAKE_OWN: u32 = (libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG) as u32;

fn load_step(offset: u32) -> FilterStep {
    FilterStep(LOAD, offset, [FilterTarget::Next; 2])
}

fn call_step(number: i64, to: FilterTarget) -> FilterStep {
    FilterStep(EQUAL, number as u32, [to, FilterTarget::Next])
}

/// Builds the filter. `copy`: for a copy of this process with its libraries. `heap`: functions may
/// allocate.
pub(super) fn build_filter(copy: bool, heap: bool) -> Vec<sock_filter> {
    // A SYSCALL instruction has two bytes.
    let allowed = CALL_AT + 2;
    let mut steps = vec![
        load_step(ARCH_AT),
        FilterStep(EQUAL, AUDIT_ARCH_X86_64, [FilterTarget::Next, FilterTarget::Trap]),
        load_step(NUMBER_AT),
    ];
    if copy {
        steps.push(call_step(libc::SYS_clock_gettime, FilterTarget::Allow));
    }
    if heap {
        steps.extend([
            call_step(libc::SYS_mmap, FilterTarget::Mapping),
            call_step(libc::SYS_mremap, FilterTarget::Moving),
            call_step(libc::SYS_munmap, FilterTarget::Allow),
            // glibc's qsort reads the size of memory.
            call_step(libc::SYS_sysinfo, FilterTarget::Allow),
            call_step(libc::SYS_brk, FilterTarget::Allow),
            FilterStep(EQUAL, libc::SYS_futex as u32, [FilterTarget::Next, FilterTarget::Origin]),
            load_step(SECOND_ARGUMENT_AT),
            FilterStep(EQUAL, WAKE_OWN, [FilterTarget::Allow, FilterTarget::Origin]),
        ]);
    }
    let origin = steps.len();
    steps.extend([
        load_step(ADDRESS_AT),
        FilterStep(EQUAL, allowed as u32, [FilterTarget::Next, FilterTarget::Trap]),
        load_step(ADDRESS_AT + 4),
        FilterStep(EQUAL, (allowed >> 32) as u32, [FilterTarget::Next, FilterTarget::Trap]),
        load_step(NUMBER_AT),
        call_step(libc::SYS_futex, FilterTarget::Waiting),
        call_step(libc::SYS_clock_gettime, FilterTarget::Timing),
        call_step(libc::SYS_exit_group, FilterTarget::Allow),
        FilterStep(EQUAL, libc::SYS_madvise as u32, [FilterTarget::Advising, FilterTarget::Trap]),
    ]);
    let waiting = steps.len();
    steps.extend([
        load_step(SECOND_ARGUMENT_AT),
        FilterStep(EQUAL, libc::FUTEX_WAIT as u32, [FilterTarget::Allow, FilterTarget::Next]),
        FilterStep(EQUAL, libc::FUTEX_WAKE as u32, [FilterTarget::Allow, FilterTarget::Trap]),
    ]);
    let timing = steps.len();
    steps.extend([
        load_step(FIRST_ARGUMENT_AT),
        FilterStep(EQUAL, libc::CLOCK_MONOTONIC as u32, [FilterTarget::Allow, FilterTarget::Next]),
        FilterStep(EQUAL, libc::CLOCK_THREAD_CPUTIME_ID as u32, [FilterTarget::Allow, FilterTarget::Trap]),
    ]);
    let advising = steps.len();
    steps.extend([
        load_step(THIRD_ARGUMENT_AT),
        FilterStep(EQUAL, libc::MADV_DONTNEED as u32, [FilterTarget::Allow, FilterTarget::Trap]),
    ]);
    let kind = libc::MAP_TYPE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE;
    let wanted = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let mapping = steps.len();
    steps.extend([
        load_step(THIRD_ARGUMENT_AT),
        FilterStep(ANY_BIT, libc::PROT_EXEC as u32, [FilterTarget::Trap, FilterTarget::Next]),
        load_step(FOURTH_ARGUMENT_AT),
        FilterStep(AND, kind as u32, [FilterTarget::Next; 2]),
        FilterStep(EQUAL, wanted as u32, [FilterTarget::Allow, FilterTarget::Trap]),
    ]);
    let moving = steps.len();
    steps.extend([
        load_step(FOURTH_ARGUMENT_AT),
        FilterStep(ANY_BIT, libc::MREMAP_FIXED as u32, [FilterTarget::Trap, FilterTarget::Allow]),
    ]);
    let trap = steps.len();
    steps.push(FilterStep(RETURN, libc::SECCOMP_RET_TRAP, [FilterTarget::Next; 2]));
    steps.push(FilterStep(RETURN, libc::SECCOMP_RET_ALLOW, [FilterTarget::Next; 2]));
    let place = |to: FilterTarget, at: usize| match to {
        FilterTarget::Next => at + 1,
        FilterTarget::Trap => trap,
        FilterTarget::Allow => trap + 1,
        FilterTarget::Origin => origin,
        FilterTarget::Waiting => waiting,
        FilterTarget::Timing => timing,
        FilterTarget::Advising => advising,
        FilterTarget::Mapping => mapping,
        FilterTarget::Moving => moving,
    };
    // Jumps count from the instruction after them.
    let jump = |to, at| (place(to, at) - at - 1) as u8;
    let encoded = |(at, FilterStep(code, k, [yes, no])): (usize, &FilterStep)| sock_filter {
        code: *code as u16,
        jt: jump(*yes, at),
        jf: jump(*no, at),
        k: *k,
    };
    steps.iter().enumerate().map(encoded).collect()
}
