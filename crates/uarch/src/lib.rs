//! How big everything in this core is: `uarch`.
//!
//! Sizes of structures are found without counters: two chains of slow instructions overlap while
//! the core can hold all that is between them (`overlap`). A search (`knee_search`, `knee`) finds
//! the count at which the overlap ends, and `verdict` decides what that proves. `size_watch`
//! repeats it, since a sibling may take a part of a structure. Other experiments:
//!
//! - levels of caches and predictors, from the cost of a step by count (`cost`, `plateau`,
//!   `level_curves`, `level_records`)
//! - costs of events, as the difference from a control (`contrast`), and costs by place
//!   (`cost_map`)
//! - rates and latencies, from the cost of a step (`rates`)
//! - events on their way at once, from the cost of batches (`batches`)
//! - queues that classes of instructions share (`queues`), and units that they share (`mixture`)
//! - what another CPU shares (`sharing`, `partition`), and how long a line takes between two CPUs
//!   (`exchange`)
//! - what a guest gets of the machine, from all of it (`environment`)
//!
//! A test is data (`spec`), in the file of its topic; `test_list` has all topics.

#![warn(unreachable_pub)]

mod agner_scripts;
mod batches;
mod conditions;
mod contrast;
mod cost;
mod cost_map;
mod cost_spread;
mod earlier_result;
mod environment;
mod exchange;
mod exchange_pairs;
mod execution;
mod front_end;
mod knee;
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
mod rate_bound;
mod rates;
mod record;
mod remotes;
mod reported_machine;
mod resumed_tests;
mod sharing;
mod size_watch;
mod spec;
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
pub use overlap::OverlapReading;
pub use plateau::{CurveLevel, LevelEnd};
pub use record::{DisplacedRecord, FillerRecord, PairRecord, PlaceRecord, RateRecord, UarchRecord, WalkRecord};
pub use spec::TestedPart;
pub use study::INFO;
pub use verdict::{VerdictKind, WitnessResult};
