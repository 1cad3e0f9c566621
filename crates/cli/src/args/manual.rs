//! Options of `manual`.

use clap::Args;
use std::path::PathBuf;

/// Options of `manual`.
#[derive(Debug, Args)]
pub struct ManualArgs {
    /// Directory for data of programs, such as /usr/local/share; created if it is missing
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
}
