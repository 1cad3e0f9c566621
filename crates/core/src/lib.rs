//! Foundations of cyclescope: units as types, the three kinds of failure, statistics, and the
//! machine.
//!
//! Limits: nothing here emits or runs measured code. The library's front page is the crate
//! `cyclescope`.

#![warn(unreachable_pub)]

pub mod error;
pub mod input;
pub mod machine;
pub mod process_state;
pub mod random;
pub mod statistics;
pub mod unit;
