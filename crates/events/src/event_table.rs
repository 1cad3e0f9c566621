//! Tables of events as text: short names by core design, and sets of names.
//!
//! A line is `design NAME = CORE, CORE`, `set NAME = EVENT EVENT`, or an event: designs, short name,
//! encoding and source, separated by `|`. A table of the user's leaves the designs out. `#` begins a
//! comment.

use std::fmt;
use std::sync::LazyLock;

const BUILT_IN: &str = include_str!("../data/events.txt");

static BUILT_IN_TABLE: LazyLock<EventTable> =
    LazyLock::new(|| EventTable::parse(BUILT_IN).expect("the tests have read it"));

/// Events and sets of a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventTable {
    designs: Vec<(String, Vec<String>)>,
    entries: Vec<TableEntry>,
    sets: Vec<(String, Vec<String>)>,
}

/// One event of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableEntry {
    /// Names of the designs that have it; empty for every core.
    designs: Vec<String>,
    /// Its short name.
    pub(crate) name: String,
    /// Its encoding, such as `event=0xc2,umask=0x02`.
    pub(crate) encoding: String,
    /// Where the encoding comes from.
    pub(crate) source: String,
}

/// A wrong line of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableError {
    /// Its number, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub what: String,
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl std::error::Error for TableError {}

fn split_words(text: &str, separator: impl Fn(char) -> bool) -> Vec<String> {
    text.split(separator).map(str::trim).filter(|word| !word.is_empty()).map(str::to_string).collect()
}

fn check_name(name: &str) -> Result<(), String> {
    let word = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
    match !name.is_empty() && name.chars().all(word) {
        true => Ok(()),
        false => Err(format!("{name:?} is no name: use letters, digits and hyphens")),
    }
}

impl EventTable {
    /// The events that this library knows.
    pub fn built_in() -> &'static EventTable {
        &BUILT_IN_TABLE
    }

    /// Reads a table.
    ///
    /// # Errors
    ///
    /// The first wrong line.
    pub fn parse(text: &str) -> Result<EventTable, TableError> {
        let mut table = EventTable::default();
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if !line.is_empty() {
                table.add_line(line).map_err(|what| TableError { line: number + 1, what })?;
            }
        }
        Ok(table)
    }

    fn add_line(&mut self, line: &str) -> Result<(), String> {
        let columns: Vec<&str> = line.split('|').map(str::trim).collect();
        let (designs, name, encoding, source) = match columns[..] {
            [single] => return self.add_definition(single),
            [name, encoding] => ("", name, encoding, ""),
            [name, encoding, source] => ("", name, encoding, source),
            [designs, name, encoding, source] => (designs, name, encoding, source),
            _ => return Err("an event has a name, an encoding and a source, separated by |".to_string()),
        };
        let designs = split_words(designs, char::is_whitespace);
        if let Some(unknown) = designs.iter().find(|design| !self.designs.iter().any(|(known, _)| known == *design)) {
            return Err(format!("no design {unknown} is defined above"));
        }
        check_name(name)?;
        if encoding.is_empty() {
            return Err(format!("{name} has no encoding"));
        }
        let [name, encoding, source] = [name, encoding, source].map(str::to_string);
        self.entries.push(TableEntry { designs, name, encoding, source });
        Ok(())
    }

    /// Adds a line `design NAME = …` or `set NAME = …`.
    fn add_definition(&mut self, line: &str) -> Result<(), String> {
        let expected = || "expected an event with |, or `set NAME = EVENT EVENT`".to_string();
        let (head, list) = line.split_once('=').ok_or_else(expected)?;
        match split_words(head, char::is_whitespace).as_slice() {
            [kind, name] if kind == "design" => {
                self.designs.push((name.clone(), split_words(list, |letter| letter == ',')));
            }
            [kind, name] if kind == "set" => {
                check_name(name)?;
                self.sets.push((name.clone(), split_words(list, char::is_whitespace)));
            }
            _ => return Err(expected()),
        }
        Ok(())
    }

    /// The events of a core with this name, and those of every core.
    pub(crate) fn entries_of<'a>(&'a self, core: Option<&'a str>) -> impl Iterator<Item = &'a TableEntry> {
        let is_of = move |design: &String| {
            let cores = self.designs.iter().find(|(known, _)| known == design).map(|(_, cores)| cores);
            cores.is_some_and(|cores| core.is_some_and(|core| cores.iter().any(|known| known == core)))
        };
        self.entries.iter().filter(move |entry| entry.designs.is_empty() || entry.designs.iter().any(is_of))
    }

    /// The event of a core with this short name.
    pub(crate) fn find_entry<'a>(&'a self, name: &str, core: Option<&'a str>) -> Option<&'a TableEntry> {
        self.entries_of(core).find(|entry| entry.name == name)
    }

    /// The cores that have an event with this short name.
    pub(crate) fn cores_with(&self, name: &str) -> Vec<&str> {
        let own = self.entries.iter().filter(|entry| entry.name == name).flat_map(|entry| &entry.designs);
        let cores = own.flat_map(|design| self.designs.iter().filter(move |(known, _)| known == design));
        cores.flat_map(|(_, cores)| cores.iter().map(String::as_str)).collect()
    }

    /// The names in a set.
    pub(crate) fn find_set(&self, name: &str) -> Option<&[String]> {
        self.sets.iter().find(|(known, _)| known == name).map(|(_, names)| names.as_slice())
    }

    /// The names of all sets.
    pub(crate) fn set_names(&self) -> impl Iterator<Item = &str> {
        self.sets.iter().map(|(name, _)| name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_table_has_each_name_once_a_core() {
        let table = EventTable::built_in();
        let cores: Vec<&String> = table.designs.iter().flat_map(|(_, cores)| cores).collect();
        assert!(cores.len() > 12);
        for core in cores {
            let mut names: Vec<&str> = table.entries_of(Some(core)).map(|entry| entry.name.as_str()).collect();
            let all = names.len();
            names.sort_unstable();
            names.dedup();
            assert!(all == names.len() && all > 5, "{core}: {all} events, {} names", names.len());
            assert!(table.entries_of(Some(core)).all(|entry| !entry.source.is_empty()));
        }
        for set in ["default", "ports", "branch", "loop", "cache"] {
            assert!(table.find_set(set).is_some_and(|names| !names.is_empty()), "{set}");
        }
    }

    #[test]
    fn a_wrong_line_is_named() {
        let table = EventTable::parse("# mine\nmy-event | event=0x12 | a manual\nset all = my-event cycles\n").unwrap();
        assert_eq!(table.find_entry("my-event", None).unwrap().encoding, "event=0x12");
        assert_eq!(table.find_set("all").unwrap(), ["my-event", "cycles"]);
        for (text, line, part) in [
            ("a | event=1\nb", 2, "expected an event"),
            ("zen9 | a | event=1 | x", 1, "no design zen9"),
            ("a b | event=1", 1, "is no name"),
            ("\n\na | ", 3, "no encoding"),
        ] {
            let error = EventTable::parse(text).expect_err("wrong");
            assert!(error.line == line && error.what.contains(part), "{error}");
        }
    }
}
