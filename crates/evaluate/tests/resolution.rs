//! The resolution of the default timing method on this machine.

use cyclescope_code::asm::CodeMode;
use cyclescope_core::machine::Machine;
use cyclescope_core::random::Random;
use cyclescope_evaluate::TestedClock;
use cyclescope_evaluate::resolution::{RESOLUTION_TIME, ResolutionEffort, StaircaseBody, measure_resolution};
use cyclescope_exec::user::{UserExecutor, UserOptions, user_capabilities};
use cyclescope_measure::resolve_imul_latency;
use cyclescope_run::RunRequest;

/// Step in ticks beyond which distinguishing one addition takes too many readings for a test: their
/// number grows with its square. The simulated machine covers coarser steps.
const COARSE: f64 = 4.0;
/// Number of measurements, because of background load. Each takes twice the time of the one before.
const ATTEMPTS: u32 = 5;
/// Half width beyond which a slope is inconclusive, in core cycles per addition.
const NARROW: f64 = 0.02;

/// An addition takes one core cycle, the definition of a core cycle here. A different slope fails
/// at once.
#[test]
fn one_addition_takes_one_cycle_and_is_resolved() {
    let machine = Machine::detect();
    let cpu = machine.target_cpu() as usize;
    let plan = match RunRequest::default().make_plan(&user_capabilities(&machine), &machine) {
        Ok(plan) => plan,
        Err(refused) => return cyclescope_skipped::report_skipped(refused),
    };
    let mut executor = match UserExecutor::spawn(&UserOptions { cpu, ..UserOptions::default() }) {
        Ok(executor) => executor,
        Err(error) => return cyclescope_skipped::report_skipped(error),
    };
    let imul_latency = resolve_imul_latency(&mut executor, &plan).expect("it runs");
    let tested = TestedClock {
        clock: plan.clock,
        executor: "user",
        mode: CodeMode::default(),
        ruler: plan.clock,
        step: plan.step,
        imul_latency,
        width: None,
        emulated: false,
    };
    let coarse = plan.step > COARSE;
    let time = if coarse { RESOLUTION_TIME } else { RESOLUTION_TIME.mul_f64((plan.step / 2.0).powi(2).max(1.0)) };
    let mut unresolved = Vec::new();
    for attempt in 0..ATTEMPTS {
        let found = measure_resolution(
            &mut executor,
            &tested,
            ResolutionEffort { time: time * 2_u32.pow(attempt), readings: None },
            &mut Random::new(attempt.into()),
            &mut |_| Ok(()),
        )
        .expect("it runs");
        let adds = found.staircase(StaircaseBody::Adds).expect("both staircases");
        let Some(slope) = adds.slope.filter(|slope| !adds.shared && slope.half_width() <= NARROW) else {
            continue;
        };
        assert!((slope.value - 1.0).abs() <= NARROW + 2.0 * slope.half_width(), "{slope:?}");
        let readings = found.by_samples.iter().all(|pair| pair.one_cycle_from.is_some());
        if coarse {
            let step = plan.step;
            return cyclescope_skipped::report_left_out(format_args!("a step of {step} ticks takes too many readings"));
        }
        if adds.neighbours.is_some_and(|neighbours| neighbours.resolved) && readings {
            return;
        }
        unresolved.push((adds.neighbours, readings));
    }
    assert!(unresolved.is_empty(), "{unresolved:?}");
    cyclescope_skipped::report_skipped("the background load on this machine is too high");
}
