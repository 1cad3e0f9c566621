//! Processes: signals, temporary files, external tools, and isolation of libraries.

pub mod external_tool;
pub mod interrupt;
pub mod isolation;
mod temp_cleanup;
