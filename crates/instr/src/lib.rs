//! `instr`: latency and reciprocal throughput of every instruction of this CPU.
//!
//! Each module builds on those before it:
//!
//! - [`forms`]: what one instruction form reads and writes.
//! - [`bodies`]: the code of loops around a form.
//! - [`experiments`]: the programs that measure a form.
//! - [`rows`]: what the readings say about a form.
//! - [`tables`]: summaries, exports and comparisons of rows.
//!
//! A [`survey`] measures all forms of a [`selection`].

#![warn(unreachable_pub)]

pub mod bodies;
pub mod experiments;
pub mod form_list;
pub mod forms;
pub mod isa_filter;
pub mod plan;
pub mod rows;
pub mod selection;
pub mod session;
mod study;
pub mod survey;
pub mod survey_settings;
pub mod tables;

pub use study::INFO;
pub use study::{InstrStudy, NAME, ResumedSurvey};
