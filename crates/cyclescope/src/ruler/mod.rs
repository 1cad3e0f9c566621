//! The ruler: chains of known length in core cycles that run beside the samples, and the only place that reads raw
//! samples in core cycles.
//!
//! Each threshold is defined here once, with the measurement that it comes from.

mod chains;
mod gauge;
mod learnt;
mod outlier;
mod quiet;
mod samples;

pub(crate) use chains::{ADD, ADD_SPAN, IMUL_SPAN, SENTINEL, SENTINEL_LOOPS, sentinel_loops};
#[cfg(test)]
pub(crate) use chains::{ADD_LINKS, IMUL_LINKS, SENTINEL_ADDS, sentinel_adds};
pub use chains::{IMUL, Ruler, sentinel_width};
pub use gauge::INSTRUMENT_CYCLES;
pub(crate) use gauge::{Gauge, Scale, column, instrument_margin, shared_margin};
pub(crate) use learnt::{Usual, Widths};
pub(crate) use outlier::{Band, KEPT_LEAST, Outliers};
pub(crate) use quiet::Quiet;
pub(crate) use samples::{LayoutSamples, duration};
