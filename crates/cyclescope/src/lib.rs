//! What a piece of x86 code costs, in true core clock cycles with an error bar.

pub mod asm;
pub mod error;
pub mod unit;
