//! Processes: signals, temporary files, external tools, and isolation of libraries.

pub mod child_start;
pub mod child_watch;
pub mod external_tool;
pub mod interrupt;
pub mod isolation;
pub mod last_words;
pub mod start_limits;
mod temp_cleanup;
