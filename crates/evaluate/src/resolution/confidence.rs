//! The confidence level of the resolution.

/// Confidence level of every interval, and of distinguishing differences.
pub(crate) const CONFIDENCE: f64 = 0.95;
