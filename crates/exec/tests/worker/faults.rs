//! Hostile snippets, each followed by a measurement from the same process.

use crate::support::*;
use cyclescope_core::error::RunError;
use cyclescope_core::machine::features::allows_fsgsbase;
use cyclescope_exec::user::UserExecutor;
use cyclescope_exec::{Executor, Sample};
use std::time::Duration;

/// The expected result of a snippet.
pub enum ExpectedOutcome {
    /// It ends, and the changes it leaves behind are undone.
    Ends,
    /// A signal, in an instruction whose text starts with this.
    Fault(&'static str, &'static str),
    /// One of these signals, depending on the kernel's configuration, in an instruction whose text
    /// starts with this.
    OneOf(&'static [&'static str], &'static str),
    /// A signal at an address.
    FaultAt(&'static str, u64, &'static str),
    /// A signal, with control outside of every program.
    Wild(&'static str, u64),
    /// Any of these results, depending on processor and kernel. A kernel before 6.12 cannot deliver
    /// a signal if protection keys forbid the signal stack, and kills the worker.
    Any,
}

use ExpectedOutcome::*;

pub struct HostileCase {
    pub name: &'static str,
    pub bytes: &'static [u8],
    expected: ExpectedOutcome,
    /// The CPU feature that it needs, or a bit of AT_HWCAP2.
    needs: CaseNeeds,
}

#[derive(PartialEq)]
pub enum CaseNeeds {
    Nothing,
    Fsgsbase,
    Avx,
    Avx512,
    Pku,
}

pub const fn case(name: &'static str, bytes: &'static [u8], expected: ExpectedOutcome) -> HostileCase {
    HostileCase { name, bytes, expected, needs: CaseNeeds::Nothing }
}

const fn with(needs: CaseNeeds, name: &'static str, bytes: &'static [u8], expected: ExpectedOutcome) -> HostileCase {
    HostileCase { name, bytes, expected, needs }
}

#[rustfmt::skip]
const CASES: &[HostileCase] = &[
    case("ud2", &[0x0f, 0x0b], Fault("SIGILL", "ud2 at +0x0 in the snippet")),
    // nop; mov rax, [0]
    case("null pointer", &[0x90, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0],
        FaultAt("SIGSEGV", 0, "mov rax, [0] at +0x1 in the snippet")),
    // mov rax, 1 << 63; mov rax, [rax]
    case("non-canonical pointer", &[0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x48, 0x8b, 0x00],
        Fault("SIGSEGV", "mov rax, [rax] at +0xa")),
    // mov rbp, 1 << 63; mov rax, [rbp]
    case("non-canonical stack", &[0x48, 0xbd, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x48, 0x8b, 0x45, 0],
        Fault("SIGBUS", "mov rax, [rbp]")),
    // xor ecx, ecx; div ecx
    case("division by zero", &[0x31, 0xc9, 0xf7, 0xf1], Fault("SIGFPE", "div ecx at +0x2")),
    case("breakpoint", &[0x90, 0xcc], Fault("SIGTRAP", "int3 at +0x1 in the snippet")),
    // Processor and hypervisor decide whether INT1's address or the next one is saved.
    case("icebp", &[0x90, 0xf1], Fault("SIGTRAP", "int1 at +0x1 in the snippet")),
    // nop; int1; ud2
    case("icebp before another instruction", &[0x90, 0xf1, 0x0f, 0x0b], Fault("SIGTRAP", "int1 at +0x1")),
    case("icebp twice", &[0x90, 0xf1, 0xf1], Fault("SIGTRAP", "int1 at +0x1")),
    // nop; 66 int1
    case("icebp with a prefix", &[0x90, 0x66, 0xf1], Fault("SIGTRAP", "int1 at +0x1")),
    // nop; int 3; nop
    case("breakpoint by its number", &[0x90, 0xcd, 3, 0x90], Fault("SIGTRAP", "int 3 at +0x1")),
    // nop; int 4; nop
    case("overflow by its number", &[0x90, 0xcd, 4, 0x90], Fault("SIGSEGV", "int 4 at +0x1")),
    // nop; int 1; nop: its gate is closed to user mode, which raises a fault.
    case("debug exception by its number", &[0x90, 0xcd, 1, 0x90], Fault("SIGSEGV", "int 1 at +0x1")),
    case("hlt", &[0xf4], Fault("SIGSEGV", "hlt")),
    case("cli", &[0xfa], Fault("SIGSEGV", "cli")),
    case("in", &[0xec], Fault("SIGSEGV", "in al, dx")),
    // xor esp, esp; push rax
    case("push at rsp 0", &[0x31, 0xe4, 0x50], Fault("SIGSEGV", "push rax at +0x2")),
    // mov esp, 8; ret
    case("ret from rsp 8", &[0xbc, 8, 0, 0, 0, 0xc3], FaultAt("SIGSEGV", 8, "ret")),
    // sub rsp, 0x90000; push rax
    case("stack overflow", &[0x48, 0x81, 0xec, 0, 0, 9, 0, 0x50], Fault("SIGSEGV", "push rax at +0x7")),
    // mov eax, 0x1000; jmp rax
    case("wild jump", &[0xb8, 0, 0x10, 0, 0, 0xff, 0xe0], Wild("SIGSEGV", 0x1000)),
    // mov byte [rip], 0
    case("store to code", &[0xc6, 0x05, 0, 0, 0, 0, 0], Fault("SIGSEGV", "mov byte ptr [7], 0")),
    // mov eax, 1; syscall
    case("write", &[0xb8, 1, 0, 0, 0, 0x0f, 0x05], Fault("SIGSYS", "syscall (system call 1) at +0x5")),
    // mov eax, 231; syscall
    case("exit_group", &[0xb8, 231, 0, 0, 0, 0x0f, 0x05], Fault("SIGSYS", "syscall (system call 231)")),
    // mov eax, 202; syscall
    case("futex", &[0xb8, 202, 0, 0, 0, 0x0f, 0x05], Fault("SIGSYS", "syscall (system call 202)")),
    // mov eax, 15; syscall
    case("rt_sigreturn", &[0xb8, 15, 0, 0, 0, 0x0f, 0x05], Fault("SIGSYS", "syscall (system call 15)")),
    // mov eax, 0x40000000; syscall
    case("x32 read", &[0xb8, 0, 0, 0, 0x40, 0x0f, 0x05],
        Fault("SIGSYS", "syscall (system call 1073741824)")),
    // mov eax, 4; int 0x80. Its gate is closed if the kernel runs no 32-bit programs, as in some
    // guests.
    case("int 0x80", &[0xb8, 4, 0, 0, 0, 0xcd, 0x80], OneOf(&["SIGSYS", "SIGSEGV"], "int 0x80")),
    // mov eax, 228; int 0x80: 64-bit code may make the call of this number
    case("32-bit call with an allowed number", &[0xb8, 228, 0, 0, 0, 0xcd, 0x80],
        OneOf(&["SIGSYS", "SIGSEGV"], "int 0x80")),
    // mov eax, 1; sysenter
    case("sysenter", &[0xb8, 1, 0, 0, 0, 0x0f, 0x34], Any),
    // mov rax, 0xffffffffff600000; call rax
    case("vsyscall", &[0x48, 0xc7, 0xc0, 0, 0, 0x60, 0xff, 0xff, 0xd0], Any),
    // pushfq; or dword [rsp], 0x100; popfq; nop
    case("TF", &[0x9c, 0x81, 0x0c, 0x24, 0, 1, 0, 0, 0x9d, 0x90], Fault("SIGTRAP", "nop at +0x9")),
    // … nop; int1: the step ends at INT1.
    case("TF before icebp", &[0x9c, 0x81, 0x0c, 0x24, 0, 1, 0, 0, 0x9d, 0x90, 0xf1],
        Fault("SIGTRAP", "nop at +0x9")),
    case("DF", &[0xfd], Ends),
    // pushfq; or dword [rsp], 0x40000; popfq
    case("AC", &[0x9c, 0x81, 0x0c, 0x24, 0, 0, 4, 0, 0x9d], Ends),
    // pushfq; or dword [rsp], 0x4000; popfq
    case("NT", &[0x9c, 0x81, 0x0c, 0x24, 0, 0x40, 0, 0, 0x9d], Ends),
    // pushfq; or dword [rsp], 0x40000; popfq; mov eax, [rsi+1]
    case("AC and a misaligned load", &[0x9c, 0x81, 0x0c, 0x24, 0, 0, 4, 0, 0x9d, 0x8b, 0x46, 1],
        Fault("SIGBUS", "mov eax, [rsi+1]")),
    // pushfq; or dword [rsp], 0x40000; popfq; ud2
    case("AC and ud2", &[0x9c, 0x81, 0x0c, 0x24, 0, 0, 4, 0, 0x9d, 0x0f, 0x0b], Fault("SIGILL", "ud2")),
    // std; xor ecx, ecx; div ecx
    case("DF and a fault", &[0xfd, 0x31, 0xc9, 0xf7, 0xf1], Fault("SIGFPE", "div ecx")),
    // mov dword [rsi], 0; ldmxcsr [rsi]
    case("unmasked MXCSR", &[0xc7, 0x06, 0, 0, 0, 0, 0x0f, 0xae, 0x16], Ends),
    // … xorps xmm0, xmm0; divss xmm0, xmm0
    case("unmasked SSE exception",
        &[0xc7, 0x06, 0, 0, 0, 0, 0x0f, 0xae, 0x16, 0x0f, 0x57, 0xc0, 0xf3, 0x0f, 0x5e, 0xc0],
        Fault("SIGFPE", "divss xmm0, xmm0")),
    // fld1, eight times; fld1 overflows the stack
    case("full x87 stack", &[0xd9, 0xe8, 0xd9, 0xe8, 0xd9, 0xe8, 0xd9, 0xe8, 0xd9, 0xe8, 0xd9, 0xe8, 0xd9,
        0xe8, 0xd9, 0xe8, 0xd9, 0xe8], Ends),
    // pxor mm0, mm0
    case("MMX without emms", &[0x0f, 0xef, 0xc0], Ends),
    // mov word [rsi], 0; fldcw [rsi]; fldz; fld1; fdiv st, st(1)
    case("pending x87 exception",
        &[0x66, 0xc7, 0x06, 0, 0, 0xd9, 0x2e, 0xd9, 0xee, 0xd9, 0xe8, 0xd8, 0xf1], Ends),
    // … fwait
    case("unmasked x87 exception",
        &[0x66, 0xc7, 0x06, 0, 0, 0xd9, 0x2e, 0xd9, 0xee, 0xd9, 0xe8, 0xd8, 0xf1, 0x9b],
        Fault("SIGFPE", "fwait")),
    // xor eax, eax; mov fs, eax; mov gs, eax; mov ds, eax; mov es, eax
    case("null segments", &[0x31, 0xc0, 0x8e, 0xe0, 0x8e, 0xe8, 0x8e, 0xd8, 0x8e, 0xc0], Ends),
    // xor eax, eax; mov ss, ax
    case("null stack segment", &[0x31, 0xc0, 0x8e, 0xd0], Fault("SIGSEGV", "mov ss, ax")),
    // lea rcx, [rip+5]; push 0x23; push rcx; retfq; ud2: continues as 32-bit code
    case("far return to 32 bit", &[0x48, 0x8d, 0x0d, 5, 0, 0, 0, 0x6a, 0x23, 0x51, 0x48, 0xcb, 0x0f, 0x0b],
        Any),
    // mov eax, 0x12345678; wrfsbase rax
    with(CaseNeeds::Fsgsbase, "FS base", &[0xb8, 0x78, 0x56, 0x34, 0x12, 0xf3, 0x48, 0x0f, 0xae, 0xd0], Ends),
    with(CaseNeeds::Fsgsbase, "GS base", &[0xb8, 0x78, 0x56, 0x34, 0x12, 0xf3, 0x48, 0x0f, 0xae, 0xd8], Ends),
    // mov eax, 0x12345678; wrfsbase rax; ud2
    with(CaseNeeds::Fsgsbase, "FS base and a fault",
        &[0xb8, 0x78, 0x56, 0x34, 0x12, 0xf3, 0x48, 0x0f, 0xae, 0xd0, 0x0f, 0x0b], Fault("SIGILL", "ud2")),
    // vpcmpeqd ymm0, ymm0, ymm0
    with(CaseNeeds::Avx, "dirty upper halves", &[0xc5, 0xfd, 0x76, 0xc0], Ends),
    // vpternlogd zmm0, zmm0, zmm0, 0xff
    with(CaseNeeds::Avx512, "dirty upper three quarters", &[0x62, 0xf3, 0x7d, 0x48, 0x25, 0xc0, 0xff], Ends),
    // xor ecx, ecx; xor edx, edx; mov eax, -1; wrpkru
    with(CaseNeeds::Pku, "protection keys", &[0x31, 0xc9, 0x31, 0xd2, 0xb8, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x01,
        0xef], Any),
];

fn present(needs: &CaseNeeds) -> bool {
    match needs {
        CaseNeeds::Nothing => true,
        CaseNeeds::Fsgsbase => allows_fsgsbase(),
        CaseNeeds::Avx => std::is_x86_feature_detected!("avx2"),
        CaseNeeds::Avx512 => std::is_x86_feature_detected!("avx512f"),
        CaseNeeds::Pku => {
            raw_cpuid::CpuId::new().get_extended_feature_info().is_some_and(|features| features.has_ospke())
        }
    }
}

fn check(user: &mut UserExecutor, case: &HostileCase) {
    let result = run_once(user, case.bytes, Duration::from_secs(5));
    check_result(&result, case);
}

/// Checks what a snippet did.
pub fn check_result(result: &Result<Vec<Sample>, RunError>, case: &HostileCase) {
    let name = case.name;
    let fault = |expected: &[&str]| match result {
        Err(RunError::Fault { signal, address, instruction, .. }) => {
            assert!(expected.contains(signal), "{name}: {result:?}");
            (*address, instruction.clone())
        }
        other => panic!("{name}: {other:?} instead of {expected:?}"),
    };
    let starts = |instruction: Option<String>, text: &str| {
        let instruction = instruction.unwrap_or_default();
        assert!(instruction.starts_with(text), "{name}: {instruction:?} instead of {text:?}");
    };
    match case.expected {
        Ends => assert!(result.is_ok(), "{name}: {result:?}"),
        Fault(signal, text) => starts(fault(&[signal]).1, text),
        OneOf(signals, text) => starts(fault(signals).1, text),
        FaultAt(signal, at, text) => {
            let (address, instruction) = fault(&[signal]);
            assert_eq!(address, at, "{name}");
            starts(instruction, text);
        }
        Wild(signal, at) => assert_eq!(fault(&[signal]), (at, None), "{name}"),
        Any => assert!(
            matches!(result, Ok(_) | Err(RunError::Fault { .. } | RunError::WorkerLost { .. })),
            "{name}: {result:?}"
        ),
    }
}

#[test]
fn every_hostile_snippet_is_reported_and_the_next_batch_measures() {
    let mut user = spawn();
    for case in CASES {
        if !present(&case.needs) {
            cyclescope_skipped::report_left_out(format_args!("the CPU lacks the feature: {}", case.name));
            continue;
        }
        check(&mut user, case);
        assert_measures(&mut user, case.name);
    }
}

#[test]
fn a_fault_without_an_address_reports_the_address_of_the_instruction() {
    let mut user = spawn();
    // nop; hlt
    let general_protection: &[u8] = &[0x90, 0xf4];
    // pushfq; or dword [rsp], 0x40000; popfq; mov eax, [rsi+1]
    let alignment_check = &[0x9c, 0x81, 0x0c, 0x24, 0, 0, 4, 0, 0x9d, 0x8b, 0x46, 1];
    for snippet in [general_protection, alignment_check] {
        let result = run_once(&mut user, snippet, Duration::from_secs(5));
        let rip = user.last_fault().expect("a fault").rip;
        assert!(matches!(result, Err(RunError::Fault { address, .. }) if address == rip), "{result:?}");
    }
}

#[test]
fn an_endless_loop_is_ended_at_the_deadline() {
    let mut user = spawn();
    // jmp $, as if it had blocked all signals: only the caller's clock ends it.
    let result = run_once(&mut user, &[0xeb, 0xfe], Duration::from_millis(100));
    assert_eq!(result, Err(RunError::Hung { deadline_ms: 100 }));
    assert_measures(&mut user, "an endless loop");
}

#[test]
fn a_deadline_in_the_middle_of_a_batch_ends_it() {
    let mut user = spawn();
    // mov ecx, 200000; dec ecx; jnz $-2: a thousand calls of 50 µs or more
    let slow = once(&[0xb9, 0x40, 0x0d, 0x03, 0x00, 0xff, 0xc9, 0x75, 0xfc]);
    let batch = batch(vec![slow], 1000, Duration::from_millis(30));
    assert_eq!(user.run(&batch), Err(RunError::Hung { deadline_ms: 30 }));
    assert_measures(&mut user, "a batch that took too long");
}
