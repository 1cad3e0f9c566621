//! How a command ends.

use std::error::Error;

/// A command's end, and why it failed.
pub type CommandResult = Result<(), Box<dyn Error>>;
