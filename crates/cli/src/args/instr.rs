//! Options of `instr`.

use super::counters::EventArgs;
use super::exports::ExportArgs;
use super::mode::ModeArgs;
use super::serialized;
use clap::Args;
use std::path::PathBuf;

const SELECTION_HEADING: &str = "What to measure";
const RESULTS_HEADING: &str = "Where results go";

/// Options of `instr`.
#[derive(Debug, Clone, Args, serde::Serialize)]
#[command(
    after_help = "A form is an instruction with one kind of operand in each place. A filter is a glob over four names \
    of a form: `add`, `add r64, r64`, `Add_r64_rm64` (iced's Code) and `Add_r64_rm64 r64, r64`; case is ignored. A \
    --from list is a CSV file whose first line names its columns: instruction, and optionally operands (`*` for all), \
    size (bits of the largest register), isa (as for --isa), immediate (numbers, one row each), measure (latency, \
    throughput or both) and init (assembly that runs once before). The column sequence replaces instruction and holds \
    assembly that is measured as one. --resume FILE alone resumes an interrupted survey."
)]
pub struct InstrArgs {
    /// Measure forms that match any of these globs, such as `vpadd*` or `add r64, *`
    #[arg(value_name = "FILTER")]
    pub filters: Vec<String>,
    /// Also measure all forms of these mnemonics, separated by commas
    #[arg(help_heading = SELECTION_HEADING, long, value_name = "NAME", value_delimiter = ',')]
    pub mnemonic: Vec<String>,
    /// Keep only forms that need one of these CPUID features, such as avx512bw; exclude those of a
    /// feature with `!`, such as '!avx512f'
    #[arg(help_heading = SELECTION_HEADING, long, value_name = "NAME", value_delimiter = ',')]
    pub isa: Vec<String>,
    /// Measure all forms of all instructions; takes minutes
    #[arg(help_heading = SELECTION_HEADING, long)]
    pub all: bool,
    /// Measure the rows of your own CSV file; filters select among them
    #[arg(help_heading = SELECTION_HEADING, long, value_name = "FILE")]
    #[serde(serialize_with = "serialized::optional_path")]
    pub from: Option<PathBuf>,
    #[command(flatten)]
    #[serde(flatten)]
    pub code_mode: ModeArgs,
    /// List the forms that would be measured or skipped, and measure nothing
    #[arg(help_heading = SELECTION_HEADING, long, conflicts_with_all = ["out", "resume", "csv", "markdown", "explain"])]
    #[serde(skip)]
    pub list: bool,
    /// Measure a few forms; show all programs, their measured costs and how the row follows from
    /// them
    #[arg(help_heading = SELECTION_HEADING, long, value_name = "CODE",
          conflicts_with_all = ["filters", "mnemonic", "all", "out", "resume", "csv", "markdown", "counters"])]
    pub explain: Option<String>,
    /// Write the machine's facts and each measured row to a new JSON-lines file
    #[arg(help_heading = RESULTS_HEADING, long, value_name = "FILE", conflicts_with = "resume")]
    #[serde(skip)]
    pub out: Option<PathBuf>,
    /// Resume an interrupted --out file; its options apply, and any given here must match them
    #[arg(help_heading = RESULTS_HEADING, long, value_name = "FILE")]
    #[serde(skip)]
    pub resume: Option<PathBuf>,
    #[command(flatten)]
    #[serde(flatten)]
    pub events: EventArgs,
    /// Table files to write.
    #[command(flatten, next_help_heading = RESULTS_HEADING)]
    #[serde(skip)]
    pub exports: ExportArgs,
}
