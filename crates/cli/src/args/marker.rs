//! Options of `marker`.

use super::counters::EventArgs;
use super::exports::ExportArgs;
use super::mode::ModeArgs;
use super::serialized;
use clap::Args;
use std::path::PathBuf;

const SELECTION_HEADING: &str = "What to measure";
const PRINT_HEADING: &str = "What to print";

/// Options of `marker`.
#[derive(Debug, Clone, Args, serde::Serialize)]
#[command(
    after_help = "A marker is a tracing site in a loop. Its cost is the time of the loop with it minus the time \
    without it; both are measured in turn at 16 offsets in a cache line. By default, all designs are measured in all \
    their states, in an empty loop and around a memcpy of 4096 bytes. This takes less than a minute, with --quick ten \
    seconds, with --all five minutes."
)]
#[command(mut_arg("bits", |bits| bits
    .help("Mode of the markers' code: 64, or 32 for 32-bit code, with arguments on the stack [default: 64]")
    .conflicts_with_all(["around", "around_snippet"])))]
pub struct MarkerArgs {
    /// Measure designs that match any of these globs, such as `flag` or `static-key-*` [default:
    /// all]
    #[arg(value_name = "DESIGN")]
    pub designs: Vec<String>,
    /// Loops to put the markers in, separated by commas [default: empty,memcpy]
    #[arg(help_heading = SELECTION_HEADING, long, value_name = "NAME", value_delimiter = ',')]
    pub context: Vec<String>,
    /// Marker states to measure, separated by commas; the added cost of a state also needs the
    /// state before it [default: all]
    #[arg(help_heading = SELECTION_HEADING, long, value_name = "NAME", value_delimiter = ',')]
    pub state: Vec<String>,
    /// Measure in all loops
    #[arg(help_heading = SELECTION_HEADING, long, conflicts_with = "context")]
    pub all: bool,
    #[command(flatten, next_help_heading = SELECTION_HEADING)]
    #[serde(flatten)]
    pub code_mode: ModeArgs,
    /// C file with `static inline void around(void *memory)`, the body of the loop; the marker
    /// follows it, or replaces MARKER() in it
    #[arg(help_heading = SELECTION_HEADING, long, value_name = "FILE", conflicts_with_all = ["context", "all"])]
    #[serde(serialize_with = "serialized::optional_path")]
    pub around: Option<PathBuf>,
    /// Intel-syntax assembly as the body of the loop
    #[arg(help_heading = SELECTION_HEADING, long, value_name = "CODE", allow_hyphen_values = true,
        conflicts_with_all = ["context", "all", "around"])]
    pub around_snippet: Option<String>,
    /// More flags, in one argument, for the C compiler; used for your own loop and the designs of
    /// packages
    #[arg(help_heading = SELECTION_HEADING, long, value_name = "WORDS", allow_hyphen_values = true)]
    pub cflags: Option<String>,
    /// List designs, states and loops, and measure nothing
    #[arg(help_heading = SELECTION_HEADING, long, conflicts_with_all = ["plots", "assembly"])]
    #[serde(skip)]
    pub list: bool,
    /// Print the compiled code of each design with and without the marker, and the instructions on
    /// each path; measure nothing
    #[arg(help_heading = PRINT_HEADING, long, conflicts_with = "plots")]
    #[serde(skip)]
    pub assembly: bool,
    /// Print every cost with its interval, bytes and notes [default: one screen if most designs were
    /// measured]
    #[arg(help_heading = PRINT_HEADING, long, conflicts_with_all = ["list", "assembly"])]
    #[serde(skip)]
    pub why: bool,
    #[command(flatten)]
    #[serde(flatten)]
    pub events: EventArgs,
    /// Picture files to write.
    #[command(flatten, next_help_heading = PRINT_HEADING)]
    #[serde(skip)]
    pub exports: ExportArgs,
}
