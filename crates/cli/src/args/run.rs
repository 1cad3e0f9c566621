//! Options of `run`.

use super::call::CallArgs;
use super::call_target::{CallTarget, parse_call_target};
use super::common::parse_snippet;
use super::counters::EventArgs;
use super::mode::ModeArgs;
use super::number::{MEASURING_HEADING, parse_confidence, parse_precision, parse_seconds};
use super::points::{POINTS_HEADING, PointsArgs};
use super::region::RegionArgs;
use super::serialized;
use super::sweep::is_variable_name;
use clap::{Args, ValueEnum};
use cyclescope::measure::Precision;
use std::path::{Path, PathBuf};

/// Where the measured code comes from.
#[derive(Debug, Clone, Args, serde::Serialize)]
#[command(next_help_heading = "What to measure")]
#[group(required = false, multiple = false)]
pub struct SnippetSource {
    /// Assembly, with statements separated by `;` or newlines; `-` reads it from standard input
    #[arg(value_name = "SNIPPET", allow_hyphen_values = true, help_heading = None, value_parser = parse_snippet)]
    pub snippet: Option<String>,
    /// Read the assembly from this file
    #[arg(long, value_name = "FILE")]
    #[serde(serialize_with = "serialized::optional_path")]
    pub file: Option<PathBuf>,
    /// Machine code to measure, in hexadecimal, such as `48 0f af c0`
    #[arg(long, value_name = "BYTES")]
    pub hex: Option<String>,
    /// Compile this C or C++ file, or assemble this text for GNU as (.s), such as compiler output, and
    /// measure its function `f(void *buffer)` without the cost of a call, or the region that
    /// CYCLESCOPE_BODY(...) marks
    #[arg(long, value_name = "FILE")]
    #[serde(serialize_with = "serialized::optional_path")]
    pub c: Option<PathBuf>,
    /// Measure a function of this shared library, named by --call
    #[arg(long, value_name = "FILE", requires = "call")]
    #[serde(serialize_with = "serialized::optional_path")]
    pub lib: Option<PathBuf>,
    /// Measure a function, named by --call, of this object file, archive, position-independent
    /// executable or shared library; it need not be exported. Or measure a region of an executable,
    /// named by --from and --to, with the registers and memory of a run
    #[arg(long, value_name = "FILE", requires = "part_of_elf")]
    #[serde(serialize_with = "serialized::optional_path")]
    pub elf: Option<PathBuf>,
    /// Measure a mix of independent instructions, such as 'imul r64, r64; add rax, 1': copies of each
    /// in one loop, with registers of their own, in several orders, of which the fastest counts
    #[arg(long, value_name = "FORMS", conflicts_with_all = ["init", "bits", "syntax", "assembler", "versus", "cold",
        "show", "setup", "call", "versus_call", "cflags", "cc", "write_elf", "beside_shared"])]
    pub mix: Option<String>,
}

/// Options of `run`.
#[derive(Debug, Clone, Args, serde::Serialize)]
#[command(mut_arg("bits", |bits| bits.conflicts_with_all(["to", "write_elf", "mix"])))]
pub struct RunArgs {
    #[command(flatten)]
    #[serde(flatten)]
    pub source: SnippetSource,
    /// Copies of each instruction of the mix, such as 1:4 [default: one of each]
    #[arg(long, value_name = "N:N", requires = "mix", help_heading = "What to measure")]
    pub ratio: Option<String>,
    /// Result file of `instr` on this machine, whose dispatch slots limit the mix
    #[arg(long, value_name = "FILE", requires = "mix", help_heading = "What to measure")]
    #[serde(serialize_with = "serialized::optional_path")]
    pub table: Option<PathBuf>,
    /// Result file of `ports` on this machine: shows the best assignment of the mix's µops to ports, and
    /// which resource binds
    #[arg(long, value_name = "FILE", requires = "mix", conflicts_with = "table", help_heading = "What to measure")]
    #[serde(serialize_with = "serialized::optional_path")]
    pub ports: Option<PathBuf>,
    /// Also print the cost of each order of the mix
    #[arg(long, requires = "mix", help_heading = "What to measure")]
    #[serde(skip)]
    pub orders: bool,
    /// Assembly that runs once, before the first clock reading
    #[arg(long, value_name = "CODE", allow_hyphen_values = true, conflicts_with_all = ["c", "lib", "elf"])]
    pub init: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    pub code_mode: ModeArgs,
    /// Syntax of the snippet, --init and --setup [default: AT&T if `%` precedes a register or `$` a number,
    /// else Intel]
    #[arg(long, value_enum, value_name = "NAME", conflicts_with_all = ["hex", "c", "lib", "elf", "assembler"])]
    pub syntax: Option<AssemblySyntax>,
    /// Assemble the snippet, --init and --setup with this external assembler [default: built in]
    #[arg(long, value_enum, value_name = "NAME", conflicts_with_all = ["c", "lib", "elf"])]
    pub assembler: Option<ExternalAssembler>,
    /// Define a name for --assembler; repeat it for several. `as` and `llvm-mc` take numbers
    #[arg(long, short = 'D', value_name = "NAME[=VALUE]", requires = "assembler", value_parser = parse_definition)]
    pub define: Vec<String>,
    /// Include this file in front of the text for --assembler; repeat it for several
    #[arg(long, short = 'P', value_name = "FILE", requires = "assembler")]
    pub include: Vec<String>,
    /// Search this folder for files that the text for --assembler includes, after the folder of
    /// --file; repeat it for several
    #[arg(long, short = 'I', value_name = "DIR", requires = "assembler")]
    pub include_dir: Vec<String>,
    /// Function to measure in the file of --c, --lib or --elf: its name, mangled, demangled or the
    /// end of it such as Foo::bar, or a call such as 'crc32(0, buffer, size)' with the values of
    /// --arg [default with --c: f]
    #[arg(long, value_name = "CALL", value_parser = parse_call_target, group = "part_of_elf",
        conflicts_with_all = ["snippet", "file", "hex"])]
    pub call: Option<CallTarget>,
    /// Print what was made of the text: its source, each instruction with address and bytes, and
    /// what was left out; measure nothing
    #[arg(long, conflicts_with_all = ["c", "lib", "elf", "from", "sweep", "versus", "out", "resume"])]
    #[serde(skip)]
    pub show: bool,
    /// Also measure this variant, in the same rounds, and compare: another snippet, or another
    /// value of --file, --hex, --c, --lib or --elf. Repeat it to rank several. Or give words to a
    /// variable, as in --versus 'F=-O2|-O3' --cflags '{F}', and compare the command with each word
    #[arg(long, value_name = "OTHER", allow_hyphen_values = true, conflicts_with = "cold")]
    pub versus: Vec<String>,
    /// Function to measure in a --versus variant, or in the same file, with its arguments as in
    /// --call; repeat it for several [default: that of --call]
    #[arg(long, value_name = "CALL", value_parser = parse_call_target,
        conflicts_with_all = ["snippet", "file", "hex"])]
    pub versus_call: Vec<CallTarget>,
    /// Compiler flags, added after -O2; with --elf, linker flags for an object file or archive
    #[arg(long, value_name = "FLAGS", allow_hyphen_values = true, conflicts_with_all = ["snippet", "file", "hex", "lib"])]
    pub cflags: Option<String>,
    /// Compiler for --c, such as `clang` or 'gcc -m64' [default: $CC, for C++ $CXX]
    #[arg(long, value_name = "COMPILER", conflicts_with_all = ["snippet", "file", "hex", "lib", "elf"])]
    pub cc: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    pub call_with: CallArgs,
    /// Measure each snippet of a file: one per line, or a CSV file with the columns snippet or hex,
    /// and optionally name and init. With --elf: the address where the region begins
    #[arg(help_heading = POINTS_HEADING, long, value_name = "FILE|ADDRESS",
        conflicts_with_all = ["snippet", "file", "hex", "c", "lib", "mix", "versus", "call"])]
    #[serde(serialize_with = "serialized::optional_path")]
    pub from: Option<PathBuf>,
    #[command(flatten)]
    #[serde(skip)]
    pub points: PointsArgs,
    /// Copies of the snippet in the shortest body; the other bodies have two and four times as many
    /// [default: chosen for the snippet]
    #[arg(help_heading = MEASURING_HEADING, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub unroll: Option<u32>,
    /// Run each body in a loop of N iterations [default: chosen]
    #[arg(help_heading = MEASURING_HEADING, long = "loop", value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub loop_count: Option<u64>,
    /// Untimed rounds at the start of each layout [default: until the cost stops changing]
    #[arg(help_heading = MEASURING_HEADING, long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=100_000))]
    pub warm_up: Option<u32>,
    /// Timed rounds per layout [default: 12, with --quick 8]
    #[arg(help_heading = MEASURING_HEADING, long, value_name = "N", value_parser = clap::value_parser!(u32).range(4..=100_000))]
    pub samples: Option<u32>,
    /// Layouts in the first batch; more follow until the interval is narrow enough [default: 16,
    /// with --quick 8]
    #[arg(help_heading = MEASURING_HEADING, long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1024))]
    pub layouts: Option<u32>,
    /// Half width of the interval to reach, in core cycles (0.01) or as a share of the cost (0.5%).
    /// If it isn't reached, exit with 5 [default: 0.01 core cycles or 2%, whichever is wider; for
    /// functions 1 core cycle or 2%]
    #[arg(help_heading = MEASURING_HEADING, long, value_name = "WIDTH", value_parser = parse_precision)]
    #[serde(serialize_with = "serialized::width")]
    pub interval: Option<Precision>,
    /// Confidence level of the intervals [default: 0.95]
    #[arg(help_heading = MEASURING_HEADING, long, value_name = "SHARE", value_parser = parse_confidence)]
    pub confidence: Option<f64>,
    /// Seconds after which no new batch starts [default: 0.16, with --quick 0.02]
    #[arg(help_heading = MEASURING_HEADING, long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub budget: Option<f64>,
    /// Also print the readings of one more layout in measured order, first runs included
    #[arg(help_heading = MEASURING_HEADING, long)]
    pub counts: bool,
    /// Measure the first run with these parts cold, separated by commas
    #[arg(help_heading = MEASURING_HEADING, long, value_name = "WHAT", value_enum, value_delimiter = ',')]
    pub cold: Vec<ColdPart>,
    /// Also write the timed program of the snippet as an executable with symbols, for debuggers,
    /// objdump and perf
    #[arg(help_heading = MEASURING_HEADING, long, value_name = "FILE",
        conflicts_with_all = ["lib", "elf", "from", "sweep", "versus", "cold", "show"])]
    #[serde(skip)]
    pub write_elf: Option<PathBuf>,
    #[command(flatten)]
    #[serde(flatten)]
    pub events: EventArgs,
    #[command(flatten)]
    #[serde(flatten)]
    pub region: RegionArgs,
}

impl RunArgs {
    /// The list of snippets to measure. With --elf, `from` is an address.
    pub fn list(&self) -> Option<&Path> {
        self.from.as_deref().filter(|_| self.source.elf.is_none())
    }

    /// Whether many points are measured.
    pub fn has_points(&self) -> bool {
        self.points.is_given() || self.list().is_some()
    }
}

/// Accepts `NAME` and `NAME=VALUE`.
fn parse_definition(text: &str) -> Result<String, String> {
    let name = text.split('=').next().unwrap_or_default();
    match is_variable_name(name.trim_start_matches('_')) && !text.contains('\n') {
        true => Ok(text.to_string()),
        false => Err("write it as NAME or NAME=VALUE, with a name of letters, digits and `_`".to_string()),
    }
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
    /// UASM, MASM's syntax
    Uasm,
    /// JWasm, MASM's syntax
    Jwasm,
}

/// Assembly syntaxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AssemblySyntax {
    /// `add dword ptr [rax+8], 1`
    Intel,
    /// `addl $1, 8(%rax)`
    Att,
}

/// Parts of the machine state that can be made cold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ColdPart {
    /// The snippet's code isn't in the caches
    Code,
    /// The snippet's memory areas aren't in the caches
    Data,
    /// The branch predictors haven't seen the snippet
    Branches,
    /// The snippet's pages aren't in the TLBs
    Tlb,
}
