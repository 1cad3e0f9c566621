//! All tests.

use super::environment;
use super::execution::{
    bypass_delay, copies_in_flight, dependency_breaking, eliminated_instructions, macro_fusion, mixed_throughput,
    move_elimination, partial_registers, rename_rate, resource_sharing, slow_operands, special_numbers, stack_engine,
    subnormals, subnormals_x87, taylor, upper_halves, wake_up,
};
use super::front_end::{
    branch_rate, branch_targets, call_targets, code_tlb, conditional_targets, decode_double, decode_prefix,
    decode_rate, direction_predictor, dispatch_rate, first_decode, indirect_history, indirect_targets,
    instruction_cache, length_changing_prefix, long_constants, loop_buffer, loop_rate, misprediction, predictor_reach,
    retire_rate, return_stack, uop_cache, uop_cache_ways,
};
use super::memory::{
    bandwidth, cache_banks, cache_line, copy_methods, copy_rate, core_to_core, data_caches, data_caches_by_page,
    data_caches_huge, data_tlb, daxpy, disambiguation, failed_forwarding, false_dependence, false_sharing,
    forwarding_map, huge_pages, huge_tlb, l1d_ways, l2_ways, load_latency, load_rate, memory_renaming,
    misses_in_flight, split_access, store_forwarding, store_rate, strided_load, walks_in_flight, write_combining,
};
use super::spec::TestSpec;
use super::window::{
    branches_in_flight, flags, integer_registers, integer_scheduler, load_scheduler, loads_in_flight,
    loads_uncompleted, mask_registers, mmx_registers, reorder_buffer, shared_schedulers, stores_in_flight,
    taken_branches, vector_registers, vector_scheduler, x87_registers,
};

/// The tests, in the order of the datasheet. One that others name comes before them.
pub(super) const TESTS: &[&TestSpec] = &[
    &instruction_cache::TEST,
    &branch_targets::TEST,
    &branch_targets::EACH_32_BYTES,
    &conditional_targets::TEST,
    &conditional_targets::EACH_32_BYTES,
    &call_targets::TEST,
    &indirect_targets::TEST,
    &indirect_history::TEST,
    &return_stack::TEST,
    &direction_predictor::TEST,
    &predictor_reach::TEST,
    &misprediction::TEST,
    &misprediction::DECODED,
    &uop_cache::TEST,
    &uop_cache_ways::TEST,
    &long_constants::TEST,
    &code_tlb::TEST,
    &decode_rate::TEST,
    &decode_double::TEST,
    &length_changing_prefix::TEST,
    &decode_prefix::TEST,
    &first_decode::TEST,
    &loop_rate::TEST,
    &loop_buffer::TEST,
    &dispatch_rate::TEST,
    &branch_rate::TEST,
    &reorder_buffer::TEST,
    &retire_rate::TEST,
    &integer_registers::TEST,
    &flags::TEST,
    &vector_registers::XMM,
    &vector_registers::YMM,
    &vector_registers::ZMM,
    &mask_registers::TEST,
    &mmx_registers::TEST,
    &x87_registers::TEST,
    &loads_in_flight::TEST,
    &stores_in_flight::TEST,
    &stores_in_flight::YMM,
    &stores_in_flight::ZMM,
    &integer_scheduler::TEST,
    &load_scheduler::TEST,
    &loads_uncompleted::TEST,
    &vector_scheduler::TEST,
    &shared_schedulers::TEST,
    &branches_in_flight::TEST,
    &taken_branches::TEST,
    &rename_rate::TEST,
    &eliminated_instructions::TEST,
    &move_elimination::TEST,
    &copies_in_flight::TEST,
    &dependency_breaking::TEST,
    &partial_registers::TEST,
    &stack_engine::TEST,
    &macro_fusion::TEST,
    &bypass_delay::TEST,
    &mixed_throughput::TEST,
    &subnormals::TEST,
    &subnormals_x87::TEST,
    &special_numbers::TEST,
    &slow_operands::TEST,
    &upper_halves::TEST,
    &wake_up::TEST,
    &taylor::TEST,
    &data_caches::TEST,
    &data_caches_by_page::TEST,
    &data_caches_huge::TEST,
    &l1d_ways::TEST,
    &l2_ways::TEST,
    &cache_line::TEST,
    &data_tlb::TEST,
    &huge_tlb::TEST,
    &huge_pages::TEST,
    &strided_load::TEST,
    &write_combining::TEST,
    &misses_in_flight::TEST,
    &walks_in_flight::TEST,
    &load_latency::TEST,
    &load_rate::TEST,
    &cache_banks::TEST,
    &store_rate::TEST,
    &copy_rate::TEST,
    &store_forwarding::TEST,
    &failed_forwarding::TEST,
    &forwarding_map::TEST,
    &forwarding_map::AT_ENDS,
    &memory_renaming::TEST,
    &memory_renaming::REACH,
    &false_dependence::TEST,
    &disambiguation::TEST,
    &split_access::TEST,
    &daxpy::TEST,
    &bandwidth::READ,
    &bandwidth::WRITE,
    &bandwidth::COPY,
    &bandwidth::WRITE_PAST,
    &copy_methods::TEST,
    &resource_sharing::TEST,
    &core_to_core::TEST,
    &false_sharing::TEST,
    &environment::TEST,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Experiment;

    #[test]
    fn tests_name_structures_that_come_before_them() {
        for (number, test) in TESTS.iter().enumerate() {
            assert!(TESTS[..number].iter().all(|other| other.name != test.name), "{}", test.name);
            for other in test.required_tests() {
                assert!(TESTS[..number].iter().any(|test| test.name == other), "{}: {other}", test.name);
            }
            let programs = match &test.experiment {
                Experiment::Overlap(window) => window.fillers.len(),
                Experiment::Levels(walks) => walks.programs.len(),
                Experiment::Environment { reads } => reads.len(),
                Experiment::Sharing(sharing) => {
                    sharing.rows.iter().map(|row| row.programs.len()).min().unwrap_or_default()
                }
                Experiment::Exchanges(exchanges) => exchanges.programs.len(),
                Experiment::CostMap(map) => map.rows.iter().map(|row| row.programs.len()).min().unwrap_or_default(),
                Experiment::Mixture(mixture) => mixture.classes.len(),
                Experiment::Batches(batches) => batches.programs.len(),
                Experiment::Queues(queues) => queues.classes.len(),
                Experiment::Rates(_) | Experiment::Contrast(_) => {
                    test.rows().iter().map(|row| row.variants.len()).min().unwrap_or_default()
                }
            };
            assert!(programs >= 2 && test.about.is_ascii(), "{}", test.name);
        }
    }
}
