//! Builds the machine code that times a snippet: prologue, clock, copies of the snippet, clock,
//! epilogue.
//!
//! A program is a function `fn()`. One call makes one sample: two raw readings in the
//! [`ProgramContext`](crate::context::ProgramContext) next to it. Only the distance to its context
//! depends on where it runs, or its context's address in 32-bit code; [`Program::relocate_into`]
//! fills that in.
//!
//! A program of 32-bit code is called from 64-bit code, by a far call with a 32-bit return address.
//! Its caller keeps the registers that functions preserve.

mod built_program;
pub mod chains;
mod cold_start;
mod counted_code;
mod entry_state;
mod function_code;
mod function_counters;
mod function_probe;
mod loop_plan;
pub mod memory;
mod placement_policy;
mod program_frame;
mod program_recipe;
mod state_probe;
mod watch_point;

#[cfg(test)]
mod tests;

pub use built_program::Program;
pub use cold_start::ColdStart;
pub use entry_state::{EntryState, VectorSetup};
pub use function_code::{FunctionCode, INSTRUCTIONS_MOST, MemoryReader};
pub use function_counters::{DivisionCount, FunctionCounters};
pub use function_probe::{COUNTERS_BYTES, CountComparison, CountedCall, FunctionCall};
pub(crate) use loop_plan::is_always_taken;
pub use loop_plan::{LoopObstacle, LoopPlan};
pub use placement_policy::PlacementPolicy;
pub use program_frame::{ProgramFrame, append_nops};
pub use program_recipe::ProgramRecipe;
pub use state_probe::ENDLESS_COPY;
pub use watch_point::{WatchPoint, WatchedSnippet, WatchedState};
