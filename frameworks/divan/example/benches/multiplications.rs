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

const LENGTHS: &[usize] = &[10, 20];
const WORDS: [&str; 2] = ["short", "much longer"];

#[divan::bench(name = "fill", args = LENGTHS)]
fn fill_bytes(length: usize) -> Vec<u8> {
    vec![7; length]
}

#[divan::bench(args = WORDS)]
fn letters(word: &str) -> usize {
    word.chars().count()
}

#[divan::bench(args = [vec![1, 2, 3]])]
#[expect(clippy::ptr_arg, reason = "an item is passed by reference")]
fn sum(numbers: &Vec<u64>) -> u64 {
    numbers.iter().sum()
}

#[divan::bench(args = 1..3, ignore)]
fn slow(seconds: u64) {
    std::thread::sleep(std::time::Duration::from_secs(seconds));
}
