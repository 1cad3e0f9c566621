//! This process and others: signals, temporary files, tools that are called, and libraries that are kept apart.

pub mod interrupt;
pub mod isolated;
mod temp_cleanup;
pub mod tool;
