//! Caches and translation: sizes, costs and rates.

pub(super) mod access_rates;
pub(super) mod bandwidth;
pub(super) mod cache_ways;
pub(super) mod copy_methods;
pub(super) mod data_caches;
pub(super) mod daxpy;
pub(super) mod forwarding_map;
pub(super) mod load_latency;
pub(super) mod memory_order;
pub(super) mod memory_renaming;
pub(super) mod misses_in_flight;
pub(super) mod other_cpus;
pub(super) mod split_access;
pub(super) mod store_forwarding;
pub(super) mod strided_load;
pub(super) mod translations;
pub(super) mod walks_in_flight;
pub(super) mod write_combining;
