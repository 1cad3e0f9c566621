//! Caches, translation, what they cost, and how much they move in a cycle.

pub(super) mod bandwidth;
pub(super) mod cache_banks;
pub(super) mod cache_line;
pub(super) mod copy_methods;
pub(super) mod copy_rate;
pub(super) mod data_caches;
pub(super) mod data_caches_huge;
pub(super) mod data_tlb;
pub(super) mod daxpy;
pub(super) mod disambiguation;
pub(super) mod failed_forwarding;
pub(super) mod false_dependence;
pub(super) mod forwarding_map;
pub(super) mod huge_pages;
pub(super) mod huge_tlb;
pub(super) mod l2_ways;
pub(super) mod load_latency;
pub(super) mod load_rate;
pub(super) mod memory_renaming;
pub(super) mod split_access;
pub(super) mod store_forwarding;
pub(super) mod store_rate;
pub(super) mod strided_load;
pub(super) mod ways;
pub(super) mod write_combining;
