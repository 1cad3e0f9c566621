//! A part of divan's interface, in core cycles. It needs only `divan = { package =
//! "cyclescope-divan", … }` in a benchmark's dependencies.
//!
//! It has `#[divan::bench]` with `args`, `name` and `ignore`, `divan::main()`, `divan::black_box`
//! and `black_box_drop`. Of `Bencher` it has `bench`, `with_inputs`, `bench_values` and
//! `bench_refs` with their `local` forms. Other uses of divan do not compile. Linux only, because a
//! section of the program registers the functions.
//!
//! The program takes parts of names, `--exact`, `--skip`, `--list`, `--test`, `--ignored` and
//! `--include-ignored`. It fails if nothing is selected.
//!
//! Iterations run in parts of about a tenth of a millisecond, together with a ruler. The table has
//! the median of the parts and its interval, so that interrupts and other programs do not count.
//! Values that have to be dropped are dropped outside the measured time.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[cfg(not(target_os = "linux"))]
compile_error!("cyclescope-divan is for Linux");

mod bencher;
mod command_line;
#[doc(hidden)]
pub mod counter;
mod parts;
#[doc(hidden)]
pub mod registry;

pub use bencher::{Bencher, WithInputs};
pub use cyclescope_divan_macros::{bench, bench_group};
pub use registry::main;
pub use std::hint::black_box;

/// Keeps the compiler from removing a value, and drops it.
pub fn black_box_drop<T>(value: T) {
    drop(black_box(value));
}
