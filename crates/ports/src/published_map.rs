//! A published port map: which ports, by the vendor's names, the µops of some instructions use.
//!
//! A text file with a line for each form: `add r64, r64: 1*p0156B`. The name is that of this study or
//! the full one with the code. A set of ports is their common prefix and a digit or letter for each;
//! sets of several prefixes are joined by `/`, as in `1*ALU03/AGU1`. Empty lines and what follows `#`
//! do not count.

use crate::port_notation::{NamedUops, read_uops};
use cyclescope_measure::study::csv_list::BadList;
use std::collections::BTreeMap;

/// A published map.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PublishedMap {
    /// The forms, in the order of the file.
    pub forms: Vec<PublishedForm>,
}

/// The µops of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedForm {
    /// The form's name.
    pub name: String,
    /// Its µops.
    pub uops: Vec<NamedUops>,
}

impl PublishedMap {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// If a line has another form, a form occurs twice, or there is none.
    pub fn read(text: &str) -> Result<PublishedMap, BadList> {
        let mut map = PublishedMap::default();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let parts = line.rsplit_once(':').map(|(name, uops)| (name.trim(), uops.trim()));
            let read = parts.and_then(|(name, uops)| {
                let uops = read_uops(uops, read_published_ports)?;
                (!name.is_empty()).then(|| PublishedForm { name: name.to_string(), uops })
            });
            let Some(form) = read else { return Err(refuse_line(Some(number), "it names no form with its ports")) };
            if map.forms.iter().any(|known| known.name.eq_ignore_ascii_case(&form.name)) {
                return Err(refuse_line(Some(number), "an earlier line names the same form"));
            }
            map.forms.push(form);
        }
        if map.forms.is_empty() {
            return Err(refuse_line(None, "it names no form"));
        }
        Ok(map)
    }
}

fn refuse_line(line: Option<u64>, message: &str) -> BadList {
    let remedy = "write one form in each line, as in: add r64, r64: 1*p0156".to_string();
    BadList { line, message: message.to_string(), remedy }
}

/// Reads a set of published names. `None` if it has another form, or names a port twice.
pub fn read_published_ports(text: &str) -> Option<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    for set in text.split('/') {
        let digit = set.find(|c: char| c.is_ascii_digit())?;
        let (prefix, ports) = set.split_at(digit);
        let is_prefix = !prefix.is_empty() && prefix.chars().all(|c| c.is_ascii_alphabetic() || c == '_');
        if !is_prefix || !ports.chars().all(|c| c.is_ascii_alphanumeric()) {
            return None;
        }
        names.extend(ports.chars().map(|port| format!("{prefix}{port}")));
    }
    let is_unique = (1..names.len()).all(|at| !names[..at].contains(&names[at]));
    is_unique.then_some(names)
}

/// Writes a set of published names in the notation of the file.
pub fn describe_published_ports<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut sets: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (prefix, port) in names.into_iter().map(|name| name.split_at(name.len() - 1)) {
        sets.entry(prefix).or_default().push(port);
    }
    let set = |(prefix, mut ports): (&str, Vec<&str>)| {
        ports.sort_unstable();
        format!("{prefix}{}", ports.concat())
    };
    sets.into_iter().map(set).collect::<Vec<String>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_a_form_and_its_ports() {
        let map = PublishedMap::read("# a core\n\nadd r64, r64: 1*p0156B # simple\nadd r64, m64: 1*p0156+1*p23A\n");
        let map = map.unwrap();
        let names: Vec<&str> = map.forms.iter().map(|form| form.name.as_str()).collect();
        assert_eq!(names, ["add r64, r64", "add r64, m64"]);
        assert_eq!(map.forms[0].uops[0].ports, ["p0", "p1", "p5", "p6", "pB"]);
        assert_eq!(map.forms[1].uops.len(), 2);
        for (bad, line) in [
            ("add r64, r64\n", Some(1)),
            ("\nadd r64, r64: p01\n", Some(2)),
            (": 1*p0\n", Some(1)),
            ("a: 1*p0\nA: 1*p1\n", Some(2)),
            ("a: 1*p00\n", Some(1)),
            ("a: 1*01\n", Some(1)),
            ("# nothing\n", None),
        ] {
            assert_eq!(PublishedMap::read(bad).map_err(|error| error.line), Err(line), "{bad}");
        }
    }

    #[test]
    fn sets_are_written_as_they_are_read() {
        for text in ["p0156B", "FP23", "AGU1/ALU03"] {
            let names = read_published_ports(text).unwrap();
            assert_eq!(describe_published_ports(names.iter().map(String::as_str)), text);
        }
    }
}
