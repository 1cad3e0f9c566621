//! Whole tables: compared, summed up, written for other programs, and those that others published.

pub mod compare;
pub mod export;
pub mod reference;
pub mod summary;
