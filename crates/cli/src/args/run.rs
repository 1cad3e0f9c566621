//! Options of `run`.

use super::call::CallArgs;
use super::common::parse_snippet;
use super::number::{MEASURING_HEADING, parse_confidence, parse_precision, parse_seconds};
use super::points::PointsArgs;
use super::serialized;
use clap::{Args, ValueEnum};
use cyclescope::measure::Precision;
use std::path::PathBuf;

/// Where the snippet comes from.
#[derive(Debug, Clone, Args, serde::Serialize)]
#[command(next_help_heading = "What to measure")]
#[group(required = false, multiple = false)]
pub struct SnippetSource {
    /// Assembly, statements separated by `;` or new lines; `-` reads standard input
    #[arg(value_name = "SNIPPET", allow_hyphen_values = true, help_heading = None, value_parser = parse_snippet)]
    pub snippet: Option<String>,
    /// Read the assembly from a file
    #[arg(long, value_name = "FILE")]
    #[serde(serialize_with = "serialized::optional_path")]
    pub file: Option<PathBuf>,
    /// The snippet as machine code, such as `48 0f af c0`
    #[arg(long, value_name = "BYTES")]
    pub hex: Option<String>,
    /// Compile a C or C++ file and measure its function `f(void *buffer)`, the cost of a call excluded, or the region in it
    /// that CYCLESCOPE_BODY(...) marks
    #[arg(long, value_name = "FILE")]
    #[serde(serialize_with = "serialized::optional_path")]
    pub c: Option<PathBuf>,
    /// Load a shared library and measure a function of it, named by --call
    #[arg(long, value_name = "FILE", requires = "call")]
    #[serde(serialize_with = "serialized::optional_path")]
    pub lib: Option<PathBuf>,
    /// Measure a function, named by --call, of an object file, an archive, an executable that runs at any address, or a shared
    /// library; it need not be exported
    #[arg(long, value_name = "FILE", requires = "call")]
    #[serde(serialize_with = "serialized::optional_path")]
    pub elf: Option<PathBuf>,
}

/// Options of `run`.
#[derive(Debug, Clone, Args, serde::Serialize)]
pub struct RunArgs {
    #[command(flatten)]
    #[serde(flatten)]
    pub source: SnippetSource,
    /// Assembly that runs once before the first clock reading
    #[arg(long, value_name = "CODE", allow_hyphen_values = true, conflicts_with_all = ["c", "lib", "elf"])]
    pub init: Option<String>,
    /// The syntax of snippet and init code [default: AT&T where a register after `%` or a number after `$` shows it, else
    /// Intel]
    #[arg(long, value_enum, value_name = "NAME", conflicts_with_all = ["hex", "c", "lib", "elf", "assembler"])]
    pub syntax: Option<AssemblySyntax>,
    /// Assemble snippet and init code with another assembler
    #[arg(long, value_enum, value_name = "NAME", conflicts_with_all = ["c", "lib", "elf"])]
    pub assembler: Option<ExternalAssembler>,
    /// The function to call in the file of --c, --lib or --elf [default with --c: f]
    #[arg(long, value_name = "NAME", conflicts_with_all = ["snippet", "file", "hex"])]
    pub call: Option<String>,
    /// Measure another variant in the same rounds, and compare: a snippet, or where --file, --hex, --c, --lib or --elf names
    /// the first, a value of that option
    #[arg(long, value_name = "OTHER", allow_hyphen_values = true, conflicts_with = "cold")]
    pub versus: Option<String>,
    /// The function to call in the variant of --versus, or in the same file [default: that of --call]
    #[arg(long, value_name = "NAME", conflicts_with_all = ["snippet", "file", "hex"])]
    pub versus_call: Option<String>,
    /// Flags for the compiler, after -O2; with --elf for the linker, after an object or archive
    #[arg(long, value_name = "FLAGS", allow_hyphen_values = true, conflicts_with_all = ["snippet", "file", "hex", "lib"])]
    pub cflags: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    pub call_with: CallArgs,
    #[command(flatten)]
    #[serde(skip)]
    pub points: PointsArgs,
    /// Copies in the shortest body; the others have two and four times as many [default: by the snippet]
    #[arg(help_heading = MEASURING_HEADING, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub unroll: Option<u32>,
    /// Run each body in a loop of N iterations, counted in R15
    #[arg(help_heading = MEASURING_HEADING, long = "loop", value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub loop_count: Option<u64>,
    /// Untimed rounds at the start of each layout [default: until the cost stops changing]
    #[arg(help_heading = MEASURING_HEADING, long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=100_000))]
    pub warm_up: Option<u32>,
    /// Timed rounds in each layout [default: 12, with --quick 8]
    #[arg(help_heading = MEASURING_HEADING, long, value_name = "N", value_parser = clap::value_parser!(u32).range(4..=100_000))]
    pub samples: Option<u32>,
    /// Layouts of the first batch; more follow until the interval is reached [default: 16, with
    /// --quick 8]
    #[arg(help_heading = MEASURING_HEADING, long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1024))]
    pub layouts: Option<u32>,
    /// Half width to reach, in core cycles (0.01) or as a share of the cost (0.5%); exit code 5 where it was not
    /// reached [default: 0.01 core cycles or 2%, whichever is wider; of a function 1 core cycle or 2%]
    #[arg(help_heading = MEASURING_HEADING, long, value_name = "WIDTH", value_parser = parse_precision)]
    #[serde(serialize_with = "serialized::width")]
    pub interval: Option<Precision>,
    /// Confidence level of the intervals [default: 0.95]
    #[arg(help_heading = MEASURING_HEADING, long, value_name = "SHARE", value_parser = parse_confidence)]
    pub confidence: Option<f64>,
    /// Seconds after which no further batch begins [default: 0.16, with --quick 0.02]
    #[arg(help_heading = MEASURING_HEADING, long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub budget: Option<f64>,
    /// Also print the readings of one more layout in their order, the first runs included
    #[arg(help_heading = MEASURING_HEADING, long)]
    pub counts: bool,
    /// Measure the first run with these cold; several are separated by commas
    #[arg(help_heading = MEASURING_HEADING, long, value_name = "WHAT", value_enum, value_delimiter = ',')]
    pub cold: Vec<ColdPart>,
}

/// Assemblers other than the built-in one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExternalAssembler {
    /// GNU as, Intel syntax
    As,
    /// NASM
    Nasm,
    /// LLVM's assembler, Intel syntax
    LlvmMc,
    /// YASM, NASM's syntax
    Yasm,
}

/// A syntax of assembly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AssemblySyntax {
    /// `add dword ptr [rax+8], 1`
    Intel,
    /// `addl $1, 8(%rax)`
    Att,
}

/// What can be made cold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ColdPart {
    /// The snippet's code leaves the caches
    Code,
    /// Its memory areas leave the caches
    Data,
    /// Branch predictors have not seen it
    Branches,
    /// Its pages leave the translation buffers
    Tlb,
}
