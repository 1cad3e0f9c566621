//! The commands with options of their own, and the top-level help.

use super::ab::AbArgs;
use super::all::AllArgs;
use super::clock::ClockArgs;
use super::common::CommonArgs;
use super::compare::CompareArgs;
use super::counters::CountersArgs;
use super::evaluate::EvaluateArgs;
use super::instr::InstrArgs;
use super::manual::ManualArgs;
use super::marker::MarkerArgs;
use super::ports::PortsArgs;
use super::replay::ReplayArgs;
use super::report::ReportArgs;
use super::run::RunArgs;
use clap::{Parser, Subcommand};

/// Measure what x86 code costs, in true core clock cycles with an error bar.
#[derive(Debug, Parser)]
#[command(name = "cyclescope", version, propagate_version = true, max_term_width = 80)]
#[command(after_help = "Exit codes: 0 done; 1 internal or I/O error; 2 bad usage or bad snippet; 3 not available \
    on this machine; 4 the snippet faulted or hung; 5 too noisy for the requested interval, or unclear (ab \
    --fail-on-unclear); 6 slower (ab --fail-on-slower); 130 interrupted.")]
pub struct Cli {
    /// The command; `--clock list` needs none.
    #[command(subcommand)]
    pub command: Option<CliCommand>,
    #[command(flatten)]
    pub common: CommonArgs,
}

/// The commands with options of their own.
#[derive(Debug, Subcommand)]
pub enum CliCommand {
    /// Report what this machine can measure, and what to change
    Doctor,
    /// Measure a snippet of assembly, or a function
    Run(Box<RunArgs>),
    /// Measure the cost, spread and resolution of each timing method on this machine
    Evaluate(EvaluateArgs),
    /// Measure latency and reciprocal throughput of instructions
    Instr(Box<InstrArgs>),
    /// Measure which ports instructions use and share, from time alone
    Ports(PortsArgs),
    /// Measure the cost of instrumentation: markers of several designs, off and on
    Marker(MarkerArgs),
    /// List the timing methods, or print one as source code for your own program
    Clock(ClockArgs),
    /// List the events that counters count here, or count those of other programs
    Counters(CountersArgs),
    /// Compare two result files, or one with a published table
    Compare(CompareArgs),
    /// Recompute a result from its evidence, or measure it again
    Replay(ReplayArgs),
    /// Compare programs or their benchmarks: slower, faster or the same?
    Ab(AbArgs),
    /// Write result files as one page that opens in a browser
    Report(ReportArgs),
    /// Measure everything that this machine can, into a directory; repeat it to resume
    All(AllArgs),
    /// Write man pages and shell completions below a directory
    #[command(hide = true)]
    Manual(ManualArgs),
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn clap_accepts_the_grammar() {
        Cli::command().debug_assert();
    }

    #[test]
    fn reference_documents_every_command_and_option() {
        const REFERENCE: &str = include_str!("../../../../docs/reference.md");
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
}
