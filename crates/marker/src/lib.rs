//! Costs of instrumentation: markers of several designs, dormant and enabled, in loops.
//!
//! Markers and their compiled functions come from `cyclescope-marker-designs` ([`source`],
//! [`compiled_design`]). Custom loops and designs that need packages are compiled at run time
//! ([`custom_loop`]). So are markers in 32-bit code ([`static_program`]). [`anatomy`] identifies the
//! marker's instructions and their path.
//!
//! [`copy_region`] copies functions to many addresses and patches them as real tracers do.
//! A [`mod@bench`] runs all of them in each
//! [`state`] of a marker. It runs in [`user`] mode or, with the kernel module's own markers, in
//! ring 0 ([`kernel`]). The [`catalog`] lists the markers of each executor.
//!
//! A [`survey`] visits all cases until their costs are known (`placement_cost`). [`record`] reports
//! costs; [`speeds`] separates a loop's own speeds from a marker's cost. [`document_figures`] holds
//! the figures of the document on Linux kernel markers, and [`tested_conclusions`] tests its
//! conclusions. A [`MarkerStudy`] produces [`marker_findings`] from all of this. It reads its bench
//! through `answered_bench`, so that it also runs on evidence.

#![warn(unreachable_pub)]

pub mod anatomy;
mod answered_bench;
pub mod bench;
pub mod catalog;
mod caveats;
pub mod copy_region;
pub(crate) mod cost_difference;
pub mod custom_loop;
pub mod document_figures;
mod function_copies;
pub mod kernel;
#[cfg(test)]
mod listener_tests;
pub mod marker_findings;
mod marker_programs;
pub mod marker_selection;
pub(crate) mod placement_cost;
pub mod record;
#[cfg(test)]
mod simulated_bench;
pub mod speeds;
pub mod state;
pub mod static_program;
mod study;
pub mod survey;
pub mod tested_conclusions;
pub(crate) mod uprobe;
pub mod user;
pub mod visit_ledger;
pub mod working_set;

pub use cyclescope_marker_designs::{ProbeKind, compiled_design, source};
pub use study::INFO;
pub use study::{MarkerPlan, MarkerStudy, NAME};
