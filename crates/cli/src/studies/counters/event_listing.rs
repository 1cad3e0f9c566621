//! `counters list`: each event, and whether it counts here, found by trying.

use crate::args::CommonArgs;
use crate::input::event_request::read_table;
use crate::output::terminal::escape_controls;
use crate::output::{Failure, Output, WIDTH, wrap_text};
use cyclescope::events::{self, CatalogEntry, EventCatalog, EventCode, MOST_TOGETHER, RefusalCause};
use cyclescope::record::exit;
use serde::Serialize;
use std::path::Path;

/// An event, kind `counter`.
#[derive(Serialize)]
struct EventRecord {
    counter: String,
    source: String,
    available: bool,
    /// Whether user mode can read it with RDPMC; null if it does not count.
    rdpmc: Option<bool>,
    cause: Option<RefusalCause>,
    why_not: Option<String>,
    remedy: Option<String>,
}

/// What counts at the same time, kind `counters`.
#[derive(Serialize)]
struct CountersSummary {
    /// Number of hardware events that count at the same time.
    together: usize,
    /// Names of the sets.
    sets: Vec<String>,
}

/// Lists the events.
pub(super) fn list_events(
    common: &CommonArgs,
    all: bool,
    file: Option<&Path>,
    output: &mut Output,
) -> Result<u8, Failure> {
    let machine = common.detect_machine()?;
    let catalog = EventCatalog::new(&machine, read_table(file)?);
    let mut hardware: Vec<EventCode> = Vec::new();
    let mut records = Vec::new();
    for CatalogEntry { name, code, source } in catalog.list_events() {
        let tried = events::count_fitting(&[code], &machine);
        if tried.is_ok() && !code.is_software() && !hardware.contains(&code) {
            hardware.push(code);
        }
        let (rdpmc, refusal) = (tried.as_ref().ok().map(|(_, rdpmc)| *rdpmc), tried.err());
        records.push(EventRecord {
            counter: name,
            source,
            available: refusal.is_none(),
            rdpmc,
            cause: refusal.as_ref().map(|refusal| refusal.cause),
            why_not: refusal.as_ref().map(|refusal| refusal.why.clone()),
            remedy: refusal.map(|refusal| refusal.remedy),
        });
    }
    hardware.truncate(MOST_TOGETHER);
    let together = events::count_fitting(&hardware, &machine).map_or(0, |(number, _)| number);
    let sets = catalog.set_names().into_iter().map(|name| format!("@{name}")).collect();
    let summary = CountersSummary { together, sets };
    let missing = records.iter().find(|record| !record.available);
    let reason = missing.map(|record| [record.why_not.clone(), record.remedy.clone()].map(Option::unwrap_or_default));
    records.retain(|record| all || record.available);
    if output.is_json() {
        records.iter().try_for_each(|record| output.write_record("counter", record))?;
        output.write_record("counters", &summary)?;
        return Ok(exit::DONE);
    }
    let widest = records.iter().map(|record| record.counter.chars().count()).max().unwrap_or(0);
    for record in &records {
        let name = format!("{:widest$}", escape_controls(&record.counter));
        let note = match &record.why_not {
            Some(why) => why.clone(),
            None => escape_controls(&record.source),
        };
        let name = if record.available { output.bold(&name) } else { output.faint(&name) };
        output.write_line(format!("{name}  {note}"))?;
    }
    output.write_line("")?;
    let mut notes = vec![match summary.together {
        0 => "No event of the processor counts here.".to_string(),
        number => format!("{number} of the processor's events count at the same time; more take several passes."),
    }];
    if let (0, Some([why, remedy])) = (summary.together, reason) {
        notes.push(format!("{why}: {remedy}"));
    }
    notes.push(format!("Sets: {}", escape_controls(&summary.sets.join(" "))));
    for line in notes.iter().flat_map(|note| wrap_text(note, WIDTH)) {
        output.write_line(line)?;
    }
    Ok(exit::DONE)
}
