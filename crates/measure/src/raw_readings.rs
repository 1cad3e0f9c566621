//! The readings of one layout in the order in which they were taken, without warm-up.
//!
//! A measurement leaves out the first runs. Here they are visible: the effect of caches, predictors
//! and buffers on the first run, how the time settles, the cost of an interrupt. A duration
//! contains the overhead of its pair of readings.

use super::acquisition::Acquisition;
use super::estimate::call;
use super::measurement_session::MeasurementSession;
use super::plan::Plan;
use super::question::CostQuestion;
use cyclescope_core::error::RunError;
use cyclescope_core::unit::Unit;
use cyclescope_exec::Executor;
use serde::Serialize;

/// The program that a reading timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadingKind {
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
pub struct RawReading {
    /// Its round, from 1.
    pub round: usize,
    /// Whether the program ran for the first time at its address.
    pub first: bool,
    /// The timed program.
    pub what: ReadingKind,
    /// Copies of the snippet; null for the ruler.
    pub copies: Option<usize>,
    /// Second reading minus first, in raw clock units; null if the clock ran backwards.
    pub value: Option<u64>,
}

/// The readings of one layout.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RawReadings {
    /// Unit of the readings.
    pub unit: Unit,
    /// How often a loop runs the copies of a reading; null without a loop.
    #[serde(rename = "loop")]
    pub loop_count: Option<u64>,
    /// The readings, in the order in which they were taken.
    pub readings: Vec<RawReading>,
}

/// Runs one more layout of a finished measurement. Returns the readings of the ruler and of the
/// first snippet.
pub fn take_raw_readings(
    executor: &mut dyn Executor,
    question: &CostQuestion,
    plan: &Plan,
    acquisition: &Acquisition,
) -> Result<RawReadings, RunError> {
    let watch = &mut |_| ();
    let mut session = MeasurementSession::new(executor, question, plan, watch)?;
    let placements = session.placements_per_layout(acquisition.rounds);
    let rounds = if placements > 1 { 1 } else { acquisition.rounds };
    let (schedule, lengths) = session.build_schedule(acquisition, placements, 0, rounds)?;
    let copies = lengths.0[0];
    let samples = schedule.run(session.executor)?;
    let layouts = schedule.orders().zip(schedule.split_by_layout(&samples));
    let calls = layouts.flat_map(|(order, samples)| order.iter().cycle().zip(samples));
    let mut readings = Vec::new();
    for (number, (column, sample)) in calls.enumerate() {
        let round = number / session.calls_per_round() + 1;
        let Some((what, copies)) = classify_column(*column, copies) else { continue };
        let value = sample.end.checked_sub(sample.start);
        readings.push(RawReading { round, first: round == 1 || placements > 1, what, copies, value });
    }
    let loop_count = Some(acquisition.shape.loop_count).filter(|count| *count > 1);
    Ok(RawReadings { unit: plan.clock.counts, loop_count, readings })
}

/// The kind of a column; `None` for a further snippet.
fn classify_column(column: usize, copies: [usize; 3]) -> Option<(ReadingKind, Option<usize>)> {
    let length = call::snippet_calls(0).iter().position(|own| *own == column);
    if let Some(length) = length {
        return Some((ReadingKind::Copies, Some(copies[length])));
    }
    let ruler = match column {
        call::IMUL_SHORT => ReadingKind::ImulShort,
        call::IMUL_LONG => ReadingKind::ImulLong,
        call::ADD_SHORT => ReadingKind::AddShort,
        call::ADD_LONG => ReadingKind::AddLong,
        call::SENTINEL => ReadingKind::Width,
        _ => return None,
    };
    Some((ruler, None))
}
