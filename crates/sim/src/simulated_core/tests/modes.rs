//! 32-bit code on the simulated core.

use super::*;
use cyclescope_code::asm::{ALL_MODES, CodeMode, parse_for_mode};
use cyclescope_code::program::EntryState;
use cyclescope_code::snippet::Snippet;
use cyclescope_measure::{Plan, measure_cost};

/// Code of 64-bit mode, and the same instructions of 32-bit code.
const PAIRS: [[&str; 2]; 7] = [
    ["add eax, ecx", "add eax, ecx"],
    ["imul eax, ecx", "imul eax, ecx"],
    ["imul eax, ecx; add edx, eax; ror edx, 3", "imul eax, ecx; add edx, eax; ror edx, 3"],
    ["mov eax, [rsi]; add eax, [rdi+8]", "mov eax, [esi]; add eax, [edi+8]"],
    ["mov [r14], eax; mov eax, [r14]", "mov [ebx], eax; mov eax, [ebx]"],
    ["lea eax, [rax+rcx*4]", "lea eax, [eax+ecx*4]"],
    ["mulps xmm0, xmm1; addps xmm0, xmm2", "mulps xmm0, xmm1; addps xmm0, xmm2"],
];

fn snippet(text: &str, mode: CodeMode) -> Snippet {
    let listing = parse_for_mode(text, mode, None).expect("the test's own code");
    Snippet::new(listing.bytes().to_vec(), Vec::new(), text).with_mode(mode)
}

/// Core cycles of a loop with this number of iterations over some copies.
fn loop_cycles(core: &mut SimulatedCore, snippet: &Snippet, iterations: u64) -> f64 {
    let clock = clock::Clock::find_named("lfence-rdtsc-lfence").expect("a clock");
    let world = EntryState { mode: snippet.mode(), ..EntryState::default() };
    let recipe = ProgramRecipe { world, ..ProgramRecipe::with_loop(clock, snippet.code(), COPIES) };
    core.body_cycles(&recipe.build(), iterations)
}

/// Copies in a loop.
const COPIES: usize = 24;

/// Core cycles of a copy in a long loop.
fn copy_cycles(core: &mut SimulatedCore, text: &str) -> f64 {
    let code = snippet(text, CodeMode::Bits32);
    let [long, short] = [1200, 360].map(|iterations| loop_cycles(core, &code, iterations));
    (long - short) / 840.0 / COPIES as f64
}

#[test]
fn instructions_cost_the_same_in_both_modes() {
    for texts in PAIRS {
        let [wide, narrow] = [0, 1].map(|number| {
            let code = snippet(texts[number], ALL_MODES[number]);
            loop_cycles(&mut SimulatedCore::new(model(), 1), &code, 100)
        });
        assert_eq!(wide, narrow, "{texts:?}");
    }
}

#[test]
fn a_chain_of_32_bit_code_is_measured_by_its_own_ruler() {
    for seed in 0..6 {
        let model = CoreModel::from_seed(seed);
        let mut core = SimulatedCore::new(model.clone(), seed);
        // The latency of the ruler is found, since data of micro-architectures have that of 64 bits.
        let plan = Plan { imul_latency: Some(99.0), seed, ..Plan::simulated() };
        let snippet = snippet("imul eax, ecx; add eax, edx", CodeMode::Bits32);
        let measured = measure_cost(&mut core, &snippet, &plan).expect("it runs");
        let [link, truth] = ["imul eax, eax", "imul eax, ecx; add eax, edx"]
            .map(|text| copy_cycles(&mut SimulatedCore::new(model.clone(), 1), text));
        assert!((measured.acquisition.shape.imul_latency - link).abs() < 0.01, "{seed}: a link takes {link}");
        let cost = measured.estimate.expect("enough layouts").cost;
        assert!((cost.value - truth).abs() < 0.02, "{seed}: {cost:?} for {truth}");
    }
}
