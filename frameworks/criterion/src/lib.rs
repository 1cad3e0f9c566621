//! Core cycles as a measurement of Criterion:
//! `Criterion::default().with_measurement(CoreCycles::new())`.
//!
//! Criterion runs the iterations of a sample. [`CycleClock`] counts the core cycles between its
//! beginning and its end, with a ruler at both. The core's clock may have any frequency, and on
//! Linux other programs on the same CPU are left out. What Criterion calls `time` is then core
//! cycles. Intervals and comparisons are Criterion's.
//!
//! A sample of many milliseconds contains interrupts. After each sample a chain of multiplications
//! of known length runs equally long. The rate of the last chains, with their interrupts, turns the
//! sample's ticks into core cycles, and a line at the end reports the interrupts' share. So the
//! chain uses half of the time.
//!
//! Under `cyclescope ab` (the variable `CYCLESCOPE_AB`) Criterion stores its files in the folder
//! `CRITERION_HOME`. Their samples are reported to `cyclescope ab` when the measurement is dropped,
//! as `criterion_group!` does.
//!
//! Iterations overlap in the core if the next one does not use the result of the last. The figure
//! is then the time that an iteration adds to the others, less than it takes alone.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod chain_window;
mod samples;

use crate::chain_window::ChainWindow;
use crate::samples::Stored;
use criterion::Throughput;
use criterion::measurement::{Measurement, ValueFormatter};
use cyclescope_clock::ab::{Samples, TOO_SHORT};
use cyclescope_clock::{Begun, CycleClock};
use std::cell::Cell;
use std::env;
use std::process::exit;

/// Reports a changing core clock if it changed in more than this share of the spans: more than rare
/// changes would cause. With fewer spans than this a single one may exceed the share.
const SOME: f64 = 0.05;
const MANY: u64 = 20;

/// The variable that names the folder of Criterion's files.
const HOME: &str = "CRITERION_HOME";

/// Core cycles, in place of Criterion's `WallTime`.
///
/// Reports problems of this machine on standard error, and at the end whether the core's clock
/// changed.
#[derive(Debug)]
pub struct CoreCycles {
    clock: CycleClock,
    spans: Cell<u64>,
    moved: Cell<u64>,
    chains: ChainWindow,
    observed: Option<(Samples, Stored)>,
}

impl CoreCycles {
    /// Calibrates the clock, in some milliseconds.
    #[expect(clippy::new_without_default, reason = "it measures, and prints what is wrong")]
    pub fn new() -> CoreCycles {
        let clock = CycleClock::new();
        clock.caveats().iter().for_each(|caveat| eprintln!("cyclescope: core cycles are in doubt: {caveat}"));
        let observed = Samples::from_environment().map(|samples| match env::var_os(HOME) {
            Some(folder) => (samples, Stored::new(folder.into())),
            None => {
                // Without samples, `cyclescope ab` would compare CPU times, which Criterion keeps
                // constant for any code.
                eprintln!("cyclescope: set {HOME} to a folder, so that `cyclescope ab` finds Criterion's samples");
                exit(2);
            }
        });
        CoreCycles { clock, spans: Cell::new(0), moved: Cell::new(0), chains: ChainWindow::default(), observed }
    }
}

impl Drop for CoreCycles {
    fn drop(&mut self) {
        if let Some((samples, stored)) = &self.observed {
            let written = stored.report_new(&|name, sample| match sample {
                Some((iterations, cycles)) => samples.cycles(name, iterations, cycles),
                None => samples.unmeasured(name, TOO_SHORT),
            });
            if let Err(error) = written {
                eprintln!("cyclescope: samples for `cyclescope ab` are missing: {error}");
                exit(1);
            }
        }
        self.chains.report();
        let (spans, moved) = (self.spans.get(), self.moved.get());
        if spans >= MANY && moved as f64 > SOME * spans as f64 {
            eprintln!(
                "cyclescope: the core's clock moved by more than 1 % in {moved} of {spans} samples: take shorter samples \
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
        // `cyclescope ab` takes the lower quartile of the samples, which are free of interrupts.
        if self.observed.is_some() { span.cycles.0 } else { self.chains.convert(&self.clock, span) }
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

/// Formats cycles, and cycles per byte, bit or element.
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
            // Criterion formats elements and bytes separately.
            Throughput::Elements(elements) | Throughput::ElementsAndBytes { elements, .. } => (elements, "cycles/elem"),
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
    fn values_are_cycles_and_throughput_is_cycles_per_item() {
        assert_eq!(Formatter.format_value(150.25).trim(), "150.25 cycles");
        assert_eq!(Formatter.format_value(2.5e6).trim(), "2500.0 thousand cycles");
        assert_eq!(Formatter.format_throughput(&Throughput::Bytes(64), 32.0).trim(), "0.5000 cycles/byte");
        assert_eq!(Formatter.format_throughput(&Throughput::Elements(50), 150.0).trim(), "3.0000 cycles/elem");
        assert_eq!(Formatter.format_throughput(&Throughput::Bits(0), 7.0).trim(), "7.0000 cycles/bit");
        let mut values = [1.0, 2e12];
        assert_eq!((Formatter.scale_for_machines(&mut values), values), ("cycles", [1.0, 2e12]));
    }

    #[test]
    fn samples_are_counted_and_add_up() {
        let cycles = CoreCycles::new();
        let begun = cycles.start();
        let sum = (0..100_000u64).fold(0, |sum, number| std::hint::black_box(sum + number));
        let value = cycles.end(begun);
        assert!(sum > 0 && value > 10_000.0, "{value}");
        assert_eq!(cycles.to_f64(&cycles.add(&value, &cycles.zero())), value);
        assert_eq!((cycles.spans.get(), cycles.formatter().format_value(3.0).trim()), (1, "3.0000 cycles"));
    }
}
