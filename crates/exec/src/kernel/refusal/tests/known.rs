//! Tests of register facts, and of instructions that drop them.

use super::*;

#[test]
fn a_known_register_number_holds_through_init_and_copies() {
    let (init, rdmsr) = (assemble("mov ecx, 0xe8"), assemble("rdmsr; add rax, rdx"));
    for looped in [None, Some(LoopPlan::PLAIN)] {
        let code = JudgedCode { init: &init, snippet: &rdmsr, copies: 1000, looped, following: &[] };
        assert_eq!(judge_code(code, RefusalRules::default()), Ok(()));
        let without = judge_code(JudgedCode { init: &[], ..code }, RefusalRules::default()).unwrap_err();
        assert_eq!((without.reason, without.offset), (RefusalReason::ModelSpecific, 0));
        // The clock writes to registers before the following code.
        assert!(judge_code(JudgedCode { following: &rdmsr, ..code }, RefusalRules::default()).is_err());
    }
}

#[test]
fn later_copies_and_iterations_are_judged_too() {
    let init = assemble("mov ecx, 0xe8");
    let once = assemble("rdmsr; mov ecx, 1");
    let code = JudgedCode { init: &init, snippet: &once, copies: 1, looped: None, following: &[] };
    assert_eq!(judge_code(code, RefusalRules::default()), Ok(()));
    for changed in [JudgedCode { copies: 2, ..code }, JudgedCode { looped: Some(LoopPlan::PLAIN), ..code }] {
        assert_eq!(judge_code(changed, RefusalRules::default()).unwrap_err().reason, RefusalReason::ModelSpecific);
    }
}

#[test]
fn the_loop_counter_is_never_known() {
    let (init, write) = (assemble("mov r15, cr0"), assemble("mov cr0, r15"));
    let code = JudgedCode { init: &init, snippet: &write, copies: 1, looped: None, following: &[] };
    assert_eq!(judge_code(code, RefusalRules::default()), Ok(()));
    let looped = judge_code(JudgedCode { looped: Some(LoopPlan::PLAIN), ..code }, RefusalRules::default());
    assert_eq!(looped.unwrap_err().reason, RefusalReason::MachineStatus);
}

#[test]
fn a_write_drops_the_register_fact() {
    let between = [
        "mov cl, 1",
        "mov ch, 1",
        "mov cx, 1",
        "inc rcx",
        "pop rcx",
        "cpuid",
        "rdtscp",
        "xchg rax, rcx",
        "rdpid rcx",
        "xadd rax, rcx",
        "rep stosb",
        "cmovz rcx, rax",
        "mulx rcx, rdx, rax",
        "pcmpistri xmm0, xmm1, 0",
        "bsf rcx, rax",
        "lea ecx, [rcx]",
        "loop 1f; 1: nop",
        "shl ecx, 0",
        "imul ecx, ecx, 1",
        "movd ecx, xmm0",
        "rdrand ecx",
        "cmpxchg rcx, rax",
        "setz cl",
        "lsl ecx, eax",
        "rdfsbase rcx",
        "xor ecx, eax",
        "sub ecx, ecx",
    ];
    for text in between {
        assert_eq!(reason(&format!("mov ecx, 0xe8; {text}; rdmsr")), Some(RefusalReason::ModelSpecific), "{text}");
    }
    for text in ["mov edx, 1", "add rax, rcx", "push rcx", "mov [r14], rcx", "test ecx, ecx", "wrmsr; rdmsr"] {
        let known = "mov ecx, 0xc0000101";
        assert_eq!(reason(&format!("{known}; {text}; rdmsr")), None, "{text}");
    }
    assert_eq!(reason("mov rax, cr0; mov eax, eax; mov cr0, rax"), Some(RefusalReason::MachineStatus));
    assert_eq!(reason("mov rax, cr0; mov cr0, rbx"), Some(RefusalReason::MachineStatus));
}

#[test]
fn joining_paths_keep_only_common_facts() {
    let joined = |other: &str| format!("mov ecx, 0xe8; jz 1f; {other}; 1: rdmsr");
    assert_eq!(reason(&joined("nop")), None);
    assert_eq!(reason(&joined("mov ecx, 0xe8")), None);
    assert_eq!(reason(&joined("mov ecx, 0xe7")), Some(RefusalReason::ModelSpecific));
    assert_eq!(reason(&joined("inc ecx")), Some(RefusalReason::ModelSpecific));
    assert_eq!(reason("mov ecx, 0xe8; 1: rdmsr; dec rax; jnz 1b"), None);
    assert_eq!(reason("mov ecx, 0xe8; 1: rdmsr; inc ecx; jnz 1b"), Some(RefusalReason::ModelSpecific));
    // An abort restores the registers.
    assert_eq!(reason("mov ecx, 0xe8; xbegin 1f; 1: rdmsr"), Some(RefusalReason::ModelSpecific));
}

#[test]
fn xcr0_is_known_only_from_its_own_read() {
    assert_eq!(reason("mov ecx, 0; xgetbv; nop; xsetbv"), None);
    let changed = ["mov ecx, 1; xgetbv; xor ecx, ecx; xsetbv", "mov ecx, 0; xgetbv; xchg eax, edx; xsetbv"];
    for text in changed.into_iter().chain(["xor ecx, ecx; xgetbv; mov ecx, 1; xsetbv", "xgetbv; xsetbv"]) {
        assert_eq!(reason(text), Some(RefusalReason::ExtendedState), "{text}");
    }
}

#[test]
fn a_locked_read_of_cr0_reads_another_register() {
    // lock mov rax, cr0; mov cr0, rax: the first is a read of CR8 on some processors.
    let bytes = [0xf0, 0x0f, 0x20, 0xc0, 0x0f, 0x22, 0xc0];
    assert_eq!(judge_code(snippet(&bytes), RefusalRules::default()).unwrap_err().reason, RefusalReason::MachineStatus);
}
