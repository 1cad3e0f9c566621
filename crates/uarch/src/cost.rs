//! What a step of a program costs in core cycles.
//!
//! A loop runs a body of steps: some iterations in one call, twice as many in another. The
//! difference is the cost of the steps alone. Both calls and both chains of the ruler run in the
//! same rounds. If a program has a control, the cost of the control's steps is subtracted.

use super::cost_spread::CostSpread;
use super::null_number::nan_for_null;
use super::overlap::MeasuredCore;
use super::spec::{
    BackgroundLoad, ClassCount, MixOrder, ProgramFamily, StepLoop, assemble, loop_in_pages, mixture_text,
};
use cyclescope_code::program::memory::ProgramMemory;
use cyclescope_code::program::{Program, ProgramRecipe};
use cyclescope_code::snippet::Snippet;
use cyclescope_core::error::RunError;
use cyclescope_core::statistics::quartiles;
use cyclescope_measure::Plan;
use cyclescope_measure::rounds::{LayoutReading, LayoutRounds, RulerRounds, select_unshared};
use cyclescope_measure::ruler::column;
use cyclescope_measure::sibling::{KeptReplicates, SiblingPolicy};
use serde::{Deserialize, Serialize};

/// While the sibling is busy, all layouts of a program are measured again: the sibling takes lines,
/// translations and half of some structures.
const COST_SIBLING_POLICY: SiblingPolicy = SiblingPolicy { retries: 2, ..SiblingPolicy::USUAL };

/// Number of mixtures in the shorter call.
const MIXTURE_ITERATIONS: u64 = 120;

/// The cost of a step at a count.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CostPoint {
    /// The count.
    pub n: usize,
    /// Core cycles of a step: the median over the layouts.
    #[serde(deserialize_with = "nan_for_null")]
    pub cost: f64,
    /// The lower quartile of the layouts.
    #[serde(deserialize_with = "nan_for_null")]
    pub low: f64,
    /// The upper quartile of the layouts.
    #[serde(deserialize_with = "nan_for_null")]
    pub high: f64,
}

impl CostPoint {
    /// The cost without that of a control. The spread is that of the program.
    pub(super) fn minus(&self, control: &CostPoint) -> CostPoint {
        let [cost, low, high] = [self.cost, self.low, self.high].map(|cost| cost - control.cost);
        CostPoint { n: self.n, cost, low, high }
    }
}

/// The columns of the shorter and the longer call.
pub(super) fn extra_step_columns() -> [usize; 2] {
    [column::WHOLE, column::WHOLE + 1]
}

/// Measures the cost of steps on a core.
pub(super) trait MeasureCosts {
    /// The cost of a program's step at a count; `None` if all layouts were disturbed.
    fn measure_cost(&mut self, family: &ProgramFamily, n: usize) -> Result<Option<CostPoint>, RunError>;

    /// The cost of a program's step at a count and that of its control, whose difference
    /// [`MeasureCosts::measure_cost`] is. Without a control, or if only the difference is known,
    /// the second one is missing.
    fn measure_with_control(
        &mut self,
        family: &ProgramFamily,
        n: usize,
    ) -> Result<Option<(CostPoint, Option<CostPoint>)>, RunError> {
        Ok(self.measure_cost(family, n)?.map(|point| (point, None)))
    }

    /// How the cost of a step at a count is spread over rounds, if it can be measured. The cost of
    /// the control is included.
    fn measure_spread(&mut self, _walk: &ProgramFamily, _n: usize) -> Result<Option<CostSpread>, RunError> {
        Ok(None)
    }
}

/// A cost minus that of its control.
pub(super) fn subtract_control((point, control): (CostPoint, Option<CostPoint>)) -> CostPoint {
    control.map_or(point, |control| point.minus(&control))
}

/// Keeps other CPUs busy.
pub(super) trait BackgroundCpus {
    /// Starts code on a CPU, in this memory if it matters. It runs until
    /// [`BackgroundCpus::stop_load`].
    fn start_load(&mut self, cpu: u32, load: BackgroundLoad, memory: Option<ProgramMemory>) -> Result<(), RunError>;

    /// Stops it. Returns the share of the time in which it ran.
    fn stop_load(&mut self) -> Result<f64, RunError>;
}

/// Measures mixtures on a core.
pub(super) trait MeasureMixtures {
    /// Core cycles of a mixture; `None` if all layouts were disturbed.
    fn measure_mixture(
        &mut self,
        shares: &[ClassCount],
        order: MixOrder,
        before: &str,
    ) -> Result<Option<CostPoint>, RunError>;
}

/// Measurements of a cost that belongs to no curve.
pub(super) const SETTLING_RUNS: usize = 3;

/// The cost of each of these programs' steps at a count.
pub(super) fn measure_costs_once(
    core: &mut dyn MeasureCosts,
    families: &[&ProgramFamily],
    n: usize,
) -> Result<Vec<Option<CostPoint>>, RunError> {
    families.iter().map(|family| core.measure_cost(family, n)).collect()
}

/// The median cost of these programs' steps at a count. The programs take turns: changes during the
/// measurement affect all of them.
pub(super) fn measure_median_costs(
    core: &mut dyn MeasureCosts,
    families: &[&ProgramFamily],
    n: usize,
) -> Result<Vec<Option<CostPoint>>, RunError> {
    let mut all = vec![Vec::new(); families.len()];
    for _ in 0..SETTLING_RUNS {
        for (family, points) in families.iter().zip(&mut all) {
            points.extend(core.measure_cost(family, n)?);
        }
    }
    let middle = |points: &mut Vec<CostPoint>| {
        points.sort_by(|one, other| one.cost.total_cmp(&other.cost));
        points.get(points.len() / 2).copied()
    };
    Ok(all.iter_mut().map(middle).collect())
}

/// The median and quartiles of some layouts, if there are any.
fn summarize_layouts(n: usize, mut layouts: Vec<f64>) -> Option<CostPoint> {
    let [low, cost, high] = (!layouts.is_empty()).then(|| quartiles(&mut layouts))?;
    Some(CostPoint { n, cost, low, high })
}

impl MeasureCosts for MeasuredCore<'_> {
    fn measure_cost(&mut self, family: &ProgramFamily, n: usize) -> Result<Option<CostPoint>, RunError> {
        Ok(self.measure_with_control(family, n)?.map(subtract_control))
    }

    fn measure_with_control(
        &mut self,
        family: &ProgramFamily,
        n: usize,
    ) -> Result<Option<(CostPoint, Option<CostPoint>)>, RunError> {
        let point = summarize_layouts(n, self.measure_layout_costs(&family.program(n))?);
        let Some(control) = family.control(n) else { return Ok(point.map(|point| (point, None))) };
        let control = summarize_layouts(n, self.measure_layout_costs(&control)?);
        Ok(point.zip(control).map(|(point, control)| (point, Some(control))))
    }

    fn measure_spread(&mut self, family: &ProgramFamily, n: usize) -> Result<Option<CostSpread>, RunError> {
        let steps = family.program(n);
        let mut all = Vec::new();
        for layout in self.run_rounds(&steps)? {
            let Some(reading) = layout.read() else { continue };
            let cycle = self.units_per_cycle(&reading);
            let raw = layout.further_durations().map(|round| (round[1] - round[0]) / steps.extra_steps());
            all.extend(raw.map(|raw| [raw, raw / cycle]).filter(|round| round.iter().all(|part| part.is_finite())));
        }
        Ok(CostSpread::from_rounds(&all))
    }
}

impl MeasureMixtures for MeasuredCore<'_> {
    fn measure_mixture(
        &mut self,
        shares: &[ClassCount],
        order: MixOrder,
        before: &str,
    ) -> Result<Option<CostPoint>, RunError> {
        let body = assemble(&mixture_text(shares, order, self.plan.avx));
        let steps = StepLoop { init: assemble(before), iterations: MIXTURE_ITERATIONS, ..loop_in_pages(body, 1, 2) };
        Ok(summarize_layouts(0, self.measure_layout_costs(&steps)?))
    }
}

impl MeasuredCore<'_> {
    /// Core cycles of a step in each undisturbed layout. Drops layouts with a busy sibling if
    /// enough others remain.
    fn measure_layout_costs(&mut self, steps: &StepLoop) -> Result<Vec<f64>, RunError> {
        let alone =
            COST_SIBLING_POLICY.retry_while(|alone: &KeptReplicates<_>| alone.shared, || self.read_unshared(steps))?;
        self.conditions.add_used(&alone.used);
        let cycles = |reading: LayoutReading| {
            let [short, long] = [reading.further[0], reading.further[1]];
            (long - short) / self.units_per_cycle(&reading) / steps.extra_steps()
        };
        Ok(alone.used.into_iter().map(cycles).filter(|cost| cost.is_finite()).collect())
    }

    /// The layouts of a program during which nothing else used the core.
    fn read_unshared(&mut self, steps: &StepLoop) -> Result<KeptReplicates<LayoutReading>, RunError> {
        let readings = self.run_rounds(steps)?.iter().filter_map(LayoutRounds::read).collect();
        Ok(select_unshared(readings, self.conditions.quiet_width(None)))
    }

    /// The rounds of a program in each layout.
    fn run_rounds(&mut self, steps: &StepLoop) -> Result<Vec<LayoutRounds>, RunError> {
        let rounds = steps.to_rounds(RulerRounds::new(self.plan.clock, self.plan.step), self.plan);
        let layouts = rounds.run(self.executor, self.plan.layouts, self.plan.rounds, &mut self.random)?;
        self.conditions.add_layouts(&layouts, self.plan.rounds);
        Ok(layouts)
    }

    /// Raw units of a core cycle.
    fn units_per_cycle(&self, reading: &LayoutReading) -> f64 {
        // If data do not contain it, the latency of a link is the ratio of the two chains, rounded.
        reading.imul / self.plan.imul_latency.unwrap_or((reading.imul / reading.add).round())
    }
}

impl StepLoop {
    /// The loop around one iteration.
    pub(super) fn build_program(&self, plan: &Plan) -> Program {
        let outline = Snippet::new(self.body.clone(), self.init.clone(), "").outline(plan.avx);
        let recipe = ProgramRecipe::with_loop(plan.clock, &self.body, 1);
        let StepLoop { init, following, calls_memcpy, .. } = self;
        ProgramRecipe { world: outline.world, init, following, calls_memcpy: *calls_memcpy, ..recipe }.build()
    }

    /// Adds both calls of the loop to the ruler.
    pub(super) fn to_rounds(&self, ruler: RulerRounds, plan: &Plan) -> RulerRounds {
        ruler
            .with_programs([self.build_program(plan)], true)
            .with_memory(self.memory.clone())
            // A body's place within a line is part of the program, and layouts must not change it.
            .with_alignment(0)
            .with_iterations(&[self.iterations, 2 * self.iterations])
    }

    /// Number of steps by which the longer call exceeds the shorter one.
    pub(super) fn extra_steps(&self) -> f64 {
        self.steps_per_iteration as f64 * self.iterations as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conditions::RunConditions;
    use crate::spec::{LINE, ProgramSource, straight_loop};
    use cyclescope_core::random::Random;
    use cyclescope_core::unit::Hertz;
    use cyclescope_exec::{Executor, Sample};
    use cyclescope_measure::sibling::Retries;
    use cyclescope_sim::{AlteredMachine, Scenario, SimulatedExecutor};
    use std::collections::BTreeSet;

    const DEAR: &[u8] = &[0x48, 0x63, 0xc0];
    const CHEAP: &[u8] = &[0x48, 0x63, 0xc9];

    fn dear(_: usize) -> StepLoop {
        straight_loop(DEAR.to_vec(), 10)
    }

    fn cheap(_: usize) -> StepLoop {
        straight_loop(CHEAP.to_vec(), 10)
    }

    #[test]
    fn a_step_costs_its_part_of_an_iteration_less_the_control() {
        let plan = Plan::simulated();
        let costs = vec![(DEAR.to_vec(), 160.0), (CHEAP.to_vec(), 50.0)];
        let mut machine = SimulatedExecutor::new(Scenario { costs, ..Scenario::default() }, 5);
        let mut conditions = RunConditions::default();
        let random = Random::new(7);
        let mut core = MeasuredCore {
            executor: &mut machine,
            plan: &plan,
            random,
            zmm: false,
            retries: Retries::NONE,
            conditions: &mut conditions,
        };
        let family = ProgramFamily::new("simulated", dear);
        let spread = core.measure_spread(&family, 9).unwrap().unwrap().to_record(9, Some(Hertz(1e9)));
        let middle = serde_json::to_value(&spread.quantiles[2]).unwrap();
        assert!((middle["core_cycles"].as_f64().unwrap() - 16.0).abs() < 0.05, "{middle}");
        assert!(spread.rounds > 40 && spread.time.value > Some(1.0), "{spread:?}");
        for (without, expected) in [(None, 16.0), (Some(cheap as fn(usize) -> StepLoop), 11.0)] {
            let family = ProgramFamily {
                control: without.map(ProgramSource::Generated),
                ..ProgramFamily::new("simulated", dear)
            };
            let point = core.measure_cost(&family, 9).unwrap().unwrap();
            assert!((point.cost - expected).abs() < 0.05 && point.n == 9, "{point:?}, not {expected}");
        }
    }

    /// A machine that disturbs all batches of a program.
    fn disturb_program(disturbed: &'static [u8]) -> impl Executor {
        AlteredMachine::new(SimulatedExecutor::new(Scenario::default(), 5), move |machine, batch, take| {
            let disturbed = batch.programs.iter().any(|program| program.snippet() == disturbed);
            machine.stream(batch, &mut |samples| {
                let shorten = |sample: &Sample| Sample { end: sample.start - u64::from(disturbed), ..*sample };
                match disturbed {
                    true => take(&samples.iter().map(shorten).collect::<Vec<_>>()),
                    false => take(samples),
                }
            })
        })
    }

    #[test]
    fn without_its_control_a_program_has_no_cost() {
        let plan = Plan::simulated();
        for (disturbed, costs) in [(DEAR, false), (CHEAP, false), (&[0x90][..], true)] {
            let mut machine = disturb_program(disturbed);
            let mut conditions = RunConditions::default();
            let (executor, random) = (&mut machine, Random::new(7));
            let mut core = MeasuredCore {
                executor,
                plan: &plan,
                random,
                zmm: false,
                retries: Retries::NONE,
                conditions: &mut conditions,
            };
            let family = ProgramFamily::new("simulated", dear).less(cheap);
            assert_eq!(core.measure_cost(&family, 9).unwrap().is_some(), costs, "{disturbed:02x?}");
        }
    }

    #[test]
    fn bodies_begin_at_a_line_in_each_layout() {
        let plan = Plan::simulated();
        // The offset of each body from the start of its line.
        let mut offsets = BTreeSet::new();
        let mut machine =
            AlteredMachine::new(SimulatedExecutor::new(Scenario::default(), 5), |machine, batch, take| {
                for placed in batch.layouts.iter().flat_map(|layout| &layout.code) {
                    let program = &batch.programs[placed.program];
                    if program.snippet() == DEAR {
                        offsets.insert((placed.offset as usize + program.body_range().start) % LINE);
                    }
                }
                machine.stream(batch, take)
            });
        let mut conditions = RunConditions::default();
        let (executor, random) = (&mut machine, Random::new(7));
        let mut core = MeasuredCore {
            executor,
            plan: &plan,
            random,
            zmm: false,
            retries: Retries::NONE,
            conditions: &mut conditions,
        };
        core.measure_cost(&ProgramFamily::new("simulated", dear), 9).expect("all is simulated");
        assert_eq!(offsets.into_iter().collect::<Vec<_>>(), [0]);
    }
}
