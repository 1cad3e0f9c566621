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

pub use chains::{ADD_LINKS, IMUL, Ruler, sentinel_adds, sentinel_width};
pub use chains::{ADD_SPAN, IMUL_SPAN, SENTINEL_LOOPS, sentinel_loops};
pub use gauge::INSTRUMENT_CYCLES;
pub use gauge::{Gauge, Scale, column, instrument_margin, shared_margin};
pub use learnt::{Usual, Widths};
pub use outlier::{Band, KEPT_LEAST, Outliers};
pub use quiet::Quiet;
pub use samples::{LayoutSamples, duration};
