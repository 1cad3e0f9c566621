use super::*;

/// Instructions that only write their first operand, with placeholders for it.
const WRITERS: [&str; 16] = [
    "vaddps {x}, xmm14, xmm15",
    "vpshufb {x}, xmm14, xmm15",
    "vpmulld {x}, xmm14, xmm15",
    "vphaddw {x}, xmm14, xmm15",
    "vpermilps {x}, xmm14, 3",
    "vdivps {x}, xmm14, xmm15",
    "vsqrtsd {x}, xmm14, xmm15",
    "vpsadbw {x}, xmm14, [r14+{d}]",
    "vmulpd {x}, xmm14, [r14+{d}]",
    "vmovups {x}, [r14+{d}]",
    "andn {r}, r12, r13",
    "pdep {r}, r12, r13",
    "pext {r}, r12, [r14+{d}]",
    "bzhi {r}, r12, r13",
    "rorx {r}, r12, 5",
    "lea {r}, [r12+r13*4+8]",
];

const INTEGERS: [&str; 10] = ["rax", "rbx", "rcx", "rdx", "rbp", "r8", "r9", "r10", "r11", "rsi"];

fn copies(template: &str) -> Vec<String> {
    let copy = |number: usize| {
        let vector = format!("xmm{number}");
        let text = template.replace("{x}", &vector).replace("{r}", INTEGERS[number]);
        text.replace("{d}", &(64 * number).to_string())
    };
    (0..10).map(copy).collect()
}

#[test]
fn sustained_rates_reach_the_bound() {
    for seed in 0..60 {
        let model = CoreModel::from_seed(seed);
        for template in WRITERS {
            let copies = copies(template);
            let instruction = one(&copies[0]);
            if model.has_false_dependency(&instruction) {
                continue;
            }
            let truth = model.throughput(&instruction);
            let reached = cost(&model, &copies.join("; ")) / 10.0;
            // The loop's end takes three of some hundreds of µops.
            let good = reached > truth - 1e-9 && reached < truth * 1.01 + 0.002;
            assert!(good, "{seed}: {template} {reached} for {truth}");
        }
    }
}

#[test]
fn closed_chains_read_the_true_latency() {
    let chains = [
        ("vaddps xmm0, xmm0, xmm15", "op2", "op1"),
        ("vaddps xmm0, xmm15, xmm0", "op3", "op1"),
        ("vpmulld ymm0, ymm15, ymm0", "op3", "op1"),
        ("vfmadd231pd xmm0, xmm14, xmm15", "op1", "op1"),
        ("vdivsd xmm0, xmm0, xmm15", "op2", "op1"),
        ("addps xmm0, xmm15", "op1", "op1"),
        ("adc rax, rbx", "op1", "op1"),
        ("adc [r14], rax", "flags", "flags"),
        ("pdep rax, rbx, rax", "op3", "op1"),
        ("pdep rax, rbx, [rax]", "mem_addr", "op1"),
        ("mulx rax, rcx, rax", "op3", "op1"),
        ("mul rcx", "rax", "rax"),
        ("div rcx", "rdx", "rdx"),
        ("shl rax, 5", "op1", "op1"),
        ("kaddb k1, k1, k2", "op2", "op1"),
        ("popcnt rax, rax", "op2", "op1"),
        ("fadd st(0), st(1)", "op1", "op1"),
        ("xadd [r14], rax", "mem_data", "mem_data"),
        ("vpaddb zmm0{k1}, zmm14, zmm15", "op1", "op1"),
    ];
    for seed in 0..60 {
        let model = CoreModel { renamed_latency: None, ..CoreModel::from_seed(seed) };
        for (text, from, to) in chains {
            let instruction = one(text);
            assert!(model.latency(&instruction, from, to).is_some(), "{text}: {from} {to}");
            let truth = slowest_cycle(&model.latencies(&instruction), from, to);
            let reached = cost(&model, text);
            assert!((reached - truth).abs() < 1e-9, "{seed}: {text} {reached} for {truth}");
        }
    }
}

#[test]
fn chains_through_links_read_sums() {
    // A chain, and the latency pair that each of its instructions adds.
    let chains: [(&str, &[(&str, &str)]); 10] = [
        ("movq rax, xmm0; movq xmm0, rax", &[("op2", "op1"), ("op2", "op1")]),
        ("kmovq k1, rax; kmovq rax, k1", &[("op2", "op1"), ("op2", "op1")]),
        ("pextrq rax, xmm0, 1; movq xmm0, rax", &[("op2", "op1"), ("op2", "op1")]),
        ("vpmovmskb eax, ymm0; vmovd xmm0, eax", &[("op2", "op1"), ("op2", "op1")]),
        ("bt rax, 3; cmovc rax, rcx", &[("op1", "flags"), ("flags", "op1")]),
        ("cvttsd2si rax, xmm0; movq xmm0, rax", &[("op2", "op1"), ("op2", "op1")]),
        (
            "mov [r14], rax; movq xmm0, [r14]; movq rax, xmm0",
            &[("op2", "mem_data"), ("mem_data", "op1"), ("op2", "op1")],
        ),
        ("lea rbx, [r14+rax]; pdep rax, rcx, [rbx]", &[("mem_addr", "op1"), ("mem_addr", "op1")]),
        ("vpcmpeqb k1, ymm0, ymm1; vpmovm2b ymm0, k1", &[("op2", "op1"), ("op2", "op1")]),
        ("bsf rcx, rax; movsxd rax, ecx", &[("op2", "op1"), ("op2", "op1")]),
    ];
    for seed in 0..60 {
        let model = CoreModel { renamed_latency: None, ..CoreModel::from_seed(seed) };
        for (text, pairs) in chains {
            let parsed = parse_assembly(text).expect("the test's own code");
            let links = parsed.instructions().iter().zip(pairs);
            let truth: u32 = links.map(|(i, (from, to))| model.latency(i, from, to).expect(text)).sum();
            let others = parsed.instructions().iter().map(|i| slowest_cycle(&model.latencies(i), "", ""));
            let truth = others.fold(f64::from(truth), f64::max);
            let reached = cost(&model, text);
            // BSF keeps its destination if no bit is set, which closes a second chain through the
            // links.
            assert!((reached - truth).abs() < 1e-9, "{seed}: {text} {reached} for {truth}");
        }
    }
}

/// The largest mean latency of a closed chain of one or two links, where `from` and `to` are one
/// register.
fn slowest_cycle(latencies: &[(String, String, u32)], from: &str, to: &str) -> f64 {
    let place = |name: &String| if name == from { to.to_owned() } else { name.clone() };
    let links: Vec<(String, String, u32)> =
        latencies.iter().map(|(from, to, cycles)| (place(from), place(to), *cycles)).collect();
    let mut slowest = 0.0f64;
    for (from, to, cycles) in &links {
        for (back_from, back_to, back) in &links {
            if from == back_to && to == back_from {
                slowest = slowest.max(f64::from(cycles + back) / 2.0);
            }
        }
    }
    slowest
}

#[test]
fn false_dependencies_are_waited_for() {
    let mut found = 0;
    for seed in 0..60 {
        let model = CoreModel::from_seed(seed);
        for template in WRITERS {
            let copies = copies(template);
            let instruction = one(&copies[0]);
            let latency = model.latency(&instruction, "op1", "op1");
            assert_eq!(latency.is_some(), model.has_false_dependency(&instruction));
            let truth = model.throughput(&instruction).max(latency.unwrap_or(0).into());
            let reached = cost(&model, &copies[0]);
            // The loop's end takes three of some 27 µops.
            let good = reached > truth - 1e-9 && reached < truth * 1.01 + 0.04;
            assert!(good, "{seed}: {template} {reached} for {truth}");
            found += usize::from(latency.is_some());
        }
    }
    assert!(found > 10, "{found}");
}

#[test]
fn figures_follow_from_the_seed() {
    let instruction = one("vpermw zmm0{k1}, zmm1, zmm2");
    let [a, b] = [3, 4].map(CoreModel::from_seed);
    assert_eq!(a, CoreModel::from_seed(3));
    assert_eq!(a.latencies(&instruction), a.clone().latencies(&one("vpermw zmm7{k2}, zmm5, zmm6")));
    let differ = |text| a.latencies(&one(text)) != b.latencies(&one(text));
    assert!(["vpermw zmm0, zmm1, zmm2", "bsr rax, rcx", "aesenc xmm0, xmm1", "bt rax, 3"].into_iter().any(differ));
}

#[test]
fn every_form_has_figures() {
    let model = CoreModel::from_seed(5);
    let mut eliminated = 0;
    let mut falsely = 0;
    for form in cyclescope_code::asm::forms::all_forms() {
        let instruction = form.build_instruction(&Default::default()).expect("it was listed");
        assert!(model.throughput(&instruction) >= 1.0 / f64::from(model.width));
        for (from, to, cycles) in model.latencies(&instruction) {
            assert!(cycles < 80, "{form:?} {from} {to} {cycles}");
            assert!(cycles > 0 || model.is_eliminated(&instruction) || to == "rsp", "{form:?} {from} {to}");
        }
        eliminated += usize::from(model.is_eliminated(&instruction));
        falsely += usize::from(model.has_false_dependency(&instruction));
    }
    assert!(eliminated > 2 && falsely > 50, "{eliminated} {falsely}");
}

#[test]
fn nothing_is_faster_than_its_ports() {
    let model = CoreModel::from_seed(8);
    let mut core = SimulatedCore::new(model.clone(), 1);
    for form in cyclescope_code::asm::forms::all_forms().step_by(11) {
        let instruction = form.build_instruction(&Default::default()).expect("it was listed");
        let mut encoder = iced_x86::Encoder::new(64);
        encoder.encode(&instruction, 0).expect("it was listed");
        let snippet = encoder.take_buffer();
        let recipe = ProgramRecipe {
            snippet: &snippet,
            copies: 20,
            looped: Some(LoopPlan::PLAIN),
            ..ProgramRecipe::empty(&clock::ALL_CLOCKS[0])
        };
        let program = recipe.build();
        let reached = (core.body_cycles(&program, 1680) - core.body_cycles(&program, 840)) / 840.0 / 20.0;
        let truth = model.throughput(&instruction);
        assert!(reached > truth - 1e-9 && reached < 200.0, "{form:?} {reached} for {truth}");
    }
}

#[test]
fn the_x87_stack_rotates() {
    let model = model();
    let latency = |text: &str, from, to| f64::from(model.latency(&one(text), from, to).expect(text));
    let add = latency("fadd st(0), st(1)", "op1", "op1");
    assert_eq!(cost(&model, "fadd st(0), st(1)"), add);
    // A copy is pushed, then popped into the register below it as the sum of both.
    let push = latency("fld st(0)", "op1", "st0");
    let pop = latency("faddp st(1), st(0)", "op2", "op1").max(latency("faddp st(1), st(0)", "op1", "op1") - push);
    assert_eq!(cost(&model, "fld st(0); faddp st(1), st(0)"), push + pop);
    // Without a pop each iteration adds to other registers.
    assert!(cost(&model, "fadd st(0), st(1); fincstp") < add.max(2.0));
}
