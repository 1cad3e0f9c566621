//! Timing methods, and regions of a program in true core cycles.
//!
//! A **pair** is a timing method as two functions: the reading before the measured code and the one
//! after it (see [`pairs`]). `cyclescope` itself measures with the same instructions; a test of the
//! library compares them. Pairs need neither a system nor memory:
//!
//! ```
//! use cyclescope_clock::{Pair, pairs::LfenceRdtscLfence as Clock};
//!
//! let started = Clock::start();
//! // the measured code
//! let ticks = Clock::end().wrapping_sub(started);
//! ```
//!
//! Ticks of the time stamp counter are not core cycles. A **region** is timed by a pair, together
//! with a **ruler**: a chain of dependent multiplications with a known number of core cycles. The
//! ruler converts ticks to core cycles at any frequency. The time of the pair itself is measured in
//! the same process and subtracted. The report has the core cycles of each region with an interval,
//! and possible problems:
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
// A test of the library writes its files from the timing methods.
#[rustfmt::skip]
pub mod pairs;
mod unit;

#[cfg(feature = "std")]
pub mod ab;
#[cfg(feature = "std")]
mod at_end;
#[cfg(feature = "std")]
mod cycle_clock;
#[cfg(all(feature = "std", target_os = "linux"))]
mod event_counters;
#[cfg(feature = "std")]
mod execution_sampling;
#[cfg(feature = "std")]
mod histogram;
#[cfg(feature = "std")]
mod nested_overhead;
#[cfg(feature = "std")]
mod region;
#[cfg(feature = "std")]
mod region_figures;
#[cfg(feature = "std")]
mod region_reading;
#[cfg(feature = "std")]
mod report;
#[cfg(feature = "std")]
mod running;
#[cfg(feature = "std")]
mod thread;
#[cfg(feature = "std")]
mod thread_readings;
#[cfg(feature = "std")]
mod usual_time;

#[cfg(feature = "std")]
pub use at_end::{AtEnd, report_at_end};
pub use calibration::{Calibration, Scale};
pub use cpu::{Feature, Missing};
#[cfg(feature = "std")]
pub use cycle_clock::{Begun, CycleClock, Span};
#[cfg(all(feature = "std", target_os = "linux"))]
pub use event_counters::{
    CountedEvent, CounterDifference, CounterError, CounterReading, EventCounters, read_cpu_number,
};
pub use pair::{Counts, CpuPair, CpuReading, Pair, hide, keep};
#[cfg(feature = "std")]
pub use region::{Region, Timed};
#[cfg(feature = "std")]
pub use report::{Caveat, Estimate, Report, Row, report};
pub use unit::{CoreCycles, Ticks};
