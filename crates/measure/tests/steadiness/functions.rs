//! Functions whose first call does other work than later ones are found, and others are not.

use crate::{assemble, clock};
use cyclescope_code::program::EntryState;
use cyclescope_code::program::memory::{AreaFill, ProgramMemory};
use cyclescope_code::snippet::Snippet;
use cyclescope_core::machine::Machine;
use cyclescope_exec::user::{UserExecutor, UserOptions};
use cyclescope_measure::steadiness::{SteadinessReport, find_unsteady_states};
use std::collections::BTreeSet;
use std::ffi::{CString, c_char, c_int, c_void};
use std::process::Command;

unsafe extern "C" {
    fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}
const RTLD_NOW: c_int = 2;

const SOURCE: &str = include_str!("functions.c");
/// How names of functions begin.
const STATEFUL: &str = "stateful_";
const UNCHECKED: &str = "unchecked_";
const KINDS: [&str; 3] = [STATEFUL, "steady_", UNCHECKED];
const BUFFER_BYTES: u64 = 64 << 10;
const STACK_BYTES: u64 = 256 << 10;

/// Functions of libraries, with code that sets their arguments. R14 points to the buffer.
const LIBRARY_CALLS: [(&str, &str, &str); 35] = [
    ("libc.so.6", "memcpy", "mov rdi, r14; lea rsi, [r14+8192]; mov edx, 500"),
    ("libc.so.6", "memmove", "lea rdi, [r14+3]; mov rsi, r14; mov edx, 500"),
    ("libc.so.6", "memset", "mov rdi, r14; xor esi, esi; mov edx, 4096"),
    ("libc.so.6", "memcmp", "mov rdi, r14; lea rsi, [r14+8192]; mov edx, 500"),
    ("libc.so.6", "memchr", "mov rdi, r14; mov esi, 77; mov edx, 4096"),
    ("libc.so.6", "strlen", "mov rdi, r14"),
    ("libc.so.6", "strnlen", "mov rdi, r14; mov esi, 300"),
    ("libc.so.6", "strchr", "mov rdi, r14; mov esi, 65"),
    ("libc.so.6", "strrchr", "mov rdi, r14; mov esi, 65"),
    ("libc.so.6", "strcmp", "mov rdi, r14; lea rsi, [r14+8192]"),
    ("libc.so.6", "strncmp", "mov rdi, r14; mov rsi, r14; mov edx, 300"),
    ("libc.so.6", "strcpy", "lea rdi, [r14+16384]; mov rsi, r14"),
    ("libc.so.6", "strspn", "mov rdi, r14; lea rsi, [r14+8192]"),
    ("libc.so.6", "strcasecmp", "mov rdi, r14; mov rsi, r14"),
    ("libc.so.6", "atoi", "mov rdi, r14"),
    ("libc.so.6", "strtol", "mov rdi, r14; xor esi, esi; mov edx, 36"),
    ("libc.so.6", "strtod", "mov rdi, r14; xor esi, esi"),
    ("libc.so.6", "abs", "mov edi, -5"),
    ("libc.so.6", "toupper", "mov edi, 97"),
    ("libc.so.6", "isalpha", "mov edi, 97"),
    ("libc.so.6", "ffsll", "mov edi, 4096"),
    ("libc.so.6", "div", "mov edi, 77; mov esi, 5"),
    ("libc.so.6", "rand", "nop"),
    ("libc.so.6", "random", "nop"),
    ("libc.so.6", "wcslen", "mov rdi, r14"),
    ("libc.so.6", "swab", "mov rdi, r14; lea rsi, [r14+8192]; mov edx, 300"),
    ("libc.so.6", "memfrob", "mov rdi, r14; mov esi, 300"),
    ("libm.so.6", "sin", "mov rax, 0x3ff8000000000000; movq xmm0, rax"),
    ("libm.so.6", "exp", "mov rax, 0x3ff8000000000000; movq xmm0, rax"),
    ("libm.so.6", "pow", "mov rax, 0x3ff8000000000000; movq xmm0, rax; movq xmm1, rax"),
    ("libm.so.6", "fmod", "mov rax, 0x4059000000000000; movq xmm0, rax; mov rax, 0x3ff8000000000000; movq xmm1, rax"),
    ("libz.so.1", "crc32", "xor edi, edi; mov rsi, r14; mov edx, 4096"),
    ("libz.so.1", "adler32", "mov edi, 1; mov rsi, r14; mov edx, 4096"),
    ("libz.so.1", "compressBound", "mov edi, 4096"),
    ("libz.so.1", "crc32_combine", "mov edi, 4096; mov esi, 77; mov edx, 100"),
];

/// Finds a function in a library. `None` if one of both does not exist.
fn find_function(library: &str, name: &str) -> Option<u64> {
    let [library, name] = [library, name].map(|text| CString::new(text).expect("text without NUL"));
    // SAFETY: both names end with NUL. The libraries' initialisers may run in any program.
    let address = unsafe {
        let library = dlopen(library.as_ptr(), RTLD_NOW);
        if library.is_null() { library } else { dlsym(library, name.as_ptr()) }
    };
    (!address.is_null()).then_some(address as u64)
}

/// Checks the calls of a function, in a process that contains the libraries loaded so far.
fn check_function(function: u64, arguments: &str) -> SteadinessReport {
    let cpu = Machine::detect().target_cpu() as usize;
    let options = UserOptions { cpu, functions: true, ..UserOptions::default() };
    let mut executor = UserExecutor::spawn(&options).expect("a worker");
    let init = assemble(&format!("mov r12, {function:#x}"));
    let snippet = Snippet::new(assemble(&format!("{arguments}; call r12")), init, "a call");
    let memory = ProgramMemory::for_call(BUFFER_BYTES, AreaFill::Random(3), STACK_BYTES);
    find_unsteady_states(&mut executor, &snippet, clock(), EntryState::default(), &memory).expect("the harness works")
}

#[test]
fn functions_that_use_up_state_are_found_and_others_are_not() {
    let folder = std::env::temp_dir().join(format!("cyclescope-steadiness-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let [source, library] = ["functions.c", "functions.so"].map(|name| folder.join(name));
    std::fs::write(&source, SOURCE).expect("a file");
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-shared", "-fPIC", "-o"]).arg(&library).arg(&source);
    if !compiler.status().is_ok_and(|status| status.success()) {
        return cyclescope_skipped::report_skipped("no compiler makes a library here");
    }
    let names = SOURCE.split(|one: char| !one.is_ascii_alphanumeric() && one != '_');
    let is_measured = |name: &&str| KINDS.iter().any(|kind| name.starts_with(kind)) && !name.ends_with("_NAME");
    let names: BTreeSet<&str> = names.filter(is_measured).collect();
    let (mut stateful, mut steady, mut wrong) = (0, 0, Vec::new());
    for name in names {
        let function = find_function(library.to_str().expect("text"), name).expect("it is in the library");
        let SteadinessReport { states, unchecked } = check_function(function, "mov rdi, r14; mov rsi, r14");
        if name.starts_with(UNCHECKED) {
            if !states.is_empty() || !unchecked.as_ref().is_some_and(|reason| reason.contains("two calls take more")) {
                wrong.push(format!("{name}: {states:?} {unchecked:?}"));
            }
            continue;
        }
        let is_stateful = name.starts_with(STATEFUL);
        *if is_stateful { &mut stateful } else { &mut steady } += 1;
        let found = match name {
            _ if name.contains("short_root") => "floating-point divisions and square roots have short results in",
            _ if name.contains("few_division") => "divisions and square roots, and call",
            _ if name.contains("denormal") => "numbers are denormal in",
            _ if name.contains("division") => "the quotients of integer divisions have",
            _ if name.contains("growing_list") => "calls execute more and more instructions",
            _ if name.contains("growing_table") => "The counts of instructions are the same",
            _ => "the first call after a fresh start executes",
        };
        let names_cause = states.iter().all(|state| state.text.contains(found));
        if states.is_empty() == is_stateful || !names_cause || unchecked.is_some() {
            wrong.push(format!("{name}: {states:?} {unchecked:?}"));
        }
    }
    for (library, name, arguments) in LIBRARY_CALLS {
        let Some(function) = find_function(library, name) else {
            cyclescope_skipped::report_left_out(format!("{name}, which {library} lacks"));
            continue;
        };
        steady += 1;
        let SteadinessReport { states, unchecked } = check_function(function, arguments);
        if !states.is_empty() || unchecked.is_some() {
            wrong.push(format!("{name} of {library}: {states:?} {unchecked:?}"));
        }
    }
    let _ = std::fs::remove_dir_all(&folder);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(stateful >= 20 && steady >= 20, "{stateful} stateful functions, {steady} others");
}
