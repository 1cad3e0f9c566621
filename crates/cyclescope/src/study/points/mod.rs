//! Many points of one question: the values of a sweep, or the snippets of a list. Behind `run --sweep` and `run --from`.
//!
//! Each point is a run like any other, with the same engine, plan and seed. One executor measures them one after another, in
//! random order: where the core slows down or something else runs for a while, neighbours of a sweep scatter, and no slope
//! appears over its values. What drifts within a point is that point's own error.

mod export;
mod list;
mod point;
mod session;
mod study;

pub use export::csv;
pub use list::{Listed, read};
pub use point::{Label, Other, Point, Row};
pub use session::Session;
pub(in crate::study) use study::INFO;
pub use study::{Course, Explain, Kept, NAME, PointsStudy, fields};
