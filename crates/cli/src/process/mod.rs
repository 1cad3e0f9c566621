//! This process and others: signals, temporary files, tools that are called, and libraries that are kept apart.

pub mod external_tool;
pub mod interrupt;
pub mod isolation;
mod temp_cleanup;
