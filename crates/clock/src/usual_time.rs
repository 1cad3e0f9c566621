//! What something usually takes.

use crate::calibration::BEYOND;
use std::cell::Cell;

/// The time of something that happens often, without that of other programs which run meanwhile.
#[derive(Debug, Default)]
pub(crate) struct UsualTime {
    sum: Cell<f64>,
    number: Cell<f64>,
}

impl UsualTime {
    /// Counts this number of times, which took this long together; returns what they took themselves.
    /// What is far beyond the mean is another program's.
    pub(crate) fn count(&self, took: f64, number: f64) -> f64 {
        let usual = self.sum.get() / self.number.get() * number;
        let own = if self.number.get() > 0.0 { took.min(BEYOND * usual) } else { took };
        self.sum.set(self.sum.get() + own);
        self.number.set(self.number.get() + number);
        if own < took {
            // What takes longer from now on is soon usual.
            self.sum.set(self.sum.get() / 2.0);
            self.number.set(self.number.get() / 2.0);
        }
        own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_other_programs_is_not_counted() {
        let time = UsualTime::default();
        let count = |(took, number)| time.count(took, number);
        assert_eq!([(100.0, 1.0), (250.0, 2.0), (9_000.0, 3.0)].map(count), [100.0, 250.0, 525.0]);
        (0..20).for_each(|_| assert!(count((100.0, 1.0)) == 100.0));
        // Something that takes longer from now on is soon counted as such.
        (0..20).for_each(|_| assert!(count((1_000.0, 1.0)) > 100.0));
        assert_eq!(count((1_000.0, 1.0)), 1_000.0);
    }
}
