//! Options of `run` for many points: sweeps, lists of snippets and result files.

use super::exports::ExportArgs;
use super::sweep::Sweep;
use clap::Args;
use std::path::PathBuf;
use std::str::FromStr;

pub(super) const POINTS_HEADING: &str = "Many points";

/// Options for measuring many points with one command.
#[derive(Debug, Clone, Default, Args)]
pub struct PointsArgs {
    /// Measure once per value of a variable: `N=64..1M*2`, `N=0..100+20`, `N=64,100,4K`, or words
    /// such as `F=-O2|-O3 -march=native`. {N}, or of a number {N*8} or {N/64}, inserts the value into
    /// any option or the snippet
    #[arg(help_heading = POINTS_HEADING, long, value_name = "N=VALUES", value_parser = Sweep::from_str, conflicts_with = "counts")]
    pub sweep: Option<Sweep>,
    /// Write the machine's facts and each measured point to a new JSON-lines file
    #[arg(help_heading = POINTS_HEADING, long, value_name = "FILE", conflicts_with = "resume")]
    pub out: Option<PathBuf>,
    /// Resume an interrupted --out file, which holds the command
    #[arg(help_heading = POINTS_HEADING, long, value_name = "FILE", conflicts_with = "evidence")]
    pub resume: Option<PathBuf>,
    /// Table and picture files to write.
    #[command(flatten, next_help_heading = POINTS_HEADING)]
    pub exports: ExportArgs,
}

impl PointsArgs {
    /// Whether the command line has one of these options that needs many points.
    pub fn is_given(&self) -> bool {
        let is_file = self.out.is_some() || self.resume.is_some() || self.exports.has(&["csv", "plots"]);
        is_file || self.sweep.is_some()
    }
}
