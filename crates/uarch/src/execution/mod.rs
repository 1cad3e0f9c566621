//! Renaming, and what executes.

pub(super) mod bypass_delay;
pub(super) mod copies_in_flight;
pub(super) mod dependency_breaking;
pub(super) mod eliminated_instructions;
pub(super) mod macro_fusion;
pub(super) mod mixed_throughput;
pub(super) mod move_elimination;
pub(super) mod partial_registers;
pub(super) mod rename_rate;
pub(super) mod resource_sharing;
pub(super) mod slow_numbers;
pub(super) mod stack_engine;
pub(super) mod taylor;
pub(super) mod upper_halves;
pub(super) mod wake_up;
