//! The ruler: chains of known length in core cycles that run beside the samples, and the only place that reads raw
//! samples in core cycles.
//!
//! Each threshold of these rules is here once, with the measurement that it comes from.

mod chains;
mod gauge;
mod learnt;
mod outlier;
mod quiet;
mod samples;

pub use chains::{
    ADD, ADD_LINKS, ADD_SPAN, IMUL, IMUL_LINKS, IMUL_SPAN, Ruler, SENTINEL, SENTINEL_ADDS, SENTINEL_LOOPS,
    sentinel_adds, sentinel_loops, sentinel_width,
};
pub use gauge::{Gauge, INSTRUMENT_CYCLES, Scale, column, instrument_margin, shared_margin};
pub use learnt::{Usual, Widths};
pub use outlier::{Band, KEPT_LEAST, Outliers};
pub use quiet::{Alone, Quiet};
pub use samples::{LayoutSamples, duration};
