//! What the core can hold between two chains.

pub(super) mod branches_in_flight;
pub(super) mod flags;
pub(super) mod integer_registers;
pub(super) mod integer_scheduler;
pub(super) mod load_scheduler;
pub(super) mod loads_in_flight;
pub(super) mod loads_uncompleted;
pub(super) mod mask_registers;
pub(super) mod mmx_registers;
pub(super) mod reorder_buffer;
pub(super) mod shared_schedulers;
pub(super) mod stores_in_flight;
pub(super) mod taken_branches;
pub(super) mod vector_registers;
pub(super) mod vector_scheduler;
pub(super) mod x87_registers;
