//! The executor's own costs. Absolute times, so nothing is asserted: run with `cargo test --release
//! --test worker -- --ignored --nocapture figures`.

use crate::support::*;
use cyclescope_exec::Executor;
use std::time::{Duration, Instant};

/// The median of some runs, in microseconds.
fn median_us(count: usize, mut run: impl FnMut()) -> f64 {
    let mut times: Vec<_> = (0..count)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed()
        })
        .collect();
    times.sort();
    times[count / 2].as_nanos() as f64 / 1000.0
}

#[test]
#[ignore = "prints absolute times"]
fn figures() {
    let start = Instant::now();
    let mut user = spawn();
    println!("first spawn {:.0} µs", start.elapsed().as_nanos() as f64 / 1000.0);
    println!("spawn and drop {:.0} µs", median_us(50, || drop(spawn())));
    let long = Duration::from_secs(10);
    println!("first batch {:.1} µs", median_us(1, || drop(run_once(&mut user, &[0x90], long))));
    println!("one call, round trip {:.1} µs", median_us(2000, || drop(run_once(&mut user, &[0x90], long))));
    println!(
        "a fault and the next worker {:.0} µs",
        median_us(200, || {
            let _ = run_once(&mut user, &[0x0f, 0x0b], long);
        })
    );
    let mut of_batch = |calls: usize, rounds: u32| {
        let mut batch = batch(vec![once(&[0x90]); calls], rounds, long);
        batch.layouts = (0..8).map(|index| layout(&batch.programs, 4096 + index * 65_536)).collect();
        batch.warm_up = 0;
        median_us(200, || drop(user.run(&batch)))
    };
    let (none, all) = (of_batch(8, 1), of_batch(8, 201));
    println!("8 layouts of 8 calls {none:.1} µs; each further call {:.0} ns", (all - none) * 1000.0 / 12_800.0);
}
