//! Reads which events the user wants to be counted.

use crate::args::EventArgs;
use crate::input::source;
use crate::output::Failure;
use cyclescope::error::Unavailable;
use cyclescope::events::{CounterRequest, EventCatalog, EventRefusal, EventTable, RefusalCause};
use cyclescope::input::InputKind;
use cyclescope::machine::Machine;
use std::path::Path;

/// The events of `--counters`.
pub fn read_request(args: &EventArgs, machine: &Machine) -> Result<Option<CounterRequest>, Failure> {
    let parse = |list: &String| parse_events(list, args.events.as_deref(), machine);
    args.counters.as_ref().map(parse).transpose()
}

/// Parses a list of events; the file has events and sets of the user's.
pub fn parse_events(list: &str, file: Option<&Path>, machine: &Machine) -> Result<CounterRequest, Failure> {
    let catalog = EventCatalog::new(machine, read_table(file)?);
    let request = CounterRequest::parse(list, &catalog).map_err(explain_refusal)?;
    if request.events.is_empty() {
        let remedy = "name events of this core: `cyclescope counters list`";
        return Err(Failure::usage(format!("{list} has no event of this core"), Some(remedy)));
    }
    Ok(request)
}

/// Reads a table of events.
pub fn read_table(file: Option<&Path>) -> Result<EventTable, Failure> {
    let Some(file) = file else { return Ok(EventTable::default()) };
    let text = source::read_file(file, InputKind::List)?;
    EventTable::parse(&text).map_err(|error| {
        let remedy = "write `NAME | event=0xc2,umask=0x02`, or `set NAME = EVENT EVENT`, one a line";
        Failure::usage(format!("{}, {error}", file.display()), Some(remedy))
    })
}

/// The failure for an event that can't be counted. An unknown name is wrong usage.
pub fn explain_refusal(refusal: EventRefusal) -> Failure {
    match refusal.cause {
        RefusalCause::UnknownName => {
            Failure::usage(format!("{}: {}", refusal.event, refusal.why), Some(&refusal.remedy))
        }
        _ => Unavailable::from(refusal).into(),
    }
}
