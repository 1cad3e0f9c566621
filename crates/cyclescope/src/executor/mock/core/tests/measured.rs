use super::*;
use crate::executor::mock::{Frequency, Gaps};
use crate::probe::{Probe, Reading, Readings};
use crate::random::Random;
use crate::ruler::sentinel_width;

fn readings(core: &mut SimulatedCore, step: u64) -> Vec<Reading> {
    let clock = clock::Clock::named("lfence-rdtsc-lfence").expect("a clock");
    let probe = Probe::new(clock, step as f64);
    let readings = probe.run(core, 16, 64, &mut Random::new(7)).expect("no fault is planted");
    readings.iter().filter_map(Readings::read).collect()
}

#[test]
fn the_ruler_is_right() {
    let scenarios = [
        Scenario { step: 2, ..Scenario::default() },
        Scenario { step: 26, ..Scenario::default() },
        Scenario {
            frequency: Frequency { drift: 0.0005, jump_rate: 0.0 },
            interrupts: Gaps { rate: 1e-7, ticks: 8000.0 },
            ..Scenario::default()
        },
    ];
    for (seed, scenario) in scenarios.into_iter().cycle().take(12).enumerate() {
        let model = CoreModel::random(seed as u64);
        let step = scenario.step;
        let mut core = SimulatedCore::disturbed(model, scenario, 3);
        let readings = readings(&mut core, step);
        assert!(readings.len() > 12);
        let mean = |figure: &dyn Fn(&Reading) -> f64| {
            readings.iter().map(figure).sum::<f64>() / readings.len() as f64
        };
        let ratio = mean(&|reading| reading.imul / reading.add);
        let imul = f64::from(core.model().imul_latency);
        assert!((ratio / imul - 1.0).abs() < 0.005, "{seed}: {ratio} for {imul}");
        let width = mean(&|reading| reading.width);
        let planted = sentinel_width(core.model().integer_ports);
        assert!((width / planted - 1.0).abs() < 0.01, "{seed}: {width} for {planted}");
    }
}

#[test]
fn few_iterations_tell_of_many() {
    let mut core = SimulatedCore::new(model(), 1);
    let snippet = "vaddps xmm0, xmm14, xmm15; imul rax, r12; add rbx, [r14]; mov [rdi], rcx";
    let long = program("", snippet, 25);
    let cycles = core.cycles(&long, 1_000_000);
    let uops = core.simulated_uops();
    assert!(uops < 2500, "{uops} of 125 million");
    assert_eq!(core.cycles(&long, 1_000_000), cycles);
    assert_eq!(core.simulated_uops(), uops, "what is known is not run again");
    // Exact where so few iterations are asked for that they were run.
    assert!(core.cycles(&long, 3) < core.cycles(&long, 4));
    assert_eq!(core.cycles(&long, 0), 0.0);
}
