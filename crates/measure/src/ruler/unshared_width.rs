//! Detects rounds with a busy sibling, the other hardware thread of the core. The kernel of a guest
//! may not know of it.
//!
//! A busy sibling about halves the additions per cycle of the width sentinel. A round, or a mean
//! over rounds, counts as unshared if its width is nearly the largest, within its error. For some
//! designs the width of an unshared core is known. Then a permanently busy sibling is detected too.

use cyclescope_core::machine::integer_adders::IntegerAdders;
use cyclescope_core::statistics::quantiles;
use serde::{Deserialize, Serialize};

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

/// Quantile of the widths taken as the best width. The maximum would let the noise of one round
/// exclude others.
const BEST_QUANTILE: f64 = 0.9;
/// Standard errors by which that quantile exceeds the true width if widths differ by noise alone.
const BEST_ERRORS: f64 = 1.2816;

/// The least width of an unshared core, by data of its micro-architecture.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(from = "RecordedWidth")]
pub struct LeastWidth {
    /// In additions per core cycle.
    pub least: f64,
}

/// The form in records. A plain number is the width that the adders allow, and has the usual share.
#[derive(Deserialize)]
#[serde(untagged)]
enum RecordedWidth {
    Allowed(f64),
    Least { least: f64 },
}

impl From<RecordedWidth> for LeastWidth {
    fn from(recorded: RecordedWidth) -> LeastWidth {
        match recorded {
            RecordedWidth::Allowed(width) => LeastWidth { least: IntegerAdders::LEAST_SHARE_USUAL * width },
            RecordedWidth::Least { least } => LeastWidth { least },
        }
    }
}

/// The width of an unshared core, as measured and as known from data.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct UnsharedWidth {
    /// Best measured width in additions per cycle.
    best: f64,
    /// Smallest share of it that unshared widths have.
    least_share: f64,
    /// The least width by micro-architecture data, in additions per cycle; 0 if unknown.
    least_known: f64,
}

impl UnsharedWidth {
    /// Computes the width from measured widths, each with its standard error as a share of it.
    /// `least_known` is the least width of an unshared core, from micro-architecture data.
    pub fn from_widths(widths: impl IntoIterator<Item = (f64, f64)>, least_known: Option<LeastWidth>) -> UnsharedWidth {
        let widths = widths.into_iter().filter(|(width, _)| width.is_finite());
        let (mut all, mut less_noise): (Vec<f64>, Vec<f64>) =
            widths.map(|(width, error)| (width, width * (1.0 - BEST_ERRORS * error))).unzip();
        let least_known = least_known.map_or(0.0, |known| known.least);
        if all.is_empty() {
            return UnsharedWidth { least_known, ..UnsharedWidth::default() };
        }
        let best = quantiles(&mut less_noise, [BEST_QUANTILE])[0];
        let deviation = relative_deviation(&mut all);
        UnsharedWidth { best, least_known, ..UnsharedWidth::above(best, BEST_ERRORS, deviation) }
    }

    /// The width of an unshared core whose widths have this relative standard deviation. `best` is
    /// this number of standard deviations above their median.
    pub(super) fn above(best: f64, deviations: f64, deviation: f64) -> UnsharedWidth {
        let deviation = if deviation <= DEVIATION_MOST { deviation } else { 0.0 };
        let least = 1.0 - (deviations + ALONE_DEVIATIONS) * deviation;
        UnsharedWidth { best, least_share: least.clamp(ALONE_SHARE_LEAST, ALONE_SHARE), least_known: 0.0 }
    }

    /// Takes the larger measured width and the larger known limit of the two.
    pub fn or_earlier(self, earlier: UnsharedWidth) -> UnsharedWidth {
        let UnsharedWidth { best, least_share, .. } = if self.best >= earlier.best { self } else { earlier };
        UnsharedWidth { best, least_share, least_known: self.least_known.max(earlier.least_known) }
    }

    /// Whether a width with this standard error (a share of it) is that of an unshared core.
    pub fn is_alone(&self, width: f64, error: f64) -> bool {
        let share = self.least_share.min(ALONE_SHARE - ALONE_ERRORS * error);
        width >= (share * self.best).max(self.least_known)
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

    #[test]
    fn data_tell_a_sibling_that_is_always_busy() {
        let all_day = [(3.3, 0.001); 20];
        let is_alone = |known| UnsharedWidth::from_widths(all_day, known).is_alone(3.3, 0.001);
        let zen_3 = LeastWidth { least: 0.9 * 3.84 };
        assert_eq!([None, Some(zen_3)].map(is_alone), [true, false]);
        let quiet = UnsharedWidth::from_widths([(3.8, 0.001); 20], Some(zen_3));
        assert_eq!([3.8, 3.4].map(|width| quiet.is_alone(width, 0.001)), [true, false]);
    }

    #[test]
    fn a_recorded_number_is_the_width_that_adders_allow() {
        let read = |text| serde_json::from_str::<LeastWidth>(text).unwrap();
        assert_eq!(read("4.8"), LeastWidth { least: IntegerAdders::LEAST_SHARE_USUAL * 4.8 });
        let known = LeastWidth { least: 3.25 };
        assert_eq!(read(&serde_json::to_string(&known).unwrap()), known);
    }
}
