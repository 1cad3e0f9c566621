//! The command line: its options, their parsers, and the command that repeats a result.

mod ab;
mod all;
mod arg_value;
mod call;
mod call_number;
mod call_target;
mod cli;
mod clock;
mod common;
mod compare;
mod counters;
mod evaluate;
mod exports;
mod generic;
pub mod grammar;
mod instr;
mod invocation;
mod manual;
mod marker;
mod mode;
mod number;
mod points;
mod ports;
mod refusal;
mod region;
mod replay;
mod report;
pub mod repro;
mod run;
mod run_words;
mod serialized;
mod size;
mod sweep;
pub mod template;
mod template_value;
mod value_reader;

pub use ab::AbArgs;
pub use all::AllArgs;
pub use arg_value::{ArgValue, BUFFER_START, CallArgument, CallMemoryName, MemoryPlace};
pub use call::{BufferContents, CallArgs, CallSerialization};
pub use call_target::CallTarget;
#[cfg(test)]
pub use cli::Cli;
pub use cli::CliCommand;
pub use clock::ClockArgs;
pub use common::{CommonArgs, find_clock};
pub use compare::CompareArgs;
// For commands that Windows lacks.
#[cfg_attr(windows, allow(unused_imports))]
pub use counters::{CountersAction, CountersArgs, EventArgs};
pub use evaluate::EvaluateArgs;
pub use exports::ExportArgs;
pub use generic::GenericArgs;
#[cfg(test)]
pub use generic::{add_study_commands, parse_generic_study};
pub use instr::InstrArgs;
pub use invocation::Invocation;
pub use manual::ManualArgs;
pub use marker::MarkerArgs;
pub use points::PointsArgs;
pub use ports::PortsArgs;
// For commands that Windows lacks.
#[cfg_attr(windows, allow(unused_imports))]
pub use region::RegionArgs;
pub use replay::ReplayArgs;
pub use report::ReportArgs;
pub use run::{AssemblySyntax, ColdPart, ExternalAssembler, RunArgs};
pub use run_words::parse_run_words;
pub use size::{format_size, parse_size};
pub use sweep::{Sweep, SweepValue, is_reserved_name, is_variable_name};
#[cfg(test)]
pub use template_value::TemplateValue;
