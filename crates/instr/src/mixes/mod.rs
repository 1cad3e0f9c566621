//! Mixes: independent copies of several forms in one loop.
//!
//! Alone, each form takes its own time. Together they take longer than the slowest of them only if
//! they share a resource, or if the core assigns them badly. So a fast mix proves that forms do not
//! share, and a slow one only suggests that they do.
//!
//! - [`mix`]: the forms of a mix and the number of copies of each.
//! - [`mix_form`]: whether a form can be in a mix, and what chains its copies.
//! - [`mix_order`]: the order of the copies.
//! - `mix_registers`: registers of all forms together.
//! - [`mix_body`]: the code of a loop.
//! - `timed_mix`: a mix while it is timed.
//! - [`mix_timer`]: times many mixes.
//!
//! Limits: branches, x87 code, gathers, and instructions that move the stack pointer can't be in a
//! mix. Copies of `mul` and the like depend on each other through registers that they imply.

pub mod mix;
pub mod mix_body;
pub mod mix_form;
pub mod mix_order;
mod mix_registers;
pub mod mix_timer;
mod timed_mix;
