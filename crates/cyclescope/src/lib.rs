//! What a piece of x86 code costs, in true core clock cycles with an error bar.
//!
//! The main path, as types: a [`snippet::Snippet`] is built into [`program::Program`]s with clock reads around
//! copies of it; an [`executor::Executor`] runs them and returns raw readings; [`measure::estimate::estimate`] turns
//! those into a cost with an interval; [`record::RunRecord`] is that as JSON. [`run`] does all of it:
//!
//! ```
//! use cyclescope::executor::Executor;
//! use cyclescope::executor::user::{User, UserOptions};
//! use cyclescope::machine::Machine;
//! use cyclescope::run::{Request, run};
//! use cyclescope::snippet::Snippet;
//!
//! let machine = Machine::detect();
//! let code = cyclescope::asm::parse("imul rax, rax")?;
//! let snippet = Snippet::new(code.bytes().to_vec(), Vec::new(), code.text());
//! let request = Request { quick: true, ..Request::default() };
//! let mut executor = User::spawn(&UserOptions { cpu: machine.target_cpu() as usize, ..UserOptions::default() })?;
//! let plan = request.plan(executor.capabilities(), &machine)?;
//! let result = run(&mut executor, &snippet, &plan, request.asked())?;
//! if let Some(estimate) = result.estimate() {
//!     println!("{} ± {} core cycles", estimate.cost.value, estimate.cost.half_width());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The library never prints and never parses arguments. Its limits are in `docs/how-it-measures.md`.

pub mod asm;
pub mod clock;
pub mod context;
pub mod doctor;
pub mod error;
pub mod evidence;
pub mod executor;
pub mod machine;
pub mod measure;
pub mod placement;
pub mod plot;
pub mod program;
pub mod random;
pub mod result;
pub mod ruler;
pub mod run;
pub mod snippet;
pub mod statistics;
pub mod study;
pub mod unit;

pub use result::{aperf, caveat, record};
