//! Compares the ports of two machines: by which pairs of forms share some, since names of ports mean
//! nothing in another result.

use crate::classes_record::{ClassRecord, ClassShare, ClassesRecord};
use crate::deciding_mix::DecidingMix;
use crate::port_aliases::PortAliases;
use crate::ports_row::PortsRow;
use crate::published_map::PublishedMap;
use crate::study::{CLASSES_KIND, NAME};
use crate::union_bounds::UnionStanding;
use cyclescope_measure::study::csv_list::BadList;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};

/// The lines of a result file.
#[derive(Debug, Clone, PartialEq)]
pub struct PortsTable {
    /// A row for each form.
    pub rows: Vec<PortsRow>,
    classes: ClassesRecord,
}

/// Whether two forms share ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SharingAnswer {
    /// They share all: both are of one class.
    Same,
    /// They seem to share some.
    Share,
    /// A fast mix proves that they share none.
    Apart,
    /// Time can't tell.
    Untold,
}

/// What a file says about two forms.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SharingSide<'a> {
    /// Whether they share ports.
    pub answer: SharingAnswer,
    /// The mix that decided it. Null for forms of one class.
    pub mix: Option<&'a DecidingMix>,
}

/// Forms about which the files disagree.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SharingDifference<'a> {
    /// Two forms.
    pub forms: [String; 2],
    /// Number of pairs of forms with the same classes: all disagree alike.
    pub pairs: usize,
    /// What the first file says.
    pub a: SharingSide<'a>,
    /// What the second file says.
    pub b: SharingSide<'a>,
}

/// Numbers of forms and of pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct SharingCounts {
    /// Forms in both files.
    pub both: usize,
    /// Forms only in the first file.
    pub only_a: usize,
    /// Forms only in the second file.
    pub only_b: usize,
    /// Forms with a class in both files.
    pub with_class: usize,
    /// Pairs of these about which the files agree.
    pub agree: usize,
    /// Pairs about which they disagree.
    pub differ: usize,
    /// Pairs of which one file says nothing.
    pub untold: usize,
}

/// Two files compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SharingComparison<'a> {
    /// Numbers of forms and of pairs.
    pub counts: SharingCounts,
    /// The disagreements, those of most pairs first.
    pub differences: Vec<SharingDifference<'a>>,
}

fn refuse_line(line: Option<u64>, message: String) -> BadList {
    BadList { line, message, remedy: "name an unchanged file from cyclescope ports".to_string() }
}

impl PortsTable {
    /// Reads the lines of kind `ports` and `ports.classes`. `None` if there are none.
    ///
    /// # Errors
    ///
    /// If a line is incomplete, contradicts itself, or the last one is missing.
    pub fn read(content: &[u8]) -> Result<Option<PortsTable>, BadList> {
        fn read_line<T: DeserializeOwned>(number: u64, kind: &str, line: Value) -> Result<T, BadList> {
            let refuse = |error| refuse_line(Some(number), format!("not a complete line of {kind}: {error}"));
            serde_json::from_value(line).map_err(refuse)
        }
        let (mut rows, mut classes) = (Vec::new(), None);
        for (number, line) in (1..).zip(content.split(|byte| *byte == b'\n')) {
            let Ok(line) = serde_json::from_slice::<Value>(line) else { continue };
            if line["kind"] == NAME {
                rows.push(read_line::<PortsRow>(number, NAME, line)?);
            } else if line["kind"] == CLASSES_KIND {
                let record: ClassesRecord = read_line(number, CLASSES_KIND, line)?;
                let is_pair = |share: &ClassShare| {
                    share.classes.len() == 2 && share.classes.iter().all(|class| *class < record.classes.len())
                };
                if !record.shares.iter().chain(&record.free).all(is_pair) {
                    return Err(refuse_line(Some(number), "a pair names a class that does not exist".to_string()));
                }
                classes = Some(record);
            }
        }
        match (rows.is_empty(), classes) {
            (true, _) => Ok(None),
            (false, Some(classes)) => Ok(Some(PortsTable { rows, classes })),
            (false, None) => Err(BadList {
                line: None,
                message: format!("it has no line of {CLASSES_KIND}, because its command was interrupted"),
                remedy: "complete it with cyclescope ports --resume FILE".to_string(),
            }),
        }
    }

    /// The table of these records.
    pub fn from_records(rows: Vec<PortsRow>, classes: ClassesRecord) -> PortsTable {
        PortsTable { rows, classes }
    }

    /// Slots per core cycle.
    pub fn width(&self) -> f64 {
        self.classes.width
    }

    /// The class of a form with this name and code.
    pub(crate) fn find_class(&self, form: &str, code: &str) -> Option<&ClassRecord> {
        let evex = if code.starts_with("EVEX_") { " (evex)" } else { "" };
        let name = format!("{form}{evex}");
        self.classes.classes.iter().find(|class| class.forms.contains(&name))
    }

    /// Finds the published names of its ports.
    pub fn name_ports(&self, published: &PublishedMap) -> PortAliases {
        PortAliases::find(&self.classes, &self.rows, published)
    }

    /// The class of each form, by its key.
    fn list_classes(&self) -> BTreeMap<[&str; 3], Option<usize>> {
        let first = |(class, record): (usize, &ClassRecord)| Some((record.forms.first()?.clone(), class));
        let named: HashMap<String, usize> = self.classes.classes.iter().enumerate().filter_map(first).collect();
        let class = |row: &PortsRow| row.class.as_ref().and_then(|name| named.get(name).copied());
        self.rows.iter().map(|row| (key_of(row), class(row))).collect()
    }

    /// What the file says about two classes.
    fn answer_pair(&self, one: usize, other: usize) -> SharingSide<'_> {
        if one == other {
            return SharingSide { answer: SharingAnswer::Same, mix: None };
        }
        let pair = [one.min(other), one.max(other)];
        let all = self.classes.shares.iter().chain(&self.classes.free);
        let Some(share) = all.into_iter().find(|share| share.classes == pair) else {
            return SharingSide { answer: SharingAnswer::Untold, mix: None };
        };
        let answer = match share.standing {
            UnionStanding::Free | UnionStanding::NoPort => SharingAnswer::Apart,
            UnionStanding::Fits | UnionStanding::Misassigned => SharingAnswer::Share,
            UnionStanding::Hidden | UnionStanding::Unclear => SharingAnswer::Untold,
        };
        SharingSide { answer, mix: share.mix.as_ref() }
    }
}

fn key_of(row: &PortsRow) -> [&str; 3] {
    [&row.code, &row.operands, &row.encoding]
}

/// Compares two files.
pub fn compare_sharing<'a>(a: &'a PortsTable, b: &'a PortsTable) -> SharingComparison<'a> {
    let (in_a, in_b) = (a.list_classes(), b.list_classes());
    let only = |own: &BTreeMap<[&str; 3], Option<usize>>, other: &BTreeMap<[&str; 3], Option<usize>>| {
        own.keys().filter(|key| !other.contains_key(*key)).count()
    };
    let (only_a, only_b) = (only(&in_a, &in_b), only(&in_b, &in_a));
    let mut counts = SharingCounts { both: in_a.len() - only_a, only_a, only_b, ..SharingCounts::default() };
    // Forms with the same class in both files are alike.
    let mut groups: BTreeMap<(usize, usize), Vec<String>> = BTreeMap::new();
    let mut seen = std::collections::HashSet::new();
    for row in a.rows.iter().filter(|row| seen.insert(key_of(row))) {
        let classes = in_a[&key_of(row)].zip(in_b.get(&key_of(row)).copied().flatten());
        if let Some(classes) = classes {
            groups.entry(classes).or_default().push(row.name());
            counts.with_class += 1;
        }
    }
    let groups: Vec<((usize, usize), Vec<String>)> = groups.into_iter().collect();
    let mut differences = Vec::new();
    for (at, (one, forms)) in groups.iter().enumerate() {
        counts.agree += forms.len() * (forms.len() - 1) / 2;
        for (other, others) in &groups[..at] {
            let (of_a, of_b) = (a.answer_pair(one.0, other.0), b.answer_pair(one.1, other.1));
            let pairs = forms.len() * others.len();
            let answers = [of_a.answer, of_b.answer];
            let apart = answers.iter().filter(|answer| **answer == SharingAnswer::Apart).count();
            if answers.contains(&SharingAnswer::Untold) {
                counts.untold += pairs;
            } else if apart == 1 {
                counts.differ += pairs;
                let forms = [others[0].clone(), forms[0].clone()];
                differences.push(SharingDifference { forms, pairs, a: of_a, b: of_b });
            } else {
                counts.agree += pairs;
            }
        }
    }
    differences.sort_by_key(|difference| std::cmp::Reverse(difference.pairs));
    SharingComparison { counts, differences }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports_row::{PortsVerdict, RowStart};

    /// A file of four forms, of which the first two have one class, and what it says about pairs.
    fn build_table(pairs: &[([usize; 2], UnionStanding)]) -> PortsTable {
        let row = |(code, class): (&str, &str)| PortsRow {
            class: Some(class.to_string()),
            ..PortsRow::without_ports(RowStart::named(code), PortsVerdict::Exact, String::new())
        };
        let class = |form: &str| ClassRecord {
            ports: String::new(),
            count: 2,
            forms: vec![form.to_string()],
            solutions: 1,
            alias: None,
        };
        let share = |(classes, standing): &([usize; 2], UnionStanding)| ClassShare {
            classes: classes.to_vec(),
            low: 2,
            high: 4,
            standing: *standing,
            mix: None,
        };
        let (free, shares) = pairs.iter().partition(|(_, standing)| *standing == UnionStanding::Free);
        let list = |pairs: Vec<&([usize; 2], UnionStanding)>| pairs.into_iter().map(share).collect();
        let classes = ClassesRecord {
            width: 6.0,
            mixes: 1,
            steered: true,
            classes: ["a", "c", "d"].map(class).to_vec(),
            shares: list(shares),
            free: list(free),
            names: None,
        };
        PortsTable { rows: [("a", "a"), ("b", "a"), ("c", "c"), ("d", "d")].map(row).to_vec(), classes }
    }

    fn to_lines(table: &PortsTable) -> String {
        let line = |kind: &str, mut value: Value| {
            value["kind"] = kind.into();
            format!("{value}\n")
        };
        let rows = table.rows.iter().map(|row| line(NAME, serde_json::to_value(row).unwrap()));
        let last = line(CLASSES_KIND, serde_json::to_value(&table.classes).unwrap());
        rows.chain([last]).collect()
    }

    #[test]
    fn files_differ_where_one_proves_what_the_other_denies() {
        use UnionStanding::*;
        let one = build_table(&[([0, 1], Free), ([0, 2], Fits), ([1, 2], Hidden)]);
        let other = build_table(&[([0, 1], Misassigned), ([0, 2], Fits), ([1, 2], Free)]);
        let SharingComparison { counts, differences } = compare_sharing(&one, &other);
        let expected = SharingCounts { both: 4, with_class: 4, agree: 3, differ: 2, untold: 1, ..counts };
        assert_eq!(counts, expected);
        let answers: Vec<_> = differences.iter().map(|found| (found.pairs, found.a.answer, found.b.answer)).collect();
        assert_eq!(answers, [(2, SharingAnswer::Apart, SharingAnswer::Share)]);
        assert!(compare_sharing(&one, &one).differences.is_empty());
        // Fast and yet slow: no port is shared.
        let no_port = build_table(&[([0, 1], NoPort), ([0, 2], Fits), ([1, 2], Hidden)]);
        assert!(compare_sharing(&one, &no_port).differences.is_empty());
    }

    #[test]
    fn files_are_read_whole_or_refused() {
        let table = build_table(&[([0, 2], UnionStanding::Fits)]);
        let text = to_lines(&table);
        assert_eq!(PortsTable::read(text.as_bytes()), Ok(Some(table)));
        assert_eq!(PortsTable::read(b"{}\n"), Ok(None));
        let cut = text.lines().next().unwrap();
        assert!(PortsTable::read(cut.as_bytes()).unwrap_err().remedy.contains("--resume"));
        let forged = text.replace("[0,2]", "[0,3]");
        assert!(forged != text && PortsTable::read(forged.as_bytes()).is_err());
    }
}
