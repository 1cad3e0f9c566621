//! The filter of the worker's system calls.
//!
//! It allows three system calls, and those only from one instruction of the harness: to wait for a word of memory and to
//! wake who waits (`futex`), to drop pages (`madvise`), and to end. In a copy of this process `clock_gettime` may come from
//! anywhere, for the vDSO falls back to it. Where functions may allocate, private anonymous memory too may be mapped,
//! moved and unmapped from anywhere, at addresses of the kernel's choice and without code. Everything else is refused,
//! 32-bit and x32 calls too.

use cyclescope_worker::view::CALL_AT;
use libc::sock_filter;

const AUDIT_ARCH_X86_64: u32 = 0xc000_003e;
/// Offsets in `struct seccomp_data` (Linux, `seccomp.h`), of an argument those of its lower half.
const NUMBER: u32 = 0;
const ARCH: u32 = 4;
const ADDRESS: u32 = 8;
const SECOND_ARGUMENT: u32 = 24;
const THIRD_ARGUMENT: u32 = 32;
const FOURTH_ARGUMENT: u32 = 40;

/// Where a step goes on.
#[derive(Clone, Copy)]
enum To {
    /// The next step.
    On,
    Trap,
    Allow,
    /// The check of how a word is used.
    Waiting,
    /// The check of what pages are advised.
    Advising,
    /// The check of what is mapped.
    Mapping,
    /// The check of what is moved.
    Moving,
}

/// One instruction of the filter: what it does with its number, and where it goes if that is true or false.
struct Step(u32, u32, [To; 2]);

const LOAD: u32 = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
const EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
const ANY_BIT: u32 = libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K;
const AND: u32 = libc::BPF_ALU | libc::BPF_AND | libc::BPF_K;
const RETURN: u32 = libc::BPF_RET | libc::BPF_K;

fn load(offset: u32) -> Step {
    Step(LOAD, offset, [To::On; 2])
}

fn call(number: i64, to: To) -> Step {
    Step(EQUAL, number as u32, [to, To::On])
}

/// The filter: for a `copy` of this process with its libraries, in which with `heap` functions may allocate.
pub(super) fn filter(copy: bool, heap: bool) -> Vec<sock_filter> {
    // A SYSCALL instruction has two bytes.
    let allowed = CALL_AT + 2;
    let mut steps = vec![load(ARCH), Step(EQUAL, AUDIT_ARCH_X86_64, [To::On, To::Trap]), load(NUMBER)];
    if copy {
        steps.push(call(libc::SYS_clock_gettime, To::Allow));
    }
    if heap {
        steps.extend([
            call(libc::SYS_mmap, To::Mapping),
            call(libc::SYS_mremap, To::Moving),
            call(libc::SYS_munmap, To::Allow),
            // glibc's qsort asks for the size of memory.
            call(libc::SYS_sysinfo, To::Allow),
            call(libc::SYS_brk, To::Allow),
        ]);
    }
    steps.extend([
        load(ADDRESS),
        Step(EQUAL, allowed as u32, [To::On, To::Trap]),
        load(ADDRESS + 4),
        Step(EQUAL, (allowed >> 32) as u32, [To::On, To::Trap]),
        load(NUMBER),
        call(libc::SYS_futex, To::Waiting),
        call(libc::SYS_exit_group, To::Allow),
        Step(EQUAL, libc::SYS_madvise as u32, [To::Advising, To::Trap]),
    ]);
    let waiting = steps.len();
    steps.extend([
        load(SECOND_ARGUMENT),
        Step(EQUAL, libc::FUTEX_WAIT as u32, [To::Allow, To::On]),
        Step(EQUAL, libc::FUTEX_WAKE as u32, [To::Allow, To::Trap]),
    ]);
    let advising = steps.len();
    steps.extend([load(THIRD_ARGUMENT), Step(EQUAL, libc::MADV_DONTNEED as u32, [To::Allow, To::Trap])]);
    let kind = libc::MAP_TYPE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE;
    let wanted = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let mapping = steps.len();
    steps.extend([
        load(THIRD_ARGUMENT),
        Step(ANY_BIT, libc::PROT_EXEC as u32, [To::Trap, To::On]),
        load(FOURTH_ARGUMENT),
        Step(AND, kind as u32, [To::On; 2]),
        Step(EQUAL, wanted as u32, [To::Allow, To::Trap]),
    ]);
    let moving = steps.len();
    steps.extend([load(FOURTH_ARGUMENT), Step(ANY_BIT, libc::MREMAP_FIXED as u32, [To::Trap, To::Allow])]);
    let trap = steps.len();
    steps.push(Step(RETURN, libc::SECCOMP_RET_TRAP, [To::On; 2]));
    steps.push(Step(RETURN, libc::SECCOMP_RET_ALLOW, [To::On; 2]));
    let place = |to: To, at: usize| match to {
        To::On => at + 1,
        To::Trap => trap,
        To::Allow => trap + 1,
        To::Waiting => waiting,
        To::Advising => advising,
        To::Mapping => mapping,
        To::Moving => moving,
    };
    // Jumps count from the instruction after them.
    let jump = |to, at| (place(to, at) - at - 1) as u8;
    let encoded = |(at, Step(code, k, [yes, no])): (usize, &Step)| sock_filter {
        code: *code as u16,
        jt: jump(*yes, at),
        jf: jump(*no, at),
        k: *k,
    };
    steps.iter().enumerate().map(encoded).collect()
}
