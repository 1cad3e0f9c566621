//! The cost of regions to a program. It is a program of its own, since the report has the mean over
//! all threads. It compares figures only with each other.
#![cfg(feature = "std")]

use cyclescope_clock::{CycleClock, Region, hide, keep, report};

const EXECUTIONS: u32 = 20_000;
const TRIALS: usize = 15;

fn chain(value: u64) -> u64 {
    let product = (0..50).fold(hide(value), |value, _| value.wrapping_mul(value));
    keep(product);
    product
}

/// Core cycles of some code, per execution.
fn cycles(clock: &CycleClock, mut code: impl FnMut(u64) -> u64) -> f64 {
    let begun = clock.begin();
    keep((0..EXECUTIONS).fold(3, |value, _| code(value)));
    clock.end(begun).cycles.0 / f64::from(EXECUTIONS)
}

/// The conversion to core cycles and the ruler are a third of it.
#[test]
fn an_execution_costs_the_program_what_the_report_says() {
    static TIMED: Region = Region::new("timed");
    let clock = CycleClock::new();
    // The first execution calibrates.
    TIMED.begin().end();
    let mut costs = [0.0; TRIALS];
    costs.fill_with(|| {
        let without = cycles(&clock, chain);
        let with = cycles(&clock, |value| {
            let _timed = TIMED.begin();
            chain(value)
        });
        with - without
    });
    costs.sort_unstable_by(f64::total_cmp);
    let (cost, all) = (costs[TRIALS / 2], report());
    assert!((all.execution.0 / cost - 1.0).abs() < 0.2, "{cost}\n{all}");
    assert!(all.bare < all.nested && all.nested < all.execution, "{all}");
}
