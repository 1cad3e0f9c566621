//! All tests.

use super::spec::TestSpec;
use super::{environment, execution, front_end, memory, window};

/// The topics, in the order of the datasheet: a test is behind those whose results it needs.
const TOPICS: &[&[TestSpec]] = &[
    front_end::instruction_cache::TESTS,
    front_end::branch_targets::TESTS,
    front_end::conditional_targets::TESTS,
    front_end::call_targets::TESTS,
    front_end::indirect_targets::TESTS,
    front_end::indirect_history::TESTS,
    front_end::return_stack::TESTS,
    front_end::direction_predictor::TESTS,
    front_end::predictor_reach::TESTS,
    front_end::misprediction::TESTS,
    front_end::uop_cache::TESTS,
    front_end::uop_cache_ways::TESTS,
    front_end::long_constants::TESTS,
    front_end::code_tlb::TESTS,
    front_end::decode_rate::TESTS,
    front_end::decode_double::TESTS,
    front_end::length_changing_prefix::TESTS,
    front_end::decode_prefix::TESTS,
    front_end::first_decode::TESTS,
    front_end::loop_rate::TESTS,
    front_end::loop_buffer::TESTS,
    front_end::dispatch_rate::TESTS,
    front_end::branch_rate::TESTS,
    window::reorder_buffer::TESTS,
    front_end::retire_rate::TESTS,
    window::integer_registers::TESTS,
    window::flags::TESTS,
    window::vector_registers::TESTS,
    window::mask_registers::TESTS,
    window::mmx_registers::TESTS,
    window::x87_registers::TESTS,
    window::loads_in_flight::TESTS,
    window::stores_in_flight::TESTS,
    window::integer_scheduler::TESTS,
    window::load_scheduler::TESTS,
    window::loads_uncompleted::TESTS,
    window::vector_scheduler::TESTS,
    window::shared_schedulers::TESTS,
    window::branches_in_flight::TESTS,
    window::taken_branches::TESTS,
    execution::rename_rate::TESTS,
    execution::eliminated_instructions::TESTS,
    execution::move_elimination::TESTS,
    execution::copies_in_flight::TESTS,
    execution::dependency_breaking::TESTS,
    execution::partial_registers::TESTS,
    execution::stack_engine::TESTS,
    execution::macro_fusion::TESTS,
    execution::bypass_delay::TESTS,
    execution::mixed_throughput::TESTS,
    execution::slow_numbers::TESTS,
    execution::upper_halves::TESTS,
    execution::wake_up::TESTS,
    execution::taylor::TESTS,
    memory::data_caches::TESTS,
    memory::data_caches_by_page::TESTS,
    memory::data_caches_huge::TESTS,
    memory::l1d_ways::TESTS,
    memory::l2_ways::TESTS,
    memory::cache_line::TESTS,
    memory::data_tlb::TESTS,
    memory::huge_tlb::TESTS,
    memory::huge_pages::TESTS,
    memory::strided_load::TESTS,
    memory::write_combining::TESTS,
    memory::misses_in_flight::TESTS,
    memory::walks_in_flight::TESTS,
    memory::load_latency::TESTS,
    memory::load_rate::TESTS,
    memory::cache_banks::TESTS,
    memory::store_rate::TESTS,
    memory::copy_rate::TESTS,
    memory::store_forwarding::TESTS,
    memory::failed_forwarding::TESTS,
    memory::forwarding_map::TESTS,
    memory::memory_renaming::TESTS,
    memory::false_dependence::TESTS,
    memory::disambiguation::TESTS,
    memory::split_access::TESTS,
    memory::daxpy::TESTS,
    memory::bandwidth::TESTS,
    memory::copy_methods::TESTS,
    execution::resource_sharing::TESTS,
    memory::core_to_core::TESTS,
    memory::false_sharing::TESTS,
    environment::TESTS,
];

const COUNT: usize = {
    let (mut count, mut topic) = (0, 0);
    while topic < TOPICS.len() {
        count += TOPICS[topic].len();
        topic += 1;
    }
    count
};

/// The tests of all topics.
pub(super) const TESTS: &[&TestSpec; COUNT] = &{
    let mut all = [&TOPICS[0][0]; COUNT];
    let (mut number, mut topic, mut place) = (0, 0, 0);
    while number < COUNT {
        if place < TOPICS[topic].len() {
            all[number] = &TOPICS[topic][place];
            (number, place) = (number + 1, place + 1);
        } else {
            (topic, place) = (topic + 1, 0);
        }
    }
    all
};

/// The test with this name.
#[cfg(test)]
pub(super) fn find_test(name: &str) -> &'static TestSpec {
    TESTS.iter().find(|test| test.name == name).expect("there is a test with this name")
}

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
