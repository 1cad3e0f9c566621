//! Many points of one question: the values of a sweep, or the snippets of a list. Implements `run
//! --sweep` and `run --from`.
//!
//! Two passes over the points measure each point twice, each time with half the budget and the same
//! engine and plan. One executor runs each pass in a different random order. If the core slows down
//! or background load runs for a while, neighbouring points of a sweep scatter, and no false slope
//! appears. If the two runs of a point disagree, its interval holds both, and a caveat reports it.

mod passes;
mod point;
mod points_session;
mod points_table;
mod snippet_list;
mod study;

pub use point::{OtherVariant, PointLabel, PointRow, PointVariant, RunPoint};
pub use points_session::PointsSession;
pub use points_table::{counter_names, tabulate_points};
pub use snippet_list::{ListedSnippet, read_list};
pub use study::INFO;
pub use study::{ExplainFailure, NAME, PointRun, PointsStudy, ResumedPoints, failure_fields};
