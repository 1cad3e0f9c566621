//! What is kept of a measurement, and the way back from it to the same result.
//!
//! [`container`] is the one format for the evidence of every study. [`recording`] fills it from whatever an executor
//! runs and answers; [`replaying`] is an executor that gives these answers again.

pub mod container;
pub mod recording;
pub mod replaying;
