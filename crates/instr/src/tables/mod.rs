//! Whole tables: comparison, summary, export, and published tables.

pub mod compare;
pub mod export;
pub mod reference;
pub mod summary;
