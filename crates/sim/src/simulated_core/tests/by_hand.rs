use super::*;

fn is(got: f64, expected: f64) {
    assert!((got - expected).abs() < 1e-9, "{got} for {expected}");
}

#[test]
fn chains_take_their_latency() {
    let model = model();
    is(cost(&model, "add rax, rax"), 1.0);
    is(cost(&model, "imul rax, rax"), 3.0);
    is(cost(&model, "imul rax, rcx; add rax, rdx; movsxd rax, eax"), 5.0);
    is(cost(&model, "lea rax, [rax+8]"), 1.0);
    is(cost(&model, "mov rax, [rax]"), 4.0);
    is(cost(&model, "cmovc rax, rcx; test rax, rax"), 2.0);
    // The loop's own counter writes the zero flag, so that one of 24 links is broken.
    is(cost(&model, "cmovz rax, rcx; test rax, rax"), 47.0 / 24.0);
    is(cost(&model, "pand xmm0, xmm1"), 1.0);
}

#[test]
fn independent_copies_share_ports_and_issue() {
    let model = model();
    // With the loop's counter there are 121 additions for four ports, and its branch has a port of
    // its own.
    let adds = "add rax, r12; add rbx, r12; add rcx, r12; add rdx, r12; add rbp, r12";
    is(cost(&model, adds), 121.0 / 4.0 / 24.0);
    // 24 additions, the counter, a NOP and a branch.
    is(cost(&model, "nop; nop; nop; nop; nop; nop; nop; add rax, rcx"), (192.0 + 3.0) / 6.0 / 24.0);
    is(cost(&model, "mov rax, [r14]; mov rcx, [r14]"), 1.0);
    is(cost(&model, "mov [r14], rax; mov [r14+8], rcx"), 2.0);
    // One multiplication per cycle, on a port that additions do not need.
    is(cost(&model, "imul rax, r12; add rbx, r12; add rcx, r12; imul rdx, r12"), 3.0);
    let mixed = "imul rax, r12; imul rbx, r12; imul rcx, r12; imul rdx, r12; \
                 add r8, r12; add r9, r12; add r10, r12; add r11, r12";
    is(cost(&model, mixed), 4.0);
}

#[test]
fn moves_may_be_eliminated() {
    let mut model = model();
    is(cost(&model, "mov rcx, rax; add rcx, rdx; mov rax, rcx"), 1.0);
    is(cost(&model, "mov ecx, eax; mov eax, ecx; add eax, edx"), 1.0);
    is(cost(&model, "movaps xmm1, xmm0; pand xmm1, xmm2; movaps xmm0, xmm1"), 1.0);
    is(cost(&model, "mov rax, rax"), 1.0);
    assert!(model.is_eliminated(&one("mov rcx, rax")) && !model.is_eliminated(&one("mov rax, rax")));
    assert!(!model.is_eliminated(&one("mov cl, al")) && !model.is_eliminated(&one("mov rax, [rdi]")));
    assert_eq!(model.latency(&one("mov rcx, rax"), "op2", "op1"), Some(0));
    model.eliminates_64 = false;
    is(cost(&model, "mov rcx, rax; add rcx, rdx; mov rax, rcx"), 3.0);
    is(cost(&model, "mov ecx, eax; mov eax, ecx; add eax, edx"), 1.0);
}

#[test]
fn zero_idioms_break_chains() {
    let model = model();
    is(cost(&model, "imul rax, rax; xor eax, eax"), (24.0f64).max(49.0 / 6.0) / 24.0);
    assert!(model.is_zero_idiom(&one("xor eax, eax")) && !model.is_zero_idiom(&one("xor eax, ecx")));
    assert!(!model.is_zero_idiom(&one("xor al, al")));
    assert_eq!(model.latencies(&one("xor eax, eax")), []);
    is(cost(&model, "xor al, al"), 1.0);
}

#[test]
fn flags_are_renamed_in_groups() {
    let model = model();
    let adc = model.latency(&one("adc rax, rbx"), "flags", "flags").unwrap();
    let chain = "adc rax, r12; adc rbx, r12; adc rcx, r12; adc rdx, r12";
    is(cost(&model, chain), 4.0 * f64::from(adc));
    // XOR clears the carry, which a zero idiom does without waiting; INC leaves it unchanged.
    let broken = cost(&model, "xor ebp, ebp; adc rax, r12; xor ebp, ebp; adc rbx, r12");
    let kept = cost(&model, "inc r8; adc rax, r12; inc r9; adc rbx, r12");
    assert!(broken < 2.0 * f64::from(adc) && kept >= 2.0 * f64::from(adc), "{broken} {kept}");
    // SETZ reads another group than the carry.
    is(cost(&model, "test rax, rax; setz al; movzx eax, al"), 3.0);
}

#[test]
fn shifts_by_cl_may_merge_flags() {
    let mut model = model();
    let shifts = "shl rax, cl; shl rbx, cl; shl rdx, cl; shl rbp, cl";
    let shift = one("shl rax, cl");
    assert_eq!(model.latency(&shift, "flags", "flags"), None);
    let [alone, own] = [cost(&model, shifts), model.latency(&shift, "op1", "op1").unwrap().into()];
    assert!(alone <= 4.0f64.max(own), "{alone}");
    model.shifts_merge_flags = true;
    // The loop's counter breaks all flags but the carry.
    let merged = f64::from(model.latency(&shift, "flags", "flags").unwrap());
    is(cost(&model, shifts), 4.0 * merged);
}

#[test]
fn fences_wait_for_everything() {
    let model = model();
    // Between two iterations the branch waits a cycle for the counter, and the fence for the
    // branch.
    is(cost(&model, "lfence"), 20.0 + 2.0 / 24.0);
    is(cost(&model, "imul rax, rax; imul rax, rax; lfence"), 26.0);
}

#[test]
fn stores_are_forwarded() {
    let mut model = model();
    let total = f64::from(model.store_latency + model.forward_latency);
    is(cost(&model, "mov [r14], rax; mov rax, [r14]"), total);
    is(cost(&model, "add [r14], rax"), total + 1.0);
    is(cost(&model, "mov [r14], eax; mov [r14+4], eax; mov rax, [r14]"), 13.0 + 1.0);
    is(cost(&model, "mov [r14], rax; mov ax, [r14]"), total + merge(&model));
    // A load does not wait for a store to another address, or to the same offset from another
    // register.
    is(cost(&model, "mov [r14], rax; mov rax, [r14+8]"), 1.0);
    is(cost(&model, "mov [r14], rax; mov rax, [rdi]"), 1.0);
    model.renamed_latency = Some(0);
    is(cost(&model, "add [r14], rax"), 1.0);
    is(cost(&model, "add byte ptr [r14], al"), total + 1.0);
    is(cost(&model, "push rax; pop rax; add rax, rcx"), 1.0);
    model.renamed_latency = Some(1);
    is(cost(&model, "mov [r14], rax; mov rax, [r14]"), 1.0);
    is(cost_after(&model, "lea rbx, [r14-8]", "mov [r14], rax; mov rax, [rbx+8]"), total);
    // The address is known to stay the same.
    is(cost_after(&model, "mov rbx, r14", "mov [r14], rax; mov rax, [rbx]; add rbx, rcx"), total);
}

fn merge(model: &CoreModel) -> f64 {
    let load = one("mov ax, [r14]");
    let whole = model.latency(&load, "mem_data", "op1").unwrap() - model.forward_latency;
    f64::from(whole)
}

#[test]
fn partial_registers_and_masks_merge() {
    let model = model();
    is(cost(&model, "mov al, bl"), 1.0);
    is(cost(&model, "mov ah, bl"), 1.0);
    is(cost(&model, "mov ax, bx"), 1.0);
    assert!(cost(&model, "mov eax, ebx") < 0.2);
    let merged = one("vpaddd zmm1{k1}, zmm2, zmm3");
    let latency = model.latency(&merged, "op1", "op1").expect("old elements stay");
    is(cost(&model, "vpaddd zmm1{k1}, zmm2, zmm3"), f64::from(latency));
    let zeroed = one("vpaddd zmm1{k1}{z}, zmm2, zmm3");
    assert!(model.latency(&zeroed, "op1", "op1").is_none() || model.has_false_dependency(&zeroed));
    assert!(model.latency(&zeroed, "mask", "op1").is_some());
}

#[test]
fn branches_inside_a_body_are_followed() {
    let model = model();
    is(cost(&model, "jmp 1f; add rax, rax; 1: imul rax, rax"), 3.0);
    is(cost(&model, "call 1f; jmp 2f; 1: imul rax, rax; ret; 2: add rax, rcx"), 4.0);
    // The loop's branch needs the same port.
    is(cost(&model, "jmp 1f; 1: add rax, rax"), 25.0 / 24.0);
    is(cost(&model, "jz 1f; imul rax, rax; 1: nop"), 3.0);
}

#[test]
#[should_panic(expected = "cannot decode")]
fn invalid_code_is_refused() {
    let recipe = ProgramRecipe { snippet: &[0x06], copies: 1, ..ProgramRecipe::empty(&clock::ALL_CLOCKS[0]) };
    SimulatedCore::new(model(), 1).body_cycles(&recipe.build(), 1);
}

/// Core cycles of a fence and a chain of this many `vpaddd`.
fn behind_a_fence(model: &CoreModel, count: usize) -> f64 {
    cost(model, &format!("lfence{}", "; vpaddd xmm0, xmm0, xmm1".repeat(count)))
}

#[test]
fn a_chain_with_many_waiting_links_is_slower_in_a_regime() {
    let regime = |class, half_cycles| {
        let regime = Some(SimulatedRegime { class, knee: 20, half_cycles });
        CoreModel { regime, ..model() }
    };
    let one = cost(&model(), "vpaddd xmm0, xmm0, xmm1");
    let cases = [
        (regime(RegimeClass::Vector, 2), 1.0),
        (regime(RegimeClass::Vector, 1), 0.5),
        (regime(RegimeClass::Mnemonic(iced_x86::Mnemonic::Vpaddd), 2), 1.0),
        (regime(RegimeClass::Mnemonic(iced_x86::Mnemonic::Vpsubd), 2), 0.0),
        (model(), 0.0),
    ];
    for (model, more) in cases {
        assert_eq!(cost(&model, "vpaddd xmm0, xmm0, xmm1"), one + more, "{:?}", model.regime);
        let grown = |from: usize, to: usize| behind_a_fence(&model, to) - behind_a_fence(&model, from);
        assert_eq!(grown(8, 16), 8.0 * one, "{:?}", model.regime);
        assert_eq!(grown(48, 64), 16.0 * (one + more), "{:?}", model.regime);
        assert_eq!(cost(&model, "imul rax, rax"), 3.0);
    }
}

#[test]
fn a_wait_for_a_second_result_is_late_on_some_cores() {
    for (second_wait_half_cycles, each) in [(0, 1.0), (1, 1.5), (2, 2.0)] {
        let model = CoreModel { second_wait_half_cycles, ..model() };
        is(cost(&model, "pand xmm0, xmm5"), 1.0);
        is(cost(&model, "pand xmm1, xmm0; pand xmm0, xmm1"), 2.0 * each);
        is(cost(&model, "add rcx, rax; add rax, rcx"), 2.0);
    }
}
