//! Detects rounds beside a busy sibling: another thread on the same core, which the kernel of a guest may not know.
//!
//! Beside a busy sibling the width sentinel adds about half as many numbers a cycle. A round, or a mean over rounds,
//! counts as alone where its width is nearly the largest, within its error. For some designs the width of an unshared
//! core is known, and then a sibling that is always busy is detected too.

use cyclescope_core::statistics::quantile;

/// A core whose width is below this share of its best is shared with a busy sibling, for a part of the time at least.
/// Means over layouts alone agree within half a percent (4.12 to 4.15 additions a cycle); in a shared layout a pair of
/// readings took up to 59 cycles instead of 49 (Xeon, family 6, model 207).
const ALONE_SHARE: f64 = 0.97;

/// Standard errors of the width by which an unshared round may be below that share.
const ALONE_ERRORS: f64 = 3.0;

/// The limit as a share of the width that the core's adders allow: five adders were measured to add 4.1 of 4.8 numbers
/// a cycle, since a µop's adder is chosen before it is known which will be free. A busy sibling takes half.
const KNOWN_SHARE: f64 = 0.7;

/// Unshared layouts, or other replicates, that are needed to leave out the shared ones,
const LEAST: usize = 4;
/// and their smallest share of all.
const LEAST_SHARE: f64 = 0.25;

/// Quantile of the widths that is the best width: not the maximum, since the noise of one round must not exclude
/// others.
const BEST: f64 = 0.9;
/// Standard errors by which that quantile exceeds the true width where widths differ by noise alone.
const BEST_ERRORS: f64 = 1.2816;

/// The width of an unshared core, as measured and as known from data.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Quiet {
    /// Best measured width in additions a cycle.
    best: f64,
    /// Width from data of the micro-architecture, in additions a cycle; 0 where unknown.
    known: f64,
}

/// What remains without rounds beside a busy sibling.
#[derive(Debug, Clone, PartialEq)]
pub struct Alone<T> {
    /// Those that ran alone, or all where too few did.
    pub used: Vec<T>,
    /// Whether most of `used` ran beside a busy sibling.
    pub shared: bool,
}

impl Quiet {
    /// From measured widths, each with its standard error as a share of it; `known` is the sentinel's width on an
    /// unshared core, where data contain it.
    pub fn of(widths: impl IntoIterator<Item = (f64, f64)>, known: Option<f64>) -> Quiet {
        let less_noise = widths.into_iter().map(|(width, error)| width * (1.0 - BEST_ERRORS * error));
        let mut widths: Vec<f64> = less_noise.filter(|width| width.is_finite()).collect();
        widths.sort_by(f64::total_cmp);
        let best = if widths.is_empty() { 0.0 } else { quantile(&widths, BEST) };
        Quiet { best, known: known.unwrap_or(0.0) }
    }

    /// The larger of both, of the measured width and of the known one.
    pub fn or_earlier(self, earlier: Quiet) -> Quiet {
        Quiet { best: self.best.max(earlier.best), known: self.known.max(earlier.known) }
    }

    /// Whether a width with this standard error, as a share of it, is that of an unshared core.
    pub fn is_alone(&self, width: f64, error: f64) -> bool {
        width >= ((ALONE_SHARE - ALONE_ERRORS * error) * self.best).max(KNOWN_SHARE * self.known)
    }

    /// Whether too few of all ran alone, so that the others are used too.
    pub fn is_shared(alone: usize, all: usize) -> bool {
        (alone as f64) < LEAST_SHARE * all as f64
    }

    /// Leaves out what did not run alone, where enough did; `width` returns an item's width and standard error.
    pub(crate) fn alone<T>(&self, all: Vec<T>, width: impl Fn(&T) -> (f64, f64)) -> Alone<T> {
        let is_alone = |one: &T| {
            let (width, error) = width(one);
            self.is_alone(width, error)
        };
        let (count, total) = (all.iter().filter(|one| is_alone(one)).count(), all.len());
        if count < LEAST || Quiet::is_shared(count, total) {
            return Alone { used: all, shared: 2 * count < total };
        }
        Alone { used: all.into_iter().filter(is_alone).collect(), shared: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDTHS: [f64; 12] = [4.1, 4.12, 2.1, 4.15, 4.13, 4.1, 2.2, 4.14, 4.12, 3.9, 4.11, 4.13];

    #[test]
    fn rounds_beside_a_busy_sibling_are_left_out() {
        let quiet = Quiet::of(WIDTHS.map(|width| (width, 0.0)), None);
        let alone = quiet.alone(WIDTHS.to_vec(), |width| (*width, 0.005));
        assert!(!alone.shared && alone.used.len() == 9 && alone.used.iter().all(|width| *width > 4.0));
        // What an error explains stays.
        assert_eq!(quiet.alone(WIDTHS.to_vec(), |width| (*width, 0.02)).used.len(), 10);
    }

    #[test]
    fn a_core_that_is_shared_nearly_always_is_used_and_said_to_be() {
        let mut widths = vec![2.1; 30];
        widths.extend([4.1; 3]);
        let alone = Quiet { best: 4.1, known: 0.0 }.alone(widths, |width| (*width, 0.005));
        assert!(alone.shared && alone.used.len() == 33);
    }

    #[test]
    fn a_sibling_that_never_rests_is_seen_where_the_design_is_known() {
        let widths = [(2.1, 0.0); 8];
        assert!(!Quiet::of(widths, None).alone(widths.to_vec(), |width| *width).shared);
        assert!(Quiet::of(widths, Some(4.8)).alone(widths.to_vec(), |width| *width).shared);
        // Five adders that add 4.1 are not a shared core.
        assert!(Quiet::of([(4.1, 0.0); 8], Some(4.8)).is_alone(4.1, 0.0));
    }

    #[test]
    fn noise_alone_leaves_nothing_out() {
        let mut random = cyclescope_core::random::Random::new(3);
        let error = 0.04;
        let widths: Vec<(f64, f64)> =
            (0..4000).map(|_| (4.0 * (1.0 + error * random.normal()), error)).collect();
        let quiet = Quiet::of(widths.clone(), None);
        let left_out = widths.iter().filter(|(width, error)| !quiet.is_alone(*width, *error)).count();
        assert!(left_out < 8, "{left_out}");
        // A busy sibling adds a half.
        assert!(!quiet.is_alone(4.0 / 1.5, error));
    }

    #[test]
    fn few_layouts_are_all_used() {
        let widths = [(4.0, 0.0), (2.0, 0.0), (4.0, 0.0)];
        let alone = Quiet::of(widths, None).alone(widths.to_vec(), |width| *width);
        assert!(!alone.shared && alone.used.len() == 3);
    }
}
