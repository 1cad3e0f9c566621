//! `ports`: µops, ports and what instructions share, from time alone.
//!
//! A core runs a mix of independent instructions no faster than the best assignment of their µops
//! to ports allows. So the times of mixes bound how many ports some instructions use together.
//!
//! - [`class_set`], [`port_map`]: the ports of classes of instructions.
//! - [`union_bounds`]: what the times of mixes say about a union of classes.
//! - [`map_search`]: the maps that agree with all bounds.
//! - [`class_survey`]: which mixes are timed, and what they say about all classes.

#![warn(unreachable_pub)]

pub mod class_set;
pub mod class_survey;
pub mod map_search;
#[cfg(test)]
mod planted_core;
pub mod port_map;
#[cfg(test)]
mod survey_tests;
pub mod union_bounds;
