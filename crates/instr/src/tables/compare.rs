//! Compares two result files, or a result file with a published table.
//!
//! A side's claim is a range that contains the true cost. An exact number is a point; an upper
//! bound has no lower end. Two sides agree if their ranges touch within a tolerance. Only headlines
//! are compared. A published latency without operands is the one figure that readers plan with. It
//! is compared with the largest measured latency between explicit operands. If an instruction has
//! implied registers only, it may also mean the time of each repetition. Limits: tags, modes and
//! variants are not compared. A figure that one side lacks is counted, not judged.
//!
//! Between two results, a gap beyond the tolerance is a difference only if chance does not explain
//! it: it is tested against the errors of both. Of thousands of quantities, some differ by chance,
//! so the level depends on their number. On average, at most a stated share of the reported
//! differences is false: Y. Benjamini and Y. Hochberg, "Controlling the false discovery rate",
//! Journal of the Royal Statistical Society B 57 (1995). Intervals are assumed to have a confidence
//! level of 95 %. Gaps beyond the tolerance that fail the test count as unclear. Published figures
//! have no error and are not tested.

mod agreement;
mod published;
mod results;
mod runs;

pub use agreement::Tolerance;
pub use published::compare_with_reference;
pub use results::compare_results;
pub use runs::read_runs;

use super::reference::PublishedFigure;
use crate::rows::dispatch_slots::DispatchSlots;
use crate::rows::instr_row::{InstrRow, LatencyBound, OperandLatency, ReciprocalThroughput};
use agreement::{CostSpan, SpanGap};
use cyclescope_core::statistics::normal_quantile;
use cyclescope_core::unit::Unit;
use cyclescope_measure::result::caveat::Caveat;
use cyclescope_measure::result::record::Quantity;
use serde::Serialize;

/// Upper limit of the expected share of false differences between two results.
const FALSE_DISCOVERIES: f64 = 0.05;

/// The kind of a quantity, and how certain it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum QuantityKind {
    /// A latency that is exact on both sides.
    LatencyExact,
    /// A latency that is only a sum on one side.
    LatencySum,
    /// A latency that is only an upper bound on one side.
    LatencyUpper,
    /// A reciprocal throughput.
    Throughput,
    /// A number of dispatch slots, exact or an upper bound. `microcoded` is not compared.
    Slots,
}

impl QuantityKind {
    /// All kinds, in the order of a report.
    pub(crate) const ALL: [QuantityKind; 5] = [
        QuantityKind::LatencyExact,
        QuantityKind::LatencySum,
        QuantityKind::LatencyUpper,
        QuantityKind::Throughput,
        QuantityKind::Slots,
    ];

    fn from_bound(bound: LatencyBound) -> QuantityKind {
        match bound {
            LatencyBound::Exact => QuantityKind::LatencyExact,
            LatencyBound::Sum => QuantityKind::LatencySum,
            LatencyBound::Upper => QuantityKind::LatencyUpper,
        }
    }
}

/// Counts of one kind of quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct QuantityTally {
    /// The kind.
    pub kind: QuantityKind,
    /// Both sides have it and agree.
    pub agree: u64,
    /// Both sides have it and differ.
    pub differ: u64,
    /// Both sides have it, and the difference is unclear.
    pub unclear: u64,
    /// Only A has it.
    pub only_a: u64,
    /// Only B has it.
    pub only_b: u64,
    /// Number of quantities with an interval on both sides.
    pub intervals: u64,
    /// Number of these whose intervals overlap.
    pub overlap: u64,
}

/// Counts of forms.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct FormCounts {
    /// In A and in B.
    pub both: u64,
    /// Only in A.
    pub only_a: u64,
    /// Only in B. For a published table: lines that match no form of A.
    pub only_b: u64,
}

/// One side's claim about a quantity.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedSide {
    /// The figure. A published range has only the ends, a published upper bound only `high`.
    #[serde(flatten)]
    pub cost: Quantity,
    /// The kind of a latency. Null for other quantities, or if the table does not say.
    pub bound: Option<LatencyBound>,
    /// The chain of a latency, the recipe of a reciprocal throughput, or why slots are no exact
    /// number. Null for a published figure.
    pub how: Option<String>,
    /// Reservations about the figure.
    pub caveats: Vec<Caveat>,
    /// The text in the published table.
    pub written: Option<String>,
    /// The line of the published table.
    pub line: Option<u64>,
}

impl ComparedSide {
    fn from_latency(row: &InstrRow, latency: &OperandLatency) -> ComparedSide {
        let caveats = row.caveats.clone();
        let how = Some(latency.chain.clone());
        ComparedSide { cost: latency.cost, bound: Some(latency.bound), how, caveats, written: None, line: None }
    }

    fn from_throughput(row: &InstrRow, throughput: &ReciprocalThroughput) -> ComparedSide {
        let caveats = row.caveats.clone();
        let how = Some(throughput.recipe.clone());
        ComparedSide { cost: throughput.cost, bound: None, how, caveats, written: None, line: None }
    }

    fn from_slots(row: &InstrRow, slots: &DispatchSlots) -> ComparedSide {
        let how = slots.why.clone();
        let caveats = row.caveats.clone();
        ComparedSide { cost: slots.count, bound: None, how, caveats, written: None, line: None }
    }

    fn from_published(figure: PublishedFigure, unit: Unit, bound: Option<LatencyBound>, line: u64) -> ComparedSide {
        let (low, high) = figure.range();
        let (value, low, high) = match figure {
            PublishedFigure::Exact(value) => (Some(value), None, None),
            PublishedFigure::AtMost(_) => (None, None, Some(high)),
            PublishedFigure::Range(..) => (None, Some(low), Some(high)),
        };
        let cost = Quantity { value, low, high, unit };
        let written = Some(figure.to_string());
        ComparedSide { cost, bound, how: None, caveats: Vec::new(), written, line: Some(line) }
    }
}

/// A claim, and the range of the true cost according to it.
struct SideClaim {
    side: ComparedSide,
    span: CostSpan,
}

/// A quantity on which the sides differ.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QuantityDifference {
    /// The name in the instruction database.
    pub code: String,
    /// The mnemonic.
    pub mnemonic: String,
    /// The operands.
    pub operands: String,
    /// The encoding.
    pub encoding: String,
    /// The kind of quantity.
    pub quantity: QuantityKind,
    /// The input of a latency. Null for other quantities.
    pub from: Option<String>,
    /// The output of a latency. Null for other quantities.
    pub to: Option<String>,
    /// A's claim.
    pub a: ComparedSide,
    /// B's claim.
    pub b: ComparedSide,
    /// Core cycles or slots from the nearest end of B's range to that of A's.
    pub difference: f64,
    /// The difference as a share of B's figure.
    pub relative: f64,
    /// Standard errors beyond the tolerance. Null if the error is unknown.
    pub deviations: Option<f64>,
}

/// The result of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TableComparison {
    /// The tolerance used.
    pub tolerance: Tolerance,
    /// Upper limit of the expected share of false differences. Null if nothing was tested.
    pub false_discovery_rate: Option<f64>,
    /// Counts of forms.
    pub forms: FormCounts,
    /// Counts by kind: exact latencies first, then sums, upper bounds, throughput and slots.
    pub quantities: Vec<QuantityTally>,
    /// The differences, largest relative difference first.
    #[serde(skip)]
    pub differences: Vec<QuantityDifference>,
    /// Places of each row of A, and of a line of the published table that names it.
    #[serde(skip)]
    pub named: Vec<(usize, usize)>,
}

impl TableComparison {
    fn new(tolerance: Tolerance) -> TableComparison {
        let none = |kind| QuantityTally {
            kind,
            agree: 0,
            differ: 0,
            unclear: 0,
            only_a: 0,
            only_b: 0,
            intervals: 0,
            overlap: 0,
        };
        let quantities = QuantityKind::ALL.map(none).to_vec();
        TableComparison {
            tolerance,
            false_discovery_rate: None,
            forms: FormCounts::default(),
            quantities,
            differences: Vec::new(),
            named: Vec::new(),
        }
    }

    fn tally_mut(&mut self, kind: QuantityKind) -> &mut QuantityTally {
        let place = QuantityKind::ALL.iter().position(|other| *other == kind);
        &mut self.quantities[place.expect("all kinds are in the list")]
    }

    /// Compares both claims about one quantity.
    fn judge_pair(&mut self, pairing: &QuantityPairing<'_>, a: SideClaim, b: SideClaim) {
        let gap = SpanGap::between(a.span, b.span);
        let agree = gap.is_within(self.tolerance);
        let overlap = CostSpan::from_interval(&a.side.cost)
            .zip(CostSpan::from_interval(&b.side.cost))
            .map(|(a, b)| a.overlaps(b));
        let tally = self.tally_mut(pairing.kind);
        tally.agree += u64::from(agree);
        tally.differ += u64::from(!agree);
        tally.intervals += u64::from(overlap.is_some());
        tally.overlap += u64::from(overlap == Some(true));
        if !agree {
            let measured = b.side.written.is_none();
            let deviations =
                if measured { gap.count_deviations(self.tolerance, [&a.side.cost, &b.side.cost]) } else { None };
            self.differences.push(pairing.to_difference(a.side, b.side, gap, deviations));
        }
    }

    /// Keeps the differences that chance does not explain, and counts the others as unclear.
    fn keep_significant(mut self) -> TableComparison {
        self.false_discovery_rate = Some(FALSE_DISCOVERIES);
        let pairs = self.quantities.iter().map(|tally| tally.agree + tally.differ).sum();
        let mut deviations: Vec<f64> = self.differences.iter().map(deviation_or_infinite).collect();
        deviations.sort_by(|one, other| other.total_cmp(one));
        let least = find_threshold(&deviations, pairs);
        let (found, unclear) =
            std::mem::take(&mut self.differences).into_iter().partition(|one| deviation_or_infinite(one) >= least);
        self.differences = found;
        for difference in &unclear {
            let tally = self.tally_mut(difference.quantity);
            tally.differ -= 1;
            tally.unclear += 1;
        }
        self
    }

    fn sort_worst_first(mut self) -> TableComparison {
        self.differences.sort_by(|one, other| {
            let key = |d: &QuantityDifference| {
                (d.code.clone(), d.operands.clone(), d.quantity, d.from.clone(), d.to.clone(), d.b.line)
            };
            let worst = other.relative.abs().total_cmp(&one.relative.abs());
            worst.then_with(|| key(one).cmp(&key(other)))
        });
        self
    }
}

/// Standard errors beyond the tolerance. Infinite if there is no error.
fn deviation_or_infinite(difference: &QuantityDifference) -> f64 {
    difference.deviations.unwrap_or(f64::INFINITY)
}

/// The least deviation of a significant difference among this number of pairs. `deviations` are in
/// descending order.
fn find_threshold(deviations: &[f64], pairs: u64) -> f64 {
    let is_found = |(place, deviation): &(usize, &f64)| {
        let share = FALSE_DISCOVERIES * (place + 1) as f64 / pairs.max(1) as f64;
        **deviation >= normal_quantile(1.0 - share / 2.0)
    };
    deviations.iter().enumerate().rfind(is_found).map_or(f64::INFINITY, |(_, deviation)| *deviation)
}

/// A quantity of a form, present on both sides.
struct QuantityPairing<'a> {
    row: &'a InstrRow,
    kind: QuantityKind,
    pair: Option<(&'a str, &'a str)>,
}

impl QuantityPairing<'_> {
    fn to_difference(
        &self,
        a: ComparedSide,
        b: ComparedSide,
        gap: SpanGap,
        deviations: Option<f64>,
    ) -> QuantityDifference {
        QuantityDifference {
            code: self.row.code.clone(),
            mnemonic: self.row.mnemonic.clone(),
            operands: self.row.operands.clone(),
            encoding: self.row.encoding.clone(),
            quantity: self.kind,
            from: self.pair.map(|(from, _)| from.to_string()),
            to: self.pair.map(|(_, to)| to.to_string()),
            a,
            b,
            difference: gap.difference,
            relative: gap.relative_difference(),
            deviations,
        }
    }
}

/// The latencies of a row with a figure, without variants.
pub fn headline_latencies(row: &InstrRow) -> impl Iterator<Item = &OperandLatency> {
    row.latency.iter().filter(|latency| latency.variant.is_none() && latency.cost.value.is_some())
}

/// Ranks a latency's ends by likelihood that a published figure without operands means them.
/// Explicit operands come first, then implicit registers, addresses, and last flags, masks and data
/// in memory.
fn rank_ends(latency: &OperandLatency) -> u8 {
    let end = |name: &str| match name {
        "mem_addr" => 2,
        "flags" | "mask" | "mem_data" => 3,
        operand if operand.starts_with("op") => 0,
        _ => 1,
    };
    end(&latency.from).max(end(&latency.to))
}

/// The latency that represents a row: the largest between explicit operands. Failing that: between
/// registers, then from an address, then any. Upper bounds come last in each group.
pub(crate) fn pick_headline(row: &InstrRow) -> Option<&OperandLatency> {
    let key = |latency: &OperandLatency| (rank_ends(latency), latency.bound == LatencyBound::Upper);
    let valued = headline_latencies(row).filter_map(|latency| Some((latency, latency.cost.value?)));
    let best = valued
        .min_by(|(one, value), (other, other_value)| key(one).cmp(&key(other)).then(other_value.total_cmp(value)));
    best.map(|(latency, _)| latency)
}

/// The reciprocal throughput of a row, if it has a figure.
fn find_throughput(row: &InstrRow) -> Option<(&ReciprocalThroughput, f64)> {
    let throughput = row.throughput.as_ref()?;
    Some((throughput, throughput.cost.value?))
}

/// The dispatch slots of a row, and the range that they are in. `None` without a number.
fn find_slots(row: &InstrRow) -> Option<(&DispatchSlots, CostSpan)> {
    let slots = row.slots.as_ref()?;
    let whole = slots.whole? as f64;
    let low = if slots.exact_number().is_some() { whole } else { f64::NEG_INFINITY };
    Some((slots, CostSpan { low, high: whole }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::instr_table::tests::{latency, row};

    #[test]
    fn the_headline_is_the_largest_between_operands() {
        let exact = |from, to, value| latency(from, to, value, LatencyBound::Exact);
        let upper = latency("op3", "op1", 9.0, LatencyBound::Upper);
        let mut variant = exact("op1", "op1", 20.0);
        variant.variant = Some("slow operands".to_string());
        let mut all = vec![
            variant,
            exact("op1", "flags", 8.0),
            exact("mem_addr", "op1", 7.0),
            exact("op1", "rdx", 5.0),
            upper,
            exact("op1", "op1", 1.0),
            exact("op2", "op1", 2.0),
        ];
        let mut expected = vec![2.0, 1.0, 9.0, 5.0, 7.0, 8.0];
        expected.reverse();
        while let Some(value) = expected.pop() {
            let row = row("x", "", all.clone(), 1.0);
            assert_eq!(pick_headline(&row).unwrap().cost.value, Some(value));
            all.pop();
        }
        let row = row("x", "", all, 1.0);
        // Only the variant is left, which does not count.
        assert_eq!(headline_latencies(&row).count(), 0);
    }
}
