//! Processes: signals, temporary files, external tools, and isolation of libraries.

#[cfg(unix)]
pub mod child_environment;
#[cfg(unix)]
pub mod child_start;
#[cfg(unix)]
pub mod child_watch;
#[cfg_attr(windows, path = "windows/external_tool.rs")]
pub mod external_tool;
#[cfg_attr(windows, path = "windows/interrupt.rs")]
pub mod interrupt;
#[cfg_attr(windows, path = "windows/isolation.rs")]
pub mod isolation;
pub mod last_words;
#[cfg_attr(windows, path = "windows/start_limits.rs")]
pub mod start_limits;
#[cfg(unix)]
mod temp_cleanup;
