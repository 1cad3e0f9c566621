//! Reads the ruler's calls of a round: raw units per core cycle, the overhead of a call, and the
//! width of the core.
//!
//! The durations may be those of one round or means over rounds. The `imul` chain gives the core
//! cycle. If the round has the `add` chain too, the width comes from that chain. Rounds are left
//! out by their width, and a width with the same errors as the core cycle would bias the remaining
//! rounds.

use super::chains::{ADD_LINKS, ADD_SPAN, IMUL_LINKS, IMUL_SPAN, sentinel_adds};
use cyclescope_core::statistics::normal_quantile;

/// The ruler's calls in a round: columns of [`LayoutSamples`](super::LayoutSamples), in the order
/// of [`RulerPrograms::into_programs`](super::RulerPrograms::into_programs). Other calls follow.
pub mod column {
    /// The short `imul` chain.
    pub const IMUL_SHORT: usize = 0;
    /// The long `imul` chain.
    pub const IMUL_LONG: usize = 1;
    /// The width sentinel of a ruler without the `add` chain.
    pub const BRIEF_SENTINEL: usize = 2;
    /// Calls of a ruler without the `add` chain.
    pub const BRIEF: usize = 3;
    /// The short `add` chain.
    pub const ADD_SHORT: usize = 2;
    /// The long `add` chain.
    pub const ADD_LONG: usize = 3;
    /// The width sentinel.
    pub const SENTINEL: usize = 4;
    /// Calls of the whole ruler.
    pub const WHOLE: usize = 5;
}

/// Standard deviation in core cycles of an error that the difference of two bodies, or of two
/// rulers, has in all layouts. It was found with 15 chains of known length, each in 168
/// measurements over 600 copies and 1 800 cycles of the ruler. Their mean errors were -0.6 to +0.2
/// cycles, with a root mean square of 0.30, to which the two differences contribute equally (Xeon,
/// family 6, model 207). With 0.1, the estimate from the mean over all ratios of core clock to TSC,
/// 92.5 % of the intervals at 95 % contained the truth. With 0.2, 93.6 % did.
pub const INSTRUMENT_CYCLES: f64 = 0.2;

/// Standard deviation in core cycles of undisturbed calls of the width sentinel. Calls of 228 core
/// cycles took 221 to 240 (Xeon, family 6, model 207), since the exit of the loop is sometimes
/// predicted.
const SENTINEL_SPREAD: f64 = 5.0;

/// Half width of the interval for an error with this standard deviation that all layouts share, at
/// a confidence level such as 0.95.
pub fn shared_margin(deviation: f64, confidence: f64) -> f64 {
    normal_quantile(0.5 + confidence / 2.0) * deviation
}

/// Half width in core cycles for one difference with only the instrument's error: see
/// [`INSTRUMENT_CYCLES`].
pub fn instrument_margin(confidence: f64) -> f64 {
    shared_margin(INSTRUMENT_CYCLES, confidence)
}

/// The ruler of a round: its columns and its length.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gauge {
    /// Whether the round has the `add` chain.
    add: bool,
    /// Iterations of the chains' loops.
    loops: f64,
    /// Iterations of the sentinel's loop.
    sentinel_loops: u64,
    /// Core cycles of a link of the `imul` chain.
    imul_latency: f64,
}

/// Figures from the ruler's calls.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RulerScale {
    /// Raw clock units per core cycle.
    pub rate: f64,
    /// Raw clock units per link of the `add` chain; NaN without that chain.
    pub add: f64,
    /// Overhead of a call in core cycles: its pair of readings, entry and exit.
    pub overhead: f64,
    /// Independent additions per core cycle, from the width sentinel.
    pub width: f64,
}

impl RulerScale {
    /// Core cycles of one link of the `add` chain: 1 if the two chains agree.
    pub fn add_link(&self) -> f64 {
        self.add / self.rate
    }

    /// Whether raw units can be divided by the rate: no reading ran backwards, and the long chain
    /// took longer.
    pub fn is_sane(&self) -> bool {
        self.rate.is_finite() && self.rate > 0.0
    }
}

impl Gauge {
    /// The whole ruler, in the columns [`column::IMUL_SHORT`] to [`column::SENTINEL`].
    pub fn whole_ruler(loops: u64, sentinel_loops: u64, imul_latency: f64) -> Gauge {
        Gauge { add: true, loops: loops as f64, sentinel_loops, imul_latency }
    }

    /// The chain of `imul` and the sentinel, in the columns [`column::IMUL_SHORT`] to
    /// [`column::BRIEF_SENTINEL`].
    pub fn brief_ruler(loops: u64, sentinel_loops: u64, imul_latency: f64) -> Gauge {
        Gauge { add: false, loops: loops as f64, sentinel_loops, imul_latency }
    }

    /// Core cycles by which the two lengths of the `imul` chain differ.
    pub(crate) fn span_cycles(&self) -> f64 {
        IMUL_SPAN * self.loops * self.imul_latency
    }

    /// Core cycles of the short `imul` chain.
    pub fn short_chain_cycles(&self) -> f64 {
        IMUL_LINKS[0] as f64 * self.loops * self.imul_latency
    }

    /// Core cycles of `loops` iterations of the long `imul` chain.
    pub fn long_chain_cycles(&self, loops: u64) -> f64 {
        IMUL_LINKS[1] as f64 * loops as f64 * self.imul_latency
    }

    /// Reads the durations of a round, or means over rounds.
    pub fn read(&self, durations: &[f64]) -> RulerScale {
        let rate = (durations[column::IMUL_LONG] - durations[column::IMUL_SHORT]) / self.span_cycles();
        let overhead = durations[column::IMUL_SHORT] / rate - self.short_chain_cycles();
        let adds = sentinel_adds(self.sentinel_loops);
        if !self.add {
            let width = adds / (durations[column::BRIEF_SENTINEL] / rate - overhead);
            return RulerScale { rate, add: f64::NAN, overhead, width };
        }
        let add = (durations[column::ADD_LONG] - durations[column::ADD_SHORT]) / (ADD_SPAN * self.loops);
        let add_overhead = durations[column::ADD_SHORT] / add - ADD_LINKS[0] as f64 * self.loops;
        RulerScale { rate, add, overhead, width: adds / (durations[column::SENTINEL] / add - add_overhead) }
    }

    /// Standard deviation of the instrument's error in core cycles per copy, for a cost from two
    /// bodies that differ by this number of copies.
    pub fn systematic_error(&self, cost: f64, copies: f64) -> f64 {
        (INSTRUMENT_CYCLES / copies).hypot(cost * INSTRUMENT_CYCLES / self.span_cycles())
    }

    /// Standard error of a width over this number of rounds, as a share of it. It has three
    /// sources: the clock's step (a duration between two readings has the variance step²/6), the
    /// sentinel's own spread, and the overhead of a call. The overhead is (1 + s) short − s long,
    /// with s = short / (long − short) in links.
    pub fn width_error(&self, scale: &RulerScale, step: f64, rounds: usize) -> f64 {
        let sentinel = sentinel_adds(self.sentinel_loops) / scale.width;
        let [links, span] = if self.add { [ADD_LINKS[0] as f64, ADD_SPAN] } else { [IMUL_LINKS[0] as f64, IMUL_SPAN] };
        let share = links / span;
        let readings = (1.0 + (1.0 + share).powi(2) + share.powi(2)).sqrt();
        // The width is in links of the chain that it is computed from.
        let unit = if self.add { scale.add } else { scale.rate };
        let each = (readings * step / 6f64.sqrt() / unit).hypot(SENTINEL_SPREAD);
        each / (rounds as f64).sqrt() / sentinel
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The durations of a ruler's calls, on a core with 1.25 raw units per cycle and four additions
    /// per cycle. A call takes 30 cycles in addition to its chain.
    fn durations(links: &[f64], loops: f64, sentinel_loops: u64) -> Vec<f64> {
        let sentinel = sentinel_adds(sentinel_loops) / 4.0;
        let chains = links.iter().map(|cycles| cycles * loops);
        chains.chain([sentinel]).map(|cycles| 1.25 * (cycles + 30.0)).collect()
    }

    #[test]
    fn a_whole_ruler_is_read() {
        let links = [4.0 * 3.0, 14.0 * 3.0, 8.0, 24.0];
        let scale = Gauge::whole_ruler(200, 40, 3.0).read(&durations(&links, 200.0, 40));
        for (found, truth) in [(scale.rate, 1.25), (scale.add_link(), 1.0), (scale.overhead, 30.0), (scale.width, 4.0)]
        {
            assert!((found / truth - 1.0).abs() < 1e-12, "{scale:?}");
        }
        assert!(scale.is_sane());
    }

    #[test]
    fn a_width_has_the_same_error_in_links_and_cycles() {
        // While the latency of `imul` is unknown, the rate is that of a link of three cycles.
        let durations = durations(&[4.0 * 3.0, 14.0 * 3.0, 8.0, 24.0], 200.0, 40);
        let error = |latency| {
            let gauge = Gauge::whole_ruler(200, 40, latency);
            gauge.width_error(&gauge.read(&durations), 26.0, 1)
        };
        assert!((error(1.0) / error(3.0) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_brief_ruler_is_read() {
        let gauge = Gauge::brief_ruler(150, 40, 4.0);
        let scale = gauge.read(&durations(&[4.0 * 4.0, 14.0 * 4.0], 150.0, 40));
        for (found, truth) in [(scale.rate, 1.25), (scale.overhead, 30.0), (scale.width, 4.0)] {
            assert!((found / truth - 1.0).abs() < 1e-12, "{scale:?}");
        }
        assert!(scale.add_link().is_nan());
        assert_eq!(gauge.span_cycles(), 10.0 * 150.0 * 4.0);
    }

    #[test]
    fn a_reading_that_runs_backwards_is_not_sane() {
        let gauge = Gauge::brief_ruler(100, 40, 3.0);
        assert!(!gauge.read(&[f64::INFINITY, 100.0, 100.0]).is_sane());
        assert!(!gauge.read(&[100.0, f64::INFINITY, 100.0]).is_sane());
        assert!(!gauge.read(&[100.0, 90.0, 100.0]).is_sane());
    }

    #[test]
    fn more_rounds_and_a_longer_sentinel_reduce_the_error_of_the_width() {
        let scale = RulerScale { rate: 0.5, add: 0.5, overhead: 30.0, width: 4.0 };
        let error = |loops, rounds| Gauge::whole_ruler(100, loops, 3.0).width_error(&scale, 26.0, rounds);
        assert!((error(40, 1) / error(40, 16) - 4.0).abs() < 1e-12);
        assert!((error(40, 1) / error(80, 1) - 2.0).abs() < 1e-12);
        // 960 additions take 240 cycles. A reading is off by 26/√6 units of half a cycle. The width
        // contains three readings: the sentinel's, one and a half times the short chain's, and half
        // the long chain's.
        let cycles = (3.5f64.sqrt() * 52.0 / 6f64.sqrt()).hypot(SENTINEL_SPREAD);
        assert!((error(40, 1) - cycles / 240.0).abs() < 1e-12);
    }
}
