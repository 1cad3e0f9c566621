//! Structures that hold instructions between two chains.

pub(super) mod branches;
pub(super) mod loads_and_stores;
pub(super) mod registers;
pub(super) mod reorder_buffer;
pub(super) mod schedulers;
