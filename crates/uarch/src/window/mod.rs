//! What the core can hold between two chains.

pub(super) mod branches;
pub(super) mod flags;
pub(super) mod integer_registers;
pub(super) mod integer_scheduler;
pub(super) mod load_scheduler;
pub(super) mod loads;
pub(super) mod loads_uncompleted;
pub(super) mod masks;
pub(super) mod mmx_registers;
pub(super) mod reorder_buffer;
pub(super) mod shared_schedulers;
pub(super) mod stores;
pub(super) mod taken_branches;
pub(super) mod vector_registers;
pub(super) mod vector_scheduler;
pub(super) mod x87_registers;
