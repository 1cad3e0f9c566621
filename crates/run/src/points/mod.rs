//! Many points of one question: the values of a sweep, or the snippets of a list. Behind `run --sweep` and `run --from`.
//!
//! Each point is measured as two runs of half the time, with the same engine and plan, in two passes over the points. One
//! executor measures them one after another, in another random order in each pass: where the core slows down or something else
//! runs for a while, neighbours of a sweep scatter, and no slope appears over its values; and where the two runs of a point do
//! not agree, its interval holds both and a caveat says so.

mod export;
mod list;
mod passes;
mod point;
mod session;
mod study;

pub use export::table;
pub use list::{Listed, read};
pub use point::{Label, Other, Point, Row};
pub use session::PointsSession;
pub use study::INFO;
pub use study::{Course, Explain, Kept, NAME, PointsStudy, fields};
