//! Moments of many values in constant memory.

/// Sums of the first four powers of some values, and the number of values. Loses precision if
/// values are far larger than their differences.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PowerSums {
    count: f64,
    sums: [f64; 4],
}

impl PowerSums {
    /// Adds a value that occurs `count` times.
    pub(super) fn add_value(&mut self, value: f64, count: f64) {
        self.count += count;
        let mut power = count;
        for sum in &mut self.sums {
            power *= value;
            *sum += power;
        }
    }

    /// Second and fourth central moment; 0 without values.
    pub(super) fn central_moments(&self) -> [f64; 2] {
        let [mean, second, third, fourth] = self.sums.map(|sum| sum / self.count.max(1.0));
        let about = mean * mean;
        [second - about, fourth - 4.0 * mean * third + 6.0 * about * second - 3.0 * about * about]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_central() {
        let mut powers = PowerSums::default();
        [(0.0, 3.0), (26.0, 1.0)].into_iter().for_each(|(value, count)| powers.add_value(value, count));
        // Distances from the mean: 6.5 three times and 19.5 once.
        let expected = [(3.0 * 6.5f64.powi(2) + 19.5f64.powi(2)) / 4.0, (3.0 * 6.5f64.powi(4) + 19.5f64.powi(4)) / 4.0];
        let found = powers.central_moments();
        assert!(found.iter().zip(expected).all(|(one, other)| (one - other).abs() < 1e-6), "{found:?} {expected:?}");
    }
}
