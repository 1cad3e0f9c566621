//! Options of `evaluate`.

use super::exports::ExportArgs;
use super::number::{MEASURING_HEADING, parse_seconds};
use clap::Args;

/// Options of `evaluate`.
#[derive(Debug, Args, serde::Serialize)]
pub struct EvaluateArgs {
    /// Further timing methods, as after --clock
    #[arg(value_name = "CLOCK")]
    pub clocks: Vec<String>,
    /// Ensembles of samples of each method; fewer for slow methods, and where time is short [default: 1000,
    /// with --quick 100]
    #[arg(help_heading = MEASURING_HEADING, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub ensembles: Option<u32>,
    /// Samples in each ensemble [default: 100000]
    #[arg(help_heading = MEASURING_HEADING, long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=3_000_000))]
    pub samples: Option<u32>,
    /// Readings of each length of the staircases, up to the paper's 100000, whatever time they take: some minutes a
    /// method, and an hour with CPUID between its readings in a virtual machine [default: as many as fit half a second]
    #[arg(help_heading = MEASURING_HEADING, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub resolution_samples: Option<u32>,
    /// Seconds for everything; methods whose samples take more than 200 ticks or 2 µs get one second each, with --quick
    /// 0.15, unless this is given
    /// [default: 88, with --quick 13; none with --ensembles, --samples or --resolution-samples]
    #[arg(help_heading = MEASURING_HEADING, long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub budget: Option<f64>,
    /// Print each ensemble too (with --json)
    #[arg(help_heading = "What to print", long)]
    #[serde(skip)]
    pub series: bool,
    /// Pictures.
    #[command(flatten, next_help_heading = "What to print")]
    #[serde(skip)]
    pub exports: ExportArgs,
}
