//! Estimates the share of samples that interrupts and a hypervisor take.

use cyclescope_clock::{CoreCycles, CycleClock, Span};
use std::cell::Cell;

/// Spans of at least this many core cycles count. They are thousands of steps of a clock of 26
/// ticks (Zen 4, virtual machine), so the step is less than a thousandth. Few shorter spans are
/// interrupted, at 250 to 1000 timer interrupts per second (Linux, CONFIG_HZ).
const LONG: f64 = 1e5;
/// Weight of earlier chains. The mean covers about ten of them, since a single one may contain a
/// rare long interrupt. With this, 150 cycles read 149.97 under background load, and 151.6 without
/// the correction (Zen 4, virtual machine).
const BEFORE: f64 = 0.9;

/// Chains of multiplications measured between the samples: their own cycles, and the cycles they
/// took.
#[derive(Debug, Default)]
pub(crate) struct Interrupts {
    lately: Cell<[f64; 2]>,
    all: Cell<[f64; 2]>,
}

impl Interrupts {
    /// A span's core cycles without interrupts, from a chain of equal length that runs now.
    pub(crate) fn taken_off(&self, clock: &CycleClock, span: Span) -> f64 {
        if span.cycles.0 < LONG {
            return span.cycles.0;
        }
        let (alone, took) = clock.chain(span.cycles);
        self.seen(alone, took.cycles);
        span.cycles.0 * share(self.lately.get())
    }

    fn seen(&self, alone: CoreCycles, took: CoreCycles) {
        let add = |sums: [f64; 2], weight: f64| {
            let [before, taken] = sums;
            [weight * before + alone.0, weight * taken + took.0]
        };
        self.lately.set(add(self.lately.get(), BEFORE));
        self.all.set(add(self.all.get(), 1.0));
    }

    /// Reports the correction.
    pub(crate) fn report(&self) {
        let sums = self.all.get();
        if sums != [0.0; 2] {
            let percent = 100.0 * (1.0 - share(sums));
            eprintln!(
                "cyclescope: {percent:.2} % is taken off the samples, for interrupts: chains of multiplications of \
                 equal length took this much longer than their core cycles"
            );
        }
    }
}

/// The share of their measured time that chains take alone.
fn share([alone, took]: [f64; 2]) -> f64 {
    if took > 0.0 { alone / took } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_clock::{Scale, Ticks};

    #[test]
    fn a_share_is_the_mean_of_recent_chains() {
        let interrupts = Interrupts::default();
        for _ in 0..200 {
            interrupts.seen(CoreCycles(99.0), CoreCycles(100.0));
        }
        assert!((share(interrupts.lately.get()) - 0.99).abs() < 1e-9);
        (0..100).for_each(|_| interrupts.seen(CoreCycles(95.0), CoreCycles(100.0)));
        assert!((share(interrupts.lately.get()) - 0.95).abs() < 1e-4);
        assert!((share(interrupts.all.get()) - 0.97666).abs() < 1e-4);
        assert_eq!(share([0.0; 2]), 1.0);
    }

    #[test]
    fn long_spans_are_corrected_and_short_ones_are_not() {
        let (clock, interrupts) = (CycleClock::new(), Interrupts::default());
        let scales = [Scale { cycles: 1.0, pair: Ticks(0.0), spread: 0.0 }; 2];
        let span = |cycles: f64| Span { cycles: CoreCycles(cycles), ticks: Ticks(cycles), scales, moved: false };
        assert_eq!((interrupts.taken_off(&clock, span(9e4)), interrupts.lately.get()), (9e4, [0.0; 2]));
        // Something else takes half of the time.
        interrupts.seen(CoreCycles(1e12), CoreCycles(2e12));
        let left = interrupts.taken_off(&clock, span(2e5));
        assert!((left - 1e5).abs() < 10.0, "{left}");
    }
}
