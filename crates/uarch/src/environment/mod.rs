//! What this guest or container gets of the machine: measurements next to the reports of CPUID and
//! the kernel.
//!
//! It uses the numbers of other tests, and the background load while they ran.

mod background_activity;
mod number_rows;
mod row;

use super::earlier_result::EarlierResult;
use super::record::UarchRecord;
use super::reported_machine::ReportedMachine;
use super::spec::{Experiment, TestSpec, TestedPart};
use super::verdict::{TestVerdict, VerdictKind};
pub(super) use background_activity::BackgroundActivity;
use background_activity::{busy_sibling_row, disturbed_rounds_row, quota_row, stolen_time_row};
use cyclescope_core::unit::Unit;
use number_rows::{contradiction_row, huge_pages_row, page_walk_row};
use row::EnvironmentRow;

const TEST: TestSpec = TestSpec {
    name: "environment",
    about: "what this guest or container gets of the machine, and what CPUID and the kernel tell of it",
    definition: number_rows::DEFINITION,
    source: "R. Bhargava et al., Accelerating Two-Dimensional Page Walks for Virtualized Systems (2008); \
             proc_stat(5), steal",
    answers: &[],
    part: TestedPart::Environment,
    experiment: Experiment::Environment { reads: &["data_caches", "data_tlb", "huge_pages"] },
};

pub(super) const TESTS: &[TestSpec] = &[TEST];

/// All records of this section.
pub(super) fn environment_records(
    surroundings: &ReportedMachine,
    earlier: &[EarlierResult],
    course: &BackgroundActivity,
) -> Vec<UarchRecord> {
    let mut rows = vec![model_row(surroundings)];
    rows.extend(earlier.iter().filter_map(contradiction_row));
    rows.extend([page_walk_row(surroundings, earlier), huge_pages_row(surroundings, earlier)]);
    rows.extend([
        busy_sibling_row(surroundings, course),
        disturbed_rounds_row(course),
        stolen_time_row(course),
        quota_row(surroundings, course),
    ]);
    let record = |row: EnvironmentRow| {
        let EnvironmentRow { name, definition, verdict, unit, note: told, cpuid } = row;
        let record = UarchRecord::new(&TEST, format!("{}.{name}", TEST.name), verdict, unit);
        UarchRecord { definition: definition.into(), told, cpuid, ..record }
    };
    rows.into_iter().map(record).collect()
}

fn model_row(surroundings: &ReportedMachine) -> EnvironmentRow {
    let ReportedMachine { model, design, .. } = surroundings;
    let (verdict, name) = match (design.known(), design.why()) {
        (Some(name), _) => {
            (TestVerdict::new(VerdictKind::None, "no feature contradicts the model that CPUID shows"), Some(name))
        }
        (None, why) => (TestVerdict::new(VerdictKind::Unclear, why.unwrap_or("CPUID shows no model")), None),
    };
    let name = name.map_or(String::new(), |name| format!(", {name}"));
    EnvironmentRow {
        name: "model".to_string(),
        definition: "whether CPUID shows features that the model which it shows never had",
        verdict,
        unit: Unit::Count,
        note: Some(format!("CPUID: {model}{name}")),
        cpuid: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conditions::{KernelCounts, RunConditions};
    use cyclescope_core::machine::fact::Fact;
    use cyclescope_core::statistics::Interval;
    use cyclescope_measure::result::record::Quantity;
    use cyclescope_measure::ruler::LeastWidth;
    use std::collections::BTreeMap;
    use std::time::Duration;

    fn earlier_result(what: &str, number: Option<[f64; 3]>, cpuid: Option<u64>) -> EarlierResult {
        let size = number.map(|[low, value, high]| Interval { value, low, high });
        let verdict = if size.is_some() { VerdictKind::Found } else { VerdictKind::Unclear };
        let value = size.map_or(Quantity::refused(Unit::Bytes), |size| Quantity::new(size, Unit::Bytes));
        EarlierResult { what: what.to_string(), verdict, value, why: "no two programs agree".to_string(), cpuid }
    }

    fn guest(hypervisor: Option<&str>) -> ReportedMachine {
        ReportedMachine {
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

    fn rows(surroundings: &ReportedMachine, earlier: &[EarlierResult]) -> BTreeMap<String, UarchRecord> {
        rows_with_load(surroundings, earlier, &RunConditions::default(), None)
    }

    /// The rows with this background load, on a core of this width.
    fn rows_with_load(
        surroundings: &ReportedMachine,
        earlier: &[EarlierResult],
        conditions: &RunConditions,
        width: Option<LeastWidth>,
    ) -> BTreeMap<String, UarchRecord> {
        let counted = [0; 2].map(|cpu| KernelCounts::read_now(cpu).expect("it has no errors"));
        let course = BackgroundActivity { conditions, width, counted, time: Duration::from_secs(1) };
        let records = environment_records(surroundings, earlier, &course);
        records.into_iter().map(|record| (record.what.clone(), record)).collect()
    }

    #[test]
    fn numbers_that_differ_from_cpuid_are_reported() {
        let earlier = [
            earlier_result("data_caches.1.size", Some([48000.0, 49000.0, 50000.0]), Some(49152)),
            earlier_result("data_caches.2.size", Some([2.05e6, 2.06e6, 2.07e6]), Some(2 << 20)),
            earlier_result("data_caches.3.size", Some([6.9e6, 7.2e6, 8.0e6]), Some(480_000_000)),
            earlier_result("data_tlb.2.size", None, Some(128)),
            earlier_result("rob", Some([512.0; 3]), None),
        ];
        let rows = rows(&guest(None), &earlier);
        let share = &rows["environment.data_caches.3.size"];
        assert_eq!((share.verdict, share.why.as_str()), (VerdictKind::Found, "1.5 % of what CPUID says"));
        assert_eq!((share.value.value, share.cpuid), (Some(7.2e6), Some(480_000_000)));
        let without = &rows["environment.data_tlb.2.size"];
        assert_eq!((without.verdict, without.cpuid), (VerdictKind::Unclear, Some(128)));
        let same = ["data_caches.1.size", "data_caches.2.size", "rob"];
        assert!(same.iter().all(|key| !rows.contains_key(&format!("environment.{key}"))), "{rows:?}");
    }

    #[test]
    fn huge_pages_are_judged_by_the_cost_of_a_page_walk() {
        let family = earlier_result("data_tlb.beyond.cost", Some([54.0, 55.0, 56.0]), None);
        let saved = |number: f64| earlier_result("huge_pages", Some([number; 3]), None);
        let translations = earlier_result("data_tlb.2.size", Some([1700.0, 1800.0, 2100.0]), None);
        let cache = |size: f64| earlier_result("data_caches.2.size", Some([size; 3]), None);
        let why = |number: f64, size: f64| {
            let earlier = [family.clone(), saved(number), translations.clone(), cache(size)];
            rows(&guest(Some("KVM")), &earlier)["environment.huge_pages"].why.clone()
        };
        assert_eq!(why(49.5, 2e6), "they save 90.0 % of a page walk");
        assert!(why(11.0, 2e6).contains("may split them"));
        assert_eq!(why(49.5, 262_144.0), "they save so much", "a part is where lines lie in a small cache");
        let few = rows(&guest(Some("KVM")), std::slice::from_ref(&family));
        assert_eq!(few["environment.page_walk"].verdict, VerdictKind::Unclear, "no second level was passed");
        let rows = rows(&guest(Some("KVM")), &[family, translations]);
        let page_walk = &rows["environment.page_walk"];
        assert!(page_walk.why.contains("hypervisor") && page_walk.value.value == Some(55.0));
        assert_eq!(page_walk.told.as_deref(), Some("CPUID: a guest of KVM"));
        assert_eq!(rows["environment.huge_pages"].why, "huge_pages was not measured");
    }

    #[test]
    fn unknown_findings_have_no_number() {
        let rows = rows(&guest(None), &[]);
        assert_eq!(rows["environment.model"].verdict, VerdictKind::Unclear);
        assert_eq!(rows["environment.model"].told.as_deref(), Some("CPUID: family 6, model 167"));
        for name in ["busy_sibling", "disturbed_rounds", "page_walk"] {
            let row = &rows[&format!("environment.{name}")];
            assert_eq!((row.verdict, row.value.value), (VerdictKind::Unclear, None), "{row:?}");
        }
        let quota = &rows["environment.quota"];
        assert_eq!((quota.verdict, &quota.told), (VerdictKind::None, &None));
    }
    /// The row of a sibling that used the core in this number of 400 layouts.
    fn busy(layouts: usize, width: Option<LeastWidth>) -> UarchRecord {
        let widths = [vec![4.8; 400 - layouts], vec![2.4; layouts]].concat();
        let conditions = RunConditions::showing(&widths, [4800, 4800]);
        rows_with_load(&guest(None), &[], &conditions, width).remove("environment.busy_sibling").expect("it has a row")
    }

    #[test]
    fn a_few_narrow_layouts_are_noise_and_many_are_a_sibling() {
        let [few, many] = [4, 100].map(|layouts| busy(layouts, Some(LeastWidth { least: 3.36 })));
        assert_eq!((few.verdict, few.value.value), (VerdictKind::None, None), "{}", few.why);
        assert_eq!((many.verdict, many.value.value), (VerdictKind::Found, Some(0.25)), "{}", many.why);
    }

    #[test]
    fn limits_of_an_unknown_design_are_reported() {
        let is_warned = |width| busy(0, width).why.contains("one that is busy all the time is not seen");
        assert_eq!([None, Some(LeastWidth { least: 3.36 })].map(is_warned), [true, false]);
    }

    #[test]
    fn a_share_has_a_confidence_interval() {
        let edges = |rounds, field: fn(&UarchRecord) -> Option<f64>| {
            let conditions = RunConditions::showing(&[], rounds);
            field(&rows_with_load(&guest(None), &[], &conditions, None)["environment.disturbed_rounds"])
        };
        assert_eq!(edges([600, 600], |record| record.value.low), Some(0.0));
        assert_eq!(edges([600, 600], |record| record.value.high), Some(0.005));
        let half = 1.96 * (0.25f64 / 400.0).sqrt();
        let high = edges([400, 200], |record| record.value.high).expect("it has an edge");
        assert!((high - (0.5 + half)).abs() < 1e-9, "{high}");
    }
}
