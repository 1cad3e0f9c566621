//! The study `uarch`: sizes, costs and rates of the structures of this core.
//!
//! It finds sizes without performance counters. Two chains of slow instructions overlap while the
//! core can hold all instructions between them (`overlap`). A search finds the count at which the
//! overlap ends (`knee_search`, `knee`), and `verdict` judges it. `size_watch` measures sizes
//! again later, as a sibling may take a part of a structure. Other experiments:
//!
//! - levels of caches and predictors, from the cost of a step by count (`cost`, `plateau`,
//!   `level_curves`, `level_records`)
//! - costs of events, as the difference from a control (`contrast`), and costs by place
//!   (`cost_map`)
//! - rates and latencies, from the cost of a step (`rates`); those of memory that others use too,
//!   at several times (`shared_figures`)
//! - how long a slow start lasts (`fade`)
//! - how much more room code takes than other code (`rooms`)
//! - events in flight at once, from the cost of batches (`batches`)
//! - queues and units that classes of instructions share (`queues`, `mixture`)
//! - resources that two CPUs share (`sharing`, `partition`), and the time of a line from one CPU to
//!   another (`exchange`)
//! - the share of the machine that a guest gets, from all results (`environment`)
//!
//! Tests are data (`spec`), in the files of their topics; `test_list` lists all topics.

#![warn(unreachable_pub)]

mod agner_scripts;
mod batches;
mod conditions;
mod contrast;
mod cost;
mod cost_map;
mod cost_spread;
mod cpu_resources;
mod earlier_result;
mod environment;
mod exchange;
mod exchange_pairs;
mod execution;
mod fade;
mod front_end;
mod knee;
mod knee_counter;
mod knee_counts;
mod knee_search;
mod level_curves;
mod level_limit;
mod level_records;
mod memory;
mod mixture;
mod null_number;
mod numbering;
mod overlap;
mod overlap_test;
mod partition;
mod plateau;
mod queues;
mod random_visits;
mod rate_bound;
mod rates;
mod record;
mod remotes;
mod reported_machine;
mod resumed_tests;
mod rooms;
mod shared_figures;
mod sharing;
mod size_watch;
mod spec;
mod step_counts;
mod study;
mod test_list;
mod test_runner;
#[cfg(test)]
mod tests;
mod verdict;
mod window;

pub use cost::CostPoint;
pub use cost_spread::{QuantileRecord, SpreadRecord};
pub use knee::KneeEdges;
pub use knee_counter::KneeCounter;
pub use overlap::OverlapReading;
pub use plateau::{CurveLevel, LevelEnd};
pub use record::{DisplacedRecord, FillerRecord, PairRecord, PlaceRecord, RateRecord, UarchRecord, WalkRecord};
pub use spec::TestedPart;
pub use study::INFO;
pub use verdict::{VerdictKind, WitnessResult};
