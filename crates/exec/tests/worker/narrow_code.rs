//! 32-bit code: what it costs, and hostile snippets of it.

use crate::faults::ExpectedOutcome::*;
use crate::faults::{HostileCase, case, check_result};
use crate::support::*;
use cyclescope_code::asm::{CodeMode, parse_for_mode};
use cyclescope_code::snippet::Snippet;
use cyclescope_core::error::RunError;
use cyclescope_exec::Executor;
use cyclescope_exec::user::{UserExecutor, UserOptions};
use std::time::Duration;

#[rustfmt::skip]
const CASES: &[HostileCase] = &[
    case("ud2", &[0x0f, 0x0b], Fault("SIGILL", "ud2 at +0x0 in the snippet")),
    // nop; mov eax, [0]
    case("null pointer", &[0x90, 0xa1, 0, 0, 0, 0], FaultAt("SIGSEGV", 0, "mov eax, [0] at +0x1 in the snippet")),
    // mov eax, [0xffff0000]
    case("pointer above the user's memory", &[0xa1, 0, 0, 0xff, 0xff], Fault("SIGSEGV", "mov eax, [")),
    // xor ecx, ecx; div ecx
    case("division by zero", &[0x31, 0xc9, 0xf7, 0xf1], Fault("SIGFPE", "div ecx at +0x2")),
    case("breakpoint", &[0x90, 0xcc], Fault("SIGTRAP", "int3 at +0x1 in the snippet")),
    case("icebp", &[0x90, 0xf1], Fault("SIGTRAP", "int1 at +0x1 in the snippet")),
    // mov al, 0x7f; inc al; into
    case("overflow", &[0xb0, 0x7f, 0xfe, 0xc0, 0xce], Fault("SIGSEGV", "into at +0x4")),
    // xor eax, eax; into
    case("into without overflow", &[0x31, 0xc0, 0xce], Ends),
    // mov eax, -1; bound eax, [esi]
    case("index out of bounds", &[0xb8, 0xff, 0xff, 0xff, 0xff, 0x62, 0x06], Fault("SIGSEGV", "bound eax, ")),
    case("hlt", &[0xf4], Fault("SIGSEGV", "hlt")),
    case("cli", &[0xfa], Fault("SIGSEGV", "cli")),
    case("in", &[0xec], Fault("SIGSEGV", "in al, dx")),
    // xor esp, esp; push eax
    case("push at esp 0", &[0x31, 0xe4, 0x50], Fault("SIGSEGV", "push eax at +0x2")),
    // mov esp, 8; ret
    case("ret from esp 8", &[0xbc, 8, 0, 0, 0, 0xc3], FaultAt("SIGSEGV", 8, "ret")),
    // mov eax, 0x1000; jmp eax
    case("wild jump", &[0xb8, 0, 0x10, 0, 0, 0xff, 0xe0], Wild("SIGSEGV", 0x1000)),
    // call next; next: pop ecx; mov byte [ecx], 0
    case("store to code", &[0xe8, 0, 0, 0, 0, 0x59, 0xc6, 0x01, 0], Fault("SIGSEGV", "mov byte ptr [ecx], 0")),
    // call 0:0
    case("far call without a segment", &[0x9a, 0, 0, 0, 0, 0, 0], Fault("SIGSEGV", "call ")),
    // call 0x10:0
    case("far call to the kernel's segment", &[0x9a, 0, 0, 0, 0, 0x10, 0], Fault("SIGSEGV", "call ")),
    // call 0x33:0x1000
    case("far call to 64-bit code", &[0x9a, 0, 0x10, 0, 0, 0x33, 0], Wild("SIGSEGV", 0x1000)),
    // call 0x23:0x1000
    case("far call to 32-bit code", &[0x9a, 0, 0x10, 0, 0, 0x23, 0], Wild("SIGSEGV", 0x1000)),
    // mov eax, 231; jmp 0x33:0x70001000: the harness's own system call
    case("far jump to the worker's system call", &[0xb8, 231, 0, 0, 0, 0xea, 0, 0x10, 0, 0x70, 0x33, 0], Any),
    // call next; next: pop ecx; lea ecx, [ecx+8]; push 0x33; push ecx; retf; ud2: 64-bit code
    case("far return to 64 bit",
        &[0xe8, 0, 0, 0, 0, 0x59, 0x8d, 0x49, 8, 0x6a, 0x33, 0x51, 0xcb, 0x0f, 0x0b], Fault("SIGILL", "ud2")),
    // mov eax, 0x2b; mov ds, eax; mov es, eax; mov fs, eax; mov gs, eax
    case("segments of data", &[0xb8, 0x2b, 0, 0, 0, 0x8e, 0xd8, 0x8e, 0xc0, 0x8e, 0xe0, 0x8e, 0xe8], Ends),
    // xor eax, eax; mov es, eax; mov fs, eax; mov gs, eax
    case("null segments", &[0x31, 0xc0, 0x8e, 0xc0, 0x8e, 0xe0, 0x8e, 0xe8], Ends),
    // xor eax, eax; mov ds, eax: the clock stores through DS.
    case("null data segment", &[0x31, 0xc0, 0x8e, 0xd8], Fault("SIGSEGV", "mov [")),
    // xor eax, eax; mov ss, eax
    case("null stack segment", &[0x31, 0xc0, 0x8e, 0xd0], Fault("SIGSEGV", "mov ss, ")),
    // mov dword [esi+4], 0x10; lds eax, [esi]
    case("kernel's segment as data", &[0xc7, 0x46, 4, 0x10, 0, 0, 0, 0xc5, 0x06], Fault("SIGSEGV", "lds eax, ")),
    // mov eax, 0x7b; mov ds, eax; mov eax, [esi]: a segment of a few bytes
    case("short data segment", &[0xb8, 0x7b, 0, 0, 0, 0x8e, 0xd8, 0x8b, 0x06], Any),
    // mov eax, 1; int 0x80
    case("exit", &[0xb8, 1, 0, 0, 0, 0xcd, 0x80], OneOf(&["SIGSYS", "SIGSEGV"], "int 0x80")),
    // mov eax, 2; int 0x80
    case("fork", &[0xb8, 2, 0, 0, 0, 0xcd, 0x80], OneOf(&["SIGSYS", "SIGSEGV"], "int 0x80")),
    // mov eax, 4; int 0x80
    case("write", &[0xb8, 4, 0, 0, 0, 0xcd, 0x80], OneOf(&["SIGSYS", "SIGSEGV"], "int 0x80")),
    // mov eax, 119; int 0x80
    case("sigreturn", &[0xb8, 119, 0, 0, 0, 0xcd, 0x80], OneOf(&["SIGSYS", "SIGSEGV"], "int 0x80")),
    // mov eax, 202; int 0x80: 64-bit code may make the call of this number
    case("call with an allowed number", &[0xb8, 202, 0, 0, 0, 0xcd, 0x80],
        OneOf(&["SIGSYS", "SIGSEGV"], "int 0x80")),
    // mov eax, 1; sysenter
    case("sysenter", &[0xb8, 1, 0, 0, 0, 0x0f, 0x34], Any),
    // mov eax, 1; syscall
    case("syscall", &[0xb8, 1, 0, 0, 0, 0x0f, 0x05], Any),
    // pushfd; or dword [esp], 0x100; popfd; nop
    case("TF", &[0x9c, 0x81, 0x0c, 0x24, 0, 1, 0, 0, 0x9d, 0x90], Fault("SIGTRAP", "nop at +0x9")),
    case("DF", &[0xfd], Ends),
    // pushfd; or dword [esp], 0x40000; popfd
    case("AC", &[0x9c, 0x81, 0x0c, 0x24, 0, 0, 4, 0, 0x9d], Ends),
    // pushfd; or dword [esp], 0x4000; popfd
    case("NT", &[0x9c, 0x81, 0x0c, 0x24, 0, 0x40, 0, 0, 0x9d], Ends),
    // … mov eax, [esi+1]
    case("AC and a misaligned load", &[0x9c, 0x81, 0x0c, 0x24, 0, 0, 4, 0, 0x9d, 0x8b, 0x46, 1],
        Fault("SIGBUS", "mov eax, [esi+1]")),
    // mov dword [esi], 0; ldmxcsr [esi]
    case("unmasked MXCSR", &[0xc7, 0x06, 0, 0, 0, 0, 0x0f, 0xae, 0x16], Ends),
    // … xorps xmm0, xmm0; divss xmm0, xmm0
    case("unmasked SSE exception",
        &[0xc7, 0x06, 0, 0, 0, 0, 0x0f, 0xae, 0x16, 0x0f, 0x57, 0xc0, 0xf3, 0x0f, 0x5e, 0xc0],
        Fault("SIGFPE", "divss xmm0, xmm0")),
    // pxor mm0, mm0
    case("MMX without emms", &[0x0f, 0xef, 0xc0], Ends),
];

fn assert_measures_narrow(user: &mut UserExecutor, after: &str) {
    let listing = parse_for_mode("imul eax, eax", CodeMode::Bits32, None).expect("assembly");
    let snippet = Snippet::new(listing.bytes().to_vec(), Vec::new(), "imul eax, eax").with_mode(CodeMode::Bits32);
    assert_measures_latency(user, &snippet, after);
}

/// An executor whose workers are copies of this process, with the functions in it.
fn spawn_for_functions() -> UserExecutor {
    let options = UserOptions { cpu: cpu(), functions: true, ..UserOptions::default() };
    UserExecutor::spawn(&options).expect("a worker")
}

/// Whether this system has 32-bit code; reports the reason if it hasn't.
fn has_narrow_code(user: &mut UserExecutor) -> bool {
    match run_program_once(user, once_in(CodeMode::Bits32, &[0x90]), Duration::from_secs(5)) {
        Err(RunError::Unavailable(error)) => {
            cyclescope_skipped::report_left_out(error);
            false
        }
        result => {
            result.expect("a NOP runs");
            true
        }
    }
}

#[test]
fn a_chain_costs_as_much_as_the_rulers() {
    let mut user = spawn();
    if has_narrow_code(&mut user) {
        assert_measures_narrow(&mut user, "a NOP");
        assert_measures(&mut user, "32-bit code");
    }
}

#[test]
fn every_hostile_snippet_of_32_bit_code_is_reported() {
    report_every_hostile_snippet(spawn());
}

#[test]
fn every_hostile_snippet_of_32_bit_code_is_reported_where_functions_are_called() {
    report_every_hostile_snippet(spawn_for_functions());
}

fn report_every_hostile_snippet(mut user: UserExecutor) {
    if !has_narrow_code(&mut user) {
        return;
    }
    for case in CASES {
        let result = run_program_once(&mut user, once_in(CodeMode::Bits32, case.bytes), Duration::from_secs(5));
        check_result(&result, case);
        let nop = run_program_once(&mut user, once_in(CodeMode::Bits32, &[0x90]), Duration::from_secs(5));
        assert!(nop.is_ok(), "after {}: {nop:?}", case.name);
    }
    assert_measures_narrow(&mut user, "all of them");
}

#[test]
fn a_function_in_this_process_is_called() {
    let mut user = spawn_for_functions();
    if !has_narrow_code(&mut user) {
        return;
    }
    const PAGE: usize = 4096;
    let at = cyclescope_exec::user::reserve_narrow_addresses(PAGE).expect("addresses");
    // inc eax; ret
    let code = [0x40, 0xc3];
    // SAFETY: the addresses are reserved for this test.
    unsafe {
        let all = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
        assert_eq!(libc::mprotect(at as *mut libc::c_void, PAGE, all), 0);
        (at as *mut u8).copy_from_nonoverlapping(code.as_ptr(), code.len());
    }
    drop(user);
    let mut user = spawn_for_functions();
    // mov ecx, function; mov eax, 1; call ecx; cmp eax, 2; je end; ud2; end:
    let mut snippet = vec![0xb9];
    snippet.extend((at as u32).to_le_bytes());
    snippet.extend([0xb8, 1, 0, 0, 0, 0xff, 0xd1, 0x83, 0xf8, 2, 0x74, 2, 0x0f, 0x0b]);
    let result = run_program_once(&mut user, once_in(CodeMode::Bits32, &snippet), Duration::from_secs(5));
    assert!(result.is_ok(), "{result:?}");
}

#[test]
fn an_endless_loop_is_ended_at_the_deadline() {
    let mut user = spawn();
    if has_narrow_code(&mut user) {
        let endless = once_in(CodeMode::Bits32, &[0xeb, 0xfe]);
        let result = run_program_once(&mut user, endless, Duration::from_millis(100));
        assert_eq!(result, Err(RunError::Hung { deadline_ms: 100 }));
        assert_measures_narrow(&mut user, "an endless loop");
    }
}

#[test]
fn programs_of_two_modes_are_no_batch() {
    let mut user = spawn();
    let programs = vec![once(&[0x90]), once_in(CodeMode::Bits32, &[0x90])];
    let result = user.run(&batch(programs, 1, Duration::from_secs(5)));
    assert!(matches!(result, Err(RunError::BadBatch(_))), "{result:?}");
}
