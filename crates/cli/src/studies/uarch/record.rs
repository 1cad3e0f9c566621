//! What readers of a result need of a line of kind `uarch`: a number, its verdict, and the curves that it comes from.
//!
//! Lines are read as JSON, so that those of a file and those of a study under way are the same. A field that a line does
//! not have is empty.

use super::figure::Figure;
use cyclescope::study::instr::rows::table::BadFile;
use serde::Deserialize;
use serde_json::Value;

/// The kind of such a line, and the name of the study.
pub const KIND: &str = "uarch";

/// The share by which a number may differ from CPUID's and still be the same, as sizes of two programs may.
const SAME_SHARE: f64 = 0.02;

/// A part of the core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
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
pub struct CodeOnly {
    code: String,
}

/// A line.
#[derive(Debug, Clone, Deserialize)]
pub struct CoreRecord {
    /// The test.
    pub test: String,
    /// The number's own name, such as `rob` or `data_caches.1.size`.
    pub what: String,
    /// `found`, `limited`, `none` or `unclear`.
    pub verdict: String,
    /// The number.
    pub value: Figure,
    /// The part of the core that it is of.
    #[serde(default)]
    pub part: Part,
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
    pub caveats: Vec<CodeOnly>,
    /// How a cost is spread over rounds.
    #[serde(default)]
    pub spread: Option<Spread>,
    /// Overlaps against numbers of instructions.
    #[serde(default)]
    pub fillers: Vec<Filler>,
    /// Costs of a step against sizes.
    #[serde(default)]
    pub walks: Vec<Walk>,
    /// Rates of programs.
    #[serde(default)]
    pub rates: Vec<Rate>,
    /// Costs at places.
    #[serde(default)]
    pub places: Vec<Place>,
    /// The CPUs that it is of, where it is of two.
    #[serde(default)]
    pub pair: Option<Pair>,
    /// What other classes of instructions do to one.
    #[serde(default)]
    pub displaced: Vec<Value>,
}

/// Two CPUs.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Pair {
    /// Their numbers, the smaller one first.
    pub cpus: [u32; 2],
    /// The cluster of pairs that are alike, from 1, the fastest.
    #[serde(default)]
    pub cluster: Option<u32>,
}

/// The cost at a place.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Place {
    /// The place, in bytes.
    pub place: f64,
    /// Core cycles.
    #[serde(default)]
    pub cost: Option<f64>,
}

/// The rate of a program.
#[derive(Debug, Clone, Deserialize)]
pub struct Rate {
    /// Its name.
    pub name: String,
    /// What it was made for: of bytes in a cycle, how much memory they are of.
    pub n: f64,
    /// Its rate.
    pub rate: Figure,
}

/// A cost in time, and what shares of the rounds are below.
#[derive(Debug, Clone, Deserialize)]
pub struct Spread {
    /// The time.
    pub time: Figure,
    /// From the smallest share on.
    #[serde(default)]
    pub quantiles: Vec<Quantile>,
}

/// What a share of the rounds is below.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Quantile {
    /// The share.
    pub share: f64,
    /// The time in nanoseconds.
    #[serde(default)]
    pub ns: Option<f64>,
}

/// What one kind of instruction showed.
#[derive(Debug, Clone, Deserialize)]
pub struct Filler {
    /// Its name.
    pub name: String,
    /// Where the overlap ends.
    #[serde(default)]
    pub knee: Option<Knee>,
    /// The overlap at each number of instructions.
    #[serde(default)]
    pub curve: Vec<Overlap>,
}

/// Where an overlap ends.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Knee {
    /// The last number of instructions at which there is some.
    pub high: f64,
}

/// A point of a filler's curve.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Overlap {
    /// The number of instructions.
    pub n: f64,
    /// The share of the second chain that runs beside the first.
    pub overlap: Option<f64>,
}

/// What one kind of step costs.
#[derive(Debug, Clone, Deserialize)]
pub struct Walk {
    /// Its name.
    pub name: String,
    /// The costs that it stays at, from the smallest size on.
    #[serde(default)]
    pub levels: Vec<Level>,
    /// The cost at each size.
    #[serde(default)]
    pub curve: Vec<Step>,
}

/// A cost, and up to which size it holds; to the end where that is not said.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Level {
    /// The last size.
    pub upto: Option<Edge>,
    /// Core cycles.
    pub cost: Option<f64>,
}

/// The end of a level: it holds up to the one size at least, and up to the other at most.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Edge {
    /// The last size that is surely in it.
    pub low: f64,
    /// The last one that may be.
    pub high: f64,
}

/// A point of a walk's curve, in core cycles.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Step {
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

impl CoreRecord {
    /// Those among lines that the study has just written.
    pub fn all(lines: &[Value]) -> Vec<CoreRecord> {
        let of = |line| CoreRecord::deserialize(line).expect("the study writes whole lines");
        lines.iter().filter(|line| line["kind"] == KIND).map(of).collect()
    }

    /// Puts records in the order of their tests: sizes, which are looked at again, are written last.
    pub fn sort(records: &mut [CoreRecord]) {
        let plain = cyclescope::study::named(KIND).and_then(|study| study.plain);
        let place = |record: &CoreRecord| {
            plain.as_ref().and_then(|plain| plain.subjects.iter().position(|(test, _)| *test == record.test))
        };
        records.sort_by_key(place);
    }

    /// Those of a file of lines. A line that is not JSON is passed over, as those of other kinds are; one of this kind has to be whole.
    pub fn read(content: &[u8]) -> Result<Vec<CoreRecord>, BadFile> {
        let lines = (1..).zip(content.split(|byte| *byte == b'\n'));
        let values =
            lines.filter_map(|(number, line)| Some((number, serde_json::from_slice::<Value>(line).ok()?)));
        let of_kind = values.filter(|(_, value)| value["kind"] == KIND);
        let read = |(number, value): (u64, Value)| {
            CoreRecord::deserialize(&value).map_err(|error| BadFile {
                line: Some(number),
                message: format!("it is no whole line of {KIND}: {error}"),
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
    pub fn is_told(&self) -> bool {
        self.part == Part::Environment || !self.displaced.is_empty() || !self.places.is_empty()
    }

    /// What CPUID says, where the number differs from it or there is none.
    pub fn contradicted(&self) -> Option<Figure> {
        let told = self.cpuid?;
        let near = self.value.value.is_some_and(|value| (value - told).abs() <= SAME_SHARE * told);
        let differs = !self.is_found() || !(near || self.value.holds(told));
        differs.then(|| Figure { value: Some(told), low: None, high: None, ..self.value.clone() })
    }

    /// A cost in time: its median, and between what it is in most rounds.
    pub fn time(&self) -> Option<String> {
        let Spread { time, quantiles } = self.spread.as_ref()?;
        let scale = time.scale();
        let (first, last) = (quantiles.first()?, quantiles.last()?);
        let most = scale.write((last.share - first.share) * 100.0);
        let [low, high] = [scale.write(first.ns?), scale.write(last.ns?)];
        Some(format!("{}; {low} to {high} ns in {most} % of rounds", time.text()?))
    }

    /// The verdict, with what limits.
    pub fn judged(&self) -> String {
        match &self.limited_by {
            Some(other) => format!("{} by {}", self.verdict, label(other)),
            None => self.verdict.clone(),
        }
    }

    /// The name of the number in words.
    pub fn label(&self) -> String {
        match self.pair {
            Some(Pair { cpus: [one, other], .. }) => {
                format!("{}: CPU {one} and CPU {other}", label(&self.test))
            }
            None => label(&self.what),
        }
    }
}

/// Names of tests whose keys are no words. Registers are those that the core has beside the architecture's.
const NAMES: &[(&str, &str)] = &[
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
const ENVIRONMENT: &str = "environment.";

/// A stable key in words: `data_caches.1.size` is `data caches, level 1: size`.
pub fn label(key: &str) -> String {
    let mut parts = key.strip_prefix(ENVIRONMENT).unwrap_or(key).split('.');
    let test = parts.next().unwrap_or_default();
    let name = NAMES.iter().find(|(key, _)| *key == test).map(|(_, name)| name.to_string());
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
    use super::super::made_up;
    use super::*;
    use cyclescope_fuzz::{Shape, fuzz};

    #[test]
    fn keys_become_words() {
        assert_eq!(label("rob"), "reorder buffer");
        assert_eq!(label("vector_registers_xmm"), "spare xmm registers");
        assert_eq!(label("loads_in_flight"), "loads in flight");
        assert_eq!(label("data_caches.1.size"), "data caches, level 1: size");
        assert_eq!(label("data_tlb.beyond.cost"), "data tlb, beyond: cost");
        assert_eq!(label("environment.data_caches.3.size"), "data caches, level 3: size");
        assert_eq!(label("environment.page_walk"), "page walk");
        assert_eq!(label(""), "");
    }

    #[test]
    fn lines_of_both_kinds_of_tests_are_read() {
        let records = CoreRecord::all(&made_up::lines());
        let parts: Vec<(&str, Part)> =
            records.iter().map(|record| (record.what.as_str(), record.part)).collect();
        let all = [
            ("rob", Part::Window),
            ("int_registers", Part::Window),
            ("mask_registers", Part::Window),
            ("data_caches.1.size", Part::Memory),
            ("data_caches.1.cost", Part::Memory),
            ("return_stack", Part::FrontEnd),
        ];
        assert_eq!(parts, all);
        assert_eq!(records[1].judged(), "limited by reorder buffer");
        assert_eq!((records[0].fillers.len(), records[3].walks[0].levels.len()), (2, 3));
    }

    #[test]
    fn sizes_that_are_written_last_have_their_place() {
        let names = ["wake_up", "data_caches", "data_caches", "rob", "flags", "int_registers"];
        let line = |name: &str| made_up::line(name, name, "none", None, "count");
        let mut records = CoreRecord::all(&names.map(line));
        records[1].what = "first".to_string();
        CoreRecord::sort(&mut records);
        let tests: Vec<&str> = records.iter().map(|record| record.test.as_str()).collect();
        assert_eq!(tests, ["rob", "int_registers", "flags", "wake_up", "data_caches", "data_caches"]);
        assert_eq!(records[4].what, "first");
    }

    #[test]
    fn any_file_is_answered() {
        let whole: Vec<String> = made_up::lines().iter().map(Value::to_string).collect();
        let whole = whole.join("\n").into_bytes();
        assert_eq!(CoreRecord::read(&whole).unwrap().len(), 6);
        let damaged = String::from_utf8(whole.clone()).unwrap().replacen("\"what\"", "\"that\"", 1);
        assert_eq!(CoreRecord::read(damaged.as_bytes()).unwrap_err().line, Some(2));
        fuzz("core", Shape::JsonLines, &[whole], |bytes| {
            for record in CoreRecord::read(bytes).unwrap_or_default() {
                let _ = (record.label(), record.judged(), record.contradicted(), record.value.short());
            }
        });
    }

    #[test]
    fn cpuid_is_told_where_it_says_something_else() {
        let mut records = CoreRecord::all(&made_up::lines());
        assert_eq!(records[3].contradicted(), None, "49152 is in the interval");
        records[3].cpuid = Some(32768.0);
        assert_eq!(records[3].contradicted().and_then(|told| told.value), Some(32768.0));
        records[3].cpuid = Some(49_800.0);
        assert_eq!(records[3].contradicted(), None, "it is past the interval by less than two hundredths");
        assert_eq!(records[0].contradicted(), None);
        records[2].cpuid = Some(512.0);
        assert_eq!(records[2].contradicted().and_then(|told| told.value), Some(512.0));
    }
}
