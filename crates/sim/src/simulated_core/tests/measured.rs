use super::super::body::DecodedBody;
use super::*;
use crate::{SimulatedFrequency, SimulatedGaps, SimulatedLayoutEffects, SimulatedMode};
use cyclescope_code::asm::forms::OperandChoice;
use cyclescope_core::random::Random;
use cyclescope_core::statistics::Interval;
use cyclescope_measure::contrast::Contrast;
use cyclescope_measure::rounds::{LayoutReading, LayoutRounds, RulerRounds, estimate_contrast};
use cyclescope_measure::ruler::sentinel_width;
use iced_x86::{Encoder, FlowControl};

fn readings(core: &mut SimulatedCore, step: u64, programs: Vec<Program>) -> Vec<LayoutReading> {
    let clock = clock::Clock::find_named("lfence-rdtsc-lfence").expect("a clock");
    let rounds = RulerRounds::new(clock, step as f64).with_programs(programs, true);
    let readings = rounds.run(core, 16, 64, &mut Random::new(7)).expect("the machine has no fault");
    readings.iter().filter_map(LayoutRounds::read).collect()
}

#[test]
fn the_ruler_has_its_true_length() {
    let scenarios = [
        Scenario { step: 2, ..Scenario::default() },
        Scenario { step: 26, ..Scenario::default() },
        Scenario {
            frequency: SimulatedFrequency { drift: 0.0005, jump_rate: 0.0 },
            interrupts: SimulatedGaps { rate: 1e-7, ticks: 8000.0 },
            ..Scenario::default()
        },
    ];
    for (seed, scenario) in scenarios.into_iter().cycle().take(12).enumerate() {
        let model = CoreModel::from_seed(seed as u64);
        let step = scenario.step;
        let mut core = SimulatedCore::with_scenario(model, scenario, 3);
        let readings = readings(&mut core, step, Vec::new());
        assert!(readings.len() > 12);
        let mean =
            |figure: &dyn Fn(&LayoutReading) -> f64| readings.iter().map(figure).sum::<f64>() / readings.len() as f64;
        let ratio = mean(&|reading| reading.imul / reading.add);
        let imul = f64::from(core.model().imul_latency);
        assert!((ratio / imul - 1.0).abs() < 0.005, "{seed}: {ratio} for {imul}");
        let width = mean(&|reading| reading.width);
        let truth = sentinel_width(core.model().integer_ports);
        assert!((width / truth - 1.0).abs() < 0.01, "{seed}: {width} for {truth}");
    }
}

#[test]
fn long_durations_follow_from_few_iterations() {
    let mut core = SimulatedCore::new(model(), 1);
    let snippet = "vaddps xmm0, xmm14, xmm15; imul rax, r12; add rbx, [r14]; mov [rdi], rcx";
    let long = program("", snippet, 25);
    let cycles = core.body_cycles(&long, 1_000_000);
    let uops = core.simulated_uops();
    assert!(uops < 2500, "{uops} of 125 million");
    assert_eq!(core.body_cycles(&long, 1_000_000), cycles);
    assert_eq!(core.simulated_uops(), uops, "cached durations are not run again");
    // Exact for numbers of iterations that were run.
    assert!(core.body_cycles(&long, 3) < core.body_cycles(&long, 4));
    assert_eq!(core.body_cycles(&long, 0), 0.0);
}

#[test]
fn extrapolated_durations_match_full_runs() {
    let forms: Vec<_> = cyclescope_code::asm::forms::all_forms().collect();
    let mut random = Random::new(11);
    let (mut exact, mut near) = (0, 0);
    for seed in 0..40 {
        let mut snippet = Vec::new();
        for _ in 0..3 + random.below(100) {
            let form = forms[random.below(forms.len())];
            let displacement = 64 * random.below(4) as i32;
            let choice = OperandChoice { seed: random.below(12) as u32, displacement, ..OperandChoice::default() };
            let instruction = form.build_instruction(&choice).expect("every form has one");
            let mut encoder = Encoder::new(64);
            if instruction.flow_control() == FlowControl::Next {
                encoder.encode(&instruction, 0).expect("every form can be encoded");
                snippet.extend(encoder.take_buffer());
            }
        }
        let recipe = ProgramRecipe {
            snippet: &snippet,
            copies: 1,
            looped: Some(LoopPlan::PLAIN),
            ..ProgramRecipe::empty(&clock::ALL_CLOCKS[0])
        };
        let program = recipe.build();
        let mut core = SimulatedCore::new(CoreModel::from_seed(seed), 1);
        let extrapolated = core.body_cycles(&program, 1000);
        let body = DecodedBody::decode_program(&program, &mut core.forms);
        core.pipeline.start_body(&body, &core.forms);
        let run = (0..1000).map(|_| core.pipeline.run_iteration(&body, &core.forms)).last().expect("a thousand");
        let run = f64::from(run);
        let off = (extrapolated / run - 1.0).abs();
        assert!(off < 1e-2, "{seed}: {extrapolated} for {run}");
        exact += usize::from(off < 1e-4);
        near += usize::from(off < 2e-3);
    }
    // A body may repeat for hundreds of iterations before its queues are full and its rate changes.
    assert!(exact >= 36 && near >= 39, "{exact} and {near} of 40");
}

/// Difference in links between the two lengths of a chain.
const LINKS: usize = 200;

/// The difference of two lengths of a chain, in core cycles.
fn difference(core: &mut SimulatedCore, snippet: &str) -> Interval {
    let bytes = parse_assembly(snippet).expect("the test's own code").bytes().to_vec();
    let chain =
        |copies| ProgramRecipe { snippet: &bytes, copies, ..ProgramRecipe::empty(&clock::ALL_CLOCKS[0]) }.build();
    let readings = readings(core, 2, [100, 100 + LINKS].map(chain).into());
    estimate_contrast(&readings, 3.0, &Contrast::slope_between([0, 1], 1.0), 0.999).expect("enough layouts")
}

#[test]
fn a_chain_is_measured_through_the_clock() {
    for seed in 0..4 {
        let mut core = SimulatedCore::new(CoreModel::from_seed(seed), seed);
        let snippet = "vpmulld xmm0, xmm15, xmm0";
        let truth = core.model().latency(&one(snippet), "op3", "op1").expect("it depends on it");
        let truth = f64::from(truth) * LINKS as f64;
        let cost = difference(&mut core, snippet);
        assert!(cost.contains(truth) && cost.half_width() < 4.0, "{seed}: {cost:?} for {truth}");
    }
}

#[test]
fn scheduling_modes_come_from_the_scenario() {
    let slow = |probability| {
        let mode = Some(SimulatedMode { probability, factor: 1.5, by_program: false });
        let layout = SimulatedLayoutEffects { mode, ..SimulatedLayoutEffects::default() };
        let scenario = Scenario { layout, step: 2, ..Scenario::default() };
        difference(&mut SimulatedCore::with_scenario(model(), scenario, 3), "imul rcx, rcx").value / LINKS as f64
    };
    assert!((slow(0.0) - 3.0).abs() < 0.02 && (slow(1.0) - 4.5).abs() < 0.02);
}
