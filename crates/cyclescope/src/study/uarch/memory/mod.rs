//! Caches, translation, and what they cost.

pub(super) mod data_caches;
pub(super) mod data_tlb;
