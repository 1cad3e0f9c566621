//! The code that cyclescope measures: text becomes instructions, and snippets become programs with
//! clock readings.
//!
//! [`asm`] has the instructions, [`pasted`] reads other programs' text, [`clock`] the timing methods, and [`program`] the machine code
//! around copies of a [`snippet`]. [`context`] is the memory that such a program reads and writes.
//!
//! Limits: nothing here runs code.

#![warn(unreachable_pub)]

pub mod asm;
pub mod clock;
pub mod context;
pub mod pasted;
pub mod program;
pub mod snippet;
