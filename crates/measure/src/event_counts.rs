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
use super::schedule::Schedule;
use crate::contrast::Contrast;
use cyclescope_core::error::RunError;
use cyclescope_core::statistics::{self, Interval};
use cyclescope_events::EventCode;
use cyclescope_exec::Executor;

/// Layouts of each pass.
pub const COUNTED_LAYOUTS: usize = 8;

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
    for _ in 0..COUNTED_LAYOUTS {
        for (event, layout) in session.count_layout(&mut acquisition, codes)?.into_iter().enumerate() {
            layouts[event].push(layout);
        }
    }
    let count = |layouts: &Vec<LayoutData>, cost| {
        let counts: Vec<f64> = layouts.iter().map(|layout| layout.raw_cost(&acquisition.shape, cost)).collect();
        estimate_count(&counts, plan.confidence)
    };
    let costs = question.costs().iter();
    Ok(costs.map(|cost| layouts.iter().map(|layouts| count(layouts, cost)).collect()).collect())
}

/// Counts the events of one pass in the layouts of a schedule. `contrasts` gives the contrasts of the
/// layout with a number, as many for each layout. Returns the count of each event for each of them.
///
/// # Errors
///
/// If the code fails, or the events lose their counters.
pub fn count_contrasts(
    executor: &mut dyn Executor,
    schedule: &Schedule,
    contrasts: &dyn Fn(usize) -> Vec<Contrast>,
    confidence: f64,
    codes: &[EventCode],
) -> Result<Vec<Vec<Interval>>, RunError> {
    Ok(estimate_contrasts(&schedule.count(executor, codes)?, contrasts, confidence))
}

/// The count of each event for each contrast, from the mean counts of each event's layouts, by call.
pub fn estimate_contrasts(
    counted: &[Vec<Vec<f64>>],
    contrasts: &dyn Fn(usize) -> Vec<Contrast>,
    confidence: f64,
) -> Vec<Vec<Interval>> {
    let layouts = counted.first().map_or(0, Vec::len);
    let by_layout: Vec<Vec<Contrast>> = (0..layouts).map(contrasts).collect();
    let count = |contrast: usize, means: &[Vec<f64>]| {
        let counts: Vec<f64> =
            by_layout.iter().zip(means).map(|(contrasts, means)| contrasts[contrast].evaluate(means)).collect();
        estimate_count(&counts, confidence)
    };
    let contrasts = 0..by_layout.first().map_or(0, Vec::len);
    contrasts.map(|contrast| counted.iter().map(|means| count(contrast, means)).collect()).collect()
}

/// The count of a layout, and how far layouts differ.
fn estimate_count(layouts: &[f64], confidence: f64) -> Interval {
    statistics::t_interval(layouts, confidence)
        .unwrap_or_else(|| Interval::with_margin(statistics::mean(layouts), f64::INFINITY))
}
