//! Options of the command line.

use clap::Parser;

/// Measures cyclescope itself and prints the results.
#[derive(Debug, Clone, Parser)]
#[command(name = "cyclescope-bench", version, max_term_width = 100)]
pub struct BenchOptions {
    /// Sections to run, in their order in the list [default: all]
    #[arg(value_name = "SECTION")]
    pub sections: Vec<String>,
    /// List the sections and what each proves
    #[arg(long)]
    pub list: bool,
    /// The long tests: a thousand intervals per chain over at least half an hour, the paper's
    /// hundred million samples
    #[arg(long)]
    pub full: bool,
    /// Measurements of each snippet in the section `coverage` [default: 72; 1000 with --full], and
    /// runs of each program in `programs` [default: 5; 20 with --full]
    #[arg(long, value_name = "N")]
    pub runs: Option<usize>,
    /// CPU to measure on [default: the last allowed one]
    #[arg(long, value_name = "N")]
    pub cpu: Option<u32>,
    /// Seed of all random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}
