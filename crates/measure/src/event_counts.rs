//! Counts of events per copy, by the same programs, layouts and contrasts as the cost.
//!
//! A finished measurement knows how long its bodies have to be. Its layouts run again, with events
//! counted instead of time, so that counting changes no cost. Events that do not fit together take
//! turns: each pass has layouts of its own. The slope between u and 4u copies is a layout's count
//! per copy; the result is a t-interval over layouts.
//!
//! Limits: disturbed rounds are not dropped, because an interrupt adds nothing to events of user code.

use super::acquisition::Acquisition;
use super::estimate::LayoutData;
use super::measurement_session::MeasurementSession;
use super::plan::Plan;
use super::question::CostQuestion;
use cyclescope_core::error::RunError;
use cyclescope_core::statistics::{self, Interval};
use cyclescope_events::{EventCode, EventRefusal, NamedEvent};
use cyclescope_exec::Executor;
use serde::{Deserialize, Serialize};

/// Layouts of each pass.
const LAYOUTS: usize = 8;

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
    let mut waiting: Vec<usize> = (0..events.len()).collect();
    waiting.sort_by_key(|event| events[*event].code.is_software());
    let mut passes = Vec::new();
    while let Some(first) = waiting.first() {
        let codes: Vec<EventCode> = waiting.iter().map(|event| events[*event].code).collect();
        let fitting = executor.count_fitting(&codes).map_err(|refusal| refusal.of_event(&events[*first].name))?;
        passes.push(EventPass(waiting.drain(..fitting.clamp(1, codes.len())).collect()));
    }
    Ok(passes)
}

/// Counts the events of one pass for a finished measurement. Returns a count per copy for each event,
/// for each cost of the question.
///
/// # Errors
///
/// If the code fails, or the events lose their counters.
pub fn count_events(
    executor: &mut dyn Executor,
    question: &CostQuestion,
    plan: &Plan,
    acquisition: &Acquisition,
    codes: &[EventCode],
) -> Result<Vec<Vec<Interval>>, RunError> {
    let watch = &mut |_| ();
    let mut session = MeasurementSession::new(executor, question, plan, watch)?;
    let mut acquisition = Acquisition { layouts: Vec::new(), ..acquisition.clone() };
    let mut layouts: Vec<Vec<LayoutData>> = vec![Vec::new(); codes.len()];
    for _ in 0..LAYOUTS {
        for (event, layout) in session.count_layout(&mut acquisition, codes)?.into_iter().enumerate() {
            layouts[event].push(layout);
        }
    }
    let count = |layouts: &Vec<LayoutData>, cost| {
        let counts: Vec<f64> = layouts.iter().map(|layout| layout.raw_cost(&acquisition.shape, cost)).collect();
        statistics::t_interval(&counts, plan.confidence)
            .unwrap_or_else(|| Interval::with_margin(statistics::mean(&counts), f64::INFINITY))
    };
    let costs = question.costs().iter();
    Ok(costs.map(|cost| layouts.iter().map(|layouts| count(layouts, cost)).collect()).collect())
}
