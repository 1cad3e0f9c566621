//! The main path: a snippet, programs, samples, an estimate, until the interval is narrow enough.
//!
//! The unit u is grown until the cost is proportional to the number of copies, the warm-up until the cost has
//! stopped moving; then layouts are added until the interval that was asked for is reached or the budget is
//! spent.

mod acquisition;
mod adapt;
pub mod contrast;
pub mod estimate;
mod layouts;
pub mod modes;
mod plan;
mod range;
pub mod rounds;
pub mod schedule;
mod session;

pub use acquisition::{Acquisition, Measurement};
pub use plan::{Plan, Precision};
pub(crate) use range::CODE_MOST;

use crate::error::{BadBatch, RunError};
use crate::executor::Executor;
use crate::snippet::Snippet;
use session::Session;

/// Bytes of the arena that the ruler, the clock readings and the spaces between programs may take.
const ARENA_RESERVE: usize = 64 << 10;

/// How many copies of a snippet the shortest body can hold: three bodies of u, 2u and 4u stand in the arena.
fn most_copies(arena_len: usize, snippet: &Snippet) -> usize {
    let room = arena_len.saturating_sub(ARENA_RESERVE + 3 * snippet.init().len());
    room / (7 * snippet.code().len().max(1))
}

/// Fails where the bodies that a plan asks for do not fit the memory for code.
pub(crate) fn require_room(plan: &Plan, snippet: &Snippet, arena_len: usize) -> Result<(), RunError> {
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
    Session::new(executor, snippet, plan).run()
}

/// The latency of `imul` in core cycles: the plan's, or found by measuring a NOP.
pub fn imul_latency(executor: &mut dyn Executor, plan: &Plan) -> Result<f64, RunError> {
    match plan.imul_latency {
        Some(latency) => Ok(latency),
        None => {
            let nop = Snippet::new(vec![0x90], Vec::new(), "nop");
            Ok(measure(executor, &nop, plan)?.acquisition.shape.imul_latency)
        }
    }
}
