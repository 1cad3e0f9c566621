//! `instr`: latency and reciprocal throughput of every instruction of this CPU.
//!
//! Each module builds on those before it:
//!
//! - [`forms`]: what one instruction form reads and writes.
//! - [`bodies`]: the code of loops around a form.
//! - [`experiments`]: the programs that measure a form.
//! - [`mixes`]: programs of several forms.
//! - [`rows`]: what the readings say about a form.
//! - [`tables`]: summaries, exports and comparisons of rows.
//!
//! A [`survey`] measures all forms of a [`selection`]. A form becomes a row in three steps:
//!
//! 1. [`FormPlan`](experiments::form_plan::FormPlan) lists its experiments, each a program and the
//!    quantity that it measures.
//! 2. `FormMeasurement` times these programs in some layouts, once per pass, and returns a
//!    [`ProgramReading`](experiments::program_reading::ProgramReading) for each.
//! 3. `RowAnalysis` turns the readings of all passes into an
//!    [`InstrRow`](rows::instr_row::InstrRow).
//!
//! Words for code, from small to large: an *instance* is one copy of the form (fields named
//! `copies` count instances); a *turn* of a chain is an instance with its links; a *period* is the
//! smallest code that repeats, one or more turns; a *body* is the periods in one loop iteration.

#![warn(unreachable_pub)]

pub mod bodies;
pub mod experiments;
pub mod form_list;
pub mod form_pass;
pub mod forms;
pub mod isa_filter;
pub mod mixes;
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
