//! What cyclescope measures, as code: text becomes instructions, snippets become programs with clock readings.
//!
//! Limits: nothing here runs code. [`asm`] knows instructions, [`clock`] the timing methods, [`program`] the machine
//! code around copies of a [`snippet`]; [`context`] is the memory that such a program reads and leaves.

#![warn(unreachable_pub)]

pub mod asm;
pub mod clock;
pub mod context;
pub mod program;
pub mod snippet;
