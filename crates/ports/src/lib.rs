//! `ports`: µops, ports and what instructions share, from time alone.
//!
//! A core runs a mix of independent instructions no faster than the best assignment of their µops
//! to ports allows. So the times of mixes bound how many ports some instructions use together.
//!
//! - [`class_set`], [`port_map`]: the ports of classes of instructions.
//! - [`union_bounds`]: what the times of mixes say about a union of classes.
//! - [`map_search`]: the maps that agree with all bounds.
//! - [`class_survey`]: which mixes are timed, and what they say about all classes.
//! - `mix_source`, `class_findings`: the times that it needs, and its result.
//! - [`uop_fit`]: the µops of a form, from its times beside classes.
//! - `twin_mixes`: forms in slow mixes, replaced by single instructions.
//! - [`forms_survey`]: the ports of all forms.
//! - `row_verdict`, `row_mixes`: the row of a form, and the mixes that decided it.
//! - [`deciding_mix`]: the mixes that decided an answer.
//! - [`port_assignment`], [`mix_ports`]: the best assignment of the µops of a mix.
//! - [`published_map`], [`alias_search`], [`port_aliases`]: the vendor's names of ports.
//! - [`pair_share`]: what the mixes of two forms say about them.

#![warn(unreachable_pub)]

pub mod alias_search;
pub mod class_findings;
pub mod class_set;
pub mod class_survey;
pub mod classes_record;
pub mod deciding_mix;
#[cfg(test)]
mod disturbed_tests;
mod executor_mixes;
mod fitted_mix;
pub mod forms_survey;
pub mod map_search;
pub mod mix_ports;
pub mod mix_source;
pub mod pair_record;
pub mod pair_share;
#[cfg(test)]
mod planted_core;
pub mod port_aliases;
pub mod port_assignment;
pub mod port_labels;
pub mod port_map;
pub mod port_notation;
pub mod ports_comparison;
pub mod ports_plan;
pub mod ports_row;
pub mod published_map;
mod reference_forms;
#[cfg(test)]
mod resource_tests;
mod row_mixes;
mod row_verdict;
mod study;
pub mod study_part;
#[cfg(test)]
mod survey_tests;
mod twin_mixes;
pub mod union_bounds;
pub mod uop_fit;

pub use study::{CLASSES_KIND, INFO, NAME, PAIR_KIND, PortsStudy, ResumedPorts};
