//! The interface on Windows 10 and later.

pub mod console;
pub mod cpus;
pub mod device;
pub mod error_code;
pub mod files;
pub mod kernel;
pub mod processor;
pub mod random;
pub mod time;
