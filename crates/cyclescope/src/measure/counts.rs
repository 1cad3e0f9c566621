//! The readings of one layout in the order in which they were taken, without untimed rounds before the first.
//!
//! The measurement itself leaves out the first runs. Here they are to be seen: what caches, predictors and buffers make of
//! the first run, how the time settles, what an interrupt adds. A duration contains the overhead of its pair of readings.

use super::acquisition::Acquisition;
use super::estimate::call;
use super::plan::Plan;
use super::session::Session;
use crate::error::RunError;
use crate::executor::Executor;
use crate::snippet::Snippet;
use crate::unit::Unit;
use serde::Serialize;

/// What a reading is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Counted {
    /// Copies of the snippet.
    Copies,
    /// The shorter chain of `imul`.
    ImulShort,
    /// The longer chain of `imul`.
    ImulLong,
    /// The shorter chain of `add`.
    AddShort,
    /// The longer chain of `add`.
    AddLong,
    /// Independent additions, which show a busy sibling.
    Width,
}

/// One reading.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Count {
    /// Its round, from 1.
    pub round: usize,
    /// Whether the program ran for the first time at its address.
    pub first: bool,
    /// What it is of.
    pub what: Counted,
    /// Copies of the snippet; null for the ruler.
    pub copies: Option<usize>,
    /// The reading after less the reading before, in raw units of the clock; null where it ran backwards.
    pub value: Option<u64>,
}

/// The readings of one layout.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Counts {
    /// Unit of the readings.
    pub unit: Unit,
    /// The readings, in the order in which they were taken.
    pub readings: Vec<Count>,
}

/// Runs one more layout of a finished measurement, and returns its readings.
pub(crate) fn counts(
    executor: &mut dyn Executor,
    snippet: &Snippet,
    plan: &Plan,
    acquisition: &Acquisition,
) -> Result<Counts, RunError> {
    let mut session = Session::new(executor, snippet, plan);
    let runs = session.runs_per_layout(plan.rounds);
    let rounds = if runs > 1 { 1 } else { plan.rounds };
    let (schedule, lengths) = session.schedule(acquisition, [1, runs], 0, rounds)?;
    let (copies, _) = lengths[0];
    let samples = schedule.run(session.executor)?;
    let layouts = schedule.batch().layouts.iter().zip(schedule.by_layout(&samples));
    let calls = layouts.flat_map(|(layout, samples)| layout.round.iter().cycle().zip(samples));
    let count = |(number, (called, sample)): (usize, (&crate::executor::Call, &crate::executor::Sample))| {
        let round = number / call::COUNT + 1;
        let (what, copies) = match called.place {
            call::ONE => (Counted::Copies, Some(copies[0])),
            call::TWO => (Counted::Copies, Some(copies[1])),
            call::FOUR => (Counted::Copies, Some(copies[2])),
            call::IMUL_SHORT => (Counted::ImulShort, None),
            call::IMUL_LONG => (Counted::ImulLong, None),
            call::ADD_SHORT => (Counted::AddShort, None),
            call::ADD_LONG => (Counted::AddLong, None),
            _ => (Counted::Width, None),
        };
        let value = sample.end.checked_sub(sample.start);
        Count { round, first: round == 1 || runs > 1, what, copies, value }
    };
    Ok(Counts { unit: plan.clock.counts, readings: calls.enumerate().map(count).collect() })
}
