//! Tests of branch targets.

use super::*;

/// `jmp` into the immediate of `mov rax, imm64`, which holds the instruction.
fn hidden_in_immediate(bytes: &[u8]) -> Vec<u8> {
    let mut code = vec![0xeb, 0x02, 0x48, 0xb8];
    code.extend(bytes);
    code.resize(12, 0x90);
    code
}

#[test]
fn jumps_into_the_middle_of_instructions_are_followed() {
    for text in ["mov cr3, rax", "hlt", "wrmsr", "lidt [r14]", "vmcall", "in al, dx", "invd", "syscall", "rsm"] {
        let instruction = assemble(text);
        let code = hidden_in_immediate(&instruction);
        let refusal = judge_code(snippet(&code), RefusalRules::default()).unwrap_err();
        assert_eq!((refusal.offset, refusal.hidden), (4, false), "{text}");
        assert_eq!(Some(refusal.reason), reason(text));
        // Without the jump, the bytes are a constant.
        assert_eq!(judge_code(snippet(&code[2..]), RefusalRules::default()), Ok(()), "{text}");
    }
    assert_eq!(
        judge_code(snippet(&hidden_in_immediate(&assemble("cli; sti; rdtsc"))), RefusalRules::default()),
        Ok(())
    );
}

#[test]
fn after_an_indirect_branch_every_offset_is_checked() {
    let mut code = hidden_in_immediate(&assemble("hlt"))[2..].to_vec();
    assert_eq!(judge_code(snippet(&code), RefusalRules::default()), Ok(()));
    for branch in ["jmp rax", "call [r14]", "ret", "jmp [r14]", "iretq", "retf"] {
        let clean = assemble(&format!("{branch}; nop"));
        assert_eq!(judge_code(snippet(&clean), RefusalRules::default()), Ok(()), "{branch}");
        let length = code.len();
        code.extend(&clean);
        let refusal = judge_code(snippet(&code), RefusalRules::default()).unwrap_err();
        assert_eq!(
            (refusal.offset, refusal.reason, refusal.hidden),
            (2, RefusalReason::StopsProcessor, true),
            "{branch}"
        );
        code.truncate(length);
    }
}

#[test]
fn after_an_indirect_branch_the_other_pieces_are_checked_too() {
    let hidden = &hidden_in_immediate(&assemble("hlt"))[2..];
    let ret = assemble("call 1f; jmp 2f; 1: ret; 2: nop");
    let code = JudgedCode { init: &[], snippet: &ret, copies: 50, looped: Some(LoopPlan::PLAIN), following: &[] };
    assert_eq!(judge_code(code, RefusalRules::default()), Ok(()));
    assert_eq!(
        judge_code(JudgedCode { init: hidden, ..code }, RefusalRules::default()).unwrap_err().part,
        JudgedPart::Init
    );
    assert_eq!(
        judge_code(JudgedCode { following: hidden, ..code }, RefusalRules::default()).unwrap_err().part,
        JudgedPart::Following
    );
    // No facts hold where an indirect branch may lead.
    let known = [assemble("mov ecx, 0xe8; rdmsr"), ret.clone()].concat();
    let refusal = judge_code(JudgedCode { snippet: &known, ..code }, RefusalRules::default()).unwrap_err();
    assert_eq!((refusal.reason, refusal.hidden), (RefusalReason::ModelSpecific, true));
}

#[test]
fn an_instruction_across_two_copies_is_found() {
    // 0f ends a copy, 22 d8 begins the next.
    let ret = assemble("ret; nop");
    let cut = [&[0x22, 0xd8][..], &ret, &[0xb0, 0x0f]].concat();
    let one = JudgedCode { init: &[], snippet: &cut, copies: 1, looped: None, following: &[] };
    assert_eq!(judge_code(one, RefusalRules::default()).unwrap_err().reason, RefusalReason::CutOff);
    let refusal = judge_code(JudgedCode { copies: 5, ..one }, RefusalRules::default()).unwrap_err();
    assert_eq!((refusal.reason, refusal.offset, refusal.hidden), (RefusalReason::PageTables, cut.len() - 1, true));
    assert_eq!(refusal.instruction, "mov cr3, rax");
}

#[test]
fn an_instruction_that_ends_in_the_next_copy_is_followed() {
    // mov al, imm8 without its immediate; then the next copy is entered at its second byte.
    let code = [0x90, 0xf4, 0xb0];
    let refusal = judge_code(snippet(&code), RefusalRules::default()).unwrap_err();
    assert_eq!((refusal.offset, refusal.reason), (1, RefusalReason::StopsProcessor));
    let shifting = [0xa8, 0x90, 0xb0];
    assert_eq!(judge_code(snippet(&shifting), RefusalRules::default()).unwrap_err().reason, RefusalReason::CutOff);
}

#[test]
fn branches_may_only_lead_inside_or_to_the_end() {
    assert_eq!(reason("jz 1f; nop; 1: nop"), None);
    assert_eq!(reason("jmp 1f; hlt; 1:"), None);
    assert_eq!(reason("1: dec rax; jnz 1b"), None);
    for bytes in [[0xeb, 0x01], [0x74, 0x7f], [0xeb, 0xf0], [0xe3, 0x80], [0xe2, 0x10]] {
        let once = JudgedCode { copies: 1, ..snippet(&bytes) };
        let refusal = judge_code(once, RefusalRules::default()).unwrap_err();
        assert_eq!(refusal.reason, RefusalReason::BranchLeaves, "{bytes:x?}");
    }
    // Some processors read a two-byte displacement here and clear the upper half of RIP.
    let short = [0x66, 0xe9, 0, 0, 0, 0];
    assert_eq!(judge_code(snippet(&short), RefusalRules::default()).unwrap_err().reason, RefusalReason::BranchLeaves);
}

#[test]
fn unknown_bytes_are_refused_and_certain_faults_are_not() {
    // With APX, REX2: mov cr3, rax.
    for unknown in [&[0xd5, 0x80, 0x22, 0xd8][..], &[0x0f, 0x0a], &[0x62, 0xf4, 0x7c, 0x08, 0x10, 0xc0]] {
        let refusal = judge_code(snippet(unknown), RefusalRules::default()).unwrap_err();
        assert_eq!(refusal.reason, RefusalReason::UnknownEncoding, "{unknown:x?}");
    }
    assert_eq!(judge_code(snippet(&[0x06]), RefusalRules::default()), Ok(()));
    assert_eq!(judge_code(snippet(&[0x66, 0x48, 0x9a, 0xf4]), RefusalRules::default()), Ok(()));
    // An invalid prefix does not hide an instruction.
    let locked = judge_code(snippet(&[0xf0, 0x0f, 0x22, 0xd8]), RefusalRules::default());
    assert_eq!(locked.unwrap_err().reason, RefusalReason::PageTables);
}

#[test]
fn with_one_cpu_code_may_only_go_forward() {
    for text in ["add rax, rbx; jz 1f; nop; 1: nop", "movsb", "wbinvd; cpuid", "call 1f; 1: pop rax", "ud2", "pause"] {
        assert_eq!(alone(text), None, "{text}");
    }
    let table = [
        (RefusalReason::LoneBackward, "1: dec rax; jnz 1b"),
        (RefusalReason::LoneBackward, "1: jmp 1b"),
        (RefusalReason::LoneBackward, "1: nop; loop 1b"),
        (RefusalReason::LoneBackward, "1: xbegin 1b"),
        (RefusalReason::LoneIndirect, "call 1f; 1: ret"),
        (RefusalReason::LoneIndirect, "jmp rax"),
        (RefusalReason::LoneRepeat, "rep movsb"),
        (RefusalReason::LoneRepeat, "repne scasb"),
        (RefusalReason::LoneWait, "umwait eax"),
        (RefusalReason::LoneWait, "tpause eax"),
    ];
    for (expected, text) in table {
        assert_eq!(alone(text), Some(expected), "{text}");
    }
    for text in ["inc r15", "mov r15b, 1", "pop r15", "xchg rax, r15"] {
        let bytes = assemble(text);
        let code = snippet(&bytes);
        assert_eq!(judge_code(code, RefusalRules { lone_cpu: true }), Ok(()));
        let looped = JudgedCode { looped: Some(LoopPlan::PLAIN), ..code };
        assert_eq!(judge_code(looped, RefusalRules::default()), Ok(()));
        assert_eq!(
            judge_code(looped, RefusalRules { lone_cpu: true }).unwrap_err().reason,
            RefusalReason::LoneCounter,
            "{text}"
        );
    }
}
