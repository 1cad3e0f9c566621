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
//! A [`Scope`] measures many on one executor, with another [`run::RunRequest`] or [`executor::ExecutorOffer`].
//!
//! The main path, as types: a [`snippet::Snippet`] is built into [`program::Program`]s with clock reads around
//! copies of it; an [`executor::Executor`] runs them and returns raw readings; [`measure`](measure::measure_cost) turns
//! those into a cost with an interval; [`record::RunRecord`] is that as JSON. [`run`](run::run_snippet) does all of it. A
//! study of your own runs its programs beside the ruler with [`measure::rounds`] and takes a
//! [`Contrast`](measure::contrast::Contrast) of them, as `examples/study.rs` does; [`study`] has the studies of the
//! command line.
//!
//! The library never prints and never parses arguments. Its limits are in `docs/how-it-measures.md`.

#![warn(unreachable_pub)]

mod scope;
pub mod study;

pub use cyclescope_code::{asm, clock, context, program, snippet};
pub use cyclescope_core::{error, input, machine, random, statistics, unit};
pub use cyclescope_doctor as doctor;
pub use cyclescope_exec as executor;
pub use cyclescope_measure as measure;
pub use cyclescope_measure::result::{self, aperf, caveat, record};
pub use cyclescope_measure::{placement, ruler};
pub use cyclescope_plot as plot;
pub use cyclescope_run as run;
pub use scope::{Scope, measure_snippet};
