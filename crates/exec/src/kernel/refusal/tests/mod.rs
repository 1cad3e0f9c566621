//! Refused and allowed code, on small examples.

mod branches;
mod document;
mod every_code;
mod known;
mod random;

use super::*;

/// Machine code of Intel-syntax text; semicolons separate statements.
fn assemble(text: &str) -> Vec<u8> {
    let lines = text.split(';').map(str::trim).collect::<Vec<_>>().join("\n");
    cyclescope_code::asm::parse_assembly(&lines).unwrap_or_else(|error| panic!("{text}: {error}")).bytes().to_vec()
}

fn snippet(bytes: &[u8]) -> JudgedCode<'_> {
    JudgedCode { init: &[], snippet: bytes, copies: 3, looped: None, following: &[] }
}

/// The reason why some code is refused; `None` if it may run.
fn reason(text: &str) -> Option<RefusalReason> {
    judge_code(snippet(&assemble(text)), RefusalRules::default()).err().map(|refusal| refusal.reason)
}

fn alone(text: &str) -> Option<RefusalReason> {
    judge_code(snippet(&assemble(text)), RefusalRules { lone_cpu: true }).err().map(|refusal| refusal.reason)
}

#[test]
fn code_whose_effect_is_not_restored_is_refused() {
    let table: &[(RefusalReason, &[&str])] = &[
        (RefusalReason::PageTables, &["mov cr3, rax", "mov rax, cr3; mov cr3, rax"]),
        (RefusalReason::ControlRegister, &["mov cr4, rax", "mov rax, cr4; mov cr4, rax"]),
        (RefusalReason::MachineStatus, &["lmsw ax", "mov cr0, rax", "smsw rax; mov cr0, rax"]),
        (RefusalReason::DebugControl, &["mov dr7, rax", "mov dr5, rax"]),
        (RefusalReason::DescriptorTables, &["lgdt [r14]", "lidt [r14]", "lldt ax", "ltr ax"]),
        (RefusalReason::ModelSpecific, &["rdmsr", "wrmsr", "mov ecx, 0x1b; wrmsr", "mov ecx, 0xc0000080; wrmsr"]),
        (RefusalReason::ModelSpecific, &["mov ecx, 0x808; rdmsr", "wrmsrns", "rdmsrlist", "wrmsrlist"]),
        (RefusalReason::ExtendedState, &["xsetbv", "xor ecx, ecx; xsetbv", "xor ecx, ecx; xgetbv; or eax, 7; xsetbv"]),
        (RefusalReason::Ports, &["in al, dx", "in al, 0x60", "out dx, eax", "insb", "rep outsd"]),
        (
            RefusalReason::VirtualMachine,
            &["vmxoff", "vmcall", "vmmcall", "vmlaunch", "vmrun", "clgi", "stgi", "skinit"],
        ),
        (RefusalReason::SystemCall, &["syscall", "sysenter", "sysretq", "sysexit"]),
        (RefusalReason::StopsProcessor, &["hlt", "mwait", "monitor", "mwaitx", "monitorx"]),
        (RefusalReason::DiscardsCache, &["invd"]),
        (RefusalReason::ProtectedMode, &["rsm", "getsec", "encls", "enclu", "pconfig", "tdcall", "seamcall"]),
        (RefusalReason::ShadowStack, &["setssbsy", "incsspq rax", "wrssq [r14], rax", "wrussq [r14], rax"]),
        (RefusalReason::UserInterrupts, &["stui", "clui", "uiret", "senduipi rax"]),
        (RefusalReason::SupervisorState, &["xrstors [r14]"]),
        (RefusalReason::OtherProcessors, &["invlpgb", "tlbsync"]),
    ];
    for (expected, texts) in table {
        for text in *texts {
            assert_eq!(reason(text), Some(*expected), "{text}");
        }
    }
}

#[test]
fn code_whose_effect_is_restored_may_run() {
    let texts = [
        "mov rax, cr0; mov rbx, cr2; mov rcx, cr3; mov rdx, cr4; mov rsi, cr8; mov rdi, dr7",
        "mov rax, cr0; mov cr0, rax",
        "mov rax, cr0; add rbx, rax; clts; mov cr0, rax",
        "mov cr2, rax; mov cr8, rax; mov dr0, rax; mov dr6, rax",
        "wbinvd; wbnoinvd; invlpg [r14]; invpcid rax, [r14]; cli; sti; popfq; swapgs; rdpmc; rdtsc; rdtscp",
        "smsw rax; sgdt [r14]; stac; clac; xsaves [r14]; serialize; cpuid; rdfsbase rax; wrgsbase rax; wrpkru",
        "mov ecx, 0xe8; rdmsr",
        "mov rcx, 0x10; rdmsr",
        "mov ecx, 0x49; wrmsr",
        "mov ecx, 0xc0000101; rdmsr; wrmsr",
        "xor ecx, ecx; xgetbv; xsetbv",
        "ud2",
        "int3",
        "int 0x80",
        "endbr64; nop; rep movsb; vaddps zmm0, zmm1, zmm2; call 1f; 1: pop rax",
    ];
    for text in texts {
        assert_eq!(reason(text), None, "{text}");
    }
}

#[test]
fn a_refusal_names_the_instruction_and_its_place() {
    let bytes = assemble("nop; nop; mov cr3, rax");
    let refusal = judge_code(snippet(&bytes), RefusalRules::default()).unwrap_err();
    assert_eq!((refusal.part, refusal.offset, refusal.hidden), (JudgedPart::Snippet, 2, false));
    assert_eq!(
        refusal.to_string(),
        "`mov cr3, rax` at byte 2 of the snippet is refused in ring 0: \
         it changes the page tables, and with them the way back"
    );
    assert_eq!(refusal.clone().into_error().remedy(), refusal.remedy());
    let record = cyclescope_measure::result::record::ErrorRecord::from(&refusal.into_error());
    assert_eq!((record.code, record.exit), ("refused", cyclescope_measure::result::record::exit::USAGE));
}

#[test]
fn each_piece_of_code_is_judged() {
    let bad = assemble("nop; hlt");
    let nop = assemble("nop");
    let empty = JudgedCode { init: &nop, snippet: &nop, copies: 2, looped: Some(LoopPlan::PLAIN), following: &nop };
    let part = |judged: JudgedCode| {
        judge_code(judged, RefusalRules::default()).map_err(|refusal| (refusal.part, refusal.offset))
    };
    assert_eq!(part(empty), Ok(()));
    assert_eq!(part(JudgedCode { init: &bad, ..empty }), Err((JudgedPart::Init, 1)));
    assert_eq!(part(JudgedCode { snippet: &bad, ..empty }), Err((JudgedPart::Snippet, 1)));
    assert_eq!(part(JudgedCode { following: &bad, ..empty }), Err((JudgedPart::Following, 1)));
    // Zero copies run.
    assert_eq!(part(JudgedCode { snippet: &bad, copies: 0, ..empty }), Ok(()));
    assert_eq!(part(JudgedCode { snippet: &[], ..empty }), Ok(()));
}

#[test]
fn a_program_is_judged_by_its_source_code() {
    let hlt = assemble("hlt");
    let clock = cyclescope_code::clock::Clock::find_named("rdtscp-lfence").unwrap();
    let empty = cyclescope_code::program::ProgramRecipe::empty(clock);
    assert_eq!(judge_code(&empty.build(), RefusalRules { lone_cpu: true }), Ok(()));
    let following = cyclescope_code::program::ProgramRecipe { following: &hlt, ..empty };
    assert_eq!(judge_code(&following.build(), RefusalRules::default()).unwrap_err().part, JudgedPart::Following);
}

#[test]
fn every_reason_has_a_unique_text() {
    for (place, (reason, text, remedy)) in RefusalReason::ALL.iter().enumerate() {
        assert!(RefusalReason::ALL[..place].iter().all(|(earlier, ..)| earlier < reason), "{reason:?} is out of order");
        assert!(!text.is_empty() && !remedy.is_empty());
        assert_eq!(reason.text(), *text);
    }
}
