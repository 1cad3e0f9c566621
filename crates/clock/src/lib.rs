//! Timing methods, and regions of a program in true core cycles.
//!
//! A **pair** is a timing method as two functions, the reading before the measured code and the one behind it: see [`pairs`]. The
//! instructions are those that `cyclescope` itself measures with; a test of the library compares them. Pairs need neither a
//! system nor memory:
//!
//! ```
//! use cyclescope_clock::{Pair, pairs::LfenceRdtscLfence as Clock};
//!
//! let started = Clock::start();
//! // the measured code
//! let ticks = Clock::end().wrapping_sub(started);
//! ```
//!
//! Ticks of the time stamp counter are no core cycles. A **region** is timed by a pair; beside it runs a **ruler**, a chain of
//! additions of which each waits for the one before, and takes a core cycle: by it ticks become core cycles whatever the
//! frequency is. What the pair itself takes is measured in the same process and subtracted. The report tells the core cycles of each
//! region with an interval, and what may be wrong with them:
//!
//! ```
//! # #[cfg(feature = "std")] {
//! use cyclescope_clock::Region;
//!
//! static PARSE: Region = Region::new("parse");
//!
//! for text in ["1", "23", "456"] {
//!     let _timed = PARSE.begin();
//!     std::hint::black_box(text.parse::<u64>().unwrap());
//! }
//! println!("{}", cyclescope_clock::report());
//! # }
//! ```
//!
//! Without the feature `std` the crate has pairs, chains and the calibration, and is `no_std`.

#![no_std]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[cfg(not(target_arch = "x86_64"))]
compile_error!("cyclescope-clock is for x86-64");

#[cfg(feature = "std")]
extern crate std;

mod calibration;
mod chain;
mod cpu;
mod pair;
// Written by a test of the library from its timing methods.
#[rustfmt::skip]
pub mod pairs;
mod unit;

#[cfg(feature = "std")]
pub mod ab;
#[cfg(feature = "std")]
mod at_end;
#[cfg(feature = "std")]
mod cycle_clock;
#[cfg(feature = "std")]
mod histogram;
#[cfg(feature = "std")]
mod region;
#[cfg(feature = "std")]
mod report;
#[cfg(feature = "std")]
mod running;
#[cfg(feature = "std")]
mod thread;

#[cfg(feature = "std")]
pub use at_end::{AtEnd, report_at_end};
pub use calibration::{Calibration, Scale};
pub use cpu::{Feature, Missing};
#[cfg(feature = "std")]
pub use cycle_clock::{Begun, CycleClock, Span};
pub use pair::{Counts, Pair, hide, keep};
#[cfg(feature = "std")]
pub use region::{Region, Timed};
#[cfg(feature = "std")]
pub use report::{Caveat, Estimate, Report, Row, report};
pub use unit::{CoreCycles, Ticks};
