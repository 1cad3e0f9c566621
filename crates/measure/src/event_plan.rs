//! The events that a study counts beside its costs, in passes that its executor allows.
//!
//! A study makes its plan before it measures, so that a missing event ends it at once. Counting comes
//! after timing, pass by pass. A study says only how one pass is counted: [`count_events`] for a
//! finished cost, [`count_contrasts`] for any schedule.
//!
//! [`count_events`]: crate::count_events
//! [`count_contrasts`]: crate::count_contrasts

use crate::result::answers::MachineAnswers;
use crate::result::counter_record::{CountedEvents, CounterRecord, EventCount};
use crate::result::quantity::Quantity;
use cyclescope_core::error::{Error, RunError, Unavailable};
use cyclescope_core::statistics::Interval;
use cyclescope_core::unit::Unit;
use cyclescope_events::{CounterRequest, EventCode, EventRefusal, NamedEvent};
use cyclescope_exec::Executor;
use serde::{Deserialize, Serialize};

/// Events that are counted at the same time, by their index in the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventPass(Vec<usize>);

impl EventPass {
    /// The indices.
    pub fn events(&self) -> &[usize] {
        &self.0
    }
}

/// Distributes events to as few passes as an executor allows, found by trying. Events of the kernel
/// come last, because they are read in another way.
///
/// # Errors
///
/// If the executor does not count one of them. The refusal has its name.
pub fn plan_event_passes(executor: &dyn Executor, events: &[NamedEvent]) -> Result<Vec<EventPass>, EventRefusal> {
    distribute_events(&|codes| executor.count_fitting(codes), events)
}

/// Says how many of these events, from the first one, count at the same time.
type CountFitting<'a> = dyn Fn(&[EventCode]) -> Result<usize, EventRefusal> + 'a;

fn distribute_events(count_fitting: &CountFitting, events: &[NamedEvent]) -> Result<Vec<EventPass>, EventRefusal> {
    let mut waiting: Vec<usize> = (0..events.len()).collect();
    waiting.sort_by_key(|event| events[*event].code.is_software());
    let mut passes = Vec::new();
    while let Some(first) = waiting.first() {
        let codes: Vec<EventCode> = waiting.iter().map(|event| events[*event].code).collect();
        let fitting = count_fitting(&codes).map_err(|refusal| refusal.of_event(&events[*first].name))?;
        passes.push(EventPass(waiting.drain(..fitting.clamp(1, codes.len())).collect()));
    }
    Ok(passes)
}

/// Events to count, and their passes.
#[derive(Debug, Clone, PartialEq)]
pub struct EventPlan {
    request: CounterRequest,
    events: Vec<NamedEvent>,
    passes: Vec<EventPass>,
    /// The event of core cycles, which is compared with the ruler.
    cycles: Option<usize>,
}

/// The count of each event of a pass, for each subject.
pub type SubjectCounts = Vec<Vec<Interval>>;

impl EventPlan {
    /// Plans the passes. Core cycles are counted too, where the executor counts them.
    ///
    /// # Errors
    ///
    /// If the executor does not count one of the events.
    pub fn new(
        request: &CounterRequest,
        executor: &dyn Executor,
        answers: &MachineAnswers,
    ) -> Result<EventPlan, Error> {
        EventPlan::by_trying(request, &|codes| executor.count_fitting(codes), answers)
    }

    /// Plans the passes of a bench that says which events count at the same time.
    ///
    /// # Errors
    ///
    /// If it does not count one of the events.
    pub fn by_trying(
        request: &CounterRequest,
        count_fitting: &CountFitting,
        answers: &MachineAnswers,
    ) -> Result<EventPlan, Error> {
        let core_cycles = NamedEvent { name: "cycles".to_string(), code: EventCode::core_cycles() };
        let known = request.events.iter().position(|event| event.code == core_cycles.code);
        let all_events = |counts_cycles: bool| {
            let more = (counts_cycles && known.is_none()).then(|| core_cycles.clone());
            request.events.iter().cloned().chain(more).collect::<Vec<NamedEvent>>()
        };
        type Planned = (bool, Result<Vec<EventPass>, EventRefusal>);
        let ask = || {
            let counts_cycles = known.is_some() || count_fitting(&[core_cycles.code]).is_ok();
            Ok::<Planned, RunError>((counts_cycles, distribute_events(count_fitting, &all_events(counts_cycles))))
        };
        let (counts_cycles, passes) = answers.ask_machine(ask)?;
        let (events, passes) = (all_events(counts_cycles), passes.map_err(Unavailable::from)?);
        let mut planned: Vec<usize> = passes.iter().flat_map(EventPass::events).copied().collect();
        planned.sort_unstable();
        if !planned.into_iter().eq(0..events.len()) {
            return Err(answers.damage_error("its passes are not those of its events").into());
        }
        let cycles = known.or(counts_cycles.then(|| events.len() - 1));
        Ok(EventPlan { request: request.clone(), events, passes, cycles })
    }

    /// Counts all events of this number of subjects. `count_pass` counts the events of a pass, and
    /// returns the count of each event for each subject. A pass that loses its counters leaves the
    /// other passes.
    ///
    /// # Errors
    ///
    /// Other errors of `count_pass`.
    pub fn count(
        &self,
        subjects: usize,
        count_pass: &mut dyn FnMut(&[EventCode]) -> Result<SubjectCounts, RunError>,
    ) -> Result<Vec<CountedEvents>, RunError> {
        let none = EventCount { pass: 0, count: Err(String::new()) };
        let mut counts = vec![vec![none; self.events.len()]; subjects];
        for (number, pass) in self.passes.iter().enumerate() {
            let codes: Vec<EventCode> = pass.events().iter().map(|event| self.events[*event].code).collect();
            let counted = match count_pass(&codes) {
                Err(RunError::Unavailable(refused)) => Err(refused.why),
                counted => Ok(counted?),
            };
            for (subject, counts) in counts.iter_mut().enumerate() {
                for (place, event) in pass.events().iter().enumerate() {
                    let count = counted.as_ref().map(|counted| counted[subject][place]).map_err(String::clone);
                    counts[*event] = EventCount { pass: number + 1, count };
                }
            }
        }
        Ok(counts.iter().map(|counts| self.build_columns(counts)).collect())
    }

    /// The columns of a subject that can't be counted, for this reason.
    pub fn lose_counts(&self, why: &str) -> CountedEvents {
        let lost = EventCount { pass: 0, count: Err(why.to_string()) };
        CountedEvents { passes: 0, ..self.build_columns(&vec![lost; self.events.len()]) }
    }

    fn build_columns(&self, counts: &[EventCount]) -> CountedEvents {
        let columns = self.request.columns.iter();
        let cycles = self.cycles.and_then(|event| counts[event].count.clone().ok());
        CountedEvents {
            counters: columns.map(|(name, column)| CounterRecord::from_counts(name, column, counts)).collect(),
            passes: self.passes.len(),
            cycles: cycles.map(|cycles| Quantity::new(cycles, Unit::CoreCycles)),
        }
    }
}
