//! Reads an interrupted study's result file: complete tests, and the knees in their lines.

use super::knee::{KneeEdges, NoKnee};
use super::record::UarchRecord;
use super::spec::TestSpec;
use super::verdict::{FillerResult, VerdictKind};
use serde::Deserialize;
use serde_json::Value;

/// The knee of a filler, or why it has none.
#[derive(Deserialize)]
struct ResumedCurve {
    name: String,
    knee: Option<KneeEdges>,
    no_knee: Option<String>,
}

impl ResumedCurve {
    fn to_knee_result(&self) -> Result<KneeEdges, NoKnee> {
        let none = || {
            [NoKnee::AlwaysOverlaps, NoKnee::NeverOverlaps]
                .into_iter()
                .find(|no| self.no_knee.as_deref() == Some(no.describe()))
        };
        self.knee.ok_or_else(|| none().unwrap_or(NoKnee::NoSingleFall))
    }
}

/// A record that a test may have written.
fn read_record(line: &Value) -> Option<UarchRecord> {
    UarchRecord::deserialize(line).ok().filter(|record| record.find_contradiction().is_none())
}

/// The number of lines that belong to complete tests. A line that no test writes is measured again.
pub(super) fn count_complete_lines(lines: &[Value]) -> usize {
    let mut whole = 0;
    while let Some(first) = lines.get(whole) {
        let Some(UarchRecord { test, records, .. }) = read_record(first) else { break };
        let end = whole.saturating_add(records.max(1));
        let Some(all) = lines.get(whole..end) else { break };
        let belongs = |line: &Value| read_record(line).is_some_and(|record| record.test == test);
        if !all.iter().all(belongs) {
            break;
        }
        whole = end;
    }
    whole
}

/// A test's fillers, with the knees in its lines.
pub(super) fn read_filler_results(test: &'static TestSpec, lines: &[Value]) -> Vec<FillerResult> {
    let curves = lines.iter().filter_map(|line| Vec::<ResumedCurve>::deserialize(&line["fillers"]).ok()).flatten();
    let filled = curves.filter_map(|curve| {
        let filler = test.fillers().iter().find(|filler| filler.name == curve.name)?;
        Some(FillerResult::new(filler, curve.to_knee_result()))
    });
    filled.collect()
}

/// The verdict of a test's first line.
pub(super) fn read_verdict_kind(lines: &[Value]) -> VerdictKind {
    lines.first().and_then(|line| VerdictKind::deserialize(&line["verdict"]).ok()).unwrap_or(VerdictKind::Unclear)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::overlap_test::{StructureEnds, record_structure_end};
    use crate::test_list::TESTS;
    use crate::verdict::StructureEnd;
    use serde_json::json;

    fn lines(counts: &[(&str, usize, usize)]) -> Vec<Value> {
        let line =
            |(test, records, number): &(&str, usize, usize)| std::iter::repeat_n(whole_line(test, *records), *number);
        counts.iter().flat_map(line).collect()
    }

    fn whole_line(test: &str, records: usize) -> Value {
        let value = json!({ "value": 1.5, "low": 1.0, "high": 2.0, "unit": "core_cycles" });
        json!({ "test": test, "records": records, "what": test, "verdict": "found", "value": value })
    }

    #[test]
    fn only_complete_tests_are_resumed() {
        assert_eq!(count_complete_lines(&[]), 0);
        assert_eq!(count_complete_lines(&lines(&[("rob", 1, 1), ("data_caches", 3, 3), ("data_tlb", 2, 2)])), 6);
        assert_eq!(count_complete_lines(&lines(&[("rob", 1, 1), ("data_caches", 3, 2)])), 1);
        assert_eq!(count_complete_lines(&lines(&[("data_caches", 3, 2), ("data_tlb", 2, 2)])), 0);
        assert_eq!(count_complete_lines(&lines(&[("rob", 0, 2), ("masks", usize::MAX, 1)])), 2);
        assert_eq!(count_complete_lines(&[json!({ "test": "rob" })]), 0);
        let mut contradictory = whole_line("masks", 1);
        contradictory["verdict"] = "none".into();
        assert_eq!(count_complete_lines(&[whole_line("rob", 1), contradictory]), 1);
    }

    #[test]
    fn a_line_with_a_field_of_another_type_is_measured_again() {
        let others = [json!(null), json!(true), json!(-1), json!(1e300), json!("text"), json!([1, "x"]), json!({})];
        for field in ["test", "records", "what", "verdict", "value", "why", "cpuid", "fillers", "walks", "spread"] {
            for other in &others {
                let (first, mut changed) = (whole_line("rob", 1), whole_line("masks", 1));
                changed[field] = other.clone();
                let whole = count_complete_lines(&[first, changed.clone()]);
                assert_eq!(whole, 1 + usize::from(read_record(&changed).is_some()), "{changed}");
            }
        }
    }

    #[test]
    fn a_resumed_line_restores_the_knee_of_its_test() {
        let rob = TESTS.iter().find(|test| test.name == "rob").unwrap();
        let [one, other, ..] = rob.fillers() else { panic!("it has fillers") };
        let curve = |name: &str, end: usize| json!({ "name": name, "knee": { "low": end, "high": end } });
        let curves = json!([curve(one.name, 393), curve(other.name, 392), { "name": "none", "knee": null }]);
        for (verdict, end) in [("found", StructureEnd::At(392)), ("unclear", StructureEnd::AtLeast(392))] {
            let lines = [json!({ "verdict": verdict, "fillers": curves })];
            let mut knees = StructureEnds::new();
            let (filled, kind) = (read_filler_results(rob, &lines), read_verdict_kind(&lines));
            record_structure_end(&mut knees, rob, &filled, kind, None);
            assert_eq!(knees.get("rob"), Some(end));
        }
    }

    #[test]
    fn a_resumed_line_restores_the_reason_for_no_knee() {
        let stores = TESTS.iter().find(|test| test.name == "stores_in_flight").unwrap();
        let [one, other, ..] = stores.fillers() else { panic!("it has fillers") };
        let curve = |name: &str, no: NoKnee| json!({ "name": name, "knee": null, "no_knee": no.describe() });
        let lines =
            [json!({ "fillers": [curve(one.name, NoKnee::AlwaysOverlaps), curve(other.name, NoKnee::NoSingleFall)] })];
        let knees: Vec<_> = read_filler_results(stores, &lines).iter().map(|filled| filled.knee).collect();
        assert_eq!(knees, [Err(NoKnee::AlwaysOverlaps), Err(NoKnee::NoSingleFall)]);
    }
}
