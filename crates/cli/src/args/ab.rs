//! Options of `ab`.

use super::number::{parse_positive, parse_seconds};
use super::serialized;
use clap::Args;
use std::path::PathBuf;

const VERDICT_HEADING: &str = "What is said";

/// Options of `ab`.
#[derive(Debug, Args, serde::Serialize)]
#[command(
    override_usage = "cyclescope ab [OPTIONS] OLD NEW\n       cyclescope ab [OPTIONS] --out FILE PROGRAM\n       \
    cyclescope ab [OPTIONS] --against FILE NEW",
    after_help = "A program is one argument with its own arguments, such as 'sort -n numbers.txt'; no shell runs it, unless \
    it is named: \"sh -c '...'\". Its CPU time is compared. A program that writes samples of benchmarks to the file named \
    by CYCLESCOPE_AB, as the crate cyclescope-clock does, is compared benchmark by benchmark."
)]
pub struct AbArgs {
    /// OLD and NEW; with --against NEW alone; with --out one alone, to record it
    #[arg(value_name = "PROGRAM", required = true, num_args = 1..=2)]
    pub programs: Vec<String>,
    /// A change by less than this is `same`; `slower` and `faster` are by more than a quarter of it [default: 1%]
    #[arg(help_heading = VERDICT_HEADING, long, value_name = "SHARE", value_parser = parse_share)]
    #[serde(serialize_with = "serialized::percent")]
    pub within: Option<f64>,
    /// Exit with 6 where a benchmark is slower, and may be so by this much: its interval reaches it
    #[arg(help_heading = VERDICT_HEADING, long, value_name = "SHARE", value_parser = parse_share)]
    #[serde(serialize_with = "serialized::percent")]
    pub fail_on_slower: Option<f64>,
    /// Exit with 5 where a benchmark is unclear
    #[arg(help_heading = VERDICT_HEADING, long)]
    pub fail_on_unclear: bool,
    /// Print the result as Markdown, for a pull request
    #[arg(help_heading = VERDICT_HEADING, long, conflicts_with = "json")]
    #[serde(skip)]
    pub markdown: bool,
    /// Compare with the runs in a file that --out wrote, those of its last program
    #[arg(long, value_name = "FILE")]
    #[serde(serialize_with = "serialized::optional_path")]
    pub against: Option<PathBuf>,
    /// Write each run and the result to a new file of JSON lines
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub out: Option<PathBuf>,
    /// Append what the programs print to a file [default: it is discarded]
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub output: Option<PathBuf>,
    /// Compare the CPU time of whole programs, also where they have benchmarks
    #[arg(long)]
    pub whole: bool,
    /// Builds of each program, of the same source but linked in another order or padded otherwise: {build} in OLD and NEW stands
    /// for 1 to N. What holds for some builds only is unclear
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(3..=64), conflicts_with = "against")]
    pub builds: Option<u32>,
    /// Seconds for each benchmark; a batch has 12 pairs of runs at least, whatever time they take [default: 10, with
    /// --quick 3]
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub budget: Option<f64>,
    /// Seconds after which a run is ended [default: 60]
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub timeout: Option<f64>,
}

/// A share, as in 1% or 0.01.
fn parse_share(text: &str) -> Result<f64, String> {
    let value = match text.strip_suffix('%') {
        Some(percent) => parse_positive(percent)? / 100.0,
        None => parse_positive(text)?,
    };
    if value < 1.0 { Ok(value) } else { Err("expected less than 100%".to_string()) }
}
