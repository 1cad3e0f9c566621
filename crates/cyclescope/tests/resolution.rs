//! The resolution of the default timing method on this machine.

use cyclescope::executor::user::{User, UserOptions, capabilities};
use cyclescope::machine::Machine;
use cyclescope::random::Random;
use cyclescope::run::Request;
use cyclescope::study::evaluate::TestedClock;
use cyclescope::study::evaluate::resolution::{Body, Staircase, TIME, resolution};
use std::time::{Duration, Instant};

/// Ticks of a step beyond which one cycle takes too many readings for a test: their number grows with its square.
const COARSE: f64 = 8.0;

/// Whether one addition is resolved, and takes one core cycle.
fn is_sharp(adds: &Staircase) -> bool {
    let slope = adds.slope.is_some_and(|slope| slope.contains(1.0) && (slope.value - 1.0).abs() < 0.02);
    slope && adds.neighbours.is_some_and(|neighbours| neighbours.resolved)
}

/// Tries again for a while, since other processes share the machine.
#[test]
fn one_addition_is_resolved() {
    let machine = Machine::detect();
    let Ok(plan) = Request::default().plan(&capabilities(&machine), &machine) else {
        eprintln!("skipped: no timing method works here");
        return;
    };
    let Some(imul_latency) = plan.imul_latency else {
        eprintln!("skipped: nothing is known about this core's imul");
        return;
    };
    if plan.step > COARSE {
        eprintln!("skipped: a step of {} ticks takes minutes of readings to tell one cycle", plan.step);
        return;
    }
    let cpu = machine.target_cpu() as usize;
    let mut executor = match User::spawn(&UserOptions { cpu, ..UserOptions::default() }) {
        Ok(executor) => executor,
        Err(error) => {
            eprintln!("skipped: {error}");
            return;
        }
    };
    let tested = TestedClock {
        clock: plan.clock,
        executor: "user",
        ruler: plan.clock,
        step: plan.step,
        imul_latency,
        width: None,
        emulated: false,
    };
    let start = Instant::now();
    let mut seen = Vec::new();
    // A coarse step takes more readings: their number goes with its square.
    let time = TIME.mul_f64((plan.step / 2.0).powi(2).max(1.0));
    while start.elapsed() < Duration::from_secs(60) {
        let seed = seen.len() as u64;
        let found = resolution(&mut executor, &tested, time, &mut Random::new(seed)).expect("it runs");
        let adds = found.staircase(Body::Adds).expect("both staircases");
        let readings = found.by_samples.iter().all(|pair| pair.one_cycle_from.is_some());
        if is_sharp(adds) && readings {
            return;
        }
        seen.push((adds.slope, adds.neighbours, adds.shared, readings));
    }
    if seen.iter().all(|(.., shared, _)| *shared) {
        eprintln!("skipped: the core was shared with a busy sibling all the time");
        return;
    }
    panic!("{seen:?}");
}
