//! Rates as a share of the largest rate that another test found.

use super::earlier_result::EarlierResult;
use super::record::UarchRecord;
use super::spec::TestSpec;
use super::test_list::TESTS;
use super::verdict::VerdictKind;

/// Adds the share to each number of a test whose row names another test with results.
pub(super) fn annotate_bounds(test: &TestSpec, records: &mut [UarchRecord], earlier: &[EarlierResult]) {
    for record in records {
        let row = test.rows().iter().find(|row| row.record_key(test.name) == record.what);
        let Some(bound) = row.and_then(|row| row.bounding_test) else { continue };
        let most = largest_rate(bound, earlier);
        // A larger number is not bounded by it.
        let value = record.value.value.zip(most).filter(|(value, most)| value <= most);
        record.told = value.map(|(value, most)| describe_share(value / most, bound));
    }
}

/// The largest rate of each size among the rows of a test.
fn largest_rate(bound: &str, earlier: &[EarlierResult]) -> Option<f64> {
    let test = TESTS.iter().find(|test| test.name == bound)?;
    let mut most = None;
    for row in test.rows() {
        let key = row.record_key(bound);
        let result = earlier.iter().find(|result| result.what == key)?;
        // If the largest rate may be an unknown one, there is no share.
        let value = match result.verdict {
            VerdictKind::None => continue,
            _ => result.found_size()?.value * row.n as f64,
        };
        most = Some(most.map_or(value, |most: f64| most.max(value)));
    }
    most
}

fn describe_share(share: f64, bound: &str) -> String {
    format!("{:.0} % of the most in {bound}", 100.0 * share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::TestVerdict;
    use cyclescope_core::statistics::Interval;
    use cyclescope_core::unit::Unit;

    fn record(test: &str, row: &str, value: f64, unit: Unit) -> UarchRecord {
        let test = TESTS.iter().find(|other| other.name == test).unwrap();
        let size = Some(Interval { value, low: value, high: value });
        UarchRecord::new(test, row.to_string(), TestVerdict { size, ..TestVerdict::new(VerdictKind::Found, "") }, unit)
    }

    #[test]
    fn a_copy_is_reported_as_a_share_of_the_fastest_registers() {
        let rate =
            |(row, rate): (&str, f64)| EarlierResult::from_record(&record("copy_rate", row, rate, Unit::PerCycle));
        let earlier = [
            ("copy_rate.8_bytes", 2.0),
            ("copy_rate.16_bytes", 2.0),
            ("copy_rate.32_bytes", 1.5),
            ("copy_rate.64_bytes", 0.75),
        ]
        .map(rate);
        let test = TESTS.iter().find(|test| test.name == "copy_methods").unwrap();
        let row = "copy_methods.rep_movsb.4_KiB";
        let mut records = [record("copy_methods", row, 36.0, Unit::BytesPerCycle)];
        annotate_bounds(test, &mut records, &earlier);
        assert_eq!(records[0].told.as_deref(), Some("75 % of the most in copy_rate"));
        annotate_bounds(test, &mut records, &earlier[1..]);
        assert_eq!(records[0].told, None, "one is not known");
        let last = record("copy_rate", "copy_rate.64_bytes", 0.75, Unit::PerCycle);
        let unclear = EarlierResult::from_record(&UarchRecord { verdict: VerdictKind::Unclear, ..last });
        annotate_bounds(test, &mut records, &[&earlier[..3], &[unclear]].concat());
        assert_eq!(records[0].told, None, "one is unclear");
        let mut above = [record("copy_methods", row, 49.0, Unit::BytesPerCycle)];
        annotate_bounds(test, &mut above, &earlier);
        assert_eq!(above[0].told, None);
    }
}
