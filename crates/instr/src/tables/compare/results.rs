//! Two result files.

use super::agreement::{Span, Tolerance};
use super::{Claim, Comparison, Kind, Pairing, Side, headlines, throughput};
use crate::rows::row::{Bound, Latency, Row, Throughput};
use std::collections::HashMap;

/// Holds the rows of A against those of B that have the same code, operands and encoding.
pub fn against_results(a: &[Row], b: &[Row], tolerance: Tolerance) -> Comparison {
    let mut comparison = Comparison::new(tolerance);
    let mut left: HashMap<_, &Row> = b.iter().map(|row| (key(row), row)).collect();
    for row in a {
        let other = left.remove(&key(row));
        match other {
            Some(_) => comparison.forms.both += 1,
            None => comparison.forms.only_a += 1,
        }
        latencies(&mut comparison, Some(row), other);
        throughputs(&mut comparison, Some(row), other);
    }
    comparison.forms.only_b = left.len() as u64;
    for row in left.into_values() {
        latencies(&mut comparison, None, Some(row));
        throughputs(&mut comparison, None, Some(row));
    }
    comparison.tested().sorted()
}

fn key(row: &Row) -> (&str, &str, &str) {
    (&row.code, &row.operands, &row.encoding)
}

/// The headline of each pair; of several the surest.
fn by_pair(row: Option<&Row>) -> HashMap<(&str, &str), &Latency> {
    let mut found: HashMap<(&str, &str), &Latency> = HashMap::new();
    for latency in row.into_iter().flat_map(headlines) {
        let known = found.entry((&latency.from, &latency.to)).or_insert(latency);
        if latency.bound < known.bound {
            *known = latency;
        }
    }
    found
}

fn latencies(comparison: &mut Comparison, a: Option<&Row>, b: Option<&Row>) {
    let mut others = by_pair(b);
    for (pair, latency) in by_pair(a) {
        match (a, b, others.remove(&pair)) {
            (Some(row), Some(other_row), Some(other)) => {
                let kind = Kind::latency(weaker(latency.bound, other.bound));
                let pairing = Pairing { row, kind, pair: Some(pair) };
                let (Some(span), Some(other_span)) = (Span::latency(latency), Span::latency(other)) else {
                    continue;
                };
                let ours = Claim { side: Side::latency(row, latency), span };
                let theirs = Claim { side: Side::latency(other_row, other), span: other_span };
                comparison.judge(&pairing, ours, theirs);
            }
            _ => comparison.tally(Kind::latency(latency.bound)).only_a += 1,
        }
    }
    for latency in others.into_values() {
        comparison.tally(Kind::latency(latency.bound)).only_b += 1;
    }
}

fn weaker(one: Bound, other: Bound) -> Bound {
    one.max(other)
}

fn throughputs(comparison: &mut Comparison, a: Option<&Row>, b: Option<&Row>) {
    type Found<'a> = Option<(&'a Row, &'a Throughput, f64)>;
    fn found(row: Option<&Row>) -> Found<'_> {
        let row = row?;
        let (throughput, value) = throughput(row)?;
        Some((row, throughput, value))
    }
    match (found(a), found(b)) {
        (Some((row, ours, value)), Some((other_row, theirs, other))) => {
            let pairing = Pairing { row, kind: Kind::Throughput, pair: None };
            let ours = Claim { side: Side::throughput(row, ours), span: Span::point(value) };
            let theirs = Claim { side: Side::throughput(other_row, theirs), span: Span::point(other) };
            comparison.judge(&pairing, ours, theirs);
        }
        (Some(_), None) => comparison.tally(Kind::Throughput).only_a += 1,
        (None, Some(_)) => comparison.tally(Kind::Throughput).only_b += 1,
        (None, None) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::table::tests::{add, latency, row};

    fn tally(comparison: &Comparison, kind: Kind) -> [u64; 6] {
        let tally = comparison.quantities.iter().find(|tally| tally.kind == kind).unwrap();
        [tally.agree, tally.differ, tally.only_a, tally.only_b, tally.intervals, tally.overlap]
    }

    fn compare(a: &[Row], b: &[Row]) -> Comparison {
        against_results(a, b, Tolerance::RESULTS)
    }

    #[test]
    fn a_file_agrees_with_itself() {
        let rows = [add(), row("nop", "", Vec::new(), 0.2)];
        let found = compare(&rows, &rows);
        assert_eq!(tally(&found, Kind::LatencyExact), [2, 0, 0, 0, 2, 2]);
        assert_eq!(tally(&found, Kind::Throughput), [2, 0, 0, 0, 2, 2]);
        assert_eq!((found.forms.both, found.differences.len()), (2, 0));
    }

    /// Rows of one throughput each, with a margin.
    fn rates(values: impl Iterator<Item = f64>, margin: f64) -> Vec<Row> {
        let one = |(number, value): (usize, f64)| {
            let mut row = row(&format!("x{number}"), "", Vec::new(), value);
            let cost = &mut row.throughput.as_mut().unwrap().cost;
            (cost.low, cost.high) = (Some(value - margin), Some(value + margin));
            row
        };
        values.enumerate().map(one).collect()
    }

    #[test]
    fn what_chance_explains_is_no_difference_and_a_true_one_is_found_among_many() {
        let mut random = cyclescope_core::random::Random::new(3);
        let mut noise = || {
            let uniform = (random.below(1 << 30) as f64 + 0.5) / f64::from(1 << 30);
            cyclescope_core::statistics::normal_quantile(uniform)
        };
        // A margin of 0.1 is a standard error of 0.051.
        let mut some = |planted: usize| -> Vec<f64> {
            (0..4000).map(|n| 1.0 + 0.051 * noise() + if n < planted { 1.0 } else { 0.0 }).collect()
        };
        let (a, b, c) = (some(0), some(0), some(20));
        let rows = |values: &[f64]| rates(values.iter().copied(), 0.1);
        let same = compare(&rows(&a), &rows(&b));
        let counts = same.quantities.last().unwrap();
        assert!(same.differences.len() <= 1 && counts.unclear > 1000, "{counts:?}");
        let found = compare(&rows(&a), &rows(&c));
        let is_planted =
            |code: &str| code.trim_matches(|c: char| !c.is_ascii_digit()).parse::<usize>().unwrap() < 20;
        let planted = found.differences.iter().filter(|one| is_planted(&one.code)).count();
        let all = found.differences.len();
        assert!(planted == 20 && all <= 24, "{planted} of 20 among {all}");
    }

    #[test]
    fn a_number_of_unknown_error_is_unclear() {
        let one = |value, margin| rates(std::iter::once(value), margin);
        let mut single = one(2.0, 0.1);
        let cost = &mut single[0].throughput.as_mut().unwrap().cost;
        (cost.low, cost.high) = (None, None);
        let found = compare(&one(1.0, 0.1), &single);
        assert_eq!((found.differences.len(), found.quantities.last().unwrap().unclear), (0, 1));
    }

    #[test]
    fn the_key_is_code_operands_and_encoding() {
        let changes: [fn(&mut Row); 3] =
            [|row| row.code.push('x'), |row| row.operands.push('x'), |row| row.encoding = "vex".to_string()];
        for change in changes {
            let mut other = add();
            change(&mut other);
            let found = compare(&[add()], &[other]);
            assert_eq!(tally(&found, Kind::LatencyExact), [0, 0, 2, 2, 0, 0]);
            assert_eq!(tally(&found, Kind::Throughput), [0, 0, 1, 1, 0, 0]);
            assert_eq!([found.forms.both, found.forms.only_a, found.forms.only_b], [0, 1, 1]);
        }
    }

    #[test]
    fn the_worst_comes_first() {
        let with = |first: f64, second: f64, throughput: f64| {
            let latencies =
                vec![latency("op1", "op1", first, Bound::Exact), latency("op2", "op1", second, Bound::Exact)];
            row("x", "r64, r64", latencies, throughput)
        };
        let found = compare(&[with(3.1, 8.0, 0.5)], &[with(3.0, 4.0, 0.25)]);
        let order: Vec<(Option<&str>, f64)> =
            found.differences.iter().map(|d| (d.from.as_deref(), (d.relative * 100.0).round())).collect();
        assert_eq!(order, [(Some("op2"), 100.0), (None, 100.0), (Some("op1"), 3.0)]);
        assert_eq!(tally(&found, Kind::LatencyExact), [0, 2, 0, 0, 2, 0]);
    }

    #[test]
    fn a_bound_on_either_side_is_counted_apart() {
        let one = |value, bound| [row("x", "r64", vec![latency("op1", "op1", value, bound)], 1.0)];
        let cases = [
            (one(3.0, Bound::Upper), one(1.0, Bound::Exact), Kind::LatencyUpper, [1, 0]),
            (one(3.0, Bound::Exact), one(1.0, Bound::Upper), Kind::LatencyUpper, [0, 1]),
            (one(3.0, Bound::Sum), one(3.0, Bound::Exact), Kind::LatencySum, [1, 0]),
        ];
        for (a, b, kind, counts) in cases {
            assert_eq!(tally(&compare(&a, &b), kind)[..2], counts, "{kind:?}");
        }
    }

    fn refused_rate() -> Throughput {
        let cost =
            cyclescope_measure::result::record::Quantity::refused(cyclescope_core::unit::Unit::CoreCycles);
        Throughput { cost, ..add().throughput.unwrap() }
    }

    #[test]
    fn what_has_no_number_is_not_there() {
        let mut refused = add();
        refused.latency[0].cost =
            cyclescope_measure::result::record::Quantity::refused(cyclescope_core::unit::Unit::CoreCycles);
        refused.latency[1].variant = Some("same register".to_string());
        for throughput in [Some(refused_rate()), None] {
            refused.throughput = throughput;
            let found = compare(&[refused.clone()], &[add()]);
            assert_eq!(tally(&found, Kind::LatencyExact), [0, 0, 0, 2, 0, 0]);
            assert_eq!(tally(&found, Kind::Throughput), [0, 0, 0, 1, 0, 0]);
        }
    }
}
