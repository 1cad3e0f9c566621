//! How big everything in this core is: `uarch`.
//!
//! Sizes of structures are found without counters: two chains of slow instructions run at once as
//! long as the core can hold what is between them (`overlap`). The search for the count at which
//! that ends (`search`, `knee`) and what it proves (`trial`, `verdict`) are the same for all of
//! them, and what another thread takes of them is met by looking again (`watch`). Levels, each
//! larger and slower than the one before, are found by what a step costs (`cost`, `plateau`,
//! `climb`, `levels`), and what an event costs by a program without it (`contrast`). How many of
//! something a core does in a cycle is one by its cost (`rates`), and how many events are on their
//! way at once by what batches of them take (`batches`). Which instructions wait in the same queue
//! is told by what those that wait leave of one (`queues`). Instructions that want the same units
//! are found by mixing two classes of them (`mixture`), costs by place one by one (`map`), what
//! another CPU shares by keeping it busy (`sharing`), and how long a line takes between two CPUs by
//! messages through it (`exchange`). What a guest gets of the machine is read from all of it
//! (`environment`). A test is data (`test`), one file each, and a line in a list.

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

pub use study::INFO;
