//! Options of `instr`.

use super::exports::ExportArgs;
use super::serialized;
use clap::Args;
use std::path::PathBuf;

const SELECTION_HEADING: &str = "What to measure";
const RESULTS_HEADING: &str = "Where results go";

/// Options of `instr`.
#[derive(Debug, Clone, Args, serde::Serialize)]
#[command(
    after_help = "A form is an instruction with one kind of operand in each place. A filter is a glob over four names of \
    a form, `add`, `add r64, r64`, `Add_r64_rm64` (iced's Code) and `Add_r64_rm64 r64, r64`; case does not matter. A list \
    for --from is a CSV file whose first line names its columns: instruction, and optionally operands (`*` means all), size \
    (bits of the largest register), isa (as --isa has it), immediate (numbers, each a row), measure (latency, throughput or \
    both) and init (assembly that runs once before); or, in the place of an instruction, sequence (assembly that is measured \
    as one). --resume FILE alone resumes an interrupted survey."
)]
pub struct InstrArgs {
    /// Measure forms that a glob matches, such as `vpadd*` or `add r64, *`; several are a union
    #[arg(value_name = "FILTER")]
    pub filters: Vec<String>,
    /// Also measure all forms of these mnemonics
    #[arg(help_heading = SELECTION_HEADING, long, value_name = "NAME", value_delimiter = ',')]
    pub mnemonic: Vec<String>,
    /// Keep only forms that need one of these CPUID features, such as avx512bw, and none of those with a `!` before
    /// them, such as '!avx512f'
    #[arg(help_heading = SELECTION_HEADING, long, value_name = "NAME", value_delimiter = ',')]
    pub isa: Vec<String>,
    /// Measure all forms of all instructions, which takes minutes
    #[arg(help_heading = SELECTION_HEADING, long)]
    pub all: bool,
    /// Measure your own list, a CSV file; filters then choose from it
    #[arg(help_heading = SELECTION_HEADING, long, value_name = "FILE")]
    #[serde(serialize_with = "serialized::optional_path")]
    pub from: Option<PathBuf>,
    /// Measure nothing, and list the forms that would be measured or skipped
    #[arg(help_heading = SELECTION_HEADING, long, conflicts_with_all = ["out", "resume", "csv", "markdown", "explain"])]
    #[serde(skip)]
    pub list: bool,
    /// Measure a few forms, and show all programs, their figures and how the row follows from them
    #[arg(help_heading = SELECTION_HEADING, long, value_name = "CODE",
          conflicts_with_all = ["filters", "mnemonic", "all", "out", "resume", "csv", "markdown"])]
    pub explain: Option<String>,
    /// Write the machine's facts and each row, as soon as it is measured, to a new file of JSON lines
    #[arg(help_heading = RESULTS_HEADING, long, value_name = "FILE", conflicts_with = "resume")]
    #[serde(skip)]
    pub out: Option<PathBuf>,
    /// Resume an interrupted survey; options that are given must match the file, the others are read from it
    #[arg(help_heading = RESULTS_HEADING, long, value_name = "FILE")]
    #[serde(skip)]
    pub resume: Option<PathBuf>,
    /// Files of the table.
    #[command(flatten, next_help_heading = RESULTS_HEADING)]
    #[serde(skip)]
    pub exports: ExportArgs,
}
