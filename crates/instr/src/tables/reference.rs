//! Reads a published table, as a CSV file, to compare results with.
//!
//! The header names the columns in any order and case. Required are `mnemonic`, `operands`, and one
//! of `latency_cycles`, `rthroughput_cycles` and `slots`. Optional are `encoding`, `code`, `from` and `to`.
//! An empty field makes no claim. Lines that begin with `#` are comments. `variant` and `bound` are
//! also read, so an export can serve as a reference. All other columns are ignored.

mod published_figure;
mod spelling;

pub use published_figure::PublishedFigure;
pub(crate) use spelling::{spell_form, spell_mnemonic};

use crate::rows::instr_row::LatencyBound;
use csv::StringRecord;
use cyclescope_code::asm::nearest_words;
use cyclescope_measure::study::csv_list::csv_lines::CsvLines;
use cyclescope_measure::study::csv_list::{BadList, csv_error};

/// The columns that are read.
const REFERENCE_COLUMNS: [&str; 11] = [
    "mnemonic",
    "operands",
    "encoding",
    "code",
    "from",
    "to",
    "variant",
    "bound",
    "latency_cycles",
    "rthroughput_cycles",
    "slots",
];
const REQUIRED_COLUMNS: [&str; 2] = ["mnemonic", "operands"];
const FIGURE_COLUMNS: [&str; 3] = ["latency_cycles", "rthroughput_cycles", "slots"];
const ENCODINGS: [&str; 6] = ["legacy", "vex", "evex", "xop", "3dnow", "sequence"];

/// One line of a published table.
#[derive(Debug, Clone, PartialEq)]
pub struct ReferenceEntry {
    /// Its line number in the file.
    pub line: u64,
    /// The name in the instruction database, if given.
    pub code: Option<String>,
    /// The mnemonic, normalised.
    pub mnemonic: String,
    /// The operands, normalised.
    pub operands: String,
    /// The encoding. `None` matches any.
    pub encoding: Option<String>,
    /// Input and output of the latency. `None` if the table does not say.
    pub pair: Option<(String, String)>,
    /// The latency in core cycles.
    pub latency: Option<PublishedFigure>,
    /// The kind of the latency, if given.
    pub bound: Option<LatencyBound>,
    /// The reciprocal throughput in core cycles.
    pub throughput: Option<PublishedFigure>,
    /// Dispatch slots: µops in the fused domain.
    pub slots: Option<PublishedFigure>,
}

/// A published table.
#[derive(Debug, Clone, PartialEq)]
pub struct ReferenceTable {
    /// Its lines, in order.
    pub entries: Vec<ReferenceEntry>,
    /// Warnings about ignored columns that may be misspelt.
    pub warnings: Vec<String>,
}

impl ReferenceTable {
    /// Parses the content of a file.
    pub fn read(content: &[u8]) -> Result<ReferenceTable, BadList> {
        let content = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
        let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).comment(Some(b'#')).from_reader(content);
        let mut lines = CsvLines::new(content);
        let headers = reader.headers().map_err(|error| csv_error(&error, &mut lines))?.clone();
        let first = headers.position().map_or(1, |position| lines.line_at(position));
        let columns = ReferenceColumns::new(&headers).map_err(|error| BadList { line: Some(first), ..error })?;
        let entries = reader.records().map(|record| {
            let record = record.map_err(|error| csv_error(&error, &mut lines))?;
            let line = record.position().map_or(0, |position| lines.line_at(position));
            columns.read_entry(&record, line)
        });
        Ok(ReferenceTable { entries: entries.collect::<Result<_, _>>()?, warnings: columns.warnings.clone() })
    }

    /// Whether any latency names its input and output.
    pub(crate) fn has_pairs(&self) -> bool {
        self.entries.iter().any(|entry| entry.pair.is_some())
    }
}

/// The positions of the columns.
struct ReferenceColumns {
    places: [Option<usize>; REFERENCE_COLUMNS.len()],
    warnings: Vec<String>,
}

impl ReferenceColumns {
    fn new(headers: &StringRecord) -> Result<ReferenceColumns, BadList> {
        let names: Vec<String> = headers.iter().map(str::to_lowercase).collect();
        for name in REFERENCE_COLUMNS {
            if names.iter().filter(|other| *other == name).count() > 1 {
                return Err(header_error(format!("there are two columns `{name}`"), "leave one of them".to_string()));
            }
        }
        let unknown = || names.iter().map(String::as_str).filter(|name| !REFERENCE_COLUMNS.contains(name));
        let has = |name: &str| names.iter().any(|other| other == name);
        // Present columns whose names are similar to absent ones.
        let meant = |absent: &[&'static str]| -> Vec<(String, &'static str)> {
            let near =
                |name: &str| nearest_words(name, absent.iter().copied().filter(|absent| !has(absent))).first().copied();
            let absent = unknown().filter_map(|name| near(name).map(|near| (name.to_string(), near)));
            absent.filter_map(|(name, near)| Some((name, *REFERENCE_COLUMNS.iter().find(|c| **c == near)?))).collect()
        };
        let missing: Vec<&'static str> = REQUIRED_COLUMNS.into_iter().filter(|name| !has(name)).collect();
        if !missing.is_empty() {
            let text = format!("there is no column `{}`", missing.join("` and no column `"));
            return Err(header_error(text, suggest_column(&meant(&missing))));
        }
        if !FIGURE_COLUMNS.into_iter().any(has) {
            let text = format!("there is no column `{}`", FIGURE_COLUMNS.join("` or `"));
            return Err(header_error(text, suggest_column(&meant(&FIGURE_COLUMNS))));
        }
        let warnings = meant(&REFERENCE_COLUMNS)
            .into_iter()
            .map(|(name, near)| format!("column `{name}` is ignored; did you mean `{near}`?"));
        let places = REFERENCE_COLUMNS.map(|name| names.iter().position(|other| other == name));
        Ok(ReferenceColumns { places, warnings: warnings.collect() })
    }

    /// The content of a field, if present and not empty.
    fn find_field<'a>(&self, record: &'a StringRecord, name: &str) -> Option<&'a str> {
        let column = REFERENCE_COLUMNS.iter().position(|column| *column == name)?;
        record.get(self.places[column]?).filter(|text| !text.is_empty())
    }

    fn read_entry(&self, record: &StringRecord, line: u64) -> Result<ReferenceEntry, BadList> {
        let field = |name: &str| self.find_field(record, name);
        let wrong = |message: String, remedy: &str| BadList { line: Some(line), message, remedy: remedy.to_string() };
        let name = field("mnemonic").ok_or_else(|| wrong("the mnemonic is empty".to_string(), "name one"))?;
        let figure = |name: &str| match field(name) {
            None => Ok(None),
            Some(text) => PublishedFigure::parse(text).map(Some).ok_or_else(|| {
                let message = format!("`{text}` in column `{name}` is not a number");
                wrong(message, "write it as 3, 3.5, <=7 or 14-18, or leave it empty")
            }),
        };
        let encoding = field("encoding").map(str::to_lowercase);
        if let Some(unknown) = encoding.as_deref().filter(|name| !ENCODINGS.contains(name)) {
            let remedy = format!("write one of {}, or leave it empty for any", ENCODINGS.join(", "));
            return Err(wrong(format!("there is no encoding `{unknown}`"), &remedy));
        }
        let pair = match (field("from"), field("to")) {
            (None, None) => None,
            (Some(from), Some(to)) => Some((from.to_lowercase(), to.to_lowercase())),
            _ => return Err(wrong("only one of `from` and `to` is given".to_string(), "fill both or none")),
        };
        let bound = field("bound").and_then(parse_bound);
        // A variant has other operands than a published figure.
        let (latency, throughput, slots) = match field("variant") {
            Some(_) => (None, None, None),
            None => (figure("latency_cycles")?, figure("rthroughput_cycles")?, figure("slots")?),
        };
        let (mnemonic, operands) = spell_form(name, field("operands").unwrap_or_default());
        Ok(ReferenceEntry {
            line,
            code: field("code").map(str::to_string),
            mnemonic,
            operands,
            encoding,
            pair,
            latency: latency.map(
                |figure| {
                    if bound == Some(LatencyBound::Upper) { figure.to_upper_bound() } else { figure }
                },
            ),
            bound,
            throughput,
            slots,
        })
    }
}

fn parse_bound(text: &str) -> Option<LatencyBound> {
    serde_json::from_value(text.to_lowercase().into()).ok()
}

fn suggest_column(meant: &[(String, &str)]) -> String {
    let columns = "name the columns in the first line: mnemonic, operands, latency_cycles, rthroughput_cycles";
    match meant {
        [] => columns.to_string(),
        [(name, near), ..] => format!("`{name}` is unknown; did you mean `{near}`?"),
    }
}

fn header_error(message: String, remedy: String) -> BadList {
    BadList { line: Some(1), message, remedy }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<ReferenceTable, BadList> {
        ReferenceTable::read(text.as_bytes())
    }

    #[test]
    fn columns_come_in_any_order_and_spelling() {
        let text = "\u{feff}RThroughput_Cycles, Port ,OPERANDS,From,to,Mnemonic,latency_cycles,encoding\r\n\
                    # a comment\r\n\
                    0.25,p0156,\"Reg64,R64\",OP2,op1,ADD,<=1,Legacy\r\n\
                    ,,,,,NOP,,\r\n";
        let reference = read(text).unwrap();
        let entry = &reference.entries[0];
        assert_eq!((entry.mnemonic.as_str(), entry.operands.as_str(), entry.line), ("add", "r64, r64", 3));
        assert_eq!(entry.pair, Some(("op2".to_string(), "op1".to_string())));
        assert_eq!(
            (entry.latency, entry.throughput),
            (Some(PublishedFigure::AtMost(1.0)), Some(PublishedFigure::Exact(0.25)))
        );
        assert_eq!(entry.encoding.as_deref(), Some("legacy"));
        let empty = &reference.entries[1];
        assert_eq!((empty.latency, empty.throughput, &empty.encoding, &empty.pair), (None, None, &None, &None));
        assert!(reference.has_pairs() && reference.warnings.is_empty());
    }

    #[test]
    fn variants_and_bounds_of_an_export_are_read() {
        let text = "mnemonic,operands,from,to,variant,latency_cycles,bound\n\
                    xor,\"r64, r64\",op1,op1,same register,0,upper\n\
                    load,m64,mem_addr,op1,,5,upper\nadd,r64,op1,op1,,1,sum\n";
        let entries = read(text).unwrap().entries;
        let latencies: Vec<Option<PublishedFigure>> = entries.iter().map(|entry| entry.latency).collect();
        assert_eq!(latencies, [None, Some(PublishedFigure::AtMost(5.0)), Some(PublishedFigure::Exact(1.0))]);
        assert_eq!(entries[2].bound, Some(LatencyBound::Sum));
    }

    #[test]
    fn errors_name_the_line_and_a_remedy() {
        let cases = [
            ("mnemonc,operands,latency_cycles\n", Some(1), "`mnemonc` is unknown; did you mean `mnemonic`"),
            ("mnemonic,latency_cycles\n", Some(1), "name the columns"),
            ("mnemonic,operands,latency\n", Some(1), "did you mean `latency_cycles`"),
            ("mnemonic,operands,to,to,latency_cycles\n", Some(1), "leave one"),
            ("mnemonic,operands,latency_cycles\nadd,\"r64, r64\",one\n", Some(2), "14-18"),
            ("mnemonic,operands,latency_cycles\nadd,r64, r64,1\n", Some(2), "double quotes"),
            ("# note\n\nmnemonic,operands,latency_cycles\r\n\r\n# note\nnop,,\r\nadd,r64\r\n", Some(7), "double"),
            ("mnemonic,operands,latency_cycles\n\nnop,,1\n,r64,1\n", Some(4), "name one"),
            ("mnemonic,operands,latency_cycles,encoding\nadd,r64,1,sse\n", Some(2), "one of legacy, vex"),
            ("mnemonic,operands,latency_cycles,from,to\nadd,r64,1,op1,\n", Some(2), "fill both"),
            ("", Some(1), "name the columns"),
        ];
        for (text, line, remedy) in cases {
            let error = read(text).unwrap_err();
            assert_eq!(error.line, line, "{text}: {error}");
            assert!(error.remedy.contains(remedy), "{text}: {error:?}");
        }
        let error = ReferenceTable::read(b"mnemonic,operands,latency_cycles\nadd,\xff,1\n").unwrap_err();
        assert_eq!((error.line, error.remedy.as_str()), (Some(2), "save the file as UTF-8"));
    }

    #[test]
    fn a_warning_names_a_column_that_may_be_misspelt() {
        let warnings = read("mnemonic,operands,latency_cycles,rthroughput_cycels,ports\n").unwrap().warnings;
        assert_eq!(warnings, ["column `rthroughput_cycels` is ignored; did you mean `rthroughput_cycles`?"]);
    }
}
