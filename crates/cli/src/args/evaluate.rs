//! Options of `evaluate`.

use super::counters::EventArgs;
use super::exports::ExportArgs;
use super::mode::ModeArgs;
use super::number::{MEASURING_HEADING, parse_seconds};
use clap::Args;

/// Options of `evaluate`.
#[derive(Debug, Args, serde::Serialize)]
#[command(mut_arg("bits", |bits| bits.help("Mode that the methods run in: 64, or 32 for 32-bit code [default: 64]")))]
pub struct EvaluateArgs {
    /// More timing methods to evaluate, as with --clock
    #[arg(value_name = "CLOCK")]
    pub clocks: Vec<String>,
    #[command(flatten, next_help_heading = MEASURING_HEADING)]
    #[serde(flatten)]
    pub code_mode: ModeArgs,
    /// Ensembles of samples per method; slow methods and short budgets get fewer [default: 1000,
    /// with --quick 100]
    #[arg(help_heading = MEASURING_HEADING, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub ensembles: Option<u32>,
    /// Samples per ensemble [default: 100000]
    #[arg(help_heading = MEASURING_HEADING, long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=3_000_000))]
    pub samples: Option<u32>,
    /// Readings per length of the staircases, up to the paper's 100000, however long they take:
    /// minutes per method, or an hour for CPUID methods in a virtual machine [default: as many as
    /// fit half a second]
    #[arg(help_heading = MEASURING_HEADING, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub resolution_samples: Option<u32>,
    /// Seconds for the whole run. By default, each method with samples above 200 ticks or 2 µs gets
    /// one second, with --quick 0.15 [default: 88, with --quick 13; no limit with --ensembles,
    /// --samples or --resolution-samples]
    #[arg(help_heading = MEASURING_HEADING, long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub budget: Option<f64>,
    /// Also print each ensemble: a JSON line, or as text a line in the paper's form
    #[arg(help_heading = "What to print", long)]
    #[serde(skip)]
    pub series: bool,
    /// Print every table and reason [default: the verdict and the methods if most were measured]
    #[arg(help_heading = "What to print", long)]
    #[serde(skip)]
    pub why: bool,
    #[command(flatten)]
    #[serde(flatten)]
    pub events: EventArgs,
    /// Picture files to write.
    #[command(flatten, next_help_heading = "What to print")]
    #[serde(skip)]
    pub exports: ExportArgs,
}
