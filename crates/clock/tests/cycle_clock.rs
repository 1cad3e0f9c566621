//! Compares the clock of core cycles with multiplications, which take a whole number of them.
#![cfg(feature = "std")]

use cyclescope_clock::{CoreCycles, CycleClock, hide};
#[cfg(target_os = "linux")]
use std::time::Duration;

const EIGHT: u64 = 8;

/// A chain of dependent multiplications.
fn multiplications(number: u64) -> u64 {
    let multiply = |value: u64, _| hide(value.wrapping_mul(value));
    (0..number / EIGHT).fold(3, |value, _| (0..EIGHT).fold(value, multiply))
}

/// Spans of some microseconds: most have no interrupt, also where timers of other programs end some
/// ten thousand times a second. In this number of them the ruler is read many times.
const SPANS: usize = 1001;

/// The median of many spans with many readings of the ruler. Other users of this core disturb some
/// of both.
fn usual(clock: &CycleClock, number: u64) -> f64 {
    let mut spans: Vec<f64> = (0..SPANS)
        .map(|_| {
            let begun = clock.begin();
            std::hint::black_box(multiplications(number));
            clock.end(begun).cycles.0
        })
        .collect();
    spans.sort_unstable_by(f64::total_cmp);
    spans[SPANS / 2]
}

#[test]
fn a_multiplication_takes_a_whole_number_of_core_cycles() {
    let clock = CycleClock::new();
    if !clock.caveats().is_empty() {
        return cyclescope_skipped::report_left_out(format_args!("{:?}", clock.caveats()));
    }
    let [short, long] = [8_000, 24_000].map(|number| usual(&clock, number));
    let each = (long - short) / 16_000.0;
    let whole = each.round();
    assert!((each / whole - 1.0).abs() < 0.05, "{short} and {long}");
    assert!((short / 8_000.0 / whole - 1.0).abs() < 0.05, "{short} and {long}");
}

#[test]
fn a_chain_has_the_length_that_it_reports() {
    let clock = CycleClock::new();
    if !clock.caveats().is_empty() {
        return cyclescope_skipped::report_left_out(format_args!("{:?}", clock.caveats()));
    }
    assert!(clock.chain(CoreCycles(0.0)).0 > CoreCycles(0.0));
    let mut shares: Vec<f64> = (0..SPANS)
        .map(|_| {
            let (alone, took) = clock.chain(CoreCycles(30_000.0));
            assert!((alone.0 / 30_000.0 - 1.0).abs() < 0.01, "{alone:?}");
            took.cycles.0 / alone.0
        })
        .collect();
    shares.sort_unstable_by(f64::total_cmp);
    assert!((shares[SPANS / 2] - 1.0).abs() < 0.05, "{}", shares[SPANS / 2]);
}

#[test]
#[cfg(target_os = "linux")]
fn a_sleeping_thread_takes_no_cycles() {
    let clock = CycleClock::new();
    let begun = clock.begin();
    std::thread::sleep(Duration::from_millis(100));
    let slept = clock.end(begun).cycles.0;
    let begun = clock.begin();
    // About a tenth of a second of processor time.
    std::hint::black_box(multiplications(100_000_000));
    let worked = clock.end(begun).cycles.0;
    assert!(slept < worked / 2.0, "{slept} and {worked}");
}
