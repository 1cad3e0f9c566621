//! What the benchmark measures.

/// Multiplications of which each waits for the one before.
pub fn multiplications(number: u64, value: u64) -> u64 {
    (0..number).fold(value, |value, _| value.wrapping_mul(value))
}
