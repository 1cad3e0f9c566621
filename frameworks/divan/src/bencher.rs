//! The interface that a benchmark's function uses.

use crate::counter::SupportedCounter;
use crate::parts::{Cost, Plan, measure};
use cyclescope_clock::CycleClock;
use std::hint::black_box;
use std::mem::needs_drop;

/// Most inputs made for one part. With their outputs they are some megabytes of numbers, which fit
/// the memory.
const INPUTS: u64 = 1 << 16;

/// Measures the code that a benchmark's function passes.
#[derive(Debug)]
pub struct Bencher<'a> {
    clock: &'a CycleClock,
    plan: Plan,
    cost: &'a mut Option<Cost>,
}

/// Measures with inputs that are made outside the measured time.
#[derive(Debug)]
pub struct WithInputs<'a, G> {
    bencher: Bencher<'a>,
    make: G,
}

impl<'a> Bencher<'a> {
    pub(crate) fn new(clock: &'a CycleClock, plan: Plan, cost: &'a mut Option<Cost>) -> Bencher<'a> {
        Bencher { clock, plan, cost }
    }

    /// Not supported.
    #[doc(hidden)]
    pub fn counter<C: SupportedCounter>(self, _: C) -> Self {
        self
    }

    /// Measures a function.
    pub fn bench<O>(self, mut code: impl FnMut() -> O) {
        if needs_drop::<O>() {
            return self.with_inputs(|| ()).bench_values(|()| code());
        }
        let part = |clock: &CycleClock, number| {
            let begun = clock.begin();
            for _ in 0..number {
                black_box(code());
            }
            clock.end(begun)
        };
        *self.cost = Some(measure(self.plan, u64::MAX, part, self.clock));
    }

    /// Same as `bench`: all benchmarks run on one thread.
    pub fn bench_local<O>(self, code: impl FnMut() -> O) {
        self.bench(code);
    }

    /// Makes an input for each iteration.
    pub fn with_inputs<I, G: FnMut() -> I>(self, make: G) -> WithInputs<'a, G> {
        WithInputs { bencher: self, make }
    }
}

impl<I, G: FnMut() -> I> WithInputs<'_, G> {
    /// Not supported.
    #[doc(hidden)]
    pub fn input_counter<C: SupportedCounter, F: Fn(&I) -> C>(self, _: F) -> Self {
        self
    }

    /// Measures a function that takes inputs by value.
    pub fn bench_values<O>(mut self, mut code: impl FnMut(I) -> O) {
        let part = |clock: &CycleClock, number| {
            let inputs: Vec<I> = (0..number).map(|_| (self.make)()).collect();
            let mut outputs = Vec::with_capacity(inputs.len());
            let begun = clock.begin();
            outputs.extend(inputs.into_iter().map(|input| black_box(code(black_box(input)))));
            clock.end(begun)
        };
        *self.bencher.cost = Some(measure(self.bencher.plan, INPUTS, part, self.bencher.clock));
    }

    /// Measures a function that may change its inputs.
    pub fn bench_refs<O>(mut self, mut code: impl FnMut(&mut I) -> O) {
        let part = |clock: &CycleClock, number| {
            let mut inputs: Vec<I> = (0..number).map(|_| (self.make)()).collect();
            let mut outputs = Vec::with_capacity(inputs.len());
            let begun = clock.begin();
            outputs.extend(inputs.iter_mut().map(|input| black_box(code(black_box(input)))));
            clock.end(begun)
        };
        *self.bencher.cost = Some(measure(self.bencher.plan, INPUTS, part, self.bencher.clock));
    }

    /// Same as `bench_values`: all benchmarks run on one thread.
    pub fn bench_local_values<O>(self, code: impl FnMut(I) -> O) {
        self.bench_values(code);
    }

    /// Same as `bench_refs`: all benchmarks run on one thread.
    pub fn bench_local_refs<O>(self, code: impl FnMut(&mut I) -> O) {
        self.bench_refs(code);
    }
}
