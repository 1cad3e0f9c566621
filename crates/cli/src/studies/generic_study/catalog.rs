//! `--list` with the name of another suite: its questions, and the tests that answer them here.

use crate::output::page::TextPage;
use crate::output::{Failure, Output};
use cyclescope::study::{GenericStudy, SuiteCatalog, SuiteQuestion};
use serde::Serialize;

/// One question as a JSON line.
#[derive(Serialize)]
struct EntryRecord {
    name: &'static str,
    about: &'static str,
    answers: &'static [&'static str],
}

/// The catalog with this name, if it is the only name.
pub fn find_catalog(plain: &GenericStudy, names: &[String]) -> Option<&'static SuiteCatalog> {
    let [name] = names else { return None };
    plain.catalogs.iter().find(|catalog| catalog.name == name)
}

pub fn list_catalog(catalog: &SuiteCatalog, output: &mut Output) -> Result<(), Failure> {
    if output.is_json() {
        let of = |entry: &SuiteQuestion| EntryRecord { name: entry.name, about: entry.about, answers: entry.answers };
        return catalog.entries.iter().map(of).try_for_each(|entry| output.write_record("subject", &entry));
    }
    let mut page = TextPage::new(output);
    let text = |entry: &SuiteQuestion| match entry.answers {
        [] => entry.about.to_string(),
        answers => format!("{}: {}", entry.about, answers.join(", ")),
    };
    catalog.entries.iter().try_for_each(|entry| page.print_row(entry.name, &text(entry)))
}
