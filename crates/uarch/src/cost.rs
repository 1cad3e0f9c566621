//! What a step of a program costs in core cycles.
//!
//! A body of steps runs in a loop, some iterations in one call and twice as many in another; the difference is the steps' own.
//! Both calls and both of the ruler's chains run in the same rounds. Where a program that does all but what is asked is given,
//! its steps' cost is subtracted.

use super::overlap::Core;
use super::spread::Spread;
use super::test::mixture::{Order, Share, mixed};
use super::test::moves::in_pages;
use super::test::walk::{Steps, Walk, code};
use cyclescope_code::program::memory::Memory;
use cyclescope_code::program::{Program, Recipe};
use cyclescope_code::snippet::Snippet;
use cyclescope_core::error::RunError;
use cyclescope_core::statistics::{median, quartiles};
use cyclescope_measure::Plan;
use cyclescope_measure::rounds::{LayoutReading, LayoutRounds, Rounds, unshared};
use cyclescope_measure::sibling::{Alone, SiblingPolicy};
use serde::Serialize;

/// All layouts of a program are measured again beside a busy sibling: it takes lines, translations and half of some structures.
const BESIDE_SIBLING: SiblingPolicy = SiblingPolicy { retries: 2, ..SiblingPolicy::USUAL };

/// Mixtures of the shorter call.
const MIXTURES: u64 = 120;

/// The cost of a step at a count.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct CostPoint {
    /// The count.
    pub n: usize,
    /// Core cycles of a step: the median of the layouts.
    pub cost: f64,
    /// The quartiles of the layouts.
    pub low: f64,
    /// See `low`.
    pub high: f64,
}

/// A core whose costs can be measured.
pub(super) trait Costs {
    /// The cost of a walk's step at a count; `None` where no layout was undisturbed.
    fn cost(&mut self, walk: &Walk, n: usize) -> Result<Option<CostPoint>, RunError>;

    /// How the cost of a walk's step at a count is spread over rounds, where that can be told. What a walk subtracts is part of it.
    fn spread(&mut self, _walk: &Walk, _n: usize) -> Result<Option<Spread>, RunError> {
        Ok(None)
    }
}

/// Other CPUs that can be kept busy.
pub(super) trait Others {
    /// Starts code on a CPU, in this memory if that matters, which runs until [`Others::end`].
    fn begin(&mut self, cpu: u32, text: &'static str, memory: Option<Memory>) -> Result<(), RunError>;

    /// Ends it. Returns the share of the time in which it ran.
    fn end(&mut self) -> Result<f64, RunError>;
}

/// A core on which mixtures can be measured.
pub(super) trait Mixes {
    /// Core cycles of a mixture; `None` where no layout was undisturbed.
    fn mixed(&mut self, shares: &[Share], order: Order, before: &str) -> Result<Option<CostPoint>, RunError>;
}

/// Measurements of a cost that no curve holds.
const TIMES: usize = 3;

/// The costs of these walks' steps at a count, each the middle one of some measurements. The walks take turns, so that they meet
/// the same of what changes meanwhile.
pub(super) fn settled(
    core: &mut dyn Costs,
    walks: &[&Walk],
    n: usize,
) -> Result<Vec<Option<CostPoint>>, RunError> {
    let mut all = vec![Vec::new(); walks.len()];
    for _ in 0..TIMES {
        for (walk, points) in walks.iter().zip(&mut all) {
            points.extend(core.cost(walk, n)?);
        }
    }
    let middle = |points: &mut Vec<CostPoint>| {
        points.sort_by(|one, other| one.cost.total_cmp(&other.cost));
        points.get(points.len() / 2).copied()
    };
    Ok(all.iter_mut().map(middle).collect())
}

/// What layouts show of a cost, where there are some.
fn point(n: usize, mut layouts: Vec<f64>) -> Option<CostPoint> {
    let [low, cost, high] = (!layouts.is_empty()).then(|| quartiles(&mut layouts))?;
    Some(CostPoint { n, cost, low, high })
}

impl Costs for Core<'_> {
    fn cost(&mut self, walk: &Walk, n: usize) -> Result<Option<CostPoint>, RunError> {
        let mut all = self.layouts(&(walk.program)(n))?;
        if let Some(without) = walk.without {
            let mut others = self.layouts(&without(n))?;
            if others.is_empty() {
                return Ok(None);
            }
            let rest = median(&mut others);
            all.iter_mut().for_each(|cost| *cost -= rest);
        }
        Ok(point(n, all))
    }

    fn spread(&mut self, walk: &Walk, n: usize) -> Result<Option<Spread>, RunError> {
        let steps = (walk.program)(n);
        let mut all = Vec::new();
        for layout in self.rounds(&steps)? {
            let Some(reading) = layout.read() else { continue };
            let cycle = self.cycle(&reading);
            let raw = layout.further().map(|round| (round[1] - round[0]) / steps.more());
            all.extend(
                raw.map(|raw| [raw, raw / cycle]).filter(|round| round.iter().all(|part| part.is_finite())),
            );
        }
        Ok(Spread::of(&all))
    }
}

impl Mixes for Core<'_> {
    fn mixed(&mut self, shares: &[Share], order: Order, before: &str) -> Result<Option<CostPoint>, RunError> {
        let body = code(&mixed(shares, order, self.plan.avx));
        let steps = Steps { init: code(before), iterations: MIXTURES, ..in_pages(body, 1, 2) };
        Ok(point(0, self.layouts(&steps)?))
    }
}

impl Core<'_> {
    /// Core cycles of a step in each undisturbed layout, without those beside a busy sibling where enough were not.
    fn layouts(&mut self, steps: &Steps) -> Result<Vec<f64>, RunError> {
        let alone = BESIDE_SIBLING.retry_while(|alone: &Alone<_>| alone.shared, || self.unshared(steps))?;
        self.conditions.used(&alone.used);
        let cycles = |reading: LayoutReading| {
            let [short, long] = [reading.further[0], reading.further[1]];
            (long - short) / self.cycle(&reading) / steps.more()
        };
        Ok(alone.used.into_iter().map(cycles).filter(|cost| cost.is_finite()).collect())
    }

    /// What layouts of a program show that nothing else used the core in.
    fn unshared(&mut self, steps: &Steps) -> Result<Alone<LayoutReading>, RunError> {
        let readings = self.rounds(steps)?.iter().filter_map(LayoutRounds::read).collect();
        Ok(unshared(readings, self.conditions.quiet(None)))
    }

    /// The rounds of a program in each layout.
    fn rounds(&mut self, steps: &Steps) -> Result<Vec<LayoutRounds>, RunError> {
        let iterations = [steps.iterations, 2 * steps.iterations];
        let rounds = Rounds::new(self.plan.clock, self.plan.step)
            .with([steps.program(self.plan)], true)
            .in_memory(steps.memory.clone())
            // How often a body's pieces straddle lines is its own, and no matter of layouts.
            .aligned(0)
            .repeated(&iterations);
        let layouts = rounds.run(self.executor, self.plan.layouts, self.plan.rounds, &mut self.random)?;
        self.conditions.take(&layouts, self.plan.rounds);
        Ok(layouts)
    }

    /// Raw units of a core cycle.
    fn cycle(&self, reading: &LayoutReading) -> f64 {
        // The whole number next to the ratio of the two chains is the latency of a link, where data do not tell.
        reading.imul / self.plan.imul_latency.unwrap_or((reading.imul / reading.add).round())
    }
}

impl Steps {
    /// The loop over an iteration.
    pub(super) fn program(&self, plan: &Plan) -> Program {
        let outline = Snippet::new(self.body.clone(), self.init.clone(), "").outline(plan.avx);
        let recipe = Recipe::looped(plan.clock, &self.body, 1);
        Recipe { world: outline.world, init: &self.init, following: &self.following, ..recipe }.build()
    }

    /// Steps that the longer call has more than the shorter one.
    pub(super) fn more(&self) -> f64 {
        self.steps as f64 * self.iterations as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conditions::Conditions;
    use crate::test::walk::{LINE, straight};
    use cyclescope_core::machine::Machine;
    use cyclescope_core::random::Random;
    use cyclescope_core::unit::Hertz;
    use cyclescope_exec::{Batch, Capabilities, Executor, Sample};
    use cyclescope_measure::sibling::Retries;
    use cyclescope_sim::{Scenario, Simulated};
    use std::collections::BTreeSet;
    use std::time::Duration;

    const DEAR: &[u8] = &[0x48, 0x63, 0xc0];
    const CHEAP: &[u8] = &[0x48, 0x63, 0xc9];

    fn dear(_: usize) -> Steps {
        straight(DEAR.to_vec(), 10)
    }

    fn cheap(_: usize) -> Steps {
        straight(CHEAP.to_vec(), 10)
    }

    #[test]
    fn a_step_costs_what_an_iteration_costs_by_its_steps_less_what_is_not_asked() {
        let plan = Plan::simulated();
        let costs = vec![(DEAR.to_vec(), 160.0), (CHEAP.to_vec(), 50.0)];
        let mut machine = Simulated::new(Scenario { costs, ..Scenario::default() }, 5);
        let mut conditions = Conditions::default();
        let random = Random::new(7);
        let mut core = Core {
            executor: &mut machine,
            plan: &plan,
            random,
            zmm: false,
            again: Retries::NONE,
            conditions: &mut conditions,
        };
        let walk = Walk { name: "planted", program: dear, without: None };
        let spread = core.spread(&walk, 9).unwrap().unwrap().record(9, Some(Hertz(1e9)));
        let middle = serde_json::to_value(&spread.quantiles[2]).unwrap();
        assert!((middle["core_cycles"].as_f64().unwrap() - 16.0).abs() < 0.05, "{middle}");
        assert!(spread.rounds > 40 && spread.time.value > Some(1.0), "{spread:?}");
        for (without, expected) in [(None, 16.0), (Some(cheap as fn(usize) -> Steps), 11.0)] {
            let walk = Walk { name: "planted", program: dear, without };
            let point = core.cost(&walk, 9).unwrap().unwrap();
            assert!((point.cost - expected).abs() < 0.05 && point.n == 9, "{point:?}, not {expected}");
        }
    }

    /// A machine on which all calls of batches of a program are disturbed.
    struct Disturbed(Simulated, &'static [u8]);

    impl Executor for Disturbed {
        fn capabilities(&self) -> &Capabilities {
            self.0.capabilities()
        }

        fn machine(&self) -> &Machine {
            self.0.machine()
        }

        fn stream(&mut self, batch: &Batch, take: &mut dyn FnMut(&[Sample])) -> Result<(), RunError> {
            let disturbed = batch.programs.iter().any(|program| program.snippet() == self.1);
            self.0.stream(batch, &mut |samples| {
                let of = |sample: &Sample| Sample { end: sample.start - u64::from(disturbed), ..*sample };
                match disturbed {
                    true => take(&samples.iter().map(of).collect::<Vec<_>>()),
                    false => take(samples),
                }
            })
        }

        fn now(&self) -> Duration {
            self.0.now()
        }

        fn pause(&mut self, time: Duration) {
            self.0.pause(time);
        }
    }

    #[test]
    fn without_what_is_subtracted_there_is_no_cost() {
        let plan = Plan::simulated();
        for (disturbed, costs) in [(DEAR, false), (CHEAP, false), (&[0x90][..], true)] {
            let mut machine = Disturbed(Simulated::new(Scenario::default(), 5), disturbed);
            let mut conditions = Conditions::default();
            let (executor, random) = (&mut machine, Random::new(7));
            let mut core = Core {
                executor,
                plan: &plan,
                random,
                zmm: false,
                again: Retries::NONE,
                conditions: &mut conditions,
            };
            let walk = Walk { name: "planted", program: dear, without: Some(cheap) };
            assert_eq!(core.cost(&walk, 9).unwrap().is_some(), costs, "{disturbed:02x?}");
        }
    }
    /// A machine that keeps where bodies begin, in bytes behind a line's begin.
    struct Kept(Simulated, BTreeSet<usize>);

    impl Executor for Kept {
        fn capabilities(&self) -> &Capabilities {
            self.0.capabilities()
        }

        fn machine(&self) -> &Machine {
            self.0.machine()
        }

        fn stream(&mut self, batch: &Batch, take: &mut dyn FnMut(&[Sample])) -> Result<(), RunError> {
            for placed in batch.layouts.iter().flat_map(|layout| &layout.code) {
                let program = &batch.programs[placed.program];
                if program.snippet() == DEAR {
                    self.1.insert((placed.offset as usize + program.body().start) % LINE);
                }
            }
            self.0.stream(batch, take)
        }

        fn now(&self) -> Duration {
            self.0.now()
        }

        fn pause(&mut self, time: Duration) {
            self.0.pause(time);
        }
    }

    #[test]
    fn bodies_begin_with_a_line_in_each_layout() {
        let plan = Plan::simulated();
        let mut machine = Kept(Simulated::new(Scenario::default(), 5), BTreeSet::new());
        let mut conditions = Conditions::default();
        let (executor, random) = (&mut machine, Random::new(7));
        let mut core = Core {
            executor,
            plan: &plan,
            random,
            zmm: false,
            again: Retries::NONE,
            conditions: &mut conditions,
        };
        core.cost(&Walk { name: "planted", program: dear, without: None }, 9).expect("all is simulated");
        assert_eq!(machine.1.into_iter().collect::<Vec<_>>(), [0]);
    }
}
