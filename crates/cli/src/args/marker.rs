//! Options of `marker`.

use super::exports::ExportArgs;
use super::serialized;
use clap::Args;
use std::path::PathBuf;

const SELECTION_HEADING: &str = "What to measure";
const PRINT_HEADING: &str = "What to print";

/// Options of `marker`.
#[derive(Debug, Clone, Args, serde::Serialize)]
#[command(after_help = "A marker is a tracing site in a loop. Its cost is the loop with it less the loop without it, \
    measured in turn at 16 places in a cache line. Without names all designs are measured in all their states, in an empty \
    loop and in a loop of memcpy of 4096 bytes, which takes less than a minute; --quick takes less than ten seconds, \
    --all less than five minutes.")]
pub struct MarkerArgs {
    /// Measure designs that a glob matches, such as `flag` or `static-key-*`; several are a union [default: all]
    #[arg(value_name = "DESIGN")]
    pub designs: Vec<String>,
    /// The loops that markers are in [default: empty,memcpy]
    #[arg(help_heading = SELECTION_HEADING, long, value_name = "NAME", value_delimiter = ',')]
    pub context: Vec<String>,
    /// The states that markers are in; what a state adds is shown if the one before it is measured too [default: all]
    #[arg(help_heading = SELECTION_HEADING, long, value_name = "NAME", value_delimiter = ',')]
    pub state: Vec<String>,
    /// Measure in all loops
    #[arg(help_heading = SELECTION_HEADING, long, conflicts_with = "context")]
    pub all: bool,
    /// A C file that defines `static inline void around(void *memory)`, the body of the loop that markers are in; the
    /// marker is placed after it, or where MARKER() is in it
    #[arg(help_heading = SELECTION_HEADING, long, value_name = "FILE", conflicts_with_all = ["context", "all"])]
    #[serde(serialize_with = "serialized::optional_path")]
    pub around: Option<PathBuf>,
    /// Intel-syntax assembly as the body of the loop that markers are in
    #[arg(help_heading = SELECTION_HEADING, long, value_name = "CODE", allow_hyphen_values = true,
        conflicts_with_all = ["context", "all", "around"])]
    pub around_snippet: Option<String>,
    /// Further flags for the C compiler that compiles your own loop and the designs of packages; in one argument
    #[arg(help_heading = SELECTION_HEADING, long, value_name = "WORDS", allow_hyphen_values = true)]
    pub cflags: Option<String>,
    /// Measure nothing, and list designs, states and contexts
    #[arg(help_heading = SELECTION_HEADING, long, conflicts_with_all = ["plots", "assembly"])]
    #[serde(skip)]
    pub list: bool,
    /// Print what each design was compiled to, with and without the marker, and which instructions are on which path
    #[arg(help_heading = PRINT_HEADING, long)]
    #[serde(skip)]
    pub assembly: bool,
    /// Pictures.
    #[command(flatten, next_help_heading = PRINT_HEADING)]
    #[serde(skip)]
    pub exports: ExportArgs,
}
