//! Options of `ab`.

use super::number::{parse_positive, parse_seconds};
use super::serialized;
use clap::Args;
use std::path::PathBuf;

/// Most programs. Each of their pairs is a comparison: 120 of 16 programs.
const PROGRAMS_MOST: usize = 16;
const VERDICT_HEADING: &str = "Verdict";

/// Options of `ab`.
#[derive(Debug, Args, serde::Serialize)]
#[command(
    override_usage = "cyclescope ab [OPTIONS] OLD NEW...\n       cyclescope ab [OPTIONS] --out FILE PROGRAM\n       \
    cyclescope ab [OPTIONS] --against FILE NEW",
    after_help = "Quote each program with its arguments as one word, such as 'sort -n numbers.txt'. It runs without a \
    shell; name one if you need it: \"sh -c '...'\". Of more than two programs each is compared with the first, and \
    all are ranked. The comparison uses CPU time. A program that writes benchmark \
    samples to the file in CYCLESCOPE_AB, as the crate cyclescope-clock does, is compared benchmark by benchmark."
)]
pub struct AbArgs {
    /// The programs to compare: OLD and one NEW or more; only NEW with --against; only one program
    /// to record with --out
    #[arg(value_name = "PROGRAM", required = true, num_args = 1..=PROGRAMS_MOST)]
    pub programs: Vec<String>,
    /// Changes below this are `same`; `slower` and `faster` need more than a quarter of it
    /// [default: 1%]
    #[arg(help_heading = VERDICT_HEADING, long, value_name = "SHARE", value_parser = parse_share)]
    #[serde(serialize_with = "serialized::percent")]
    pub within: Option<f64>,
    /// Exit with 6 if a benchmark is slower than that of OLD and its interval reaches this change;
    /// with 5 if OLD has a benchmark that another program lacks
    #[arg(help_heading = VERDICT_HEADING, long, value_name = "SHARE", value_parser = parse_share)]
    #[serde(serialize_with = "serialized::percent")]
    pub fail_on_slower: Option<f64>,
    /// Exit with 5 if a benchmark is unclear, or if OLD has one that another program lacks
    #[arg(help_heading = VERDICT_HEADING, long)]
    pub fail_on_unclear: bool,
    /// Print the result as a Markdown table, for example for a pull request
    #[arg(help_heading = VERDICT_HEADING, long, conflicts_with = "json")]
    #[serde(skip)]
    pub markdown: bool,
    /// Compare NEW with the recorded runs in a file that --out wrote; of several programs, the last
    #[arg(long, value_name = "FILE")]
    #[serde(serialize_with = "serialized::optional_path")]
    pub against: Option<PathBuf>,
    /// Write each run and the result to a new JSON-lines file
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub out: Option<PathBuf>,
    /// Append what the programs print to this file [default: discard it]
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub output: Option<PathBuf>,
    /// Compare the CPU time of whole programs even if they write benchmark samples
    #[arg(long)]
    pub whole: bool,
    /// Compare N builds of each program, from the same source with another link order or padding.
    /// {build} in OLD and NEW becomes 1 to N. A change that only some builds show is unclear
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(3..=64), conflicts_with = "against")]
    pub builds: Option<u32>,
    /// Seconds to spend on each benchmark; at least 12 rounds of runs per batch, however long they
    /// take [default: 5 for each program, with --quick 1.5]
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub budget: Option<f64>,
    /// Seconds before a run is stopped [default: 60]
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub timeout: Option<f64>,
}

/// Parses a share, such as 1% or 0.01.
fn parse_share(text: &str) -> Result<f64, String> {
    let value = match text.strip_suffix('%') {
        Some(percent) => parse_positive(percent)? / 100.0,
        None => parse_positive(text)?,
    };
    if value < 1.0 { Ok(value) } else { Err("expected a share below 100%, such as 1% or 0.01".to_string()) }
}
