//! Levels that end where a structure of another test is full, if each counted item occupies a part
//! of it. Either structure may be full first, so the other structure limits the size.

use super::earlier_result::EarlierResult;
use super::record::UarchRecord;
use super::spec::{Experiment, TestSpec};
use super::verdict::{TestVerdict, VerdictKind};
use cyclescope_core::statistics::Interval;

/// Share by which two equal ends may differ.
const END_TOLERANCE: f64 = 0.02;

/// Marks sizes of a test of levels as limited, if another test has the same end, or no size at all.
pub(super) fn annotate_limits(test: &TestSpec, records: &mut [UarchRecord], earlier: &[EarlierResult]) {
    let takes = match &test.experiment {
        Experiment::Levels(spec) => spec.also_occupies,
        Experiment::Batches(batches) => batches.also_occupies,
        _ => return,
    };
    for record in records.iter_mut().filter(|record| is_size_key(test.name, &record.what)) {
        for (other, each) in takes {
            let Some(size) = size_of_record(record) else { break };
            let room = Interval {
                value: size.value * *each as f64,
                low: size.low * *each as f64,
                high: size.high * *each as f64,
            };
            let name = other.replace('_', " ");
            let sizes = earlier.iter().filter(|result| is_size_key(other, &result.what)).map(EarlierResult::found_size);
            let verdict = match match_end(room, sizes) {
                LimitMatch::SameEnd(end) => TestVerdict {
                    limited_by: Some(*other),
                    ..TestVerdict::new(
                        VerdictKind::Limited,
                        format!(
                            "they take {each} each of {name}, which ends at {:.0} to {:.0}: {}",
                            end.low, end.high, record.why
                        ),
                    )
                },
                LimitMatch::Perhaps => TestVerdict::new(
                    VerdictKind::Unclear,
                    format!("they take {each} each of {name}, whose size is not known: {}", record.why),
                ),
                LimitMatch::Alone => continue,
            };
            let unit = record.value.unit;
            let UarchRecord { verdict, value, limited_by, why, .. } =
                UarchRecord::new(test, record.what.clone(), verdict, unit);
            (record.verdict, record.value, record.limited_by, record.why) = (verdict, value, limited_by, why);
        }
    }
}

/// Whether another structure is full where something ends.
enum LimitMatch {
    SameEnd(Interval),
    Perhaps,
    Alone,
}

/// Compares an end with the sizes of another structure's levels, in their order. A level of unknown
/// size may end anywhere up to the next level of known size.
fn match_end(end: Interval, sizes: impl Iterator<Item = Option<Interval>>) -> LimitMatch {
    let (mut open, mut any) = (false, false);
    for size in sizes {
        any = true;
        match size {
            Some(size) if intervals_meet(end, size) => return LimitMatch::SameEnd(size),
            Some(size) if size.low > end.high => break,
            Some(_) => open = false,
            None => open = true,
        }
    }
    if open || !any { LimitMatch::Perhaps } else { LimitMatch::Alone }
}

/// Whether a key names a size of this test.
fn is_size_key(test: &str, key: &str) -> bool {
    key.strip_prefix(test).is_some_and(|rest| rest.is_empty() || rest.starts_with('.') && rest.ends_with(".size"))
}

/// The size in a record, if it has one.
fn size_of_record(record: &UarchRecord) -> Option<Interval> {
    EarlierResult::from_record(record).found_size()
}

fn intervals_meet(one: Interval, other: Interval) -> bool {
    one.low <= other.high * (1.0 + END_TOLERANCE) && other.low <= one.high * (1.0 + END_TOLERANCE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_list::TESTS;
    use cyclescope_core::unit::Unit;
    use std::borrow::Cow;

    fn record(name: &str, what: &str, [value, low, high]: [f64; 3]) -> UarchRecord {
        let test = TESTS.iter().find(|test| test.name == name).unwrap();
        let size = Some(Interval { value, low, high });
        UarchRecord::new(
            test,
            what.to_string(),
            TestVerdict { size, ..TestVerdict::new(VerdictKind::Found, "") },
            Unit::Count,
        )
    }

    /// The verdict on a size of jumps 16 bytes apart, from the known sizes of the instruction
    /// cache.
    fn judged(
        what: &str,
        size: [f64; 3],
        cache: Option<[f64; 3]>,
    ) -> (VerdictKind, Option<Cow<'static, str>>, Option<f64>) {
        let test = TESTS.iter().find(|test| test.name == "branch_targets").unwrap();
        let mut records = [record("branch_targets", what, size)];
        let cache = cache
            .map(|cache| EarlierResult::from_record(&record("instruction_cache", "instruction_cache.1.size", cache)));
        annotate_limits(test, &mut records, &cache.into_iter().collect::<Vec<_>>());
        (records[0].verdict, records[0].limited_by.clone(), records[0].value.value)
    }

    #[test]
    fn a_size_is_limited_by_another_structure_that_is_full_there() {
        let [level, cache] = [[2077.0, 2016.0, 2184.0], [32886.0, 32768.0, 33005.0]];
        let limited = (VerdictKind::Limited, Some("instruction_cache".into()), None);
        assert_eq!(judged("branch_targets.1.size", level, Some(cache)), limited);
        let found = (VerdictKind::Found, None, Some(9475.0));
        assert_eq!(judged("branch_targets.2.size", [9475.0, 9464.0, 9601.0], Some(cache)), found);
        assert_eq!(judged("branch_targets.1.size", level, None), (VerdictKind::Unclear, None, None));
        // If only the cache's second level is known, its first level may end there.
        let levels = |first: VerdictKind| {
            let first =
                UarchRecord { verdict: first, ..record("instruction_cache", "instruction_cache.1.size", [1e3; 3]) };
            let second = record("instruction_cache", "instruction_cache.2.size", [1e6; 3]);
            let mut records = [record("branch_targets", "branch_targets.1.size", level)];
            let test = TESTS.iter().find(|test| test.name == "branch_targets").unwrap();
            annotate_limits(
                test,
                &mut records,
                &[EarlierResult::from_record(&first), EarlierResult::from_record(&second)],
            );
            records[0].verdict
        };
        assert_eq!([VerdictKind::Found, VerdictKind::Unclear].map(levels), [VerdictKind::Found, VerdictKind::Unclear]);
        // The cost of a jump is no size.
        let cost = (VerdictKind::Found, None, Some(2048.0));
        assert_eq!(judged("branch_targets.1.cost", [2048.0; 3], Some(cache)), cost);
        // The names of two tests may begin alike.
        assert!(!is_size_key("branch_targets", "branch_targets_32.1.size") && is_size_key("rob", "rob"));
    }
}
