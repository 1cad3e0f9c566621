//! Tables of counted events: a line for each subject, a column for each event.

use super::Failure;
use super::page::{TextPage, new_table, print_note, print_table};
use super::report_words::{format_quantity, to_one_line};
use cyclescope::result::counter_record::CounterRecord;

/// Maximum number of columns of events beside the subject.
const EVENT_COLUMNS: usize = 3;
/// Maximum number of reasons for missing numbers.
const REASONS_MOST: usize = 8;

/// A subject: its name, its counts, and the number of passes that counted them.
pub struct CountedSubject<'a> {
    pub name: String,
    pub counters: &'a [CounterRecord],
    pub passes: Option<usize>,
    /// Further cells, each with its heading.
    pub more: Vec<(&'a str, String)>,
}

/// Prints the events of all subjects, in as many tables as their columns need.
pub fn print_event_table(
    page: &mut TextPage,
    (title, heading): (&str, &str),
    subjects: &[CountedSubject],
) -> Result<(), Failure> {
    let mut columns: Vec<&str> = Vec::new();
    for subject in subjects {
        let names = subject.counters.iter().map(|counter| counter.name.as_str());
        for name in names.chain(subject.more.iter().map(|(name, _)| *name)) {
            if !columns.contains(&name) {
                columns.push(name);
            }
        }
    }
    for part in columns.chunks(EVENT_COLUMNS) {
        page.begin_section(title)?;
        let names: Vec<String> =
            std::iter::once(heading.to_string()).chain(part.iter().map(|name| to_one_line(name))).collect();
        let mut lines = new_table(&names.iter().map(String::as_str).collect::<Vec<_>>());
        for subject in subjects {
            let cell = |column: &&str| {
                let counter = subject.counters.iter().find(|counter| counter.name == **column);
                let more = subject.more.iter().find(|(name, _)| name == column).map(|(_, text)| to_one_line(text));
                counter.map(|counter| format_quantity(&counter.quantity)).or(more).unwrap_or_else(|| "-".to_string())
            };
            lines.add_row(std::iter::once(subject.name.clone()).chain(part.iter().map(cell)).collect::<Vec<_>>());
        }
        print_table(page, &lines)?;
    }
    let passes = subjects.iter().filter_map(|subject| subject.passes).max().unwrap_or(0);
    if passes > 1 {
        print_note(page, &format!("Counted in {passes} passes."))?;
    }
    let lost = subjects.iter().flat_map(|subject| subject.counters.iter().filter_map(|one| one.lost.as_deref()));
    print_lost_counts(page, lost)
}

/// Prints why numbers are missing, each reason once.
pub fn print_lost_counts<'a>(page: &mut TextPage, reasons: impl Iterator<Item = &'a str>) -> Result<(), Failure> {
    let mut reasons: Vec<&str> = reasons.collect();
    reasons.sort_unstable();
    reasons.dedup();
    reasons.into_iter().take(REASONS_MOST).try_for_each(|why| print_note(page, &format!("Without a number: {why}.")))
}
