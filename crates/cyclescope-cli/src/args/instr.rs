//! Options of `instr`.

use clap::Args;
use std::path::PathBuf;

const WHICH: &str = "What to measure";
const WHERE: &str = "Where results go";

/// Options of `instr`.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "A form is an instruction with one kind of operand in each place. A filter is held against `add`, \
    `add r64, r64`, `Add_r64_rm64` (iced's Code) and `Add_r64_rm64 r64, r64`, in capitals or not. An own list is a \
    CSV file whose first line names its columns: instruction, and where wanted operands, measure (latency, throughput \
    or both) and init (assembly that runs once before). An interrupted survey goes on with --resume FILE alone."
)]
pub struct InstrArgs {
    /// Measure forms that a glob matches, such as `vpadd*` or `add r64, *`; several are a union
    #[arg(value_name = "FILTER")]
    pub filters: Vec<String>,
    /// Measure all forms of these mnemonics too
    #[arg(help_heading = WHICH, long, value_name = "NAME", value_delimiter = ',')]
    pub mnemonic: Vec<String>,
    /// Of these only forms that need one of these CPUID features, such as avx512bw
    #[arg(help_heading = WHICH, long, value_name = "NAME", value_delimiter = ',')]
    pub isa: Vec<String>,
    /// Measure all forms of all instructions, which takes minutes
    #[arg(help_heading = WHICH, long)]
    pub all: bool,
    /// Measure a list of one's own, a CSV file; filters then choose from it
    #[arg(help_heading = WHICH, long, value_name = "FILE")]
    pub from: Option<PathBuf>,
    /// Measure nothing, and list the forms that would be measured or skipped
    #[arg(help_heading = WHICH, long, conflicts_with_all = ["out", "resume", "csv", "markdown", "explain"])]
    pub list: bool,
    /// Measure a few forms, and show all programs, their figures and why the row says what it says
    #[arg(help_heading = WHICH, long, value_name = "CODE",
          conflicts_with_all = ["filters", "mnemonic", "all", "out", "resume", "csv", "markdown"])]
    pub explain: Option<String>,
    /// Keep facts of the machine and each row, as soon as it is measured, in a new file of JSON lines
    #[arg(help_heading = WHERE, long, value_name = "FILE", conflicts_with = "resume")]
    pub out: Option<PathBuf>,
    /// Go on with such a file; options that are given must be those of the file, the others are taken from it
    #[arg(help_heading = WHERE, long, value_name = "FILE")]
    pub resume: Option<PathBuf>,
    /// Write the table as CSV too
    #[arg(help_heading = WHERE, long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write the table as Markdown too
    #[arg(help_heading = WHERE, long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
}
