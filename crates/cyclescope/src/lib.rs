//! What a piece of x86 code costs, in true core clock cycles with an error bar.

pub mod clock;
pub mod context;
pub mod error;
pub mod executor;
pub mod program;
pub mod ruler;
pub mod statistics;
pub mod unit;
