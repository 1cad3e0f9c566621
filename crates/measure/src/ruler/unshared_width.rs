//! Detects rounds beside a busy sibling: another thread on the same core, which the kernel of a guest may not know.
//!
//! Beside a busy sibling the width sentinel adds about half as many numbers a cycle. A round, or a mean over rounds,
//! counts as alone where its width is nearly the largest, within its error. For some designs the width of an unshared
//! core is known, and then a sibling that is always busy is detected too.

use cyclescope_core::statistics::quantiles;

/// A core whose width is below this share of its best is shared with a busy sibling, for a part of the time at least.
/// Means over layouts alone agree within half a percent (4.12 to 4.15 additions a cycle); in a shared layout a pair of
/// readings took up to 59 cycles instead of 49 (Xeon, family 6, model 207).
const ALONE_SHARE: f64 = 0.97;

/// Standard errors of the width by which an unshared round may be below that share.
const ALONE_ERRORS: f64 = 3.0;

/// The limit as a share of the width that the core's adders allow: five adders were measured to add 4.1 of 4.8 numbers
/// a cycle, since a µop's adder is chosen before it is known which will be free. A busy sibling takes half.
const KNOWN_SHARE: f64 = 0.7;

/// Quantile of the widths that is the best width: not the maximum, since the noise of one round must not exclude
/// others.
const BEST_QUANTILE: f64 = 0.9;
/// Standard errors by which that quantile exceeds the true width where widths differ by noise alone.
const BEST_ERRORS: f64 = 1.2816;

/// The width of an unshared core, as measured and as known from data.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct UnsharedWidth {
    /// Best measured width in additions a cycle.
    best: f64,
    /// Width from data of the micro-architecture, in additions a cycle; 0 where unknown.
    known: f64,
}

impl UnsharedWidth {
    /// From measured widths, each with its standard error as a share of it; `known` is the sentinel's width on an
    /// unshared core, where data contain it.
    pub fn from_widths(widths: impl IntoIterator<Item = (f64, f64)>, known: Option<f64>) -> UnsharedWidth {
        let less_noise = widths.into_iter().map(|(width, error)| width * (1.0 - BEST_ERRORS * error));
        let mut widths: Vec<f64> = less_noise.filter(|width| width.is_finite()).collect();
        let best = if widths.is_empty() { 0.0 } else { quantiles(&mut widths, [BEST_QUANTILE])[0] };
        UnsharedWidth { best, known: known.unwrap_or(0.0) }
    }

    /// The larger of both, of the measured width and of the known one.
    pub fn or_earlier(self, earlier: UnsharedWidth) -> UnsharedWidth {
        UnsharedWidth { best: self.best.max(earlier.best), known: self.known.max(earlier.known) }
    }

    /// Whether a width with this standard error, as a share of it, is that of an unshared core.
    pub fn is_alone(&self, width: f64, error: f64) -> bool {
        width >= ((ALONE_SHARE - ALONE_ERRORS * error) * self.best).max(KNOWN_SHARE * self.known)
    }
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
}
