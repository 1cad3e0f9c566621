//! Two result files, or one and a published table, held against each other.
//!
//! The idea: what a side says is a range in which the true cost lies (an exact number is a point, an upper bound has
//! no lower end), and two sides agree where their ranges touch within a tolerance. Only headlines are compared, not
//! variants. A published latency without a pair of operands is the one number that a reader plans with, so it is
//! compared with our largest latency between explicit operands. Limits: nothing is said about tags, modes and
//! variants, and a number that one side lacks is counted, not judged.
//!
//! Between two results a gap beyond the tolerance is a difference only where chance does not explain it: it is held against
//! the errors of both. Of thousands of quantities some lie far apart by chance, so the level follows from their number: of
//! the differences that are named, a stated share is false at most, on average. Y. Benjamini and Y. Hochberg, "Controlling the
//! false discovery rate", Journal of the Royal Statistical Society B 57 (1995). Intervals are taken for those of 95 %. What is
//! beyond the tolerance and not found so is counted as unclear. A published number has no error, and is not tested.

mod agreement;
mod published;
mod results;
mod runs;

pub use agreement::Tolerance;
pub use published::compare_with_reference;
pub use results::compare_results;
pub use runs::read_runs;

use super::reference::PublishedFigure;
use crate::rows::instr_row::{InstrRow, LatencyBound, OperandLatency, ReciprocalThroughput};
use agreement::{CostSpan, SpanGap};
use cyclescope_core::statistics::normal_quantile;
use cyclescope_core::unit::Unit;
use cyclescope_measure::result::caveat::Caveat;
use cyclescope_measure::result::record::Quantity;
use serde::Serialize;

/// The share of the differences between two results that is false at most, on average.
const FALSE_DISCOVERIES: f64 = 0.05;

/// What a quantity is, and how sure one can be of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum QuantityKind {
    /// A latency that both sides know exactly.
    LatencyExact,
    /// A latency of which a side knows only the sum with another.
    LatencySum,
    /// A latency that a side knows an upper bound of.
    LatencyUpper,
    /// A reciprocal throughput.
    Throughput,
}

impl QuantityKind {
    /// All of them, in the order of a report.
    pub(crate) const ALL: [QuantityKind; 4] =
        [QuantityKind::LatencyExact, QuantityKind::LatencySum, QuantityKind::LatencyUpper, QuantityKind::Throughput];

    fn from_bound(bound: LatencyBound) -> QuantityKind {
        match bound {
            LatencyBound::Exact => QuantityKind::LatencyExact,
            LatencyBound::Sum => QuantityKind::LatencySum,
            LatencyBound::Upper => QuantityKind::LatencyUpper,
        }
    }
}

/// How many quantities of a kind there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct QuantityTally {
    /// The kind.
    pub kind: QuantityKind,
    /// Both sides have it and agree.
    pub agree: u64,
    /// Both sides have it and differ.
    pub differ: u64,
    /// Both sides have it, and it is not known whether they differ.
    pub unclear: u64,
    /// Only A has it.
    pub only_a: u64,
    /// Only B has it.
    pub only_b: u64,
    /// Of those that both have, how many have an interval on both sides.
    pub intervals: u64,
    /// How many of these intervals overlap.
    pub overlap: u64,
}

/// How many forms there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct FormCounts {
    /// In A and in B.
    pub both: u64,
    /// Only in A.
    pub only_a: u64,
    /// Only in B; of a published table these are its lines that name no form of A.
    pub only_b: u64,
}

/// What one side says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedSide {
    /// The number; of a published range only the ends, of a published upper bound only `high`.
    #[serde(flatten)]
    pub cost: Quantity,
    /// What a latency is; null for a reciprocal throughput and where the table does not tell.
    pub bound: Option<LatencyBound>,
    /// The chain of a latency, or the recipe of a reciprocal throughput; null for a published number.
    pub how: Option<String>,
    /// What to know before believing it.
    pub caveats: Vec<Caveat>,
    /// As a published table has it.
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

    fn from_published(figure: PublishedFigure, bound: Option<LatencyBound>, line: u64) -> ComparedSide {
        let (low, high) = figure.range();
        let (value, low, high) = match figure {
            PublishedFigure::Exact(value) => (Some(value), None, None),
            PublishedFigure::AtMost(_) => (None, None, Some(high)),
            PublishedFigure::Range(..) => (None, Some(low), Some(high)),
        };
        let cost = Quantity { value, low, high, unit: Unit::CoreCycles };
        let written = Some(figure.to_string());
        ComparedSide { cost, bound, how: None, caveats: Vec::new(), written, line: Some(line) }
    }
}

/// What one side says, and where the true cost lies by it.
struct SideClaim {
    side: ComparedSide,
    span: CostSpan,
}

/// A quantity about which the sides differ.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QuantityDifference {
    /// The instruction in the database.
    pub code: String,
    /// The mnemonic.
    pub mnemonic: String,
    /// The operands.
    pub operands: String,
    /// The encoding.
    pub encoding: String,
    /// What differs.
    pub quantity: QuantityKind,
    /// Where a latency begins; null for a reciprocal throughput.
    pub from: Option<String>,
    /// Where a latency ends; null for a reciprocal throughput.
    pub to: Option<String>,
    /// What A says.
    pub a: ComparedSide,
    /// What B says.
    pub b: ComparedSide,
    /// Core cycles from the nearest number that B allows to the nearest that A allows.
    pub difference: f64,
    /// The same as a share of B's number.
    pub relative: f64,
    /// By how many standard errors it is beyond the tolerance; null where the error is not known.
    pub deviations: Option<f64>,
}

/// What a comparison found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TableComparison {
    /// What counts as the same.
    pub tolerance: Tolerance,
    /// The share of the differences that is false at most, on average; null where nothing was tested.
    pub false_discovery_rate: Option<f64>,
    /// How many forms there are.
    pub forms: FormCounts,
    /// How many quantities of each kind, exact latencies first, then sums, upper bounds and throughput.
    pub quantities: Vec<QuantityTally>,
    /// Those that differ, the largest relative difference first.
    #[serde(skip)]
    pub differences: Vec<QuantityDifference>,
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
        }
    }

    fn tally_mut(&mut self, kind: QuantityKind) -> &mut QuantityTally {
        let place = QuantityKind::ALL.iter().position(|other| *other == kind);
        &mut self.quantities[place.expect("all kinds are in the list")]
    }

    /// Holds the two sides of one quantity against each other.
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

    /// Keeps of the differences those that chance does not explain, and counts the others as unclear.
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

/// By how many standard errors a difference is beyond the tolerance; any number where there is no error.
fn deviation_or_infinite(difference: &QuantityDifference) -> f64 {
    difference.deviations.unwrap_or(f64::INFINITY)
}

/// The deviations above which a difference counts as found, for this number of pairs; `deviations` are in descending order.
fn find_threshold(deviations: &[f64], pairs: u64) -> f64 {
    let is_found = |(place, deviation): &(usize, &f64)| {
        let share = FALSE_DISCOVERIES * (place + 1) as f64 / pairs.max(1) as f64;
        **deviation >= normal_quantile(1.0 - share / 2.0)
    };
    deviations.iter().enumerate().rfind(is_found).map_or(f64::INFINITY, |(_, deviation)| *deviation)
}

/// Which quantity of which form is compared.
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

/// The latencies of a row that have a number and are no variants.
pub fn headline_latencies(row: &InstrRow) -> impl Iterator<Item = &OperandLatency> {
    row.latency.iter().filter(|latency| latency.variant.is_none() && latency.cost.value.is_some())
}

/// How near a pair is to what a published number without a pair is about: explicit operands first, then implicit
/// registers, then addresses, then flags, masks and data through memory.
fn rank_ends(latency: &OperandLatency) -> u8 {
    let end = |name: &str| match name {
        "mem_addr" => 2,
        "flags" | "mask" | "mem_data" => 3,
        operand if operand.starts_with("op") => 0,
        _ => 1,
    };
    end(&latency.from).max(end(&latency.to))
}

/// The one latency that stands for a row: the largest of those between explicit operands. Where there is none it is
/// the largest between registers, then from an address, then any; of each, upper bounds come last.
pub(crate) fn pick_headline(row: &InstrRow) -> Option<&OperandLatency> {
    let key = |latency: &OperandLatency| (rank_ends(latency), latency.bound == LatencyBound::Upper);
    let valued = headline_latencies(row).filter_map(|latency| Some((latency, latency.cost.value?)));
    let best = valued
        .min_by(|(one, value), (other, other_value)| key(one).cmp(&key(other)).then(other_value.total_cmp(value)));
    best.map(|(latency, _)| latency)
}

/// The reciprocal throughput of a row and its number, where it has one.
fn find_throughput(row: &InstrRow) -> Option<(&ReciprocalThroughput, f64)> {
    let throughput = row.throughput.as_ref()?;
    Some((throughput, throughput.cost.value?))
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
        // Only the variant is left, which is none.
        assert_eq!(headline_latencies(&row).count(), 0);
    }
}
