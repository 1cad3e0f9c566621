//! Chains of multiplications, and sorting, in core cycles.

use divan::{Bencher, black_box};

fn main() {
    divan::main();
}

#[divan::bench(args = [50, 150])]
fn multiplications(bencher: Bencher, number: u64) {
    let mut value = 3u64;
    bencher.bench_local(|| {
        value = (0..number).fold(value, |value, _| value.wrapping_mul(value));
        value
    });
}

#[divan::bench]
fn nothing() {}

#[divan::bench(args = [100, 1000])]
fn text(length: usize) -> String {
    "x".repeat(length)
}

#[divan::bench]
fn sorting(bencher: Bencher) {
    let numbers = || (0..100u64).map(|number| number * 7919 % 101).collect::<Vec<_>>();
    bencher.with_inputs(numbers).bench_refs(|numbers| black_box(numbers).sort_unstable());
}
