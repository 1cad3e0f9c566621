//! What readers of a result need of a line of kind `uarch`: a number, its verdict, and the curves that it comes from.
//!
//! Lines are read as JSON, so that those of a file and those of a study under way are the same. A field that a line does
//! not have is empty.

use super::figure::CoreFigure;
use cyclescope::study::instr::rows::instr_table::BadList;
use serde::Deserialize;
use serde_json::Value;

/// The kind of such a line, and the name of the study.
pub const UARCH_KIND: &str = "uarch";

/// The share by which a number may differ from CPUID's and still be the same, as sizes of two programs may.
const CPUID_SAME_SHARE: f64 = 0.02;

/// A part of the core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CorePart {
    /// What brings instructions: fetch, decoders, predictors.
    FrontEnd,
    /// What holds instructions until they retire.
    #[default]
    Window,
    /// Renaming, and what executes.
    Execution,
    /// Caches and the translation of addresses.
    Memory,
    /// What is told of them, and what other work takes.
    Environment,
}

/// A caveat, of which the page has its code.
#[derive(Debug, Clone, Deserialize)]
pub struct CaveatCode {
    code: String,
}

/// A line.
#[derive(Debug, Clone, Deserialize)]
pub struct UarchLine {
    /// The test.
    pub test: String,
    /// The number's own name, such as `rob` or `data_caches.1.size`.
    pub what: String,
    /// `found`, `limited`, `none` or `unclear`.
    pub verdict: String,
    /// The number.
    pub value: CoreFigure,
    /// The part of the core that it is of.
    #[serde(default)]
    pub part: CorePart,
    /// The test of the structure that is full first.
    #[serde(default)]
    pub limited_by: Option<String>,
    /// Why, in words.
    #[serde(default)]
    pub why: String,
    /// What CPUID says, in the unit of the number.
    #[serde(default)]
    pub cpuid: Option<f64>,
    /// What CPUID or the kernel says that is no such number.
    #[serde(default)]
    pub told: Option<String>,
    /// What it is to be read with.
    #[serde(default)]
    pub caveats: Vec<CaveatCode>,
    /// How a cost is spread over rounds.
    #[serde(default)]
    pub spread: Option<TimeSpread>,
    /// Overlaps against numbers of instructions.
    #[serde(default)]
    pub fillers: Vec<FillerCurve>,
    /// Costs of a step against sizes.
    #[serde(default)]
    pub walks: Vec<WalkCurve>,
    /// Rates of programs.
    #[serde(default)]
    pub rates: Vec<ProgramRate>,
    /// Costs at places.
    #[serde(default)]
    pub places: Vec<PlaceCost>,
    /// The CPUs that it is of, where it is of two.
    #[serde(default)]
    pub pair: Option<CpuPair>,
    /// What other classes of instructions do to one.
    #[serde(default)]
    pub displaced: Vec<Value>,
}

/// Two CPUs.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct CpuPair {
    /// Their numbers, the smaller one first.
    pub cpus: [u32; 2],
    /// The cluster of pairs that are alike, from 1, the fastest.
    #[serde(default)]
    pub cluster: Option<u32>,
}

/// The cost at a place.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct PlaceCost {
    /// The place, in bytes.
    pub place: f64,
    /// Core cycles.
    #[serde(default)]
    pub cost: Option<f64>,
}

/// The rate of a program.
#[derive(Debug, Clone, Deserialize)]
pub struct ProgramRate {
    /// Its name.
    pub name: String,
    /// What it was made for: of bytes in a cycle, how much memory they are of.
    pub n: f64,
    /// Its rate.
    pub rate: CoreFigure,
}

/// A cost in time, and what shares of the rounds are below.
#[derive(Debug, Clone, Deserialize)]
pub struct TimeSpread {
    /// The time.
    pub time: CoreFigure,
    /// From the smallest share on.
    #[serde(default)]
    pub quantiles: Vec<TimeQuantile>,
}

/// What a share of the rounds is below.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct TimeQuantile {
    /// The share.
    pub share: f64,
    /// The time in nanoseconds.
    #[serde(default)]
    pub ns: Option<f64>,
}

/// What one kind of instruction showed.
#[derive(Debug, Clone, Deserialize)]
pub struct FillerCurve {
    /// Its name.
    pub name: String,
    /// Where the overlap ends.
    #[serde(default)]
    pub knee: Option<OverlapKnee>,
    /// The overlap at each number of instructions.
    #[serde(default)]
    pub curve: Vec<OverlapPoint>,
}

/// Where an overlap ends.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct OverlapKnee {
    /// The last number of instructions at which there is some.
    pub high: f64,
}

/// A point of a filler's curve.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct OverlapPoint {
    /// The number of instructions.
    pub n: f64,
    /// The share of the second chain that runs beside the first.
    pub overlap: Option<f64>,
}

/// What one kind of step costs.
#[derive(Debug, Clone, Deserialize)]
pub struct WalkCurve {
    /// Its name.
    pub name: String,
    /// The costs that it stays at, from the smallest size on.
    #[serde(default)]
    pub levels: Vec<CostLevel>,
    /// The cost at each size.
    #[serde(default)]
    pub curve: Vec<WalkStep>,
}

/// A cost, and up to which size it holds; to the end where that is not said.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct CostLevel {
    /// The last size.
    pub upto: Option<LevelEdge>,
    /// Core cycles.
    pub cost: Option<f64>,
}

/// The end of a level: it holds up to the one size at least, and up to the other at most.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct LevelEdge {
    /// The last size that is surely in it.
    pub low: f64,
    /// The last one that may be.
    pub high: f64,
}

/// A point of a walk's curve, in core cycles.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct WalkStep {
    /// The size.
    pub n: f64,
    /// The cost.
    pub cost: Option<f64>,
    /// The lower end of its interval.
    #[serde(default)]
    pub low: Option<f64>,
    /// The upper end.
    #[serde(default)]
    pub high: Option<f64>,
}

impl UarchLine {
    /// Those among lines that the study has just written.
    pub fn from_lines(lines: &[Value]) -> Vec<UarchLine> {
        let of = |line| UarchLine::deserialize(line).expect("the study writes whole lines");
        lines.iter().filter(|line| line["kind"] == UARCH_KIND).map(of).collect()
    }

    /// Puts records in the order of their tests: sizes, which are looked at again, are written last.
    pub fn sort_by_test(records: &mut [UarchLine]) {
        let plain = cyclescope::study::find_study(UARCH_KIND).and_then(|study| study.generic);
        let place = |record: &UarchLine| {
            plain.as_ref().and_then(|plain| plain.subjects.iter().position(|(test, _)| *test == record.test))
        };
        records.sort_by_key(place);
    }

    /// Those of a file of lines. A line that is not JSON is passed over, as those of other kinds are; one of this kind has to be whole.
    pub fn from_content(content: &[u8]) -> Result<Vec<UarchLine>, BadList> {
        let lines = (1..).zip(content.split(|byte| *byte == b'\n'));
        let values = lines.filter_map(|(number, line)| Some((number, serde_json::from_slice::<Value>(line).ok()?)));
        let of_kind = values.filter(|(_, value)| value["kind"] == UARCH_KIND);
        let read = |(number, value): (u64, Value)| {
            UarchLine::deserialize(&value).map_err(|error| BadList {
                line: Some(number),
                message: format!("it is no whole line of {UARCH_KIND}: {error}"),
                remedy: "name a file as cyclescope wrote it".to_string(),
            })
        };
        of_kind.map(read).collect()
    }

    /// Whether there is a number.
    pub fn is_found(&self) -> bool {
        self.verdict == "found" && self.value.value.is_some()
    }

    /// Whether something else used the core while it was measured.
    pub fn is_shared(&self) -> bool {
        self.caveats.iter().any(|caveat| caveat.code == "sibling_busy")
    }

    /// Whether why it is so says more than the number.
    pub fn has_finding(&self) -> bool {
        self.part == CorePart::Environment || !self.displaced.is_empty() || !self.places.is_empty()
    }

    /// What CPUID says, where the number differs from it or there is none.
    pub fn cpuid_contradiction(&self) -> Option<CoreFigure> {
        let told = self.cpuid?;
        let near = self.value.value.is_some_and(|value| (value - told).abs() <= CPUID_SAME_SHARE * told);
        let differs = !self.is_found() || !(near || self.value.contains(told));
        differs.then(|| CoreFigure { value: Some(told), low: None, high: None, ..self.value.clone() })
    }

    /// A cost in time: its median, and between what it is in most rounds.
    pub fn describe_time(&self) -> Option<String> {
        let TimeSpread { time, quantiles } = self.spread.as_ref()?;
        let scale = time.best_scale();
        let (first, last) = (quantiles.first()?, quantiles.last()?);
        let most = scale.format_number((last.share - first.share) * 100.0);
        let [low, high] = [scale.format_number(first.ns?), scale.format_number(last.ns?)];
        Some(format!("{}; {low} to {high} ns in {most} % of rounds", time.format_with_unit()?))
    }

    /// The verdict, with what limits.
    pub fn describe_verdict(&self) -> String {
        match &self.limited_by {
            Some(other) => format!("{} by {}", self.verdict, describe_key(other)),
            None => self.verdict.clone(),
        }
    }

    /// The name of the number in words.
    pub fn describe_name(&self) -> String {
        match self.pair {
            Some(CpuPair { cpus: [one, other], .. }) => {
                format!("{}: CPU {one} and CPU {other}", describe_key(&self.test))
            }
            None => describe_key(&self.what),
        }
    }
}

/// Names of tests whose keys are no words. Registers are those that the core has beside the architecture's.
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

/// The test of findings; their names are those of numbers behind it.
const ENVIRONMENT_PREFIX: &str = "environment.";

/// A stable key in words: `data_caches.1.size` is `data caches, level 1: size`.
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
    use cyclescope_fuzz::{InputShape, fuzz_reader};

    #[test]
    fn keys_become_words() {
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
    fn lines_of_both_kinds_of_tests_are_read() {
        let records = UarchLine::from_lines(&simulated_lines::simulated_lines());
        let parts: Vec<(&str, CorePart)> = records.iter().map(|record| (record.what.as_str(), record.part)).collect();
        let all = [
            ("rob", CorePart::Window),
            ("int_registers", CorePart::Window),
            ("mask_registers", CorePart::Window),
            ("data_caches.1.size", CorePart::Memory),
            ("data_caches.1.cost", CorePart::Memory),
            ("return_stack", CorePart::FrontEnd),
        ];
        assert_eq!(parts, all);
        assert_eq!(records[1].describe_verdict(), "limited by reorder buffer");
        assert_eq!((records[0].fillers.len(), records[3].walks[0].levels.len()), (2, 3));
    }

    #[test]
    fn sizes_that_are_written_last_have_their_place() {
        let names = ["wake_up", "data_caches", "data_caches", "rob", "flags", "int_registers"];
        let line = |name: &str| simulated_lines::simulated_line(name, name, "none", None, "count");
        let mut records = UarchLine::from_lines(&names.map(line));
        records[1].what = "first".to_string();
        UarchLine::sort_by_test(&mut records);
        let tests: Vec<&str> = records.iter().map(|record| record.test.as_str()).collect();
        assert_eq!(tests, ["rob", "int_registers", "flags", "wake_up", "data_caches", "data_caches"]);
        assert_eq!(records[4].what, "first");
    }

    #[test]
    fn any_file_is_answered() {
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
                    record.value.format_short(),
                );
            }
        });
    }

    #[test]
    fn cpuid_is_told_where_it_says_something_else() {
        let mut records = UarchLine::from_lines(&simulated_lines::simulated_lines());
        assert_eq!(records[3].cpuid_contradiction(), None, "49152 is in the interval");
        records[3].cpuid = Some(32768.0);
        assert_eq!(records[3].cpuid_contradiction().and_then(|told| told.value), Some(32768.0));
        records[3].cpuid = Some(49_800.0);
        assert_eq!(records[3].cpuid_contradiction(), None, "it is past the interval by less than two hundredths");
        assert_eq!(records[0].cpuid_contradiction(), None);
        records[2].cpuid = Some(512.0);
        assert_eq!(records[2].cpuid_contradiction().and_then(|told| told.value), Some(512.0));
    }
}
