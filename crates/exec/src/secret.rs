//! Secret random numbers. They show whether a snippet overwrote memory that it does not own.

use cyclescope_core::error::RunError;
use cyclescope_platform::random;

/// A number from the system's source of random numbers.
pub fn draw_secret() -> Result<u64, RunError> {
    random::draw_number().map_err(|error| {
        let errno = error.raw_os_error().unwrap_or(0);
        RunError::from_system_call("drawing a random number", random::DRAWING_CALL, errno)
    })
}
