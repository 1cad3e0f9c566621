//! Measured code in ring 0.

pub mod refused;
