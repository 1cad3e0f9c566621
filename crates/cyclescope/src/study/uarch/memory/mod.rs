//! Caches, translation, and what they cost.

pub(super) mod cache_line;
pub(super) mod data_caches;
pub(super) mod data_tlb;
pub(super) mod huge_pages;
pub(super) mod huge_tlb;
pub(super) mod ways;
pub(super) mod write_combining;
