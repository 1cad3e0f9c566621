//! Levels that end where a structure of another test does, of which each that is counted takes a part: which one is full there is not
//! known, and the size is limited by that other structure.

use super::known::Known;
use super::record::UarchRecord;
use super::test::{Look, Test};
use super::verdict::{Kind, Verdict};
use cyclescope_core::statistics::Interval;

/// Share by which two ends may lie apart that are the same.
const APART: f64 = 0.02;

/// Tells it of each size of a test of levels, where another test found the same end, or nothing.
pub(super) fn told(test: &Test, records: &mut [UarchRecord], known: &[Known]) {
    let takes = match &test.look {
        Look::Levels(walks) => walks.takes,
        Look::Batches(batches) => batches.takes,
        _ => return,
    };
    for record in records.iter_mut().filter(|record| is_size(test.name, &record.what)) {
        for (other, each) in takes {
            let Some(size) = size(record) else { break };
            let room = Interval {
                value: size.value * *each as f64,
                low: size.low * *each as f64,
                high: size.high * *each as f64,
            };
            let name = other.replace('_', " ");
            let sizes = known.iter().filter(|known| is_size(other, &known.what)).map(Known::found);
            let verdict = match ended(room, sizes) {
                Ended::With(end) => Verdict {
                    limited_by: Some(*other),
                    ..Verdict::new(
                        Kind::Limited,
                        format!(
                            "they take {each} each of {name}, which ends at {:.0} to {:.0}: {}",
                            end.low, end.high, record.why
                        ),
                    )
                },
                Ended::Perhaps => Verdict::new(
                    Kind::Unclear,
                    format!("they take {each} each of {name}, whose size is not known: {}", record.why),
                ),
                Ended::Alone => continue,
            };
            let unit = record.value.unit;
            let UarchRecord { verdict, value, limited_by, why, .. } =
                UarchRecord::new(test, record.what.clone(), verdict, unit);
            (record.verdict, record.value, record.limited_by, record.why) = (verdict, value, limited_by, why);
        }
    }
}

/// Whether another structure is full where something ends.
enum Ended {
    With(Interval),
    Perhaps,
    Alone,
}

/// Compares an end with the sizes of another structure's levels, in their order. A level whose size is not known may end anywhere up to the next
/// one of which it is.
fn ended(end: Interval, sizes: impl Iterator<Item = Option<Interval>>) -> Ended {
    let (mut open, mut any) = (false, false);
    for size in sizes {
        any = true;
        match size {
            Some(size) if meet(end, size) => return Ended::With(size),
            Some(size) if size.low > end.high => break,
            Some(_) => open = false,
            None => open = true,
        }
    }
    if open || !any { Ended::Perhaps } else { Ended::Alone }
}

/// Whether a key is that of a size of a test.
fn is_size(test: &str, key: &str) -> bool {
    key.strip_prefix(test)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.') && rest.ends_with(".size"))
}

/// The size of a record that has one.
fn size(record: &UarchRecord) -> Option<Interval> {
    Known::of(record).found()
}

fn meet(one: Interval, other: Interval) -> bool {
    one.low <= other.high * (1.0 + APART) && other.low <= one.high * (1.0 + APART)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::list::TESTS;
    use cyclescope_core::unit::Unit;

    fn record(name: &str, what: &str, [value, low, high]: [f64; 3]) -> UarchRecord {
        let test = TESTS.iter().find(|test| test.name == name).unwrap();
        let size = Some(Interval { value, low, high });
        UarchRecord::new(
            test,
            what.to_string(),
            Verdict { size, ..Verdict::new(Kind::Found, "") },
            Unit::Count,
        )
    }

    /// The verdict on a size of jumps 16 bytes apart beside what is known of the instruction cache.
    fn judged(
        what: &str,
        size: [f64; 3],
        cache: Option<[f64; 3]>,
    ) -> (Kind, Option<&'static str>, Option<f64>) {
        let test = TESTS.iter().find(|test| test.name == "branch_targets").unwrap();
        let mut records = [record("branch_targets", what, size)];
        let cache =
            cache.map(|cache| Known::of(&record("instruction_cache", "instruction_cache.1.size", cache)));
        told(test, &mut records, &cache.into_iter().collect::<Vec<_>>());
        (records[0].verdict, records[0].limited_by, records[0].value.value)
    }

    #[test]
    fn a_size_at_which_another_structure_is_full_is_limited_by_it() {
        let [level, cache] = [[2077.0, 2016.0, 2184.0], [32886.0, 32768.0, 33005.0]];
        let limited = (Kind::Limited, Some("instruction_cache"), None);
        assert_eq!(judged("branch_targets.1.size", level, Some(cache)), limited);
        let found = (Kind::Found, None, Some(9475.0));
        assert_eq!(judged("branch_targets.2.size", [9475.0, 9464.0, 9601.0], Some(cache)), found);
        assert_eq!(judged("branch_targets.1.size", level, None), (Kind::Unclear, None, None));
        // The cache's first level may end there where its second one alone is known.
        let levels = |first: Kind| {
            let first = UarchRecord {
                verdict: first,
                ..record("instruction_cache", "instruction_cache.1.size", [1e3; 3])
            };
            let second = record("instruction_cache", "instruction_cache.2.size", [1e6; 3]);
            let mut records = [record("branch_targets", "branch_targets.1.size", level)];
            let test = TESTS.iter().find(|test| test.name == "branch_targets").unwrap();
            told(test, &mut records, &[Known::of(&first), Known::of(&second)]);
            records[0].verdict
        };
        assert_eq!([Kind::Found, Kind::Unclear].map(levels), [Kind::Found, Kind::Unclear]);
        // What a jump costs is no size.
        let cost = (Kind::Found, None, Some(2048.0));
        assert_eq!(judged("branch_targets.1.cost", [2048.0; 3], Some(cache)), cost);
        // Another test's name may begin alike.
        assert!(!is_size("branch_targets", "branch_targets_32.1.size") && is_size("rob", "rob"));
    }
}
