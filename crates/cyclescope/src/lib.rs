//! What a piece of x86 code costs, in true core clock cycles with an error bar.
//!
//! What one snippet costs:
//!
//! ```
//! let run = cyclescope::measure_snippet("mulsd xmm0, xmm1")?;
//! if let Some(cost) = run.cost() {
//!     println!("{:.3} ± {:.3} core cycles", cost.value, cost.half_width());
//! }
//! for caveat in &run.caveats {
//!     println!("{}", caveat.text);
//! }
//! # Ok::<(), cyclescope::error::Error>(())
//! ```
//!
//! A [`Scope`] measures many on one executor, with another [`run::Request`] or [`executor::Offer`].
//!
//! The main path, as types: a [`snippet::Snippet`] is built into [`program::Program`]s with clock reads around
//! copies of it; an [`executor::Executor`] runs them and returns raw readings; [`measure`](measure::measure) turns
//! those into a cost with an interval; [`record::RunRecord`] is that as JSON. [`run`](run::run) does all of it. A
//! study of your own runs its programs beside the ruler with [`measure::rounds`] and takes a
//! [`Contrast`](measure::contrast::Contrast) of them, as `examples/study.rs` does; [`study`] has the studies of the
//! command line.
//!
//! The library never prints and never parses arguments. Its limits are in `docs/how-it-measures.md`.

#![warn(unreachable_pub)]

pub mod asm;
pub mod clock;
pub mod context;
pub mod doctor;
pub mod error;
pub mod executor;
pub mod input;
pub mod machine;
pub mod measure;
pub mod placement;
pub mod plot;
pub mod program;
pub mod random;
pub mod result;
pub mod ruler;
pub mod run;
mod scope;
pub mod snippet;
pub mod statistics;
pub mod study;
pub mod unit;

pub use result::{aperf, caveat, record};
pub use scope::{Scope, measure_snippet};
