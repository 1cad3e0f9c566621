//! Measures the cost of a snippet: builds programs, takes samples, and estimates the cost until its
//! interval is narrow enough.
//!
//! The unit u grows until the cost is proportional to the number of copies. The warm-up grows until
//! the cost stops changing. Then layouts are added until the requested interval is reached or the
//! budget is spent.

#![warn(unreachable_pub)]

mod acquisition;
mod adaptive_loop;
mod body_length;
pub mod contrast;
mod cost_judgement;
pub mod estimate;
mod event_counts;
mod event_plan;
mod layouts;
mod load_cost;
mod measurement_progress;
mod measurement_session;
pub mod modes;
pub mod placement;
mod plan;
mod plan_limits;
mod question;
mod raw_readings;
pub mod result;
pub mod rounds;
pub mod ruler;
pub mod schedule;
pub mod sibling;
pub mod steadiness;
pub mod study;
mod training;

pub use acquisition::{Acquisition, CostMeasurement};
pub use event_counts::{COUNTED_LAYOUTS, count_contrasts, count_events, estimate_contrasts};
pub use event_plan::{EventPass, EventPlan, SubjectCounts, plan_event_passes};
pub use load_cost::{build_load_ruler, read_load_cost};
pub use measurement_progress::MeasurementProgress;
pub use plan::{COPIES_PRECISION, LengthenBy, Plan, Precision};
pub use plan_limits::CODE_MOST;
pub use question::{CostFormula, CostQuestion};
pub use raw_readings::take_raw_readings;
pub use raw_readings::{RawReading, RawReadings, ReadingKind};

use cyclescope_code::asm::CodeMode;
use cyclescope_code::snippet::Snippet;
use cyclescope_core::error::{BadBatch, RunError};
use cyclescope_exec::Executor;
use measurement_session::MeasurementSession;

/// Bytes of the arena reserved for the ruler, the clock readings and the gaps between programs.
const ARENA_RESERVE: usize = 64 << 10;

/// Largest number of copies in the shortest body. The arena holds bodies of u, 2u and 4u copies.
fn most_copies(arena_len: usize, snippet: &Snippet) -> usize {
    let room = arena_len.saturating_sub(ARENA_RESERVE + 3 * snippet.init().len());
    room / (7 * snippet.code().len().max(1))
}

/// Fails if the bodies that a plan requests do not fit the memory for code.
pub fn require_room(plan: &Plan, snippet: &Snippet, arena_len: usize) -> Result<(), RunError> {
    let (copies, most) = (plan.unit.unwrap_or(1), most_copies(arena_len, snippet));
    if copies <= most {
        return Ok(());
    }
    Err(RunError::BadBatch(BadBatch {
        part: "snippet".to_string(),
        what: format!("{copies} copies of it do not fit the memory for code"),
        expected: format!("at most {most} copies"),
    }))
}

/// Measures a snippet.
pub fn measure_cost(executor: &mut dyn Executor, snippet: &Snippet, plan: &Plan) -> Result<CostMeasurement, RunError> {
    let mut costs = measure_question(executor, &CostQuestion::from_snippet(snippet.clone()), plan)?;
    Ok(costs.remove(0))
}

/// Measures the costs of a question in the same rounds. Returns one measurement for each cost, in
/// order.
pub fn measure_question(
    executor: &mut dyn Executor,
    question: &CostQuestion,
    plan: &Plan,
) -> Result<Vec<CostMeasurement>, RunError> {
    measure_with_progress(executor, question, plan, &mut |_| ())
}

/// Like [`measure_question`], and reports progress before each layout.
pub fn measure_with_progress(
    executor: &mut dyn Executor,
    question: &CostQuestion,
    plan: &Plan,
    watch: &mut dyn FnMut(MeasurementProgress),
) -> Result<Vec<CostMeasurement>, RunError> {
    MeasurementSession::new(executor, question, plan, watch)?.run()
}

/// Latency of 64-bit `imul` in core cycles: from the plan, or measured with a NOP as the snippet.
pub fn resolve_imul_latency(executor: &mut dyn Executor, plan: &Plan) -> Result<f64, RunError> {
    resolve_ruler_latency(executor, plan, CodeMode::default())
}

/// Latency in core cycles of the `imul` that is the ruler of code of a mode.
pub fn resolve_ruler_latency(executor: &mut dyn Executor, plan: &Plan, mode: CodeMode) -> Result<f64, RunError> {
    match measurement_session::known_latency(plan, mode) {
        Some(latency) => Ok(latency),
        None => {
            let nop = Snippet::new(vec![0x90], Vec::new(), "nop").with_mode(mode);
            Ok(measure_cost(executor, &nop, plan)?.acquisition.shape.imul_latency)
        }
    }
}
