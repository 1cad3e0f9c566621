//! The command line's grammar.

mod ab;
mod call;
mod instr;
mod marker;
mod number;
mod points;
mod size;
mod sweep;

pub use ab::AbArgs;
pub use call::{CallArgs, Contents, Serialize, Value};
pub use instr::InstrArgs;
pub use marker::MarkerArgs;
pub use points::PointsArgs;
pub use size::{size, with_unit};
pub use sweep::{Sweep, is_name, is_taken};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use cyclescope::clock::source::{LANGUAGES, Language, language};
use cyclescope::executor::{self, Offer};
use cyclescope::measure::Precision;
use cyclescope::study::instr::tables::compare::Tolerance;
use number::{number, seconds};
use std::path::PathBuf;

/// Measures what a piece of x86 code costs, in true core clock cycles with an error bar.
#[derive(Debug, Parser)]
#[command(name = "cyclescope", version, propagate_version = true, max_term_width = 80)]
#[command(
    after_help = "Exit codes: 0 done; 1 internal or I/O error; 2 bad usage or bad snippet; 3 not available \
    on this machine; 4 the snippet faulted or hung; 5 too noisy for the interval asked for; \
    6 slower, where ab was asked to fail; 130 interrupted."
)]
pub struct Cli {
    /// What to do; `--clock list` needs no command.
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub common: Common,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Report what this machine can measure with, and what to change
    Doctor,
    /// Measure a snippet
    Run(Box<RunArgs>),
    /// Measure how good each timing method is on this machine
    Evaluate(EvaluateArgs),
    /// Measure latency and reciprocal throughput of instructions
    Instr(Box<InstrArgs>),
    /// Measure what instrumentation costs: markers of several designs, off and on
    Marker(MarkerArgs),
    /// List the timing methods, or print one as source text for your own program
    Clock(ClockArgs),
    /// Compare two result files, or one with a published table
    Compare(CompareArgs),
    /// Compute a number again from its evidence
    Replay(ReplayArgs),
    /// Compare two programs, or two sets of benchmarks, run in turn: slower, faster, the same?
    Ab(AbArgs),
}

/// Options that every command takes.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Options of every command")]
pub struct Common {
    /// Print one JSON object a line and nothing else on stdout
    #[arg(long, global = true)]
    pub json: bool,
    /// Where the code runs [default: user]
    #[arg(long, global = true, value_parser = offers(), value_name = "WHERE")]
    pub executor: Option<&'static Offer>,
    /// Timing method; `list` shows them all; `evaluate` takes several, separated by commas [default: chosen for this
    /// machine; with evaluate all]
    #[arg(long, global = true, value_name = "NAME", value_delimiter = ',')]
    pub clock: Vec<String>,
    /// CPU to measure on [default: the last allowed one]
    #[arg(long, global = true, value_name = "N")]
    pub cpu: Option<u32>,
    /// Seed of all random choices [default: from the time]
    #[arg(long, global = true, value_name = "N")]
    pub seed: Option<u64>,
    /// Fewer layouts and rounds, and a short budget
    #[arg(long, global = true)]
    pub quick: bool,
    /// Write code, raw samples and the machine's facts to a new directory
    #[arg(long, global = true, value_name = "DIR")]
    pub evidence: Option<PathBuf>,
    /// Measure while this assembly runs round and round on another CPU; once for each CPU that is to be busy
    #[arg(long, global = true, value_name = "SNIPPET", allow_hyphen_values = true, value_parser = snippet)]
    pub beside: Vec<String>,
    /// The CPU of --beside, in the order of the snippets [default: that which shares the core, as far as the kernel says, then the nearest]
    #[arg(long, global = true, value_name = "N")]
    pub beside_cpu: Vec<u32>,
    /// In kernel mode: run code that may loop forever even where no second CPU can end it
    #[arg(long, global = true)]
    pub force: bool,
}

impl Common {
    /// The executor that runs the code.
    pub fn offer(&self) -> &'static Offer {
        self.executor.unwrap_or(executor::DEFAULT)
    }

    /// The first option that was given and that only a measurement makes use of.
    pub fn measuring(&self) -> Option<&'static str> {
        let given = [
            ("--clock", !self.clock.is_empty()),
            ("--cpu", self.cpu.is_some()),
            ("--seed", self.seed.is_some()),
            ("--quick", self.quick),
            ("--evidence", self.evidence.is_some()),
            ("--executor", !self.offer().is_default()),
            ("--force", self.force),
            ("--beside", !self.beside.is_empty()),
            ("--beside-cpu", !self.beside_cpu.is_empty()),
        ];
        given.iter().find(|(_, given)| *given).map(|(name, _)| *name)
    }
}

/// The executors that can be asked for, by their names.
fn offers() -> impl TypedValueParser<Value = &'static Offer> {
    let values = executor::ALL.iter().map(|offer| PossibleValue::new(offer.name).help(offer.about));
    PossibleValuesParser::new(values).map(|name| Offer::named(&name).expect("only these names are possible"))
}

/// Where the snippet comes from.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "What to measure")]
#[group(required = false, multiple = false)]
pub struct Source {
    /// Assembly, statements separated by `;` or new lines; `-` reads standard input
    #[arg(value_name = "SNIPPET", allow_hyphen_values = true, help_heading = None, value_parser = snippet)]
    pub snippet: Option<String>,
    /// Read the assembly from a file
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// The snippet as machine code, such as `48 0f af c0`
    #[arg(long, value_name = "BYTES")]
    pub hex: Option<String>,
    /// Compile a C or C++ file and measure its function `f(void *buffer)`, the cost of a call excluded, or the region in it
    /// that CYCLESCOPE_BODY(...) marks
    #[arg(long, value_name = "FILE")]
    pub c: Option<PathBuf>,
    /// Load a shared library and measure a function of it, named by --call
    #[arg(long, value_name = "FILE", requires = "call")]
    pub lib: Option<PathBuf>,
    /// Measure a function, named by --call, of an object file, an archive, an executable that runs at any address, or a shared
    /// library; it need not be exported
    #[arg(long, value_name = "FILE", requires = "call")]
    pub elf: Option<PathBuf>,
}

/// The heading of options that change no snippet.
const HOW: &str = "How to measure it";

/// Options of `run`.
#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    #[command(flatten)]
    pub source: Source,
    /// Assembly that runs once before the first clock reading
    #[arg(long, value_name = "CODE", allow_hyphen_values = true, conflicts_with_all = ["c", "lib", "elf"])]
    pub init: Option<String>,
    /// The syntax of snippet and init code [default: AT&T where a register after `%` or a number after `$` shows it, else
    /// Intel]
    #[arg(long, value_enum, value_name = "NAME", conflicts_with_all = ["hex", "c", "lib", "elf", "assembler"])]
    pub syntax: Option<Syntax>,
    /// Assemble snippet and init code with another assembler
    #[arg(long, value_enum, value_name = "NAME", conflicts_with_all = ["c", "lib", "elf"])]
    pub assembler: Option<Assembler>,
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
    pub call_with: CallArgs,
    #[command(flatten)]
    pub points: PointsArgs,
    /// Copies in the shortest body; the others have two and four times as many [default: by the snippet]
    #[arg(help_heading = HOW, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub unroll: Option<u32>,
    /// Run each body in a loop of N iterations, counted in R15
    #[arg(help_heading = HOW, long = "loop", value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub loop_count: Option<u64>,
    /// Untimed rounds at the start of each layout [default: until the cost stops changing]
    #[arg(help_heading = HOW, long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=100_000))]
    pub warm_up: Option<u32>,
    /// Timed rounds in each layout [default: 12, with --quick 8]
    #[arg(help_heading = HOW, long, value_name = "N", value_parser = clap::value_parser!(u32).range(4..=100_000))]
    pub samples: Option<u32>,
    /// Layouts of the first batch; more follow until the interval is reached [default: 16, with
    /// --quick 8]
    #[arg(help_heading = HOW, long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1024))]
    pub layouts: Option<u32>,
    /// Half width to reach, in core cycles (0.01) or as a share of the cost (0.5%); exit code 5 where it was not
    /// reached [default: 0.01 core cycles or 2%, whichever is wider; of a function 1 core cycle or 2%]
    #[arg(help_heading = HOW, long, value_name = "WIDTH", value_parser = precision)]
    pub interval: Option<Precision>,
    /// Confidence level of the intervals [default: 0.95]
    #[arg(help_heading = HOW, long, value_name = "SHARE", value_parser = confidence)]
    pub confidence: Option<f64>,
    /// Seconds after which no further batch begins [default: 0.16, with --quick 0.02]
    #[arg(help_heading = HOW, long, value_name = "SECONDS", value_parser = seconds)]
    pub budget: Option<f64>,
    /// Also print the readings of one more layout in their order, the first runs included
    #[arg(help_heading = HOW, long)]
    pub counts: bool,
    /// Measure the first run with these cold; several are separated by commas
    #[arg(help_heading = HOW, long, value_name = "WHAT", value_enum, value_delimiter = ',')]
    pub cold: Vec<Cold>,
}

/// Assemblers other than the built-in one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Assembler {
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Syntax {
    /// `add dword ptr [rax+8], 1`
    Intel,
    /// `addl $1, 8(%rax)`
    Att,
}

/// What can be made cold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Cold {
    /// The snippet's code leaves the caches
    Code,
    /// Its memory areas leave the caches
    Data,
    /// Branch predictors have not seen it
    Branches,
    /// Its pages leave the translation buffers
    Tlb,
}

/// Options of `evaluate`.
#[derive(Debug, Args)]
pub struct EvaluateArgs {
    /// Further timing methods, as after --clock
    #[arg(value_name = "CLOCK")]
    pub clocks: Vec<String>,
    /// Ensembles of samples of each method; fewer for slow methods, and where time is short [default: 1000,
    /// with --quick 100]
    #[arg(help_heading = HOW, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub ensembles: Option<u32>,
    /// Samples in each ensemble [default: 100000]
    #[arg(help_heading = HOW, long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=3_000_000))]
    pub samples: Option<u32>,
    /// Readings of each length of the staircases, up to the paper's 100000, whatever time they take: some minutes a
    /// method, and an hour with CPUID between its readings in a virtual machine [default: as many as fit half a second]
    #[arg(help_heading = HOW, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub resolution_samples: Option<u32>,
    /// Seconds for everything; methods whose samples take more than 200 ticks or 2 µs get one second each, with --quick
    /// 0.15, unless this is given
    /// [default: 88, with --quick 13; none with --ensembles, --samples or --resolution-samples]
    #[arg(help_heading = HOW, long, value_name = "SECONDS", value_parser = seconds)]
    pub budget: Option<f64>,
    /// Print each ensemble too (with --json)
    #[arg(help_heading = "What to print", long)]
    pub series: bool,
    /// Draw minima, variances and resolution of each method as SVG files in this directory
    #[arg(help_heading = "What to print", long, value_name = "DIR")]
    pub plots: Option<PathBuf>,
}

/// Options of `clock`.
#[derive(Debug, Args)]
#[command(
    after_help = "The text has the method's start and end, what they promise, which registers they change, and an example \
    that subtracts what an empty pair takes: cyclescope clock lfence-rdtsc-lfence --emit c > timer.h"
)]
pub struct ClockArgs {
    /// The timing method [default: all are listed]
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Print the method as source text in this language
    #[arg(long, value_parser = languages(), value_name = "LANGUAGE", requires = "name")]
    pub emit: Option<&'static Language>,
    /// List the methods, what they order and whether they work here
    #[arg(long, conflicts_with_all = ["name", "emit"])]
    pub list: bool,
}

/// The languages that a timing method can be written in, by their names.
fn languages() -> impl TypedValueParser<Value = &'static Language> {
    let values = LANGUAGES.iter().map(|language| PossibleValue::new(language.name).help(language.about));
    PossibleValuesParser::new(values).map(|name| language(&name).expect("only these names are possible"))
}

/// Options of `compare`.
#[derive(Debug, Args)]
#[command(
    after_help = "A published table is a CSV file whose first line names its columns: mnemonic, operands, and \
    latency_cycles or rthroughput_cycles or both; optionally encoding, code, from and to. Numbers are core cycles, \
    such as 3, 3.5, <=7 or 14-18. A latency without `from` and `to` is compared with the largest latency between \
    explicit operands; where there is none, between registers, then from an address, then any."
)]
pub struct CompareArgs {
    /// A file that `cyclescope instr --out` wrote, or lines that `cyclescope run --json` or `cyclescope uarch --json` printed
    #[arg(value_name = "A")]
    pub a: PathBuf,
    /// Another such file, or a published table as a CSV file
    #[arg(value_name = "B")]
    pub b: PathBuf,
    /// Differences up to this count as equal: core cycles, a share, or the wider of both [default: 0.05,3%, below one cycle
    /// 0.01,3%; between two result files 0.02,1%]
    #[arg(long, value_name = "CYCLES,SHARE", value_parser = tolerance)]
    pub tolerance: Option<Tolerance>,
    /// Show all differences, not only the 20 largest
    #[arg(long)]
    pub all: bool,
    /// Show how each listed difference was measured
    #[arg(long)]
    pub explain: bool,
    /// Exit with 1 if anything differs
    #[arg(long)]
    pub fail_on_diff: bool,
}

/// Options of `replay`.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// A directory that --evidence wrote
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// Measure again on this machine, with the same code, plan and seed; --clock, --cpu, --seed, --quick and
    /// --evidence apply only then
    #[arg(long)]
    pub measure: bool,
}

/// A snippet. No assembly starts like an option that does not exist.
fn snippet(text: &str) -> Result<String, String> {
    let option =
        text.strip_prefix("--").is_some_and(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()));
    if option {
        Err("it is neither assembly nor an option of this command".to_string())
    } else {
        Ok(text.to_string())
    }
}

fn precision(text: &str) -> Result<Precision, String> {
    match text.strip_suffix('%') {
        Some(share) => Ok(Precision { cycles: 0.0, share: number(share)? / 100.0, cap: None }),
        None => Ok(Precision { cycles: number(text)?, share: 0.0, cap: None }),
    }
    .map_err(|error: String| format!("{error}, as in 0.01 (core cycles) or 0.5%"))
}

fn tolerance(text: &str) -> Result<Tolerance, String> {
    let mut found = Tolerance { cycles: 0.0, cycles_below_one: 0.0, share: 0.0 };
    let mut seen = [false; 2];
    for part in text.split(',') {
        let width = precision(part.trim())?;
        if std::mem::replace(&mut seen[usize::from(width.share > 0.0)], true) {
            return Err("expected at most one number of core cycles and one share, as in 0.05,3%".to_string());
        }
        found.cycles += width.cycles;
        found.cycles_below_one += width.cycles;
        found.share += width.share;
    }
    Ok(found)
}

fn confidence(text: &str) -> Result<f64, String> {
    let value = match text.strip_suffix('%') {
        Some(percent) => number(percent)? / 100.0,
        None => number(text)?,
    };
    if (0.01..=0.9999).contains(&value) { Ok(value) } else { Err("expected 0.01 to 0.9999".to_string()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_grammar_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_reference_names_every_command_and_option() {
        const REFERENCE: &str = include_str!("../../../docs/reference.md");
        for command in Cli::command().get_subcommands() {
            let name = command.get_name();
            assert!(REFERENCE.contains(&format!("\n## {name}\n")), "no section on {name}");
            for option in command.get_arguments().filter_map(|argument| argument.get_long()) {
                assert!(REFERENCE.contains(&format!("`--{option}")), "{name}: no --{option}");
            }
        }
        for option in Cli::command().get_arguments().filter_map(|argument| argument.get_long()) {
            assert!(REFERENCE.contains(&format!("`--{option}")), "no --{option}");
        }
    }

    #[test]
    fn widths_are_cycles_or_shares() {
        assert_eq!(precision("0.01").unwrap(), Precision { cycles: 0.01, share: 0.0, cap: None });
        assert_eq!(precision("2%").unwrap(), Precision { cycles: 0.0, share: 0.02, cap: None });
        let both = Tolerance { cycles: 0.05, cycles_below_one: 0.05, share: 0.03 };
        assert_eq!(tolerance("0.05,3%").unwrap(), both);
        assert_eq!(tolerance("3%, 0.05").unwrap(), both);
        assert_eq!(tolerance("0.05").unwrap(), Tolerance { share: 0.0, ..both });
        assert!(tolerance("0.05,0.01").is_err() && tolerance("3%,1%").is_err() && tolerance("").is_err());
        assert!(precision("0").is_err() && precision("nan").is_err() && precision("-1").is_err());
    }
}
