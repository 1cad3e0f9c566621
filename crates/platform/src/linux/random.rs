//! The system's source of random numbers (getrandom(2)).

use std::io;

/// Name of the call that [`draw_number`] makes.
pub const DRAWING_CALL: &str = "getrandom";

/// A random number that nothing can guess.
///
/// # Errors
///
/// If the system gives none.
pub fn draw_number() -> io::Result<u64> {
    let mut bytes = [0; 8];
    // SAFETY: writes at most as many bytes as the array has.
    let filled = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if filled != bytes.len() as isize {
        return Err(io::Error::last_os_error());
    }
    Ok(u64::from_ne_bytes(bytes))
}
