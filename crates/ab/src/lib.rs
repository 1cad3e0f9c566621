//! Two programs, or two sets of benchmarks: slower, faster, the same?
//!
//! A **pair** is one run of each program, next to each other in time and in random order. A run is one observation, however much it
//! measures: what differs between runs of one program, the layout of its memory above all, is found in no single run. The
//! logarithm of a pair's ratio says how much the new program takes more.
//!
//! Two programs that are the same have no preferred sign in any pair, since chance chose which one ran first: whatever else happened on
//! the machine, an interval between order statistics of the ratios holds 0 as often as it says. That needs no assumption on the noise.
//! A change is said where two batches of pairs, one after the other, say it alike.
//!
//! This room decides and reads; it starts no program. Limits: a program's own code lies where its linker put it. Two builds whose code
//! is the same at other addresses may differ for good, and are told as different where they do by more than a quarter of what counts as the
//! same; only several builds of both tell that from a change of the code.

#![warn(unreachable_pub)]

mod builds;
mod paired_comparison;
mod recorded_runs;
mod samples;
#[cfg(test)]
mod simulated;

pub use builds::judge_over_builds;
pub use paired_comparison::{ChangeVerdict, ComparisonOutcome, PairedComparison, SAME_WITHIN, UnclearReason};
pub use recorded_runs::{RUNS_LEAST, compare_with_recorded};
pub use samples::{BadSamples, BenchmarkFigures, parse_figures, read_figures};
