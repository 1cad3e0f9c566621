//! Options of `counters`, and those of events in other commands.

use super::serialized;
use clap::{Args, Subcommand};
use cyclescope::events::CounterRequest;
use std::path::PathBuf;

/// Options of `counters`.
#[derive(Debug, Args)]
pub struct CountersArgs {
    /// What to do
    #[command(subcommand)]
    pub action: CountersAction,
}

/// What `counters` does.
#[derive(Debug, Subcommand)]
pub enum CountersAction {
    /// List the events that this machine counts, and how many at the same time
    List {
        /// Also list the events that it does not count, each with the reason
        #[arg(long)]
        all: bool,
        /// Read more events and sets from this file
        #[arg(long, value_name = "FILE")]
        events: Option<PathBuf>,
    },
    /// Count events of all programs, on every CPU or on that of --cpu, until `stop`
    Start {
        /// Events and sets, separated by commas, such as `cycles,page-faults`
        #[arg(value_name = "EVENTS", required = true)]
        counters: String,
        /// Read more events and sets from this file
        #[arg(long, value_name = "FILE")]
        events: Option<PathBuf>,
        /// Be the process that holds the events
        #[arg(long, hide = true)]
        resident: bool,
    },
    /// Print the counts since `start`
    Status,
    /// Print the counts and stop counting
    Stop,
}

/// Events to count beside a cost.
#[derive(Debug, Clone, Default, Args, serde::Serialize)]
pub struct EventArgs {
    /// Also count these events per copy: names, sets such as @default, and ratios such as
    /// uops/cycles, separated by commas; see `cyclescope counters list`
    #[arg(help_heading = "Counters", long, value_name = "EVENTS")]
    pub counters: Option<String>,
    /// Read more events and sets for --counters from this file
    #[arg(help_heading = "Counters", long, value_name = "FILE", requires = "counters")]
    #[serde(serialize_with = "serialized::optional_path")]
    pub events: Option<PathBuf>,
}

impl EventArgs {
    /// The same options, which name the events of a resumed file if none were given.
    pub fn with_names(&self, request: Option<&CounterRequest>) -> EventArgs {
        let names = request.map(|request| request.columns.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>());
        EventArgs { counters: self.counters.clone().or(names.map(|names| names.join(","))), ..self.clone() }
    }
}
