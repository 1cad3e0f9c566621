//! Core cycles as a measurement of Criterion: `Criterion::default().with_measurement(CoreCycles::new())`.
//!
//! Criterion runs the iterations of a sample and this counts the core cycles between its beginning and its end, with a ruler at both, by
//! [`CycleClock`]: the core's clock may have any frequency, and on Linux another program on the same CPU is left out. What Criterion calls
//! `time` is then core cycles. Intervals and comparisons are Criterion's.
//!
//! A sample of many milliseconds has interrupts in it. Behind each one a chain of multiplications of known length runs as long, and the share of
//! the time that interrupts take of such chains is taken off the samples; a line at the end tells it. So half of the time is the chain's.
//!
//! Under `cyclescope ab` (the variable `CYCLESCOPE_AB`) what Criterion has stored in the folder `CRITERION_HOME` is told there when the
//! measurement is dropped, as `criterion_group!` does.
//!
//! Several benchmarks of one iteration each overlap in the core: where the result of an iteration is not used by the next one, the figure
//! is what an iteration adds to the others, and less than it takes alone.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod interrupts;
mod samples;

use crate::interrupts::Interrupts;
use crate::samples::Stored;
use criterion::Throughput;
use criterion::measurement::{Measurement, ValueFormatter};
use cyclescope_clock::ab::Samples;
use cyclescope_clock::{Begun, CycleClock};
use std::cell::Cell;
use std::env;
use std::process::exit;

/// Share of the spans in which the core's clock moved above which this is told: more than
/// rare changes would be. And spans from which on a single one is no such share.
const SOME: f64 = 0.05;
const MANY: u64 = 20;

/// The variable by which Criterion is told where to store its files.
const HOME: &str = "CRITERION_HOME";

/// Core cycles, in place of Criterion's `WallTime`.
///
/// It tells on standard error what is wrong with this machine, and at the end whether the core's clock moved.
#[derive(Debug)]
pub struct CoreCycles {
    clock: CycleClock,
    spans: Cell<u64>,
    moved: Cell<u64>,
    interrupts: Interrupts,
    observed: Option<(Samples, Stored)>,
}

impl CoreCycles {
    /// Calibrates the clock: some milliseconds.
    #[expect(clippy::new_without_default, reason = "it measures, and prints what is wrong")]
    pub fn new() -> CoreCycles {
        let clock = CycleClock::new();
        clock.caveats().iter().for_each(|caveat| eprintln!("cyclescope: core cycles are in doubt: {caveat}"));
        let observed = Samples::from_environment().map(|samples| match env::var_os(HOME) {
            Some(folder) => (samples, Stored::new(folder.into())),
            None => {
                // Without samples the CPU time would be compared, which Criterion keeps the same whatever is measured.
                eprintln!("cyclescope: {HOME} has to name a folder, from which `cyclescope ab` gets Criterion's samples");
                exit(2);
            }
        });
        CoreCycles {
            clock,
            spans: Cell::new(0),
            moved: Cell::new(0),
            interrupts: Interrupts::default(),
            observed,
        }
    }
}

impl Drop for CoreCycles {
    fn drop(&mut self) {
        if let Some((samples, stored)) = &self.observed {
            let told = stored.tell(&|name, iterations, cycles| samples.cycles(name, iterations, cycles));
            if let Err(error) = told {
                eprintln!("cyclescope: samples for `cyclescope ab` are missing: {error}");
                exit(1);
            }
        }
        self.interrupts.tell();
        let (spans, moved) = (self.spans.get(), self.moved.get());
        if spans >= MANY && moved as f64 > SOME * spans as f64 {
            eprintln!(
                "cyclescope: the core's clock moved by more than 1 % in {moved} of {spans} samples: take shorter ones \
                 (more samples, or less measurement time)"
            );
        }
    }
}

impl Measurement for CoreCycles {
    type Intermediate = Begun;
    type Value = f64;

    #[inline(always)]
    fn start(&self) -> Begun {
        self.clock.begin()
    }

    #[inline(always)]
    fn end(&self, begun: Begun) -> f64 {
        let span = self.clock.end(begun);
        self.spans.set(self.spans.get() + 1);
        self.moved.set(self.moved.get() + u64::from(span.moved));
        // `cyclescope ab` takes the lower quartile of the samples, in which there are none.
        if self.observed.is_some() { span.cycles.0 } else { self.interrupts.taken_off(&self.clock, span) }
    }

    fn add(&self, one: &f64, other: &f64) -> f64 {
        one + other
    }

    fn zero(&self) -> f64 {
        0.0
    }

    fn to_f64(&self, value: &f64) -> f64 {
        *value
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        &Formatter
    }
}

/// Cycles, and cycles for each byte, bit or element.
struct Formatter;

impl ValueFormatter for Formatter {
    fn scale_values(&self, typical: f64, values: &mut [f64]) -> &'static str {
        let (divisor, unit) = match typical.abs() {
            ..1e4 => (1.0, "cycles"),
            ..1e7 => (1e3, "thousand cycles"),
            ..1e10 => (1e6, "million cycles"),
            _ => (1e9, "billion cycles"),
        };
        values.iter_mut().for_each(|value| *value /= divisor);
        unit
    }

    fn scale_throughputs(&self, _typical: f64, throughput: &Throughput, values: &mut [f64]) -> &'static str {
        let (number, unit) = match *throughput {
            Throughput::Bits(bits) => (bits, "cycles/bit"),
            Throughput::Bytes(bytes) | Throughput::BytesDecimal(bytes) => (bytes, "cycles/byte"),
            // Criterion formats elements and bytes one by one.
            Throughput::Elements(elements) | Throughput::ElementsAndBytes { elements, .. } => {
                (elements, "cycles/elem")
            }
        };
        values.iter_mut().for_each(|value| *value /= number.max(1) as f64);
        unit
    }

    fn scale_for_machines(&self, _values: &mut [f64]) -> &'static str {
        "cycles"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_cycles_and_throughput_is_cycles_for_each_of_what_is_processed() {
        assert_eq!(Formatter.format_value(150.25).trim(), "150.25 cycles");
        assert_eq!(Formatter.format_value(2.5e6).trim(), "2500.0 thousand cycles");
        assert_eq!(Formatter.format_throughput(&Throughput::Bytes(64), 32.0).trim(), "0.5000 cycles/byte");
        assert_eq!(
            Formatter.format_throughput(&Throughput::Elements(50), 150.0).trim(),
            "3.0000 cycles/elem"
        );
        assert_eq!(Formatter.format_throughput(&Throughput::Bits(0), 7.0).trim(), "7.0000 cycles/bit");
        let mut values = [1.0, 2e12];
        assert_eq!((Formatter.scale_for_machines(&mut values), values), ("cycles", [1.0, 2e12]));
    }

    #[test]
    fn a_sample_is_counted_and_adds_up() {
        let cycles = CoreCycles::new();
        let begun = cycles.start();
        let sum = (0..100_000u64).fold(0, |sum, number| std::hint::black_box(sum + number));
        let value = cycles.end(begun);
        assert!(sum > 0 && value > 10_000.0, "{value}");
        assert_eq!(cycles.to_f64(&cycles.add(&value, &cycles.zero())), value);
        assert_eq!((cycles.spans.get(), cycles.formatter().format_value(3.0).trim()), (1, "3.0000 cycles"));
    }
}
