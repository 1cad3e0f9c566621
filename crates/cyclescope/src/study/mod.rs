//! Studies: questions that take many measurements.

pub mod evaluate;
