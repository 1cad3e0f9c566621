//! `instr`: latency and reciprocal throughput of every instruction of this CPU.
//!
//! Each room uses those before it: [`forms`], the code of one form in [`bodies`], what is measured with it in
//! [`experiments`], what that says in [`rows`], and [`tables`] of them. A [`survey`] goes over all forms of a
//! [`selection`].

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
