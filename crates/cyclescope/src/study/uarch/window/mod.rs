//! What the core can hold between two chains.

mod branches;
mod integer_registers;
mod integer_scheduler;
mod load_scheduler;
mod loads;
mod masks;
mod reorder_buffer;
mod stores;
mod vector_registers;
mod vector_scheduler;

use super::test::Test;
pub(super) use reorder_buffer::NOP;

/// The tests, in the order of the datasheet.
pub(super) const TESTS: &[&Test] = &[
    &reorder_buffer::TEST,
    &integer_registers::TEST,
    &vector_registers::XMM,
    &vector_registers::YMM,
    &vector_registers::ZMM,
    &masks::TEST,
    &loads::TEST,
    &stores::TEST,
    &integer_scheduler::TEST,
    &load_scheduler::TEST,
    &vector_scheduler::TEST,
    &branches::TEST,
];
