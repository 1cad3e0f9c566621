//! Options of `all`.

use clap::Args;
use std::path::PathBuf;

/// Options of `all`.
#[derive(Debug, Clone, Args, serde::Serialize)]
#[command(after_help = "Each command writes a file of JSON lines to the directory. The same command continues after \
    anything: completed files stay, and interrupted ones are resumed or made again. What this machine can't do is left \
    out with its reason. It takes some ten minutes, with --quick some five.")]
pub struct AllArgs {
    /// Directory for the results; created if it is missing
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// Also write all results as one archive, a compressed tar file
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub pack: Option<PathBuf>,
}
