//! The code that the benchmark measures.

/// A chain of dependent multiplications.
pub fn multiplications(number: u64, value: u64) -> u64 {
    (0..number).fold(value, |value, _| value.wrapping_mul(value))
}
