//! Levels that end where a structure of another test does, of which each that is counted takes a part: which one is full there is not
//! known, and the size is limited by that other structure.

use super::environment::Known;
use super::record::UarchRecord;
use super::test::{Look, Test};
use super::verdict::{Kind, Verdict};
use crate::statistics::Interval;

/// Share by which two ends may lie apart that are the same.
const APART: f64 = 0.02;

/// Tells it of each size of a test of levels, where another test found the same end, or nothing.
pub(super) fn told(test: &Test, records: &mut [UarchRecord], known: &[Known]) {
    let Look::Levels(walks) = &test.look else { return };
    for record in records.iter_mut().filter(|record| is_size(test.name, &record.what)) {
        for (other, each) in walks.takes {
            let Some(size) = size(record) else { break };
            let ends: Vec<Interval> = known
                .iter()
                .filter(|known| is_size(other, &known.what))
                .filter_map(Known::found)
                .collect();
            let room = Interval {
                value: size.value * *each as f64,
                low: size.low * *each as f64,
                high: size.high * *each as f64,
            };
            let name = other.replace('_', " ");
            let verdict = match ends.iter().find(|end| meet(room, **end)) {
                Some(end) => Verdict {
                    limited_by: Some(*other),
                    ..Verdict::new(
                        Kind::Limited,
                        format!("they take {each} each of {name}, which ends at {:.0} to {:.0}: {}", end.low, end.high, record.why),
                    )
                },
                None if ends.is_empty() => Verdict::new(
                    Kind::Unclear,
                    format!("they take {each} each of {name}, whose size is not known: {}", record.why),
                ),
                None => continue,
            };
            let unit = record.value.unit;
            let UarchRecord { verdict, value, limited_by, why, .. } =
                UarchRecord::new(test, record.what.clone(), verdict, unit);
            (record.verdict, record.value, record.limited_by, record.why) = (verdict, value, limited_by, why);
        }
    }
}

/// Whether a key is that of a size of a test.
fn is_size(test: &str, key: &str) -> bool {
    key.strip_prefix(test).is_some_and(|rest| rest.is_empty() || rest.starts_with('.') && rest.ends_with(".size"))
}

/// The size of a record that has one.
fn size(record: &UarchRecord) -> Option<Interval> {
    Known::of(record).found()
}

fn meet(one: Interval, other: Interval) -> bool {
    one.low <= other.high * (1.0 + APART) && other.low <= one.high * (1.0 + APART)
}
