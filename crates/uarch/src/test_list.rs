//! The list of all tests.

use super::spec::TestSpec;
use super::{environment, execution, front_end, memory, window};

/// The topics, in the order of the datasheet. A test comes after the tests whose results it needs.
const TOPICS: &[&[TestSpec]] = &[
    front_end::instruction_cache::TESTS,
    front_end::jump_targets::TESTS,
    front_end::indirect_history::TESTS,
    front_end::return_stack::TESTS,
    front_end::direction_predictor::TESTS,
    front_end::misprediction::TESTS,
    front_end::uop_cache::TESTS,
    front_end::code_tlb::TESTS,
    front_end::decoders::TESTS,
    front_end::loops::TESTS,
    window::reorder_buffer::TESTS,
    window::registers::TESTS,
    window::loads_and_stores::TESTS,
    window::schedulers::TESTS,
    window::branches::TESTS,
    execution::renaming::TESTS,
    execution::dependencies::TESTS,
    execution::partial_registers::TESTS,
    execution::stack_engine::TESTS,
    execution::macro_fusion::TESTS,
    execution::bypass_delay::TESTS,
    execution::mixed_throughput::TESTS,
    execution::slow_numbers::TESTS,
    execution::vector_units::TESTS,
    execution::taylor::TESTS,
    memory::data_caches::TESTS,
    memory::cache_ways::TESTS,
    memory::translations::TESTS,
    memory::strided_load::TESTS,
    memory::write_combining::TESTS,
    memory::misses_in_flight::TESTS,
    memory::walks_in_flight::TESTS,
    memory::load_latency::TESTS,
    memory::access_rates::TESTS,
    memory::store_forwarding::TESTS,
    memory::forwarding_map::TESTS,
    memory::memory_renaming::TESTS,
    memory::memory_order::TESTS,
    memory::split_access::TESTS,
    memory::daxpy::TESTS,
    memory::bandwidth::TESTS,
    memory::copy_methods::TESTS,
    memory::other_cpus::TESTS,
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

/// The tests of all topics: a `static`, as each unit of code has its own copy of a constant.
pub(super) static TESTS: &[&TestSpec; COUNT] = &{
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
    fn tests_come_after_the_structures_that_they_name() {
        for (number, test) in TESTS.iter().enumerate() {
            assert!(TESTS[..number].iter().all(|other| other.name != test.name), "{}", test.name);
            for other in test.required_tests() {
                assert!(TESTS[..number].iter().any(|test| test.name == other), "{}: {other}", test.name);
            }
            let programs = match &test.experiment {
                Experiment::Overlap(window) => window.fillers.len(),
                Experiment::Levels(spec) => spec.programs.len(),
                Experiment::Fades(fades) => fades.rows.iter().map(|row| row.programs.len()).min().unwrap_or_default(),
                Experiment::Rooms(rooms) => rooms.rows.iter().map(|row| row.large.len()).min().unwrap_or_default(),
                Experiment::Environment { reads } => reads.len(),
                Experiment::Sharing(sharing) => {
                    sharing.rows.iter().map(|row| row.programs.len()).min().unwrap_or_default()
                }
                Experiment::Exchanges(exchanges) => exchanges.programs.len(),
                Experiment::CostMap(map) => map.rows.iter().map(|row| row.programs.len()).min().unwrap_or_default(),
                Experiment::Mixture(mixture) => mixture.classes.len(),
                Experiment::Batches(batches) => batches.programs.len(),
                Experiment::Queues(queues) => queues.classes.len(),
                Experiment::RandomVisits(visits) => visits.programs.len(),
                Experiment::Rates(_) | Experiment::Contrast(_) => {
                    test.rows().iter().map(|row| row.variants.len()).min().unwrap_or_default()
                }
            };
            assert!(programs >= 2 && test.about.is_ascii(), "{}", test.name);
        }
    }
}
