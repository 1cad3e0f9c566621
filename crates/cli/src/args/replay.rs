//! Options of `replay`.

use super::serialized;
use clap::Args;
use std::path::PathBuf;

/// Options of `replay`.
#[derive(Debug, Args, serde::Serialize)]
pub struct ReplayArgs {
    /// Directory that --evidence wrote
    #[arg(value_name = "DIR")]
    #[serde(serialize_with = "serialized::path")]
    pub dir: PathBuf,
    /// Measure again on this machine, with the same code, plan and seed; --clock, --cpu, --seed,
    /// --quick and --evidence apply only here
    #[arg(long)]
    pub measure: bool,
}
