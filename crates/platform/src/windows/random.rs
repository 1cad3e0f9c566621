//! The system's source of random numbers.

use std::io;
use windows_sys::Win32::Security::Cryptography::{BCRYPT_USE_SYSTEM_PREFERRED_RNG, BCryptGenRandom};

/// Name of the call that [`draw_number`] makes.
pub const DRAWING_CALL: &str = "BCryptGenRandom";

/// A random number that nothing can guess.
///
/// # Errors
///
/// If the system gives none.
pub fn draw_number() -> io::Result<u64> {
    let mut bytes = [0; 8];
    let length = bytes.len() as u32;
    // SAFETY: writes as many bytes as the array has.
    let status =
        unsafe { BCryptGenRandom(std::ptr::null_mut(), bytes.as_mut_ptr(), length, BCRYPT_USE_SYSTEM_PREFERRED_RNG) };
    if status < 0 { Err(io::Error::other("no source of random numbers")) } else { Ok(u64::from_ne_bytes(bytes)) }
}
