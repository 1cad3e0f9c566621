//! `cyclescope counters`: which events this machine counts, and counts of other programs.

mod event_listing;
mod resident_counters;

use crate::args::{CommonArgs, CountersAction, CountersArgs};
use crate::output::{Failure, Output};

/// Runs the command and returns the exit code.
pub fn run_counters(common: &CommonArgs, args: &CountersArgs, output: &mut Output) -> Result<u8, Failure> {
    let starts = matches!(args.action, CountersAction::Start { .. });
    if let Some(name) = common.first_measuring_option().filter(|name| !(starts && *name == "--cpu")) {
        let text = format!("{name} has no effect, because counters measures nothing");
        return Err(Failure::usage(text, Some("leave it out")));
    }
    match &args.action {
        CountersAction::List { all, events } => event_listing::list_events(common, *all, events.as_deref(), output),
        CountersAction::Start { counters, events, resident: false } => {
            resident_counters::start_counting(common, counters, events.as_deref(), output)
        }
        CountersAction::Start { counters, events, resident: true } => {
            resident_counters::hold_counters(common, counters, events.as_deref())
        }
        CountersAction::Status => resident_counters::print_counts("status", output),
        CountersAction::Stop => resident_counters::print_counts("stop", output),
    }
}
