//! What an evaluation takes: which methods, how much of each experiment, in how much time.

use super::Subject;
use super::method::{Cost, ticks_per_unit};
use super::reader::Size;
use crate::clock::{self, Clock};
use crate::doctor::Effort;
use crate::error::Unavailable;
use crate::machine::Machine;
use crate::unit::Unit;
use std::time::Duration;

/// What is asked of an evaluation.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The timing methods.
    pub clocks: Vec<&'static Clock>,
    /// Ensembles and samples of quick methods.
    pub size: Size,
    /// Time for everything.
    pub budget: Duration,
    /// Time for the samples of a method that is not quick; none where it may take what the others may.
    pub slow: Option<Duration>,
    /// Time for each of the other experiments.
    pub times: Times,
    /// Seeds everything that is random.
    pub seed: u64,
}

/// Time for each experiment but the samples.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// The machine's facts.
    pub facts: Effort,
    /// Contamination, for each method.
    pub contamination: Duration,
    /// Resolution, for each method.
    pub resolution: Duration,
    /// The core clock over time.
    pub watch: Duration,
    /// The TSCs of other CPUs.
    pub synchrony: Duration,
}

impl Times {
    /// Some ten seconds for a dozen methods.
    pub const FULL: Times = Times {
        facts: Effort::FULL,
        contamination: Duration::from_millis(200),
        resolution: Duration::from_millis(300),
        watch: Duration::from_millis(400),
        synchrony: Duration::from_millis(600),
    };
    /// Some three seconds.
    pub const QUICK: Times = Times {
        facts: Effort::QUICK,
        contamination: Duration::from_millis(60),
        resolution: Duration::from_millis(120),
        watch: Duration::from_millis(200),
        synchrony: Duration::from_millis(200),
    };
}

/// The default budget, and that of a quick evaluation.
pub const BUDGET: Duration = Duration::from_secs(86);
/// See [`BUDGET`].
pub const BUDGET_QUICK: Duration = Duration::from_secs(13);
/// The samples of a method that is not quick.
pub const SLOW: Duration = Duration::from_secs(1);
/// See [`SLOW`].
pub const SLOW_QUICK: Duration = Duration::from_millis(150);
/// The size of a quick evaluation.
pub const SIZE_QUICK: Size = Size { ensembles: 100, samples: 100_000 };

/// A timing method that can't be evaluated here.
#[derive(Debug, Clone)]
pub struct NotRun {
    /// The method.
    pub clock: &'static Clock,
    /// Why not.
    pub why: Unavailable,
}

/// All timing methods: those that run here, and the others with their reasons.
pub fn all(machine: &Machine) -> (Vec<&'static Clock>, Vec<NotRun>) {
    let (mut run, mut not) = (Vec::new(), Vec::new());
    for clock in clock::ALL {
        match clock::require(clock, machine) {
            Ok(()) => run.push(clock),
            Err(why) => not.push(NotRun { clock, why }),
        }
    }
    (run, not)
}

impl Subject<'_> {
    /// A method on a machine whose default method is known, with the latency of its `imul`.
    pub(super) fn of(clock: &'static Clock, default: &'static Clock, imul_latency: f64) -> Subject<'static> {
        let ruler = if clock.counts == Unit::TscTicks { default } else { clock };
        Subject { clock, ruler, step: crate::run::step(clock), imul_latency }
    }
}

/// A method that waits for its samples.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiting {
    pub(super) cost: Cost,
    pub(super) quick: bool,
}

impl Waiting {
    pub(super) fn new(clock: &Clock, cost: Cost, hertz: f64) -> Waiting {
        Waiting { cost, quick: cost.is_quick(ticks_per_unit(clock.counts, hertz)) }
    }

    /// Seconds that its samples take if nothing cuts them.
    fn wanted(&self, plan: &Plan) -> f64 {
        let all = plan.size.total() as f64 * self.cost.seconds;
        match plan.slow {
            Some(slow) if !self.quick => all.min(slow.as_secs_f64()),
            _ => all,
        }
    }
}

/// The size of the first of some waiting methods, and the seconds that it may take, where so many are left for all
/// of them: what each wants, or its part of what there is.
pub(super) fn share(waiting: &[Waiting], left: f64, plan: &Plan) -> (Size, f64) {
    let wanted = waiting[0].wanted(plan);
    let all: f64 = waiting.iter().map(|method| method.wanted(plan)).sum();
    if all > left {
        let part = left.max(0.0) * wanted / all;
        return (plan.size.within(part / waiting[0].cost.seconds), part);
    }
    // Whoever was slower than its pilot may take what nobody else wants.
    (plan.size.within(wanted / waiting[0].cost.seconds * (1.0 + 1e-9)), wanted + left - all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(size: Size, slow: Option<Duration>) -> Plan {
        Plan { clocks: Vec::new(), size, budget: BUDGET, slow, times: Times::QUICK, seed: 0 }
    }

    #[test]
    fn with_time_enough_quick_methods_get_all_and_slow_ones_a_second() {
        let quick = Waiting { cost: Cost { seconds: 70e-9, pair: 48.0 }, quick: true };
        let slow = Waiting { cost: Cost { seconds: 15e-6, pair: 17_000.0 }, quick: false };
        let plan = plan(Size::PAPER, Some(SLOW));
        let (size, seconds) = share(&[quick, slow], 20.0, &plan);
        assert_eq!(size, Size::PAPER);
        assert!((seconds - 19.0).abs() < 1e-6, "{seconds}");
        let (size, _) = share(&[slow], 20.0, &plan);
        assert_eq!(size, Size { ensembles: 100, samples: 666 });
    }

    #[test]
    fn what_there_is_not_time_for_is_cut_evenly() {
        let quick = Waiting { cost: Cost { seconds: 100e-9, pair: 48.0 }, quick: true };
        let plan = plan(Size::PAPER, None);
        let (size, seconds) = share(&[quick, quick, quick, quick], 20.0, &plan);
        assert_eq!((size, seconds), (Size { ensembles: 500, samples: 100_000 }, 5.0));
        assert_eq!(share(&[quick], -1.0, &plan).0, Size { ensembles: 100, samples: 100 });
    }

    #[test]
    fn a_method_is_quick_by_its_pair_and_by_what_surrounds_it() {
        assert!(Cost { seconds: 140e-9, pair: 118.0 }.is_quick(1.0));
        assert!(!Cost { seconds: 15e-6, pair: 44.0 }.is_quick(1.0));
        assert!(!Cost { seconds: 300e-9, pair: 100.0 }.is_quick(2.3));
    }
}
