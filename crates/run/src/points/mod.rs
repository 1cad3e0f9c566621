//! Many points of one question: the values of a sweep, or the snippets of a list. Behind `run --sweep` and `run --from`.
//!
//! Each point is measured as two runs of half the time, with the same engine and plan, in two passes over the points. One
//! executor measures them one after another, in another random order in each pass: where the core slows down or something else
//! runs for a while, neighbours of a sweep scatter, and no slope appears over its values; and where the two runs of a point do
//! not agree, its interval holds both and a caveat says so.

mod passes;
mod point;
mod points_session;
mod points_table;
mod snippet_list;
mod study;

pub use point::{OtherVariant, PointLabel, PointRow, RunPoint};
pub use points_session::PointsSession;
pub use points_table::tabulate_points;
pub use snippet_list::{ListedSnippet, read_list};
pub use study::INFO;
pub use study::{ExplainFailure, NAME, PointRun, PointsStudy, ResumedPoints, failure_fields};
