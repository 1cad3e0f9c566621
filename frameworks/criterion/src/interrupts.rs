//! The share of samples that interrupts, and a hypervisor, took.

use cyclescope_clock::{CoreCycles, CycleClock, Span};
use std::cell::Cell;

/// Core cycles of a span from which on it counts: thousands of steps of a clock of 26 ticks (Zen 4, virtual machine), so that the step is less
/// than a thousandth. Few shorter ones are interrupted, at 250 to 1000 interrupts of the timer a second (Linux, CONFIG_HZ).
const LONG: f64 = 1e5;
/// What the chains before weigh: the mean is over ten of them, for a single one may have a rare long interrupt. So
/// 150 cycles read 149.97 beside a busy loop, and 151.6 with nothing taken off (Zen 4, virtual machine).
const BEFORE: f64 = 0.9;

/// Chains of multiplications that ran beside the samples: what they take alone, and what they took.
#[derive(Debug, Default)]
pub(crate) struct Interrupts {
    lately: Cell<[f64; 2]>,
    all: Cell<[f64; 2]>,
}

impl Interrupts {
    /// A span's core cycles without interrupts, as a chain tells that runs as long now.
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

    /// Says what was taken off.
    pub(crate) fn tell(&self) {
        let sums = self.all.get();
        if sums != [0.0; 2] {
            let percent = 100.0 * (1.0 - share(sums));
            eprintln!(
                "cyclescope: {percent:.2} % is taken off the samples, for interrupts: a chain of multiplications that ran as long beside them took so \
                 much more than its core cycles"
            );
        }
    }
}

/// The share that chains take alone, of what they took.
fn share([alone, took]: [f64; 2]) -> f64 {
    if took > 0.0 { alone / took } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_clock::{Scale, Ticks};

    #[test]
    fn a_share_is_that_of_the_last_chains() {
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
    fn a_short_span_stays_as_it_is_and_a_long_one_does_not() {
        let (clock, interrupts) = (CycleClock::new(), Interrupts::default());
        let scales = [Scale { cycles: 1.0, pair: Ticks(0.0), spread: 0.0 }; 2];
        let span =
            |cycles: f64| Span { cycles: CoreCycles(cycles), ticks: Ticks(cycles), scales, moved: false };
        assert_eq!((interrupts.taken_off(&clock, span(9e4)), interrupts.lately.get()), (9e4, [0.0; 2]));
        // Half of the time is another one's.
        interrupts.seen(CoreCycles(1e12), CoreCycles(2e12));
        let left = interrupts.taken_off(&clock, span(2e5));
        assert!((left - 1e5).abs() < 10.0, "{left}");
    }
}
