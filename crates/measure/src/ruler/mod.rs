//! The ruler: chains of known length in core cycles, measured together with the samples. Only this
//! module converts raw samples to core cycles.
//!
//! Each threshold is defined here once, with the measurement that justifies it.

mod chains;
mod gauge;
mod outlier;
mod running_figures;
mod samples;
mod unshared_width;

pub use chains::{ADD_LINKS, IMUL, RulerPrograms, least_unshared_width, sentinel_adds, sentinel_width};
pub use chains::{ADD_SPAN, IMUL_SPAN, SENTINEL_LOOPS, sentinel_loops};
pub use gauge::INSTRUMENT_CYCLES;
pub use gauge::{Gauge, RulerScale, column, instrument_margin, shared_margin};
pub use outlier::{KEPT_LEAST, Outliers, UndisturbedBand};
pub use running_figures::{RunningMedian, WidthLearner};
pub use samples::{LayoutSamples, raw_duration};
pub use unshared_width::{LeastWidth, UnsharedWidth};
