//! Options of `ports`.

use super::exports::ExportArgs;
use super::serialized;
use clap::Args;
use std::path::PathBuf;

const RESULTS_HEADING: &str = "Where results go";

/// Options of `ports`.
#[derive(Debug, Clone, Args, serde::Serialize)]
#[command(after_help = "A form is an instruction with one kind of operand in each place; see instr.")]
pub struct PortsArgs {
    /// Measure forms that match any of these globs, such as `vpadd*` or `add r64, *`
    #[arg(value_name = "FILTER", required_unless_present_any = ["pair", "resume"])]
    pub filters: Vec<String>,
    /// Measure whether two forms get into each other's way
    #[arg(long, num_args = 2, value_names = ["FORM", "FORM"], conflicts_with_all = ["filters", "out", "resume"])]
    pub pair: Vec<String>,
    /// Show the mixes that decided each verdict
    #[arg(long, conflicts_with_all = ["pair", "out", "resume"])]
    pub explain: bool,
    /// Take dispatch slots from this result file of `instr` on this machine, and measure only those that it
    /// lacks
    #[arg(long, value_name = "FILE")]
    #[serde(serialize_with = "serialized::optional_path")]
    pub instr: Option<PathBuf>,
    /// Also show the vendor's names of ports, found by a published map of the same design: a text file
    /// with a line for each form, such as `add r64, r64: 1*p0156`
    #[arg(long, value_name = "FILE", conflicts_with = "pair")]
    #[serde(serialize_with = "serialized::optional_path")]
    pub names: Option<PathBuf>,
    /// Write the machine's facts and each row to a new JSON-lines file
    #[arg(help_heading = RESULTS_HEADING, long, value_name = "FILE", conflicts_with = "resume")]
    #[serde(skip)]
    pub out: Option<PathBuf>,
    /// Resume an interrupted --out file
    #[arg(help_heading = RESULTS_HEADING, long, value_name = "FILE")]
    #[serde(skip)]
    pub resume: Option<PathBuf>,
    /// Table files to write.
    #[command(flatten, next_help_heading = RESULTS_HEADING)]
    #[serde(skip)]
    pub exports: ExportArgs,
}
