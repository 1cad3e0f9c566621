//! Detects rounds with a busy sibling, the other hardware thread of the core. The kernel of a guest
//! may not know of it.
//!
//! A busy sibling about halves the additions per cycle of the width sentinel. A round, or a mean
//! over rounds, counts as unshared if its width is nearly the largest, within its error. For some
//! designs the width of an unshared core is known. Then a permanently busy sibling is detected too.

use cyclescope_core::statistics::quantiles;

/// A core whose width is below this share of its best is shared with a busy sibling, at least part
/// of the time, unless unshared widths differ by more. In a shared layout a pair of readings took up
/// to 59 cycles instead of 49 (Xeon, family 6, model 207).
const ALONE_SHARE: f64 = 0.97;

/// Quantiles whose distance shows how much the widths of an unshared core differ. Five adders added
/// 3.7 to 4.6 numbers per cycle, and 4.1 in most rounds, with an idle sibling (same Xeon).
const SPREAD_QUANTILES: [f64; 2] = [0.75, 0.9];
/// Standard deviations between these quantiles, of a normal distribution.
const SPREAD_DEVIATIONS: f64 = 0.6071;
/// Standard deviations below the median that an unshared width may lie.
const ALONE_DEVIATIONS: f64 = 3.0;
/// No width below this share of the best is that of an unshared core: a busy sibling adds a half.
const ALONE_SHARE_LEAST: f64 = 0.75;
/// A larger relative standard deviation is that of disturbances.
const DEVIATION_MOST: f64 = 0.08;

/// Number of standard errors by which the width of an unshared round may be below that share.
const ALONE_ERRORS: f64 = 3.0;

/// The limit as a share of the width that the core's adders allow. Five adders added 4.1 of 4.8
/// numbers per cycle, since a µop's adder is chosen before it is known which one will be free. A
/// busy sibling takes half.
const KNOWN_SHARE: f64 = 0.7;

/// Quantile of the widths taken as the best width. The maximum would let the noise of one round
/// exclude others.
const BEST_QUANTILE: f64 = 0.9;
/// Standard errors by which that quantile exceeds the true width if widths differ by noise alone.
const BEST_ERRORS: f64 = 1.2816;

/// The width of an unshared core, as measured and as known from data.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct UnsharedWidth {
    /// Best measured width in additions per cycle.
    best: f64,
    /// Smallest share of it that unshared widths have.
    least_share: f64,
    /// Width from micro-architecture data, in additions per cycle; 0 if unknown.
    known: f64,
}

impl UnsharedWidth {
    /// Computes the width from measured widths, each with its standard error as a share of it.
    /// `known` is the sentinel's width on an unshared core, from micro-architecture data.
    pub fn from_widths(widths: impl IntoIterator<Item = (f64, f64)>, known: Option<f64>) -> UnsharedWidth {
        let widths = widths.into_iter().filter(|(width, _)| width.is_finite());
        let (mut all, mut less_noise): (Vec<f64>, Vec<f64>) =
            widths.map(|(width, error)| (width, width * (1.0 - BEST_ERRORS * error))).unzip();
        let known = known.unwrap_or(0.0);
        if all.is_empty() {
            return UnsharedWidth { known, ..UnsharedWidth::default() };
        }
        let best = quantiles(&mut less_noise, [BEST_QUANTILE])[0];
        let deviation = relative_deviation(&mut all);
        UnsharedWidth { best, known, ..UnsharedWidth::above(best, BEST_ERRORS, deviation) }
    }

    /// The width of an unshared core whose widths have this relative standard deviation. `best` is
    /// this number of standard deviations above their median.
    pub(super) fn above(best: f64, deviations: f64, deviation: f64) -> UnsharedWidth {
        let deviation = if deviation <= DEVIATION_MOST { deviation } else { 0.0 };
        let least = 1.0 - (deviations + ALONE_DEVIATIONS) * deviation;
        UnsharedWidth { best, least_share: least.clamp(ALONE_SHARE_LEAST, ALONE_SHARE), known: 0.0 }
    }

    /// Takes the larger measured width and the larger known width of the two.
    pub fn or_earlier(self, earlier: UnsharedWidth) -> UnsharedWidth {
        let UnsharedWidth { best, least_share, .. } = if self.best >= earlier.best { self } else { earlier };
        UnsharedWidth { best, least_share, known: self.known.max(earlier.known) }
    }

    /// Whether a width with this standard error (a share of it) is that of an unshared core.
    pub fn is_alone(&self, width: f64, error: f64) -> bool {
        let share = self.least_share.min(ALONE_SHARE - ALONE_ERRORS * error);
        width >= (share * self.best).max(KNOWN_SHARE * self.known)
    }
}

/// The standard deviation of the widths of an unshared core as a share of the best: from the upper
/// quarter, since the sibling may be busy in all others.
pub(super) fn relative_deviation(widths: &mut [f64]) -> f64 {
    let [upper, best] = quantiles(widths, SPREAD_QUANTILES);
    (best - upper) / (SPREAD_DEVIATIONS * best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_alone_leaves_nothing_out() {
        let mut random = cyclescope_core::random::Random::new(3);
        let error = 0.04;
        let widths: Vec<(f64, f64)> = (0..4000).map(|_| (4.0 * (1.0 + error * random.normal()), error)).collect();
        let quiet = UnsharedWidth::from_widths(widths.clone(), None);
        let left_out = widths.iter().filter(|(width, error)| !quiet.is_alone(*width, *error)).count();
        assert!(left_out < 8, "{left_out}");
        // A busy sibling adds a half.
        assert!(!quiet.is_alone(4.0 / 1.5, error));
    }

    #[test]
    fn widths_that_differ_by_themselves_widen_the_limit_and_disturbances_do_not() {
        let mut random = cyclescope_core::random::Random::new(3);
        let mut judge = |deviation: f64| {
            let widths: Vec<(f64, f64)> =
                (0..400).map(|_| (4.1 * (1.0 + deviation * random.normal()), 0.001)).collect();
            let quiet = UnsharedWidth::from_widths(widths, None);
            [4.8, 3.9, 3.7, 2.7].map(|width| quiet.is_alone(width, 0.001))
        };
        assert_eq!(judge(0.001), [true, false, false, false]);
        assert_eq!(judge(0.05), [true, true, true, false]);
        assert_eq!(judge(0.3), [false; 4]);
    }
}
