//! What instrumentation costs: markers of several designs, off and on, in loops.
//!
//! A [`source::design`] is text; the build compiles it into functions, each a loop with the marker in it and the same
//! loop without ([`compiled`]). [`anatomy`] tells which instructions the marker is, and on which path they are.
//! What a user's own loop and what packages need is compiled at run time ([`around`]).
//! [`instance`] copies functions to many addresses and patches them as the real things are. What listens to those that
//! a library makes is in `listener`. A [`mod@bench`], in [`user`] mode or, with the module's own markers, in ring 0
//! ([`kernel`]), runs them in the [`state`]s that a marker can be in; a [`survey`] visits all of them until their costs
//! are known (`estimate`), which [`record`] tells; a loop with several [`speeds`] is
//! told from a marker that costs. Which executor has which markers is its [`catalog`]. What the
//! document that all this comes from has measured is [`published`]; a [`comparison`] of markers says whether its
//! conclusions hold. All of it together is [`found`] by a [`MarkerStudy`], which asks its bench through `answered`, so that
//! evidence answers as well.

#![warn(unreachable_pub)]

pub mod anatomy;
mod answered;
pub mod around;
pub mod bench;
pub mod catalog;
mod caveats;
pub mod comparison;
pub mod compiled;
mod copies;
pub(crate) mod difference;
pub(crate) mod estimate;
#[cfg(test)]
mod fake;
pub mod found;
pub mod instance;
pub mod kernel;
pub mod ledger;
pub(crate) mod listener;
mod programs;
pub mod published;
pub mod record;
pub mod selection;
pub mod source;
pub mod speeds;
pub mod state;
mod study;
pub mod survey;
pub(crate) mod tracer;
pub mod user;
pub mod working_set;

pub use study::INFO;
pub use study::{MarkerPlan, MarkerStudy, NAME};
