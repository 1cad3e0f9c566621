//! How sure the resolution is.

/// The level of every interval, and at which differences count as distinguished.
pub(crate) const CONFIDENCE: f64 = 0.95;
