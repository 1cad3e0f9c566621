//! Parses lines of kind `uarch` for presentation: a number, its verdict, and the curves behind it.
//!
//! Lines are read as JSON, so that a file and a running study are handled the same way. Missing
//! fields are empty.

use super::figure::FigureText;
use cyclescope::caveat::CaveatKind;
use cyclescope::record::Quantity;
use cyclescope::study::instr::rows::instr_table::BadList;
use cyclescope::study::uarch::{PairRecord, SpreadRecord, TestedPart, UarchRecord, VerdictKind};
use serde::Deserialize;
use serde_json::Value;
use std::ops::Deref;

/// The kind of the lines, and the name of the study.
pub const UARCH_KIND: &str = "uarch";

/// A number that differs from CPUID's by at most this share counts as the same, because the sizes
/// of two programs may differ this much.
const CPUID_SAME_SHARE: f64 = 0.02;

/// A line of the study.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub struct UarchLine(UarchRecord);

impl Deref for UarchLine {
    type Target = UarchRecord;

    fn deref(&self) -> &UarchRecord {
        &self.0
    }
}

#[cfg(test)]
impl std::ops::DerefMut for UarchLine {
    fn deref_mut(&mut self) -> &mut UarchRecord {
        &mut self.0
    }
}

impl UarchLine {
    /// The `uarch` records among lines of the study: those that it has just written, and complete
    /// ones of a resumed file.
    pub fn from_lines(lines: &[Value]) -> Vec<UarchLine> {
        let of = |line| UarchLine::deserialize(line).expect("all lines are whole");
        lines.iter().filter(|line| line["kind"] == UARCH_KIND).map(of).collect()
    }

    /// Sorts records by their tests. Sizes that are measured again are written last.
    pub fn sort_by_test(records: &mut [UarchLine]) {
        let plain = cyclescope::study::find_study(UARCH_KIND).and_then(|study| study.generic);
        let place = |record: &UarchLine| {
            plain.as_ref().and_then(|plain| plain.subjects.iter().position(|(test, _)| *test == record.test))
        };
        records.sort_by_key(place);
    }

    /// The `uarch` records of a file. Lines of other kinds, or without JSON, are skipped; those of
    /// this kind must be complete.
    pub fn from_content(content: &[u8]) -> Result<Vec<UarchLine>, BadList> {
        let lines = (1..).zip(content.split(|byte| *byte == b'\n'));
        let values = lines.filter_map(|(number, line)| Some((number, serde_json::from_slice::<Value>(line).ok()?)));
        let of_kind = values.filter(|(_, value)| value["kind"] == UARCH_KIND);
        let read = |(number, value): (u64, Value)| {
            let refuse = |why: String| BadList {
                line: Some(number),
                message: format!("not a complete line of {UARCH_KIND}: {why}"),
                remedy: "name an unchanged file from cyclescope".to_string(),
            };
            let line = UarchLine::deserialize(&value).map_err(|error| refuse(error.to_string()))?;
            line.find_contradiction().map_or(Ok(line.clone()), |why| Err(refuse(why.to_string())))
        };
        of_kind.map(read).collect()
    }

    /// Whether the line has a number.
    pub fn is_found(&self) -> bool {
        self.verdict == VerdictKind::Found && self.value.value.is_some()
    }

    /// Whether something else used the core during the measurement.
    pub fn is_shared(&self) -> bool {
        self.caveats.iter().any(|caveat| caveat.code == CaveatKind::SiblingBusy)
    }

    /// Whether the reason says more than the number.
    pub fn has_finding(&self) -> bool {
        self.part == TestedPart::Environment || !self.displaced.is_empty() || !self.places.is_empty()
    }

    /// CPUID's figure, if the number differs from it or is missing.
    pub fn cpuid_contradiction(&self) -> Option<Quantity> {
        let told = self.cpuid? as f64;
        let near = self.value.value.is_some_and(|value| (value - told).abs() <= CPUID_SAME_SHARE * told);
        let differs = !self.is_found() || !(near || self.value.contains(told));
        differs.then(|| Quantity { value: Some(told), low: None, high: None, ..self.value })
    }

    /// A cost in time: its median and the range of most rounds.
    pub fn describe_time(&self) -> Option<String> {
        let SpreadRecord { time, quantiles, .. } = self.spread.as_ref()?;
        let scale = time.best_scale();
        let (first, last) = (quantiles.first()?, quantiles.last()?);
        let most = scale.format_number((last.share - first.share) * 100.0);
        let [low, high] = [scale.format_number(first.ns?), scale.format_number(last.ns?)];
        Some(format!("{}; {low} to {high} ns in {most} % of rounds", time.format_with_unit()?))
    }

    /// The verdict, and the limiting structure if any.
    pub fn describe_verdict(&self) -> String {
        match &self.limited_by {
            Some(other) => format!("{} by {}", self.verdict.name(), describe_key(other)),
            None => self.verdict.name().to_string(),
        }
    }

    /// The name of the number in words.
    pub fn describe_name(&self) -> String {
        match self.pair {
            Some(PairRecord { cpus: [one, other], .. }) => {
                format!("{}: CPU {one} and CPU {other}", describe_key(&self.test))
            }
            None => describe_key(&self.what),
        }
    }
}

/// Names of tests whose keys aren't words. Register counts are those beyond the architectural
/// registers.
const TEST_NAMES: &[(&str, &str)] = &[
    ("rob", "reorder buffer"),
    ("int_registers", "spare integer registers"),
    ("vector_registers_xmm", "spare xmm registers"),
    ("vector_registers_ymm", "spare ymm registers"),
    ("vector_registers_zmm", "spare zmm registers"),
    ("mask_registers", "spare mask registers"),
    ("mmx_registers", "spare MMX registers"),
    ("x87_registers", "spare x87 registers"),
    ("flags", "spare registers of flags"),
    ("stores_in_flight_ymm", "256-bit stores in flight"),
    ("stores_in_flight_zmm", "512-bit stores in flight"),
    ("branch_targets_32", "branch targets, 32 bytes apart"),
    ("conditional_targets_32", "conditional targets, 32 bytes apart"),
    ("return_stack", "usable return stack"),
    ("indirect_history", "targets in turn"),
    ("misprediction_decoded", "misprediction, from decoders"),
    ("uop_cache", "µop cache"),
    ("uop_cache_ways", "ways of the µop cache"),
    ("l1d_ways", "ways of the first data cache"),
    ("l2_ways", "ways of the second data cache"),
    ("data_caches_by_page", "caches, few translations"),
    ("data_caches_huge", "caches in huge pages"),
    ("write_combining", "write-combining lines"),
    ("subnormals_x87", "subnormals of x87"),
    ("taylor", "Taylor series"),
];

/// Prefix of the findings' names; their test is `environment`.
const ENVIRONMENT_PREFIX: &str = "environment.";

/// A stable key in words: `data_caches.1.size` becomes `data caches, level 1: size`.
pub fn describe_key(key: &str) -> String {
    let mut parts = key.strip_prefix(ENVIRONMENT_PREFIX).unwrap_or(key).split('.');
    let test = parts.next().unwrap_or_default();
    let name = TEST_NAMES.iter().find(|(key, _)| *key == test).map(|(_, name)| name.to_string());
    let mut text = name.unwrap_or_else(|| test.replace('_', " "));
    for part in parts {
        let number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        text += match part {
            _ if number => ", level ",
            "beyond" | "more" => ", ",
            _ => ": ",
        };
        text += &part.replace('_', " ");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::simulated_lines;
    use super::*;
    use crate::output::report::{GivenReport, require_harmless_report, tabulate_lines};
    use crate::studies::line_view::TextDetail;
    use cyclescope_fuzz::{InputShape, fuzz_reader};

    #[test]
    fn stable_keys_become_words() {
        assert_eq!(describe_key("rob"), "reorder buffer");
        assert_eq!(describe_key("vector_registers_xmm"), "spare xmm registers");
        assert_eq!(describe_key("loads_in_flight"), "loads in flight");
        assert_eq!(describe_key("data_caches.1.size"), "data caches, level 1: size");
        assert_eq!(describe_key("data_tlb.beyond.cost"), "data tlb, beyond: cost");
        assert_eq!(describe_key("environment.data_caches.3.size"), "data caches, level 3: size");
        assert_eq!(describe_key("environment.page_walk"), "page walk");
        assert_eq!(describe_key(""), "");
    }

    #[test]
    fn reads_lines_of_both_kinds_of_tests() {
        let records = UarchLine::from_lines(&simulated_lines::simulated_lines());
        let parts: Vec<(&str, TestedPart)> = records.iter().map(|record| (record.what.as_str(), record.part)).collect();
        let all = [
            ("rob", TestedPart::Window),
            ("int_registers", TestedPart::Window),
            ("mask_registers", TestedPart::Window),
            ("data_caches.1.size", TestedPart::Memory),
            ("data_caches.1.cost", TestedPart::Memory),
            ("return_stack", TestedPart::FrontEnd),
        ];
        assert_eq!(parts, all);
        assert_eq!(records[1].describe_verdict(), "limited by reorder buffer");
        assert_eq!((records[0].fillers.len(), records[3].walks[0].levels.len()), (2, 3));
    }

    #[test]
    fn sizes_written_last_are_sorted_into_place() {
        let names = ["wake_up", "data_caches", "data_caches", "rob", "flags", "int_registers"];
        let line = |name: &str| simulated_lines::simulated_line(name, name, "none", None, "count");
        let mut records = UarchLine::from_lines(&names.map(line));
        records[1].what = "first".to_string();
        UarchLine::sort_by_test(&mut records);
        let tests: Vec<&str> = records.iter().map(|record| &*record.test).collect();
        assert_eq!(tests, ["rob", "int_registers", "flags", "wake_up", "data_caches", "data_caches"]);
        assert_eq!(records[4].what, "first");
    }

    #[test]
    fn any_file_of_uarch_is_read_or_refused() {
        let whole: Vec<String> = simulated_lines::simulated_lines().iter().map(Value::to_string).collect();
        let whole = whole.join("\n").into_bytes();
        assert_eq!(UarchLine::from_content(&whole).unwrap().len(), 6);
        let damaged = String::from_utf8(whole.clone()).unwrap().replacen("\"what\"", "\"that\"", 1);
        assert_eq!(UarchLine::from_content(damaged.as_bytes()).unwrap_err().line, Some(2));
        fuzz_reader("core", InputShape::JsonLines, &[whole], |bytes| {
            for record in UarchLine::from_content(bytes).unwrap_or_default() {
                let _ = (
                    record.describe_name(),
                    record.describe_verdict(),
                    record.cpuid_contradiction(),
                    record.value.format_with_unit(),
                );
            }
        });
    }

    #[test]
    fn any_fields_of_a_resumed_line_are_presented_or_measured_again() {
        let plain = cyclescope::study::find_study(UARCH_KIND).and_then(|study| study.generic).unwrap();
        let mut lines = simulated_lines::simulated_lines();
        lines.remove(0);
        lines.iter_mut().for_each(|line| line["records"] = 1.into());
        assert_eq!((plain.count_complete)(&lines), lines.len());
        let lines = lines.iter().map(Value::to_string).collect::<Vec<_>>().join("\n").into_bytes();
        fuzz_reader("resumed_uarch", InputShape::Fields, &[lines], |bytes| {
            let values = bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
            let mut values: Vec<Value> = values.collect();
            values.truncate((plain.count_complete)(&values));
            let table = tabulate_lines(&values);
            require_harmless_report(&GivenReport {
                print: &|output| super::super::sheet::print_result(&values, TextDetail::Reasons, output),
                summary: table.clone(),
                table,
                draw: &|| super::super::plots::draw_pictures(&values, "a machine"),
            });
        });
    }

    #[test]
    fn cpuid_is_shown_if_it_differs() {
        let mut records = UarchLine::from_lines(&simulated_lines::simulated_lines());
        assert_eq!(records[3].cpuid_contradiction(), None, "49152 is in the interval");
        records[3].cpuid = Some(32768);
        assert_eq!(records[3].cpuid_contradiction().and_then(|told| told.value), Some(32768.0));
        records[3].cpuid = Some(49_800);
        assert_eq!(records[3].cpuid_contradiction(), None, "it is past the interval by less than two hundredths");
        assert_eq!(records[0].cpuid_contradiction(), None);
        records[2].cpuid = Some(512);
        assert_eq!(records[2].cpuid_contradiction().and_then(|told| told.value), Some(512.0));
    }
}
