//! Compares two result files.

use super::agreement::{CostSpan, Tolerance};
use super::{
    ComparedSide, QuantityKind, QuantityPairing, SideClaim, TableComparison, find_slots, find_throughput,
    headline_latencies,
};
use crate::rows::instr_row::{InstrRow, LatencyBound, OperandLatency, ReciprocalThroughput};
use std::collections::HashMap;

/// Compares the rows of A with the rows of B of the same code, operands and encoding. Forms of 32-bit
/// code and of 64-bit mode are the same if they have one name.
pub fn compare_results(a: &[InstrRow], b: &[InstrRow], tolerance: Tolerance) -> TableComparison {
    let mut comparison = TableComparison::new(tolerance);
    let mut left: HashMap<_, &InstrRow> = b.iter().map(|row| (row_key(row), row)).collect();
    for row in a {
        let other = left.remove(&row_key(row));
        match other {
            Some(_) => comparison.forms.both += 1,
            None => comparison.forms.only_a += 1,
        }
        compare_latencies(&mut comparison, Some(row), other);
        compare_throughputs(&mut comparison, Some(row), other);
        compare_slots(&mut comparison, Some(row), other);
    }
    comparison.forms.only_b = left.len() as u64;
    for row in left.into_values() {
        compare_latencies(&mut comparison, None, Some(row));
        compare_throughputs(&mut comparison, None, Some(row));
        compare_slots(&mut comparison, None, Some(row));
    }
    comparison.keep_significant().sort_worst_first()
}

fn row_key(row: &InstrRow) -> (String, &str, &str) {
    (name_in_any_mode(&row.code), &row.operands, &row.encoding)
}

/// The name of a form's code without its mode: near branches have a code for each.
fn name_in_any_mode(code: &str) -> String {
    let is_branch = code.contains("_rel8_") || code.contains("_rel32_");
    if is_branch { code.replace("_64", "").replace("_32", "") } else { code.to_string() }
}

/// The name of a latency's end in any mode: `rsp` of 64-bit mode is `esp` of 32-bit code.
fn end_in_any_mode(end: &str) -> &str {
    const NARROW_NAMES: [(&str, &str); 8] = [
        ("rax", "eax"),
        ("rcx", "ecx"),
        ("rdx", "edx"),
        ("rbx", "ebx"),
        ("rsp", "esp"),
        ("rbp", "ebp"),
        ("rsi", "esi"),
        ("rdi", "edi"),
    ];
    NARROW_NAMES.iter().find(|(wide, _)| *wide == end).map_or(end, |(_, narrow)| narrow)
}

/// The headline of each pair of ends. Of several, the most certain one.
fn headlines_by_pair(row: Option<&InstrRow>) -> HashMap<(&str, &str), &OperandLatency> {
    let mut found: HashMap<(&str, &str), &OperandLatency> = HashMap::new();
    for latency in row.into_iter().flat_map(headline_latencies) {
        let ends = (end_in_any_mode(&latency.from), end_in_any_mode(&latency.to));
        let known = found.entry(ends).or_insert(latency);
        if latency.bound < known.bound {
            *known = latency;
        }
    }
    found
}

fn compare_latencies(comparison: &mut TableComparison, a: Option<&InstrRow>, b: Option<&InstrRow>) {
    let mut others = headlines_by_pair(b);
    for (pair, latency) in headlines_by_pair(a) {
        match (a, b, others.remove(&pair)) {
            (Some(row), Some(other_row), Some(other)) => {
                let kind = QuantityKind::from_bound(weaker_bound(latency.bound, other.bound));
                let pairing = QuantityPairing { row, kind, pair: Some(pair) };
                let (Some(span), Some(other_span)) = (CostSpan::from_latency(latency), CostSpan::from_latency(other))
                else {
                    continue;
                };
                let ours = SideClaim { side: ComparedSide::from_latency(row, latency), span };
                let theirs = SideClaim { side: ComparedSide::from_latency(other_row, other), span: other_span };
                comparison.judge_pair(&pairing, ours, theirs);
            }
            _ => comparison.tally_mut(QuantityKind::from_bound(latency.bound)).only_a += 1,
        }
    }
    for latency in others.into_values() {
        comparison.tally_mut(QuantityKind::from_bound(latency.bound)).only_b += 1;
    }
}

fn weaker_bound(one: LatencyBound, other: LatencyBound) -> LatencyBound {
    one.max(other)
}

fn compare_throughputs(comparison: &mut TableComparison, a: Option<&InstrRow>, b: Option<&InstrRow>) {
    type RatedRow<'a> = Option<(&'a InstrRow, &'a ReciprocalThroughput, f64)>;
    fn find_rated(row: Option<&InstrRow>) -> RatedRow<'_> {
        let row = row?;
        let (throughput, value) = find_throughput(row)?;
        Some((row, throughput, value))
    }
    match (find_rated(a), find_rated(b)) {
        (Some((row, ours, value)), Some((other_row, theirs, other))) => {
            let pairing = QuantityPairing { row, kind: QuantityKind::Throughput, pair: None };
            let ours = SideClaim { side: ComparedSide::from_throughput(row, ours), span: CostSpan::from_value(value) };
            let theirs =
                SideClaim { side: ComparedSide::from_throughput(other_row, theirs), span: CostSpan::from_value(other) };
            comparison.judge_pair(&pairing, ours, theirs);
        }
        (Some(_), None) => comparison.tally_mut(QuantityKind::Throughput).only_a += 1,
        (None, Some(_)) => comparison.tally_mut(QuantityKind::Throughput).only_b += 1,
        (None, None) => {}
    }
}

fn compare_slots(comparison: &mut TableComparison, a: Option<&InstrRow>, b: Option<&InstrRow>) {
    let claim = |row: &InstrRow| {
        let (slots, span) = find_slots(row)?;
        Some(SideClaim { side: ComparedSide::from_slots(row, slots), span })
    };
    match (a.and_then(claim), b.and_then(claim), a) {
        (Some(ours), Some(theirs), Some(row)) => {
            comparison.judge_pair(&QuantityPairing { row, kind: QuantityKind::Slots, pair: None }, ours, theirs);
        }
        (Some(_), _, _) => comparison.tally_mut(QuantityKind::Slots).only_a += 1,
        (None, Some(_), _) => comparison.tally_mut(QuantityKind::Slots).only_b += 1,
        (None, None, _) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::instr_table::tests::{add, counted_slots, latency, row};

    fn tally(comparison: &TableComparison, kind: QuantityKind) -> [u64; 6] {
        let tally = comparison.quantities.iter().find(|tally| tally.kind == kind).unwrap();
        [tally.agree, tally.differ, tally.only_a, tally.only_b, tally.intervals, tally.overlap]
    }

    fn compare(a: &[InstrRow], b: &[InstrRow]) -> TableComparison {
        compare_results(a, b, Tolerance::RESULTS)
    }

    #[test]
    fn a_file_agrees_with_itself() {
        let rows = [add(), row("nop", "", Vec::new(), 0.2)];
        let found = compare(&rows, &rows);
        assert_eq!(tally(&found, QuantityKind::LatencyExact), [2, 0, 0, 0, 2, 2]);
        assert_eq!(tally(&found, QuantityKind::Throughput), [2, 0, 0, 0, 2, 2]);
        assert_eq!((found.forms.both, found.differences.len()), (2, 0));
    }

    #[test]
    fn forms_of_two_modes_are_compared_by_their_names() {
        let one = |code: &str, end: &str| {
            let latency = latency(end, end, 1.0, LatencyBound::Exact);
            InstrRow { code: code.to_string(), ..row("x", "rel8", vec![latency], 1.0) }
        };
        for (narrow, wide) in [
            (one("Jne_rel8_32", "flags"), one("Jne_rel8_64", "flags")),
            (one("Pushw_FS", "esp"), one("Pushw_FS", "rsp")),
            (one("Loop_rel8_32_ECX", "ecx"), one("Loop_rel8_64_ECX", "ecx")),
        ] {
            let found = compare(&[narrow], &[wide]);
            assert_eq!(tally(&found, QuantityKind::LatencyExact), [1, 0, 0, 0, 1, 1]);
            assert_eq!((found.forms.both, found.forms.only_a), (1, 0));
        }
        let found = compare(&[one("Push_r32", "esp")], &[one("Push_r64", "rsp")]);
        assert_eq!((found.forms.both, found.forms.only_a, found.forms.only_b), (0, 1, 1));
    }

    #[test]
    fn slots_are_compared_as_whole_numbers_and_bounds() {
        let with = |slots: &[&str]| -> Vec<InstrRow> {
            let one = |(number, slots): (usize, &&str)| {
                let slots = counted_slots(slots);
                InstrRow { slots, ..row(&format!("x{number}"), "", Vec::new(), 1.0) }
            };
            slots.iter().enumerate().map(one).collect()
        };
        let found = compare(&with(&["1", "1", "≤2", "2", "microcoded", "1"]), &with(&["1", "2", "1", "≤3", "4", ""]));
        assert_eq!(tally(&found, QuantityKind::Slots)[..4], [3, 1, 1, 1]);
        assert_eq!((found.differences[0].quantity, found.differences[0].difference), (QuantityKind::Slots, -1.0));
    }

    /// Rows with one throughput each, with a margin.
    fn rates(values: impl Iterator<Item = f64>, margin: f64) -> Vec<InstrRow> {
        let one = |(number, value): (usize, f64)| {
            let mut row = row(&format!("x{number}"), "", Vec::new(), value);
            let cost = &mut row.throughput.as_mut().unwrap().cost;
            (cost.low, cost.high) = (Some(value - margin), Some(value + margin));
            row
        };
        values.enumerate().map(one).collect()
    }

    #[test]
    fn chance_gives_no_differences_and_true_ones_are_found_among_many() {
        let mut random = cyclescope_core::random::Random::new(3);
        let mut noise = || {
            let uniform = (random.below(1 << 30) as f64 + 0.5) / f64::from(1 << 30);
            cyclescope_core::statistics::normal_quantile(uniform)
        };
        // A margin of 0.1 is a standard error of 0.051.
        let mut simulated = |shifted: usize| -> Vec<f64> {
            (0..4000).map(|n| 1.0 + 0.051 * noise() + if n < shifted { 1.0 } else { 0.0 }).collect()
        };
        let (a, b, c) = (simulated(0), simulated(0), simulated(20));
        let rows = |values: &[f64]| rates(values.iter().copied(), 0.1);
        let same = compare(&rows(&a), &rows(&b));
        let counts = &same.quantities[3];
        assert!(same.differences.len() <= 1 && counts.unclear > 1000, "{counts:?}");
        let found = compare(&rows(&a), &rows(&c));
        let is_shifted = |code: &str| code.trim_matches(|c: char| !c.is_ascii_digit()).parse::<usize>().unwrap() < 20;
        let shifted = found.differences.iter().filter(|one| is_shifted(&one.code)).count();
        let all = found.differences.len();
        assert!(shifted == 20 && all <= 24, "{shifted} of 20 among {all}");
    }

    #[test]
    fn a_difference_of_unknown_error_is_unclear() {
        let one = |value, margin| rates(std::iter::once(value), margin);
        let mut single = one(2.0, 0.1);
        let cost = &mut single[0].throughput.as_mut().unwrap().cost;
        (cost.low, cost.high) = (None, None);
        let found = compare(&one(1.0, 0.1), &single);
        assert_eq!((found.differences.len(), found.quantities[3].unclear), (0, 1));
    }

    #[test]
    fn the_key_is_code_operands_and_encoding() {
        let changes: [fn(&mut InstrRow); 3] =
            [|row| row.code.push('x'), |row| row.operands.push('x'), |row| row.encoding = "vex".to_string()];
        for change in changes {
            let mut other = add();
            change(&mut other);
            let found = compare(&[add()], &[other]);
            assert_eq!(tally(&found, QuantityKind::LatencyExact), [0, 0, 2, 2, 0, 0]);
            assert_eq!(tally(&found, QuantityKind::Throughput), [0, 0, 1, 1, 0, 0]);
            assert_eq!([found.forms.both, found.forms.only_a, found.forms.only_b], [0, 1, 1]);
        }
    }

    #[test]
    fn the_largest_difference_comes_first() {
        let with = |first: f64, second: f64, throughput: f64| {
            let latencies = vec![
                latency("op1", "op1", first, LatencyBound::Exact),
                latency("op2", "op1", second, LatencyBound::Exact),
            ];
            row("x", "r64, r64", latencies, throughput)
        };
        let found = compare(&[with(3.1, 8.0, 0.5)], &[with(3.0, 4.0, 0.25)]);
        let order: Vec<(Option<&str>, f64)> =
            found.differences.iter().map(|d| (d.from.as_deref(), (d.relative * 100.0).round())).collect();
        assert_eq!(order, [(Some("op2"), 100.0), (None, 100.0), (Some("op1"), 3.0)]);
        assert_eq!(tally(&found, QuantityKind::LatencyExact), [0, 2, 0, 0, 2, 0]);
    }

    #[test]
    fn bounds_and_sums_are_counted_apart() {
        let one = |value, bound| [row("x", "r64", vec![latency("op1", "op1", value, bound)], 1.0)];
        let cases = [
            (one(3.0, LatencyBound::Upper), one(1.0, LatencyBound::Exact), QuantityKind::LatencyUpper, [1, 0]),
            (one(3.0, LatencyBound::Exact), one(1.0, LatencyBound::Upper), QuantityKind::LatencyUpper, [0, 1]),
            (one(3.0, LatencyBound::Sum), one(3.0, LatencyBound::Exact), QuantityKind::LatencySum, [1, 0]),
        ];
        for (a, b, kind, counts) in cases {
            assert_eq!(tally(&compare(&a, &b), kind)[..2], counts, "{kind:?}");
        }
    }

    fn refused_rate() -> ReciprocalThroughput {
        let cost = cyclescope_measure::result::record::Quantity::refused(cyclescope_core::unit::Unit::CoreCycles);
        ReciprocalThroughput { cost, ..add().throughput.unwrap() }
    }

    #[test]
    fn quantities_without_a_figure_count_as_missing() {
        let mut refused = add();
        refused.latency[0].cost =
            cyclescope_measure::result::record::Quantity::refused(cyclescope_core::unit::Unit::CoreCycles);
        refused.latency[1].variant = Some("same register".to_string());
        for throughput in [Some(refused_rate()), None] {
            refused.throughput = throughput;
            let found = compare(&[refused.clone()], &[add()]);
            assert_eq!(tally(&found, QuantityKind::LatencyExact), [0, 0, 0, 2, 0, 0]);
            assert_eq!(tally(&found, QuantityKind::Throughput), [0, 0, 0, 1, 0, 0]);
        }
    }
}
