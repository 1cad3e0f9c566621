//! Secret random numbers. They show whether a snippet overwrote memory that it does not own.

use cyclescope_core::error::RunError;

/// A number from the system's source of random numbers.
pub fn draw_secret() -> Result<u64, RunError> {
    let mut bytes = [0; 8];
    // SAFETY: writes at most as many bytes as the array has.
    let filled = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if filled != bytes.len() as isize {
        let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
        return Err(RunError::from_system_call("drawing a random number", "getrandom", errno));
    }
    Ok(u64::from_ne_bytes(bytes))
}
