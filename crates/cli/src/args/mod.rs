//! The command line: its options, what they may be, and the command that they make again.

mod ab;
mod call;
mod cli;
mod clock;
mod common;
mod compare;
mod evaluate;
mod exports;
mod generic;
pub mod grammar;
mod instr;
mod invocation;
mod marker;
mod number;
mod points;
mod refusal;
mod replay;
pub mod repro;
mod run;
mod serialized;
mod size;
mod sweep;
pub mod template;

pub use ab::AbArgs;
pub use call::{CallArgs, Contents, Serialize, Value};
pub use cli::{Cli, Command};
pub use clock::ClockArgs;
pub use common::{Common, find_clock};
pub use compare::CompareArgs;
pub use evaluate::EvaluateArgs;
pub use exports::ExportArgs;
pub use generic::GenericArgs;
#[cfg(test)]
pub use generic::{chosen, with_commands};
pub use instr::InstrArgs;
pub use invocation::Invocation;
pub use marker::MarkerArgs;
pub use points::PointsArgs;
pub use replay::ReplayArgs;
pub use run::{Assembler, Cold, RunArgs, Syntax};
pub use size::{size, with_unit};
pub use sweep::{Sweep, is_name, is_taken};
