//! What this guest or container gets of the machine: what was measured, beside what CPUID and the kernel tell.
//!
//! It reads the numbers of other tests, and what other work did while they ran.

use super::conditions::{Conditions, Counted, TICKS};
use super::record::UarchRecord;
use super::surroundings::Surroundings;
use super::test::{Look, Part, Test};
use super::verdict::{Kind, Verdict};
use crate::record::Quantity;
use crate::statistics::Interval;
use crate::unit::Unit;
use serde::Deserialize;
use serde_json::Value;
use std::time::Duration;

pub(super) const TEST: Test = Test {
    name: "environment",
    about: "what this guest or container gets of the machine, and what CPUID and the kernel tell of it",
    definition: "what was measured, beside what CPUID says",
    source: "R. Bhargava et al., Accelerating Two-Dimensional Page Walks for Virtualized Systems (2008); proc_stat(5), steal",
    part: Part::Environment,
    look: Look::Environment { reads: &["data_caches", "data_tlb", "huge_pages"] },
};

/// The share by which a number may differ from CPUID's and still be the same.
const SAME_SHARE: f64 = 0.02;
/// The part of a translation's cost that huge pages save at least where they are really obtained.
const SAVED_LEAST: f64 = 0.5;
/// The share of layouts beside a busy sibling below which that is noise.
const SHARED_LEAST: f64 = 0.02;

/// Standard errors of a 95 % interval.
const STANDARD_ERRORS: f64 = 1.96;

/// What is known of a number of another test.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Known {
    pub(super) what: String,
    pub(super) verdict: Kind,
    value: Quantity,
    why: String,
    #[serde(default)]
    cpuid: Option<u64>,
}

impl Known {
    pub(super) fn of(record: &UarchRecord) -> Known {
        let UarchRecord { what, verdict, value, why, cpuid, .. } = record;
        Known { what: what.clone(), verdict: *verdict, value: *value, why: why.clone(), cpuid: *cpuid }
    }

    /// Of a line of a file; none where it is not whole.
    pub(super) fn read(line: &Value) -> Option<Known> {
        Known::deserialize(line).ok()
    }

    /// The number, where there is one.
    pub(super) fn found(&self) -> Option<Interval> {
        let Quantity { value, low, high, .. } = self.value;
        let value = value.filter(|_| self.verdict == Kind::Found)?;
        Some(Interval { value, low: low.unwrap_or(value), high: high.unwrap_or(value) })
    }
}

/// What other work did.
pub(super) struct Course<'a> {
    /// What readings tell.
    pub conditions: &'a Conditions,
    /// Additions a cycle of a core of this design that is not shared, where data contain it.
    pub width: Option<f64>,
    /// What the kernel had counted at first and at last.
    pub counted: [Counted; 2],
    /// The time between.
    pub time: Duration,
}

/// A line of this section.
struct Row {
    name: String,
    definition: &'static str,
    verdict: Verdict,
    unit: Unit,
    told: Option<String>,
    cpuid: Option<u64>,
}

/// All of its records.
pub(super) fn environment(surroundings: &Surroundings, known: &[Known], course: &Course) -> Vec<UarchRecord> {
    let mut rows = vec![model(surroundings)];
    rows.extend(known.iter().filter_map(contradiction));
    rows.extend([page_walk(surroundings, known), huge_pages(surroundings, known)]);
    rows.extend([
        sibling(surroundings, course),
        disturbed(course),
        stolen(course),
        quota(surroundings, course),
    ]);
    let record = |row: Row| {
        let Row { name, definition, verdict, unit, told, cpuid } = row;
        let record = UarchRecord::new(&TEST, format!("{}.{name}", TEST.name), verdict, unit);
        UarchRecord { definition, told, cpuid, ..record }
    };
    rows.into_iter().map(record).collect()
}

fn found(value: f64, why: String) -> Verdict {
    let size = Some(Interval { value, low: value, high: value });
    Verdict { size, ..Verdict::new(Kind::Found, why) }
}

/// A share of so many, with the 95 % interval that chance alone gives it.
fn found_share(share: f64, number: usize, why: String) -> Verdict {
    let error = STANDARD_ERRORS * (share * (1.0 - share) / number as f64).sqrt();
    // Of a share of which no case was seen among n, the upper end of the interval is 3/n (95 %, by the Poisson distribution).
    between(share, error.max(if share == 0.0 { 3.0 / number as f64 } else { 0.0 }), why)
}

/// A share that is known within an error.
fn between(share: f64, error: f64, why: String) -> Verdict {
    let size = Some(Interval { value: share, low: (share - error).max(0.0), high: (share + error).min(1.0) });
    Verdict { size, ..Verdict::new(Kind::Found, why) }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn model(surroundings: &Surroundings) -> Row {
    let Surroundings { model, design, .. } = surroundings;
    let (verdict, name) = match (design.known(), design.why()) {
        (Some(name), _) => {
            (Verdict::new(Kind::None, "no feature contradicts the model that CPUID shows"), Some(name))
        }
        (None, why) => (Verdict::new(Kind::Unclear, why.unwrap_or("CPUID shows no model")), None),
    };
    let name = name.map_or(String::new(), |name| format!(", {name}"));
    Row {
        name: "model".to_string(),
        definition: "whether CPUID shows features that the model which it shows never had",
        verdict,
        unit: Unit::Count,
        told: Some(format!("CPUID: {model}{name}")),
        cpuid: None,
    }
}

/// Where a number is not what CPUID says, or CPUID says one and none was found.
fn contradiction(known: &Known) -> Option<Row> {
    let told = known.cpuid?;
    let verdict = match known.found() {
        Some(size) => {
            let told = told as f64;
            let same =
                (size.low..=size.high).contains(&told) || (size.value - told).abs() <= SAME_SHARE * told;
            let why = format!("{} of what CPUID says", percent(size.value / told));
            (!same).then(|| Verdict { size: Some(size), ..Verdict::new(Kind::Found, why) })?
        }
        None => Verdict::new(Kind::Unclear, format!("CPUID says a number and none was found: {}", known.why)),
    };
    Some(Row {
        name: known.what.clone(),
        definition: TEST.definition,
        verdict,
        unit: known.value.unit,
        told: None,
        cpuid: Some(told),
    })
}

/// The number of a test, or why there is none.
fn number<'a>(known: &'a [Known], what: &str) -> Result<(&'a Known, Interval), Verdict> {
    let Some(known) = known.iter().find(|known| known.what == what) else {
        return Err(Verdict::new(Kind::Unclear, format!("{what} was not measured")));
    };
    known.found().map(|number| (known, number)).ok_or_else(|| Verdict::new(known.verdict, known.why.clone()))
}

/// What a load costs past all translations that the core keeps.
const PAGE_WALK: &str = "data_tlb.beyond.cost";

/// Bytes of the lines of the test of huge pages.
const HUGE_LINES: f64 = (512 << 10) as f64;

/// The same, where all levels of translations were passed: where little memory is free they are not.
fn page_walk_cost(known: &[Known]) -> Result<Interval, Verdict> {
    let (_, cost) = number(known, PAGE_WALK)?;
    number(known, "data_tlb.2.size").map(|_| cost).map_err(|_| {
        Verdict::new(Kind::Unclear, "no end of a second level of translations was found: none may be passed")
    })
}

fn page_walk(surroundings: &Surroundings, known: &[Known]) -> Row {
    let (told, why) = match &surroundings.hypervisor {
        Some(name) => (
            format!("CPUID: a guest of {name}"),
            "with nested paging a walk goes through the tables of the guest and those of the hypervisor",
        ),
        None => ("CPUID: no hypervisor".to_string(), "a walk goes through one set of tables"),
    };
    let verdict = match page_walk_cost(known) {
        Ok(size) => Verdict { size: Some(size), ..Verdict::new(Kind::Found, why) },
        Err(verdict) => verdict,
    };
    Row {
        name: "page_walk".to_string(),
        definition: "core cycles by which a load takes longer that has no translation at hand",
        verdict,
        unit: Unit::CoreCycles,
        told: Some(told),
        cpuid: None,
    }
}

fn huge_pages(surroundings: &Surroundings, known: &[Known]) -> Row {
    // Where the lines have no room in the second cache, where they lie there is a part of the difference.
    let room = number(known, "data_caches.2.size").is_ok_and(|(_, size)| size.low >= 2.0 * HUGE_LINES);
    let walk = page_walk_cost(known).ok().map(|size| size.value).filter(|walk| room && *walk > 0.0);
    let verdict = match (number(known, "huge_pages"), walk) {
        (Ok((_, saved)), Some(walk)) => {
            let why = format!("they save {} of a page walk", percent(saved.value / walk));
            let why = match saved.value >= SAVED_LEAST * walk {
                true => why,
                false => format!("{why}: whoever maps this memory may split them"),
            };
            Verdict { size: Some(saved), ..Verdict::new(Kind::Found, why) }
        }
        (Ok((_, saved)), None) => {
            Verdict { size: Some(saved), ..Verdict::new(Kind::Found, "they save so much") }
        }
        (Err(verdict), _) => verdict,
    };
    let setting = surroundings.huge_pages.known().map_or("unknown", String::as_str);
    Row {
        name: "huge_pages".to_string(),
        definition: "core cycles that a load waits less in pages of 2 MiB, one line in each 4 KiB of 32 MiB",
        verdict,
        unit: Unit::CoreCycles,
        told: Some(format!("kernel: transparent huge pages: {setting}")),
        cpuid: None,
    }
}

fn sibling(surroundings: &Surroundings, course: &Course) -> Row {
    let verdict = match course.conditions.shared(course.width) {
        None => Verdict::new(Kind::Unclear, "nothing was measured"),
        Some((share, layouts)) if share < SHARED_LEAST => {
            let limit = match course.width {
                Some(_) => "",
                None => "; one that is busy all the time is not seen, since the core's design is not known",
            };
            let why = format!("in {} of {layouts} layouts the core was narrower{limit}", percent(share));
            Verdict::new(Kind::None, why)
        }
        Some((share, layouts)) => {
            let why = format!("share of {layouts} layouts in which the core was narrower than at its best");
            found_share(share, layouts, why)
        }
    };
    let siblings = surroundings.siblings.known().map_or("unknown", String::as_str);
    Row {
        name: "busy_sibling".to_string(),
        definition: "share of layouts in which something else used the core, by the width of a burst of additions",
        verdict,
        unit: Unit::Share,
        told: Some(format!("kernel: siblings of CPU {}: {siblings}", surroundings.cpu)),
        cpuid: None,
    }
}

fn disturbed(course: &Course) -> Row {
    let verdict = match course.conditions.disturbed() {
        None => Verdict::new(Kind::Unclear, "nothing was measured"),
        Some((share, rounds)) => {
            found_share(share, rounds, format!("of {rounds} rounds; they were left out"))
        }
    };
    Row {
        name: "disturbed_rounds".to_string(),
        definition: "share of rounds that something disturbed: interrupts, other tasks, the hypervisor",
        verdict,
        unit: Unit::Share,
        told: None,
        cpuid: None,
    }
}

fn stolen(course: &Course) -> Row {
    let [first, last] = &course.counted;
    let stolen = last.stolen(first, course.time);
    let verdict = match (stolen.known(), stolen.why()) {
        (Some(share), _) if *share > 0.0 => {
            // It is counted in whole ticks.
            let tick = 1.0 / (TICKS * course.time.as_secs_f64());
            between(*share, tick, "the hypervisor gave this time to others".to_string())
        }
        (Some(_), _) => Verdict::new(Kind::None, "the kernel counted none; a hypervisor need not tell it"),
        (None, why) => Verdict::new(Kind::Unclear, why.unwrap_or("the kernel counts none")),
    };
    Row {
        name: "stolen_time".to_string(),
        definition: "share of the time of the CPU that the hypervisor gave to others, as the kernel counts it",
        verdict,
        unit: Unit::Share,
        told: None,
        cpuid: None,
    }
}

fn quota(surroundings: &Surroundings, course: &Course) -> Row {
    let [first, last] = &course.counted;
    let throttled = last.throttled(first);
    let limit = surroundings.quota.known().copied().flatten();
    let verdict = match (limit, throttled.known(), throttled.why()) {
        (None, ..) if surroundings.quota.known().is_none() => {
            Verdict::new(Kind::Unclear, surroundings.quota.why().unwrap_or("the limit can't be read"))
        }
        (None, ..) => Verdict::new(
            Kind::None,
            "no control group limits the time of the CPU, as far as this process sees",
        ),
        (Some(_), Some(stops), _) => {
            found(*stops as f64, "times that the quota stopped its tasks".to_string())
        }
        (Some(_), None, why) => Verdict::new(Kind::Unclear, why.unwrap_or("stops are not counted")),
    };
    Row {
        name: "quota".to_string(),
        definition: "times that the quota of a control group stopped its tasks",
        verdict,
        unit: Unit::Count,
        told: limit.map(|cpus| format!("kernel: a quota of {cpus:.2} CPUs")),
        cpuid: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::fact::Fact;
    use std::collections::BTreeMap;

    fn known(what: &str, number: Option<[f64; 3]>, cpuid: Option<u64>) -> Known {
        let size = number.map(|[low, value, high]| Interval { value, low, high });
        let verdict = if size.is_some() { Kind::Found } else { Kind::Unclear };
        let value = size.map_or(Quantity::refused(Unit::Bytes), |size| Quantity::new(size, Unit::Bytes));
        Known { what: what.to_string(), verdict, value, why: "no two programs agree".to_string(), cpuid }
    }

    fn guest(hypervisor: Option<&str>) -> Surroundings {
        Surroundings {
            places: Vec::new(),
            others: Vec::new(),
            numbers: BTreeMap::new(),
            model: "family 6, model 167".to_string(),
            design: Fact::unknown("it never had AMX"),
            hypervisor: hypervisor.map(str::to_string),
            cpu: 1,
            siblings: Fact::Known("none".to_string()),
            huge_pages: Fact::Known("madvise".to_string()),
            quota: Fact::Known(None),
        }
    }

    fn rows(surroundings: &Surroundings, known: &[Known]) -> BTreeMap<String, UarchRecord> {
        let conditions = Conditions::default();
        let counted = [0; 2].map(|cpu| Counted::now(cpu).expect("it has no errors"));
        let course = Course { conditions: &conditions, width: None, counted, time: Duration::from_secs(1) };
        let records = environment(surroundings, known, &course);
        records.into_iter().map(|record| (record.what.clone(), record)).collect()
    }

    #[test]
    fn numbers_stand_beside_those_of_cpuid_where_they_differ() {
        let known = [
            known("data_caches.1.size", Some([48000.0, 49000.0, 50000.0]), Some(49152)),
            known("data_caches.2.size", Some([2.05e6, 2.06e6, 2.07e6]), Some(2 << 20)),
            known("data_caches.3.size", Some([6.9e6, 7.2e6, 8.0e6]), Some(480_000_000)),
            known("data_tlb.2.size", None, Some(128)),
            known("rob", Some([512.0; 3]), None),
        ];
        let rows = rows(&guest(None), &known);
        let share = &rows["environment.data_caches.3.size"];
        assert_eq!((share.verdict, share.why.as_str()), (Kind::Found, "1.5 % of what CPUID says"));
        assert_eq!((share.value.value, share.cpuid), (Some(7.2e6), Some(480_000_000)));
        let without = &rows["environment.data_tlb.2.size"];
        assert_eq!((without.verdict, without.cpuid), (Kind::Unclear, Some(128)));
        let same = ["data_caches.1.size", "data_caches.2.size", "rob"];
        assert!(same.iter().all(|key| !rows.contains_key(&format!("environment.{key}"))), "{rows:?}");
    }

    #[test]
    fn huge_pages_are_judged_by_what_a_walk_costs() {
        let walk = known("data_tlb.beyond.cost", Some([54.0, 55.0, 56.0]), None);
        let saved = |number: f64| known("huge_pages", Some([number; 3]), None);
        let translations = known("data_tlb.2.size", Some([1700.0, 1800.0, 2100.0]), None);
        let cache = |size: f64| known("data_caches.2.size", Some([size; 3]), None);
        let why = |number: f64, size: f64| {
            let known = [walk.clone(), saved(number), translations.clone(), cache(size)];
            rows(&guest(Some("KVM")), &known)["environment.huge_pages"].why.clone()
        };
        assert_eq!(why(49.5, 2e6), "they save 90.0 % of a page walk");
        assert!(why(11.0, 2e6).contains("may split them"));
        assert_eq!(why(49.5, 262_144.0), "they save so much", "a part is where lines lie in a small cache");
        let few = rows(&guest(Some("KVM")), std::slice::from_ref(&walk));
        assert_eq!(few["environment.page_walk"].verdict, Kind::Unclear, "no second level was passed");
        let rows = rows(&guest(Some("KVM")), &[walk, translations]);
        let page_walk = &rows["environment.page_walk"];
        assert!(page_walk.why.contains("hypervisor") && page_walk.value.value == Some(55.0));
        assert_eq!(page_walk.told.as_deref(), Some("CPUID: a guest of KVM"));
        assert_eq!(rows["environment.huge_pages"].why, "huge_pages was not measured");
    }

    #[test]
    fn what_is_not_known_has_no_number() {
        let rows = rows(&guest(None), &[]);
        assert_eq!(rows["environment.model"].verdict, Kind::Unclear);
        assert_eq!(rows["environment.model"].told.as_deref(), Some("CPUID: family 6, model 167"));
        for name in ["busy_sibling", "disturbed_rounds", "page_walk"] {
            let row = &rows[&format!("environment.{name}")];
            assert_eq!((row.verdict, row.value.value), (Kind::Unclear, None), "{row:?}");
        }
        let quota = &rows["environment.quota"];
        assert_eq!((quota.verdict, &quota.told), (Kind::None, &None));
    }
}
