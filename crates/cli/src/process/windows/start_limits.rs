//! Checks that a program has enough stack and memory: Windows gives each program what its file asks
//! for.

use crate::output::Failure;
use cyclescope_platform::console;

/// Prepares the console.
///
/// # Errors
///
/// None.
pub fn make_room() -> Result<(), Failure> {
    console::prepare_terminal();
    Ok(())
}
