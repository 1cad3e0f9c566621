//! Counts of events beside a cost: which events, in which passes, and their columns.

use crate::RunOutcome;
use cyclescope_core::error::{Error, RunError, Unavailable};
use cyclescope_core::unit::Unit;
use cyclescope_events::{CounterRequest, EventCode, EventRefusal, NamedEvent};
use cyclescope_exec::Executor;
use cyclescope_measure::result::answers::MachineAnswers;
use cyclescope_measure::result::counter_record::{CounterRecord, EventCount, compare_counted_cycles};
use cyclescope_measure::result::record::{Quantity, RunRecord};
use cyclescope_measure::{CostQuestion, EventPass, Plan, count_events, plan_event_passes};

/// Events to count for a run, in passes that its executor allows.
pub(crate) struct PlannedCounts<'a> {
    request: &'a CounterRequest,
    events: Vec<NamedEvent>,
    passes: Vec<EventPass>,
    /// The event that is compared with the ruler.
    cycles: Option<usize>,
}

impl<'a> PlannedCounts<'a> {
    /// Plans the passes. Core cycles are counted too, where the executor counts them.
    ///
    /// # Errors
    ///
    /// If the executor does not count one of the events.
    pub(crate) fn plan(
        request: &'a CounterRequest,
        executor: &dyn Executor,
        answers: &MachineAnswers,
    ) -> Result<PlannedCounts<'a>, Error> {
        let core_cycles = NamedEvent { name: "cycles".to_string(), code: EventCode::core_cycles() };
        let mut events = request.events.clone();
        let known = events.iter().position(|event| event.code == core_cycles.code);
        type Planned = (bool, Result<Vec<EventPass>, EventRefusal>);
        let ask = || {
            let counts_cycles = known.is_some() || executor.count_fitting(&[core_cycles.code]).is_ok();
            if counts_cycles && known.is_none() {
                events.push(core_cycles.clone());
            }
            Ok::<Planned, RunError>((counts_cycles, plan_event_passes(executor, &events)))
        };
        let (counts_cycles, passes) = answers.ask_machine(ask)?;
        let mut events = request.events.clone();
        if counts_cycles && known.is_none() {
            events.push(core_cycles);
        }
        let passes = passes.map_err(Unavailable::from)?;
        let is_sound = passes.iter().flat_map(EventPass::events).all(|event| *event < events.len());
        if !is_sound || passes.iter().map(|pass| pass.events().len()).sum::<usize>() != events.len() {
            return Err(answers.damage_error("its passes are not those of its events").into());
        }
        let cycles = known.or(counts_cycles.then(|| events.len() - 1));
        Ok(PlannedCounts { request, events, passes, cycles })
    }

    /// Counts all events for a finished run and adds them to its record.
    pub(crate) fn count(
        &self,
        executor: &mut dyn Executor,
        question: &CostQuestion,
        plan: &Plan,
        run: &RunOutcome,
        record: &mut RunRecord,
    ) -> Result<(), RunError> {
        let none = EventCount { pass: 0, count: Err(String::new()) };
        let mut counts = vec![none; self.events.len()];
        for (number, pass) in self.passes.iter().enumerate() {
            let codes: Vec<EventCode> = pass.events().iter().map(|event| self.events[*event].code).collect();
            let counted = count_events(executor, question, plan, &run.measurement.acquisition, &codes);
            let counted = match counted {
                // Counters that are lost leave the cost and the other passes.
                Err(RunError::Unavailable(refused)) => Err(refused.why),
                counted => Ok(counted?.swap_remove(0)),
            };
            for (index, event) in pass.events().iter().enumerate() {
                let count = counted.as_ref().map(|counts| counts[index]).map_err(String::clone);
                counts[*event] = EventCount { pass: number + 1, count };
            }
        }
        let columns = self.request.columns.iter();
        record.counters = columns.map(|(name, column)| CounterRecord::from_counts(name, column, &counts)).collect();
        record.counter_passes = Some(self.passes.len());
        if let Some(Ok(cycles)) = self.cycles.map(|event| &counts[event].count) {
            let cycles = Quantity::new(*cycles, Unit::CoreCycles);
            record.caveats.extend(compare_counted_cycles(&cycles, &record.cost));
            record.counted_cycles = Some(cycles);
        }
        Ok(())
    }
}
