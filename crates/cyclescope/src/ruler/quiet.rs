//! Which rounds ran beside a busy sibling: another thread on the same core, which no kernel of a guest may know of.
//!
//! Beside one the width sentinel adds about half as many numbers a cycle. A round, or a mean over rounds, counts as alone
//! where it is nearly as wide as the widest, but for its error. How wide the core could be is known for some designs,
//! and then a sibling that is busy all the time is seen too.

use crate::statistics::quantile;

/// A core that adds fewer numbers a cycle than this share of its best is shared with a busy sibling, for a part of the
/// time at least. Means over layouts alone agree within half a percent (4.12 to 4.15 additions a cycle); with one
/// that was not, a pair of readings took up to 59 cycles instead of 49 (Xeon, family 6, model 207).
const ALONE_SHARE: f64 = 0.97;

/// Standard errors of the width that a share below may be due to.
const ALONE_ERRORS: f64 = 3.0;

/// The same against what the core could add at most: five adders were measured to add 4.1 of 4.8 numbers a
/// cycle, for they are chosen before it is known which will be free. A busy sibling takes half.
const KNOWN_SHARE: f64 = 0.7;

/// Layouts, or other units of replication, on an unshared core from which on shared ones are left out,
const LEAST: usize = 4;
/// and the share of all that these must be.
const LEAST_SHARE: f64 = 0.25;

/// Not the widest is the best: the noise of one must not condemn the others.
const BEST: f64 = 0.9;
/// By so many standard errors that quantile exceeds the width where nothing but noise makes them differ.
const BEST_ERRORS: f64 = 1.2816;

/// The width of a core of its own, as far as it has been seen.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Quiet {
    /// Additions a cycle at the best.
    best: f64,
    /// Fewer are not possible on a core of this design.
    known: f64,
}

/// What is left where rounds beside a busy sibling are left out.
#[derive(Debug, Clone, PartialEq)]
pub struct Alone<T> {
    /// Those that ran alone, or all, where too few did.
    pub used: Vec<T>,
    /// Whether what is left ran beside a sibling for the most part.
    pub shared: bool,
}

impl Quiet {
    /// From widths that were seen, each with its standard error as a share of it; `known` is what the sentinel reads on a
    /// core of its own, where data tell it.
    pub(crate) fn of(widths: impl IntoIterator<Item = (f64, f64)>, known: Option<f64>) -> Quiet {
        let less_noise = widths.into_iter().map(|(width, error)| width * (1.0 - BEST_ERRORS * error));
        let mut widths: Vec<f64> = less_noise.filter(|width| width.is_finite()).collect();
        widths.sort_by(f64::total_cmp);
        let best = if widths.is_empty() { 0.0 } else { quantile(&widths, BEST) };
        Quiet { best, known: known.unwrap_or(0.0) }
    }

    /// The same, where an earlier look has seen a width.
    pub(crate) fn or_earlier(self, earlier: Quiet) -> Quiet {
        Quiet { best: self.best.max(earlier.best), known: self.known.max(earlier.known) }
    }

    /// Whether a width with this standard error, as a share of it, is that of a core of its own.
    pub(crate) fn is_alone(&self, width: f64, error: f64) -> bool {
        width >= ((ALONE_SHARE - ALONE_ERRORS * error) * self.best).max(KNOWN_SHARE * self.known)
    }

    /// Whether so few of all ran alone that the others are used too.
    pub fn is_shared(alone: usize, all: usize) -> bool {
        (alone as f64) < LEAST_SHARE * all as f64
    }

    /// Leaves out what did not run alone, where enough did; `width` is the width of one and its standard error.
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
        let mut random = crate::random::Random::new(3);
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
