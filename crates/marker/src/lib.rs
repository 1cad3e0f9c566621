//! What instrumentation costs: markers of several designs, off and on, in loops.
//!
//! A [`source::design`] is text; the build compiles it into functions, each a loop with the marker in it and the same
//! loop without ([`compiled_design`]). [`anatomy`] tells which instructions the marker is, and on which path they are.
//! What a user's own loop and what packages need is compiled at run time ([`custom_loop`]).
//! [`copy_region`] copies functions to many addresses and patches them as the real things are. What listens to those that
//! a library makes is in `listener`. A [`mod@bench`], in [`user`] mode or, with the module's own markers, in ring 0
//! ([`kernel`]), runs them in the [`state`]s that a marker can be in; a [`survey`] visits all of them until their costs
//! are known (`estimate`), which [`record`] tells; a loop with several [`speeds`] is
//! told from a marker that costs. Which executor has which markers is its [`catalog`]. What the
//! document that all this comes from has measured is [`document_figures`]; a [`tested_conclusions`] of markers says whether its
//! conclusions hold. All of it together is [`marker_findings`] by a [`MarkerStudy`], which asks its bench through `answered`, so that
//! evidence answers as well.

#![warn(unreachable_pub)]

pub mod anatomy;
mod answered_bench;
pub mod bench;
pub mod catalog;
mod caveats;
pub mod compiled_design;
pub mod copy_region;
pub(crate) mod cost_difference;
pub mod custom_loop;
pub mod document_figures;
mod function_copies;
pub mod kernel;
pub(crate) mod listener;
pub mod marker_findings;
mod marker_programs;
pub mod marker_selection;
pub(crate) mod placement_cost;
pub mod record;
#[cfg(test)]
mod simulated_bench;
pub mod source;
pub mod speeds;
pub mod state;
mod study;
pub mod survey;
pub mod tested_conclusions;
pub(crate) mod uprobe;
pub mod user;
pub mod visit_ledger;
pub mod working_set;

pub use study::INFO;
pub use study::{MarkerPlan, MarkerStudy, NAME};
