//! Options of `run` on many points.

use super::exports::ExportArgs;
use super::sweep::Sweep;
use clap::Args;
use std::path::PathBuf;
use std::str::FromStr;

const POINTS_HEADING: &str = "Many at once";

/// Options on many points.
#[derive(Debug, Clone, Default, Args)]
pub struct PointsArgs {
    /// Measure at each value of a variable, `N=64..1M*2`, `N=0..100+20` or `N=64,100,4K`: {N}, {N*8} or {N/64} stands for it
    /// in every option and in the text of a snippet
    #[arg(help_heading = POINTS_HEADING, long, value_name = "N=VALUES", value_parser = Sweep::from_str, conflicts_with = "counts")]
    pub sweep: Option<Sweep>,
    /// Measure each snippet of a file: one a line, or a CSV file with the columns snippet or hex, and optionally name and init
    #[arg(help_heading = POINTS_HEADING, long, value_name = "FILE",
        conflicts_with_all = ["snippet", "file", "hex", "c", "lib", "elf", "versus", "sweep", "counts"])]
    pub from: Option<PathBuf>,
    /// Write the machine's facts and each point, as soon as it is measured, to a new file of JSON lines
    #[arg(help_heading = POINTS_HEADING, long, value_name = "FILE", conflicts_with = "resume")]
    pub out: Option<PathBuf>,
    /// Resume what was interrupted; the command is read from the file
    #[arg(help_heading = POINTS_HEADING, long, value_name = "FILE", conflicts_with = "evidence")]
    pub resume: Option<PathBuf>,
    /// Files of the table and pictures of it.
    #[command(flatten, next_help_heading = POINTS_HEADING)]
    pub exports: ExportArgs,
}

impl PointsArgs {
    /// Whether anything was given that is for many points.
    pub fn is_given(&self) -> bool {
        let is_file = self.out.is_some() || self.resume.is_some() || self.exports.has(&["csv", "plots"]);
        is_file || self.sweep.is_some() || self.from.is_some()
    }
}
