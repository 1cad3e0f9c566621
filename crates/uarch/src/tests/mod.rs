//! Tests of the whole study on simulated cores, and of its tests' programs.

mod agner_numbers;
mod controls;
mod simulated_batches;
mod simulated_costless;
mod simulated_drift;
mod simulated_exact_levels;
mod simulated_false_ends;
mod simulated_hierarchy;
mod simulated_levels;
mod simulated_score;
mod simulated_sharing;
mod simulated_sibling;
mod simulated_structures;
mod simulated_units;
mod simulated_visits;
pub(crate) mod simulated_window;
mod simulated_wrong_sizes;
mod test_table;
