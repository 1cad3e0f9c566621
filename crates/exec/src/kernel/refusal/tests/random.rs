//! Random bytes and random snippets.

use super::*;
use cyclescope_core::random::Random;

#[test]
fn random_bytes_are_judged_without_a_panic() {
    let mut random = Random::new(1);
    for _ in 0..100_000 {
        let mut bytes = || (0..random.below(24)).map(|_| random.next_bits() as u8).collect::<Vec<u8>>();
        let (init, snippet, following) = (bytes(), bytes(), bytes());
        let (copies, looped) = (random.below(6), (random.below(2) == 0).then_some(LoopPlan::PLAIN));
        let code = JudgedCode { init: &init, snippet: &snippet, copies, looped, following: &following };
        let rules = RefusalRules { lone_cpu: random.below(2) == 0 };
        if let Err(refusal) = judge_code(code, rules) {
            assert!(!refusal.instruction.is_empty() && !refusal.to_string().is_empty());
        }
    }
}

/// Pieces whose meaning depends on other copies, some of them parts of instructions.
fn piece(random: &mut Random) -> Vec<u8> {
    let texts = [
        "nop",
        "mov ecx, 0xe8",
        "rdmsr",
        "inc ecx",
        "xor ecx, ecx",
        "xgetbv",
        "xsetbv",
        "mov rax, cr0",
        "mov cr0, rax",
        "mov r15, cr0",
        "mov cr0, r15",
        "ret",
        "push rcx",
        "mov eax, 0x12345678",
        "jmp rax",
        "ud2",
        "cpuid",
    ];
    match random.below(8) {
        0 => vec![[0xeb, 0x74, 0xe2][random.below(3)], (random.below(40) as i8 - 20) as u8],
        1 => vec![[0xb0, 0xb8, 0x0f, 0x48, 0xf4, 0x66, 0xe9, 0x06][random.below(8)]],
        _ => assemble(texts[random.below(texts.len())]),
    }
}

#[test]
fn few_copies_give_the_verdict_of_all() {
    let mut random = Random::new(2);
    let (mut good, mut bad) = (0, 0);
    for _ in 0..30_000 {
        let mut pieces = |most| (0..random.below(most)).flat_map(|_| piece(&mut random)).collect::<Vec<u8>>();
        let (init, snippet) = (pieces(3), pieces(7));
        let (copies, looped) = (random.below(40), (random.below(2) == 0).then_some(LoopPlan::PLAIN));
        let code = JudgedCode { init: &init, snippet: &snippet, copies, looped, following: &[] };
        let rules = RefusalRules { lone_cpu: random.below(4) == 0 };
        let judged = judge_code(code, rules);
        assert_eq!(judged, code.judge_copies(rules, copies, copies), "{code:x?}");
        match judged {
            Ok(()) => good += 1,
            Err(_) => bad += 1,
        }
    }
    assert!(good > 1000 && bad > 1000, "{good} {bad}");
}

#[test]
fn long_bodies_are_judged_quickly() {
    let bytes = assemble("imul rax, rbx; jz 1f; add rax, 1; 1: nop");
    let begin = std::time::Instant::now();
    for _ in 0..100 {
        judge_code(JudgedCode { copies: 100_000, ..snippet(&bytes) }, RefusalRules::default()).unwrap();
    }
    assert!(begin.elapsed().as_secs() < 10);
}
