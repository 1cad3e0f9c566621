//! Compares programs, or sets of benchmarks: slower, faster, or the same?
//!
//! A **pair** is one run of each program, back to back and in random order. A run is one
//! observation, however much it measures. Some variation, above all of the memory layout, exists
//! only between runs, so a single run cannot show it. The logarithm of a pair's ratio says how much
//! longer the new program takes.
//!
//! If two programs are the same, no sign is preferred in any pair, since chance chose which one ran
//! first. So an interval between order statistics of the ratios contains 0 as often as it claims,
//! whatever else happened on the machine. No assumption about the noise is needed. A change is
//! reported only if two consecutive batches of pairs agree on it. Several programs are compared pair
//! by pair, with a correction for the number of pairs: see [`ProgramRanking`].
//!
//! This crate decides and reads files; it starts no program. Limit: the linker chooses the
//! addresses of a program's code. Two builds with the same code at other addresses may differ
//! permanently. If the difference exceeds a quarter of what counts as the same, it is reported.
//! Only several builds of both programs separate it from a change of the code.

#![warn(unreachable_pub)]

mod builds;
mod paired_comparison;
mod program_ranking;
mod recorded_runs;
mod samples;
#[cfg(test)]
mod simulated;

pub use builds::judge_over_builds;
pub use paired_comparison::{ChangeVerdict, ComparisonOutcome, PairedComparison, SAME_WITHIN, UnclearReason};
pub use program_ranking::{ProgramRanking, RankingOutcome};
pub use recorded_runs::{RUNS_LEAST, compare_with_recorded};
pub use samples::{BadSamples, BenchmarkFigures, RunSamples, parse_samples, read_samples};
