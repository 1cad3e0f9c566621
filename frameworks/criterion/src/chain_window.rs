//! Converts samples to core cycles by chains of known length that run between them.
//!
//! A chain runs as long as the sample before it. So it has as many interrupts as a sample, on
//! average, and the mean clock of a sample. The rate of the last chains together turns the ticks of
//! a sample into core cycles without interrupts. One reading of the ruler would add its own error
//! to each sample, and one chain the interrupts that it happens to have.

use cyclescope_clock::{CoreCycles, CycleClock, Span, Ticks};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// Spans of at least this many core cycles count. They are thousands of steps of a clock of 26
/// ticks (Zen 4, virtual machine), so the step is less than a thousandth. Few shorter spans are
/// interrupted, at 250 to 1000 timer interrupts per second (Linux, CONFIG_HZ).
const LONG: f64 = 1e5;
/// Chains whose rates are taken together: so many that a rare disturbance of one, of some tens of
/// percent, moves the samples after it by less than a percent.
const CHAINS: usize = 50;
/// The core's clock has changed if readings of the ruler differ by more than this share from those
/// at the chains, in this many successive samples. Earlier chains then do not count. A single
/// reading may be disturbed.
const MOVED: f64 = 0.01;
const MOVED_IN: usize = 3;

/// A chain between two samples.
#[derive(Debug, Clone, Copy)]
struct ChainReading {
    alone: CoreCycles,
    ticks: Ticks,
    /// Core cycles per tick, by the rulers around it.
    scale: f64,
}

/// The last chains.
#[derive(Debug, Default)]
pub(crate) struct ChainWindow {
    chains: RefCell<VecDeque<ChainReading>>,
    /// Successive samples at another clock.
    moved: Cell<usize>,
    /// Own cycles of all chains, and the cycles that they took.
    all: Cell<[f64; 2]>,
}

impl ChainWindow {
    /// A span's core cycles without interrupts, with a chain of equal length that runs now.
    pub(crate) fn convert(&self, clock: &CycleClock, span: Span) -> f64 {
        if span.cycles.0 < LONG {
            return span.cycles.0;
        }
        let (alone, took) = clock.chain(span.cycles);
        let [own, taken] = self.all.get();
        self.all.set([own + alone.0, taken + took.cycles.0]);
        self.add(ChainReading { alone, ticks: took.ticks, scale: mean_scale(&took) }, mean_scale(&span));
        let [before, after] = span.scales;
        (span.ticks.0 - (before.pair.0 + after.pair.0) / 2.0) * self.cycles_per_tick()
    }

    /// Adds a chain after a span with this reading of the ruler.
    fn add(&self, chain: ChainReading, scale: f64) {
        let mut chains = self.chains.borrow_mut();
        let mut scales: Vec<f64> = chains.iter().map(|chain| chain.scale).collect();
        scales.sort_unstable_by(f64::total_cmp);
        let moved = scales.get(scales.len() / 2).is_some_and(|median| (scale / median - 1.0).abs() > MOVED);
        self.moved.set(if moved { self.moved.get() + 1 } else { 0 });
        if self.moved.get() >= MOVED_IN {
            self.moved.set(0);
            let earlier = (chains.len() + 1).saturating_sub(MOVED_IN);
            chains.drain(..earlier);
        }
        chains.push_back(chain);
        if chains.len() > CHAINS {
            chains.pop_front();
        }
    }

    /// The rate of the last chains, interrupts included.
    fn cycles_per_tick(&self) -> f64 {
        let chains = self.chains.borrow();
        let alone: f64 = chains.iter().map(|chain| chain.alone.0).sum();
        alone / chains.iter().map(|chain| chain.ticks.0).sum::<f64>().max(1.0)
    }

    /// Reports the correction.
    pub(crate) fn report(&self) {
        let [alone, took] = self.all.get();
        if took > 0.0 {
            let percent = 100.0 * (1.0 - alone / took);
            eprintln!(
                "cyclescope: {percent:.2} % is taken off the samples, for interrupts: chains of multiplications of \
                 equal length took this much longer than their core cycles"
            );
        }
    }
}

/// Core cycles per tick, by the rulers around a span.
fn mean_scale(span: &Span) -> f64 {
    let [before, after] = span.scales;
    (before.cycles + after.cycles) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_clock::Scale;

    /// A chain of 100 cycles that takes this many ticks, at this reading of the ruler.
    fn add(window: &ChainWindow, ticks: f64, scale: f64) {
        window.add(ChainReading { alone: CoreCycles(100.0), ticks: Ticks(ticks), scale }, scale);
    }

    #[test]
    fn the_rate_is_that_of_the_last_chains() {
        let window = ChainWindow::default();
        (0..10).for_each(|_| add(&window, 100.0, 1.0));
        (0..10).for_each(|_| add(&window, 101.0, 1.0));
        assert!((window.cycles_per_tick() - 100.0 / 100.5).abs() < 1e-9);
        // Readings of the ruler that are off do not count: by less than a change of the clock, or once.
        (0..10).for_each(|_| add(&window, 100.5, 1.009));
        add(&window, 100.5, 1.5);
        assert!((window.cycles_per_tick() - 100.0 / 100.5).abs() < 1e-9);
        // An interrupt of some chains is that of some samples.
        (0..9).for_each(|_| add(&window, 100.5, 1.0));
        (0..10).for_each(|_| add(&window, 110.5, 1.0));
        assert!((window.cycles_per_tick() - 100.0 / 102.5).abs() < 1e-3);
        (0..CHAINS).for_each(|_| add(&window, 150.0, 1.0));
        assert!((window.cycles_per_tick() - 100.0 / 150.0).abs() < 1e-9);
    }

    #[test]
    fn a_change_of_the_clock_begins_a_new_window() {
        let window = ChainWindow::default();
        (0..10).for_each(|_| add(&window, 100.0, 1.0));
        (0..MOVED_IN).for_each(|_| add(&window, 125.0, 0.8));
        assert!((window.cycles_per_tick() - 0.8).abs() < 1e-9);
    }

    #[test]
    fn long_spans_are_corrected_and_short_ones_are_not() {
        let (clock, window) = (CycleClock::new(), ChainWindow::default());
        let scale = clock.calibration().scale.cycles;
        let scales = [Scale { cycles: scale, pair: Ticks(0.0), spread: 0.0 }; 2];
        let span = |cycles: f64| Span {
            cycles: CoreCycles(cycles),
            ticks: Ticks(cycles / scale),
            scales,
            moved: false,
            migrated: false,
        };
        assert_eq!((window.convert(&clock, span(9e4)), window.all.get()), (9e4, [0.0; 2]));
        let cycles = window.convert(&clock, span(2e6));
        assert!(cycles > 5e5 && cycles < 8e6 && window.all.get() != [0.0; 2], "{cycles}");
    }
}
