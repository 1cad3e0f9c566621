//! Events that a step of a program causes, by the same contrast as its cost.

use super::cost::extra_step_columns;
use super::overlap::{OVERLAP_ITERATIONS, OverlapProbe, build_programs};
use super::spec::{ProgramFamily, StepLoop};
use cyclescope_core::error::RunError;
use cyclescope_core::random::Random;
use cyclescope_core::statistics::Interval;
use cyclescope_exec::Executor;
use cyclescope_measure::contrast::Contrast;
use cyclescope_measure::result::counter_record::CountedEvents;
use cyclescope_measure::rounds::RulerRounds;
use cyclescope_measure::schedule::Schedule;
use cyclescope_measure::{COUNTED_LAYOUTS, EventPlan, Plan, count_contrasts};

/// Counted rounds of a layout.
const ROUNDS: u32 = 2;

/// Counts the events of steps.
pub(super) trait CountSteps {
    /// The events of a program's step at a count, less those of its control.
    fn count_step(&mut self, family: &ProgramFamily, n: usize) -> Result<CountedEvents, RunError>;

    /// The events of both chains with this number of fillers between them.
    fn count_chains(&mut self, probe: &OverlapProbe, n: usize) -> Result<CountedEvents, RunError>;
}

/// A core whose counters an executor reads.
pub(super) struct CountedCore<'a> {
    pub executor: &'a mut dyn Executor,
    pub plan: &'a Plan,
    pub events: &'a EventPlan,
    /// Places programs. It is not that of timed programs.
    pub random: Random,
    /// Whether it has vector registers of 512 bits.
    pub zmm: bool,
}

/// The layouts of a program, and the contrast of its steps.
type CountedRounds = (Schedule, Contrast);

impl CountSteps for CountedCore<'_> {
    fn count_step(&mut self, family: &ProgramFamily, n: usize) -> Result<CountedEvents, RunError> {
        let steps = self.plan_steps(&family.program(n))?;
        let control = family.control(n).map(|control| self.plan_steps(&control)).transpose()?;
        self.count_rounds(&steps, control.as_ref())
    }

    fn count_chains(&mut self, probe: &OverlapProbe, n: usize) -> Result<CountedEvents, RunError> {
        let [both, ..] = build_programs(self.plan, probe, n, self.zmm);
        let rounds = RulerRounds::new(self.plan.clock, self.plan.step)
            .with_programs([both], true)
            .with_iterations(&[OVERLAP_ITERATIONS, 2 * OVERLAP_ITERATIONS]);
        let contrast = Contrast::slope_between(extra_step_columns(), OVERLAP_ITERATIONS as f64);
        let planned = (self.plan_rounds(&rounds)?, contrast);
        self.count_rounds(&planned, None)
    }
}

impl CountedCore<'_> {
    fn plan_rounds(&mut self, rounds: &RulerRounds) -> Result<Schedule, RunError> {
        rounds.build_schedule(self.executor.arena_len(), COUNTED_LAYOUTS, ROUNDS, &mut self.random)
    }

    fn plan_steps(&mut self, steps: &StepLoop) -> Result<CountedRounds, RunError> {
        let rounds = steps.to_rounds(RulerRounds::new(self.plan.clock, self.plan.step), self.plan);
        Ok((self.plan_rounds(&rounds)?, Contrast::slope_between(extra_step_columns(), steps.extra_steps())))
    }

    /// The events of a step, less those of a control's step.
    fn count_rounds(
        &mut self,
        steps: &CountedRounds,
        control: Option<&CountedRounds>,
    ) -> Result<CountedEvents, RunError> {
        let (executor, confidence) = (&mut *self.executor, self.plan.confidence);
        let counted = self.events.count(1, &mut |codes| {
            let mut count = |(schedule, contrast): &CountedRounds| {
                count_contrasts(executor, schedule, &|_| vec![contrast.clone()], confidence, codes)
            };
            let own = count(steps)?;
            let Some(control) = control else { return Ok(own) };
            let control = count(control)?;
            Ok(vec![own[0].iter().zip(&control[0]).map(|(own, control)| subtract_intervals(*own, *control)).collect()])
        });
        Ok(counted?.swap_remove(0))
    }
}

/// The difference of two independent counts.
fn subtract_intervals(own: Interval, control: Interval) -> Interval {
    Interval::with_margin(own.value - control.value, own.half_width().hypot(control.half_width()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::straight_loop;
    use cyclescope_events::{CounterColumn, CounterRequest, EventCode, NamedEvent};
    use cyclescope_measure::result::answers::MachineAnswers;
    use cyclescope_sim::{Scenario, SimulatedEvent, SimulatedExecutor, SimulatedPmu};
    use iced_x86::Mnemonic;

    #[test]
    fn a_step_has_the_events_of_its_instructions_less_those_of_the_control() {
        let code = EventCode::new(4, 1);
        let event = SimulatedEvent { code, per_call: 40, per_instruction: 1, per_mnemonic: vec![(Mnemonic::Imul, 3)] };
        let pmu = SimulatedPmu { general: 1, events: vec![event], ..SimulatedPmu::default() };
        let mut machine = SimulatedExecutor::new(Scenario::default(), 5).with_pmu(pmu);
        let named = NamedEvent { name: "e".to_string(), code };
        let columns = vec![("e".to_string(), CounterColumn::Event(0))];
        let request = CounterRequest { events: vec![named], columns, ..CounterRequest::default() };
        let events = EventPlan::new(&request, &machine, &MachineAnswers::live()).expect("the event exists");
        let plan = Plan::simulated();
        let mut core =
            CountedCore { executor: &mut machine, plan: &plan, events: &events, random: Random::new(2), zmm: false };
        // Five multiplications and five additions in ten steps.
        let code = |_: usize| straight_loop([0x48, 0x0f, 0xaf, 0xc1, 0x48, 0x01, 0xc8].repeat(5), 10);
        let control = |_: usize| straight_loop([0x48, 0x01, 0xc8].repeat(10), 10);
        let family = ProgramFamily::new("simulated", code);
        for (family, expected) in [(family, 2.0), (family.less(control), 1.0)] {
            let counted = core.count_step(&family, 1).expect("nothing fails");
            let value = counted.counters[0].quantity.value.expect("it is counted");
            assert!((value - expected).abs() < 0.01, "{value}, not {expected}");
        }
    }
}
