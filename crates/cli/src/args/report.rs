//! Options of `report`.

use clap::Args;
use std::path::PathBuf;

/// Options of `report`.
#[derive(Debug, Args)]
#[command(after_help = "Files are those that --out and --json write, of one machine or several; a published table of \
    instructions is a CSV file, as for compare. The page opens from disk and loads nothing: send it, or attach it.")]
pub struct ReportArgs {
    /// Result files: lines of JSON from any command, or a published table of instructions as CSV
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// The page to write
    #[arg(short, long, value_name = "PAGE")]
    pub output: PathBuf,
    /// Title of the page
    #[arg(long, value_name = "TEXT", default_value = "cyclescope report")]
    pub title: String,
}
