//! What timing an execution adds to one around it, in different code.

use crate::unit::CoreCycles;

/// Times this number of executions, one more than a multiple of four, each around one block of the
/// ruler.
pub(crate) type Practice = fn(u32) -> u64;

/// Programs that time executions, in different code.
pub(crate) const PRACTICES: usize = 3;

/// A reading of a program: what an execution in another one takes, and the part of it that the
/// other one counts. It does not count what happens after the end of an execution.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PracticeReading {
    pub cost: CoreCycles,
    pub overhead: CoreCycles,
}

/// Readings of all programs at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PracticeReadings {
    /// Executions in another one.
    pub nested: [PracticeReading; PRACTICES],
    /// What an execution in no other one takes: it reads the clock once less, and its bookkeeping needs
    /// no fence.
    pub outermost: CoreCycles,
}

/// Readings of the cycles that an execution adds to one around it: the mean over the programs.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct NestedOverhead {
    number: f64,
    /// Sum of the cycles that an execution takes, over all programs.
    costs: f64,
    /// The same of executions in no other one, in one program.
    outermost: f64,
    /// Sums of each program's overhead, and of the squares of their means.
    sums: [f64; PRACTICES],
    squares: f64,
    /// Sums over the ruler's pairs, and their squares.
    pairs: f64,
    pair_squares: f64,
}

impl NestedOverhead {
    /// Adds a reading of each program, and of the pair. Returns the mean of the programs.
    pub(crate) fn add(&mut self, readings: PracticeReadings, pair: CoreCycles) -> CoreCycles {
        let PracticeReadings { nested: readings, outermost } = readings;
        self.outermost += outermost.0;
        let mean = readings.iter().map(|reading| reading.overhead.0).sum::<f64>() / PRACTICES as f64;
        self.number += 1.0;
        self.costs += readings.iter().map(|reading| reading.cost.0).sum::<f64>();
        self.sums.iter_mut().zip(readings).for_each(|(sum, reading)| *sum += reading.overhead.0);
        self.squares += mean * mean;
        self.pairs += pair.0;
        self.pair_squares += pair.0 * pair.0;
        CoreCycles(mean)
    }

    /// The mean.
    pub(crate) fn mean(&self) -> CoreCycles {
        CoreCycles(self.sums.iter().sum::<f64>() / PRACTICES as f64 / self.number.max(1.0))
    }

    /// Cycles by which the overhead of the last program, which calls a function, is more than the
    /// mean.
    pub(crate) fn call(&self) -> CoreCycles {
        let [.., function] = self.sums;
        CoreCycles((function / self.number.max(1.0) - self.mean().0).max(0.0))
    }

    /// Mean cycles that an execution takes if this share of them is in another one.
    pub(crate) fn cost(&self, share: f64) -> CoreCycles {
        let (nested, outermost) = (self.costs / PRACTICES as f64, self.outermost);
        CoreCycles((outermost + share * (nested - outermost)) / self.number.max(1.0))
    }

    /// The standard error of the mean.
    pub(crate) fn error(&self) -> f64 {
        let number = self.number.max(1.0);
        ((self.squares / number - self.mean().0.powi(2)).max(0.0) / number).sqrt()
    }

    /// The standard deviation of the pair over readings of the ruler.
    pub(crate) fn pair_deviation(&self) -> f64 {
        let number = self.number.max(1.0);
        (self.pair_squares / number - (self.pairs / number).powi(2)).max(0.0).sqrt()
    }

    /// Cycles by which the overhead is less and more than the mean. In the programs, readings are
    /// around nearly nothing, which takes longer by `empty` than around a chain. Code around a call
    /// can hide all that was subtracted for it.
    pub(crate) fn by_code(&self, empty: f64) -> [f64; 2] {
        let mean = self.mean().0;
        let programs = self.sums.iter().map(|sum| sum / self.number.max(1.0));
        let (least, most) = programs.fold((mean, mean), |(least, most), one| (one.min(least), one.max(most)));
        [mean - least + empty + self.call().0, most - mean]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_execution_in_no_other_one_has_its_own_cost() {
        let mut overhead = NestedOverhead::default();
        for more in [0.0, 20.0] {
            let reading = PracticeReading { cost: CoreCycles(400.0 + more), overhead: CoreCycles(180.0) };
            let readings = PracticeReadings { nested: [reading; PRACTICES], outermost: CoreCycles(300.0 + more) };
            overhead.add(readings, CoreCycles(75.0));
        }
        assert_eq!([0.0, 0.5, 1.0].map(|share| overhead.cost(share)), [310.0, 360.0, 410.0].map(CoreCycles));
    }
}
