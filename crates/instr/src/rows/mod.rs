//! Rows: built from readings, explained, written and read back.

mod best_program;
mod chain_variations;
pub(crate) mod constant_variants;
pub mod dispatch_slots;
pub mod explanation;
pub mod instr_row;
pub mod instr_table;
mod latency;
mod memory_links;
pub(crate) mod operand_extremes;
pub mod program_trial;
mod regimes;
mod renamed_memory;
pub(crate) mod row_analysis;
mod row_filling;
mod slot_count;
mod throughput;
