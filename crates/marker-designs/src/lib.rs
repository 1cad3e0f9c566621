//! The code of instrumentation markers that the study `marker` measures.
//!
//! A [`source::design`] is text. The build compiles it into functions: a loop with the marker and
//! the same loop without it ([`compiled_design`]). The [`listener`]s of markers of Rust's libraries
//! are compiled with them. Enabled markers call the probes of `probes.c` ([`ProbeKind`]).
//!
//! What is measured here is the code itself, so this crate is optimised fully in every build.

#![warn(unreachable_pub)]

pub mod compiled_design;
pub mod listener;
mod probe_kind;
pub mod source;

pub use probe_kind::ProbeKind;
