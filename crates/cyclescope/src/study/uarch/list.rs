//! All tests.

use super::front_end::{branch_targets, direction_predictor, instruction_cache, misprediction};
use super::memory::{data_caches, data_tlb};
use super::test::Test;
use super::window::{
    branches, integer_registers, integer_scheduler, load_scheduler, loads, masks, reorder_buffer, stores,
    vector_registers, vector_scheduler,
};

/// The tests, in the order of the datasheet. One that others name comes before them.
pub(super) const TESTS: &[&Test] = &[
    &branch_targets::TEST,
    &direction_predictor::TEST,
    &misprediction::TEST,
    &instruction_cache::TEST,
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
    &data_caches::TEST,
    &data_tlb::TEST,
];
