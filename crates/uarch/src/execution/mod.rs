//! Renaming and execution.

pub(super) mod bypass_delay;
pub(super) mod dependencies;
pub(super) mod macro_fusion;
pub(super) mod mixed_throughput;
pub(super) mod partial_registers;
pub(super) mod renaming;
pub(super) mod slow_numbers;
pub(super) mod stack_engine;
pub(super) mod taylor;
pub(super) mod vector_units;
