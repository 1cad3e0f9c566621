//! The measurement of a snippet: builds programs, takes samples and estimates the cost until the interval is narrow
//! enough.
//!
//! The unit u is increased until the cost is proportional to the number of copies, the warm-up until the cost has
//! stopped changing; then layouts are added until the requested interval is reached or the budget is spent.

#![warn(unreachable_pub)]

mod acquisition;
mod adapt;
pub mod contrast;
mod counts;
pub mod estimate;
mod judgement;
mod layouts;
pub mod modes;
pub mod placement;
mod plan;
mod question;
mod range;
pub mod result;
pub mod rounds;
pub mod ruler;
pub mod schedule;
mod session;
pub mod sibling;
mod standing;
pub mod study;
mod training;

pub use acquisition::{Acquisition, Measurement};
pub use counts::counts;
pub use counts::{Count, Counted, Counts};
pub use plan::{Lengthen, Plan, Precision};
pub use question::Question;
pub use range::CODE_MOST;
pub use standing::Standing;

use cyclescope_code::snippet::Snippet;
use cyclescope_core::error::{BadBatch, RunError};
use cyclescope_exec::Executor;
use session::Session;

/// Bytes of the arena reserved for the ruler, the clock readings and the gaps between programs.
const ARENA_RESERVE: usize = 64 << 10;

/// Largest number of copies in the shortest body: the arena holds three bodies of u, 2u and 4u copies.
fn most_copies(arena_len: usize, snippet: &Snippet) -> usize {
    let room = arena_len.saturating_sub(ARENA_RESERVE + 3 * snippet.init().len());
    room / (7 * snippet.code().len().max(1))
}

/// Fails where the bodies that a plan asks for do not fit the memory for code.
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
pub fn measure(executor: &mut dyn Executor, snippet: &Snippet, plan: &Plan) -> Result<Measurement, RunError> {
    let mut costs = measure_all(executor, &Question::of(snippet.clone()), plan)?;
    Ok(costs.remove(0))
}

/// Measures the costs of a question, in the same rounds. The result has a measurement of each cost, in their order.
pub fn measure_all(
    executor: &mut dyn Executor,
    question: &Question,
    plan: &Plan,
) -> Result<Vec<Measurement>, RunError> {
    measure_watched(executor, question, plan, &mut |_| ())
}

/// [`measure_all`], which tells before each layout how far it has come.
pub fn measure_watched(
    executor: &mut dyn Executor,
    question: &Question,
    plan: &Plan,
    watch: &mut dyn FnMut(Standing),
) -> Result<Vec<Measurement>, RunError> {
    Session::new(executor, question, plan, watch).run()
}

/// The latency of `imul` in core cycles: the plan's, or measured with a NOP as the snippet.
pub fn imul_latency(executor: &mut dyn Executor, plan: &Plan) -> Result<f64, RunError> {
    match plan.imul_latency {
        Some(latency) => Ok(latency),
        None => {
            let nop = Snippet::new(vec![0x90], Vec::new(), "nop");
            Ok(measure(executor, &nop, plan)?.acquisition.shape.imul_latency)
        }
    }
}
