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
pub mod rounds;
pub mod schedule;
mod session;

pub use acquisition::{Acquisition, Measurement};
pub use plan::{Plan, Precision};

use crate::error::RunError;
use crate::executor::Executor;
use crate::snippet::Snippet;
use session::Session;

/// Bytes of the arena that the ruler, the clock readings and the spaces between programs may take.
const ARENA_RESERVE: usize = 64 << 10;

/// How many copies of a snippet the shortest body can hold: three bodies of u, 2u and 4u stand in the arena.
pub fn most_copies(arena_len: usize, snippet: &Snippet) -> usize {
    let room = arena_len.saturating_sub(ARENA_RESERVE + 3 * snippet.init().len());
    room / (7 * snippet.code().len().max(1))
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
