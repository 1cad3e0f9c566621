//! The instrument's own error: fitted on every other chain, and tested on the remaining ones.
//!
//! An error that is the same in all layouts is not part of their spread. It affects a reading in
//! proportion to its share, so that its size shows in the mean errors of chains of known cost. A
//! constant that was fitted to chains says little about others, so each half is judged with the
//! constant of the other half.

use cyclescope::ruler::INSTRUMENT_CYCLES;
use cyclescope::statistics::mean;

/// Standard deviations to either side that contain 95 % of a normal distribution.
const NORMAL_QUANTILE_95: f64 = 1.959_964;

/// One measurement of a chain of known cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChainReading {
    /// The value less the truth, in core cycles.
    pub error: f64,
    /// Change of the value per core cycle of the instrument's error.
    pub share: f64,
    /// The half width at 95 % from the spread of the layouts alone, in core cycles.
    pub margin: f64,
}

impl ChainReading {
    /// From the value's error, its half width at 95 %, and the instrument's part of it as a
    /// standard deviation.
    pub fn new(error: f64, half_width: f64, systematic: f64) -> ChainReading {
        let margin = (half_width.powi(2) - (NORMAL_QUANTILE_95 * systematic).powi(2)).max(0.0).sqrt();
        ChainReading { error, share: systematic / INSTRUMENT_CYCLES, margin }
    }

    /// Whether the interval contains the truth if the instrument's error has this standard
    /// deviation.
    fn holds_truth(&self, constant: f64) -> bool {
        self.error.abs() <= self.margin.hypot(NORMAL_QUANTILE_95 * self.share * constant)
    }
}

/// Standard deviation of the instrument's error, in core cycles. It is the mean square of the
/// chains' mean errors, less the part from the scatter of a chain's measurements. `None` without a
/// chain of two measurements.
pub fn fit_instrument_error<'a>(chains: impl IntoIterator<Item = &'a Vec<ChainReading>>) -> Option<f64> {
    let squares: Vec<f64> =
        chains.into_iter().filter(|chain| chain.len() > 1).map(|chain| mean_error_square(chain)).collect();
    (!squares.is_empty()).then(|| mean(&squares).max(0.0).sqrt())
}

/// The square of a chain's mean error, in units of the instrument's error, without bias.
fn mean_error_square(chain: &[ChainReading]) -> f64 {
    let errors: Vec<f64> = chain.iter().map(|reading| reading.error / reading.share).collect();
    let (middle, count) = (mean(&errors), errors.len() as f64);
    let spread = errors.iter().map(|error| (error - middle).powi(2)).sum::<f64>() / (count - 1.0);
    middle.powi(2) - spread / count
}

/// The number of measurements whose interval with this constant contains the truth, and the number
/// of all.
pub fn count_held<'a>(chains: impl IntoIterator<Item = &'a Vec<ChainReading>>, constant: f64) -> (usize, usize) {
    let all: Vec<bool> = chains.into_iter().flatten().map(|reading| reading.holds_truth(constant)).collect();
    (all.iter().filter(|held| **held).count(), all.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope::random::Random;

    /// Chains whose errors have these standard deviations: of the instrument, and between
    /// measurements.
    fn chains(instrument: f64, scatter: f64, seed: u64) -> Vec<Vec<ChainReading>> {
        let mut random = Random::new(seed);
        let mut chain = |share: f64| {
            let own = instrument * random.normal() * share;
            let mut one = || {
                let half = NORMAL_QUANTILE_95 * scatter.hypot(INSTRUMENT_CYCLES * share);
                ChainReading::new(own + scatter * random.normal(), half, INSTRUMENT_CYCLES * share)
            };
            (0..40).map(|_| one()).collect()
        };
        (0..200).map(|number| chain(0.001 + 0.00001 * f64::from(number))).collect()
    }

    #[test]
    fn a_simulated_error_is_found_and_scatter_is_not_an_error() {
        for truth in [0.1, 0.3, 1.0] {
            let found = fit_instrument_error(&chains(truth, 2e-4, 7)).unwrap();
            assert!((found / truth - 1.0).abs() < 0.15, "{found} for {truth}");
        }
        assert!(fit_instrument_error(&chains(0.0, 2e-4, 7)).unwrap() < 0.03);
        assert_eq!(fit_instrument_error(&vec![vec![]]), None);
    }

    #[test]
    fn a_constant_that_is_too_small_does_not_hold_the_truth() {
        let chains = chains(0.3, 2e-5, 9);
        let share = |(held, all): (usize, usize)| held as f64 / all as f64;
        let [small, right, large] = [0.1, 0.3, 0.9].map(|constant| share(count_held(&chains, constant)));
        assert!(small < 0.7 && (0.93..0.98).contains(&right) && large > 0.99, "{small} {right} {large}");
    }
}
