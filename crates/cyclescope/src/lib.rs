//! Measures what x86 code costs, in true core clock cycles with an error bar.
//!
//! The cost of one snippet:
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
//! A [`Scope`] measures many snippets on one executor, with any [`run::RunRequest`] and
//! [`executor::ExecutorOffer`].
//!
//! The main steps, by type:
//!
//! 1. A [`snippet::Snippet`] is built into [`program::Program`]s with clock reads around copies of
//!    it.
//! 2. An [`executor::Executor`] runs the programs and returns raw readings.
//! 3. [`measure`](measure::measure_cost) turns the readings into a cost with an interval.
//! 4. [`record::RunRecord`] is the result as JSON.
//!
//! [`run`](run::run_snippet) does all of it. A custom study runs its programs together with the
//! ruler, with [`measure::rounds`]. It then takes a [`Contrast`](measure::contrast::Contrast) of
//! them, as in `examples/study.rs`. [`study`] has the studies of the command line.
//!
//! The library never prints and never parses arguments. For its limits see
//! `docs/how-it-measures.md`.
//!
//! Without the feature `studies`, a default one, the library has the study `run` alone, and builds
//! in less than half of the time.

#![warn(unreachable_pub)]

mod scope;
#[cfg(feature = "studies")]
pub mod study;

pub use cyclescope_code::{asm, clock, context, pasted, program, snippet};
pub use cyclescope_core::{error, input, machine, process_state, random, statistics, unit};
#[cfg(feature = "studies")]
pub use cyclescope_doctor as doctor;
pub use cyclescope_events as events;
pub use cyclescope_exec as executor;
pub use cyclescope_measure as measure;
pub use cyclescope_measure::result::{self, aperf, caveat, record};
pub use cyclescope_measure::{placement, ruler};
#[cfg(feature = "studies")]
pub use cyclescope_plot as plot;
pub use cyclescope_run as run;
pub use scope::{Scope, measure_snippet};
