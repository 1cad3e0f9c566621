//! Results of commands.

use std::error::Error;

/// The result of a command.
pub type CommandResult = Result<(), Box<dyn Error>>;
