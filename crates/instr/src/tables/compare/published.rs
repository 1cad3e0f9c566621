//! Compares a result file with a published table.

use super::agreement::{CostSpan, SpanGap, Tolerance};
use super::{
    ComparedSide, QuantityKind, QuantityPairing, SideClaim, TableComparison, find_slots, find_throughput,
    headline_latencies, pick_headline,
};
use crate::rows::instr_row::{InstrRow, LatencyBound, OperandLatency};
use crate::tables::reference::{PublishedFigure, ReferenceEntry, ReferenceTable, spell_form};
use cyclescope_core::unit::Unit;
use std::collections::{HashMap, HashSet};

/// Compares each row of A with every line of the table that matches it. A line without a code or an
/// encoding may match several rows. Lines with the same claim about a row count once.
pub fn compare_with_reference(rows: &[InstrRow], reference: &ReferenceTable, tolerance: Tolerance) -> TableComparison {
    let mut search = ReferenceMatcher { comparison: TableComparison::new(tolerance), said: HashSet::new() };
    let mut index: HashMap<(String, String), Vec<usize>> = HashMap::new();
    for (place, row) in rows.iter().enumerate() {
        index.entry(spell_form(&row.mnemonic, &row.operands)).or_default().push(place);
    }
    let mut covered = vec![RowCoverage::default(); rows.len()];
    let mut strange = HashSet::new();
    for (number, entry) in reference.entries.iter().enumerate() {
        let find_named = |operands: &str| -> Vec<usize> {
            let places = index.get(&(entry.mnemonic.clone(), operands.to_string()));
            places.into_iter().flatten().copied().filter(|place| names_row(entry, &rows[*place])).collect()
        };
        let named = find_named(&entry.operands);
        for place in &named {
            covered[*place].named = true;
            search.comparison.named.push((*place, number));
            search.match_row(*place, &rows[*place], entry, &mut covered[*place]);
        }
        if named.is_empty() && !search.match_immediate(rows, entry, find_named) {
            search.count_unmatched(entry);
            strange.insert((&entry.code, &entry.mnemonic, &entry.operands, &entry.encoding));
        }
    }
    search.comparison.forms.only_b = strange.len() as u64;
    for (row, covered) in rows.iter().zip(&covered) {
        search.count_missing(row, covered, reference.has_pairs());
    }
    search.comparison.sort_worst_first()
}

/// The value of a decimal or hexadecimal number.
fn parse_immediate(text: &str) -> Option<i64> {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    let value = match digits.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16),
        None => digits.parse(),
    };
    value.ok().map(|value| sign * value)
}

fn names_row(entry: &ReferenceEntry, row: &InstrRow) -> bool {
    entry.code.as_ref().is_none_or(|code| code.eq_ignore_ascii_case(&row.code))
        && entry.encoding.as_ref().is_none_or(|encoding| *encoding == row.encoding)
}

/// The quantities of a row that the table covers.
#[derive(Debug, Clone, Default)]
struct RowCoverage {
    named: bool,
    latency: bool,
    pairs: HashSet<(String, String)>,
    throughput: bool,
    slots: bool,
}

/// A row's index (or no index, with the line's key) and a claim about a quantity.
type StatementKey = (Option<usize>, String);

struct ReferenceMatcher {
    comparison: TableComparison,
    said: HashSet<StatementKey>,
}

impl ReferenceMatcher {
    /// Compares a line that has a number in place of an immediate with the form's figures for this
    /// number. Returns whether a form was measured with it. The shortest immediate counts, as an
    /// assembler would choose it.
    fn match_immediate(
        &mut self,
        rows: &[InstrRow],
        entry: &ReferenceEntry,
        find_named: impl Fn(&str) -> Vec<usize>,
    ) -> bool {
        let Some((others, value)) = entry.operands.rsplit_once(", ") else { return false };
        let Some(value) = parse_immediate(value) else { return false };
        let sizes = [8, 16, 32, 64].map(|bits| find_named(&format!("{others}, imm{bits}")));
        let places = sizes.into_iter().find(|places| !places.is_empty()).unwrap_or_default();
        let with = |place: usize| Some((place, rows[place].with_immediate(value)?));
        let found: Vec<(usize, InstrRow)> = places.into_iter().filter_map(with).collect();
        for (place, row) in &found {
            self.match_row(*place, row, entry, &mut RowCoverage::default());
        }
        !found.is_empty()
    }

    fn match_row(&mut self, place: usize, row: &InstrRow, entry: &ReferenceEntry, covered: &mut RowCoverage) {
        if let Some(figure) = entry.latency {
            match &entry.pair {
                Some(pair) => covered.pairs.insert(pair.clone()),
                None => std::mem::replace(&mut covered.latency, true),
            };
            if self.said.insert((Some(place), format!("{} {:?} {figure}", entry.operands, entry.pair))) {
                self.compare_latency(row, entry, figure);
            }
        }
        if let Some(figure) = entry.throughput {
            covered.throughput = true;
            if self.said.insert((Some(place), format!("{} throughput {figure}", entry.operands))) {
                self.compare_throughput(row, entry, figure);
            }
        }
        if let Some(figure) = entry.slots {
            covered.slots = true;
            if self.said.insert((Some(place), format!("{} slots {figure}", entry.operands))) {
                self.compare_slots(row, entry, figure);
            }
        }
    }

    fn compare_latency(&mut self, row: &InstrRow, entry: &ReferenceEntry, figure: PublishedFigure) {
        let ours = match &entry.pair {
            None => pick_headline(row),
            Some((from, to)) => headline_latencies(row)
                .filter(|latency| latency.from == *from && latency.to == *to)
                .min_by_key(|latency| latency.bound),
        };
        let theirs = published_bound(entry, figure);
        let Some((latency, span)) = ours.and_then(|latency| Some((latency, CostSpan::from_latency(latency)?))) else {
            self.comparison.tally_mut(QuantityKind::from_bound(theirs)).only_b += 1;
            return;
        };
        let kind = QuantityKind::from_bound(latency.bound.max(theirs));
        let pairing = QuantityPairing { row, kind, pair: Some((&latency.from, &latency.to)) };
        let bound = (theirs != LatencyBound::Exact).then_some(theirs).or(entry.bound);
        let mut ours =
            pick_nearer(SideClaim { side: ComparedSide::from_latency(row, latency), span }, latency, to_span(figure));
        if let Some(repeated) = claim_repeated(row, latency).filter(|_| entry.pair.is_none()) {
            ours = nearer_claim(ours, repeated, to_span(figure));
        }
        let theirs = SideClaim {
            side: ComparedSide::from_published(figure, Unit::CoreCycles, bound, entry.line),
            span: to_span(figure),
        };
        self.comparison.judge_pair(&pairing, ours, theirs);
    }

    fn compare_throughput(&mut self, row: &InstrRow, entry: &ReferenceEntry, figure: PublishedFigure) {
        let Some((ours, value)) = find_throughput(row) else {
            self.comparison.tally_mut(QuantityKind::Throughput).only_b += 1;
            return;
        };
        let pairing = QuantityPairing { row, kind: QuantityKind::Throughput, pair: None };
        let ours = SideClaim { side: ComparedSide::from_throughput(row, ours), span: CostSpan::from_value(value) };
        let theirs = SideClaim {
            side: ComparedSide::from_published(figure, Unit::CoreCycles, None, entry.line),
            span: to_span(figure),
        };
        self.comparison.judge_pair(&pairing, ours, theirs);
    }

    fn compare_slots(&mut self, row: &InstrRow, entry: &ReferenceEntry, figure: PublishedFigure) {
        let Some((slots, span)) = find_slots(row) else {
            self.comparison.tally_mut(QuantityKind::Slots).only_b += 1;
            return;
        };
        let pairing = QuantityPairing { row, kind: QuantityKind::Slots, pair: None };
        let ours = SideClaim { side: ComparedSide::from_slots(row, slots), span };
        let side = ComparedSide::from_published(figure, Unit::Slots, None, entry.line);
        self.comparison.judge_pair(&pairing, ours, SideClaim { side, span: to_span(figure) });
    }

    /// Counts the claims of a line that matches no row.
    fn count_unmatched(&mut self, entry: &ReferenceEntry) {
        let key = format!("{:?} {} {} {:?}", entry.code, entry.mnemonic, entry.operands, entry.encoding);
        let latency = entry.latency.map(|figure| {
            (QuantityKind::from_bound(published_bound(entry, figure)), format!("{key} {:?} {figure}", entry.pair))
        });
        let throughput =
            entry.throughput.map(|figure| (QuantityKind::Throughput, format!("{key} throughput {figure}")));
        let slots = entry.slots.map(|figure| (QuantityKind::Slots, format!("{key} slots {figure}")));
        for (kind, saying) in latency.into_iter().chain(throughput).chain(slots) {
            let new = self.said.insert((None, saying));
            self.comparison.tally_mut(kind).only_b += u64::from(new);
        }
    }

    /// Counts the quantities that the table lacks.
    fn count_missing(&mut self, row: &InstrRow, covered: &RowCoverage, has_pairs: bool) {
        if covered.named {
            self.comparison.forms.both += 1;
        } else {
            self.comparison.forms.only_a += 1;
        }
        if !covered.throughput && find_throughput(row).is_some() {
            self.comparison.tally_mut(QuantityKind::Throughput).only_a += 1;
        }
        if !covered.slots && find_slots(row).is_some() {
            self.comparison.tally_mut(QuantityKind::Slots).only_a += 1;
        }
        // A figure without operands covers the whole row.
        if covered.latency {
            return;
        }
        let missing: Vec<&OperandLatency> = match has_pairs {
            true => headline_latencies(row).filter(|latency| !covered.has_pair(latency)).collect(),
            false => pick_headline(row).into_iter().collect(),
        };
        for latency in missing {
            self.comparison.tally_mut(QuantityKind::from_bound(latency.bound)).only_a += 1;
        }
    }
}

impl RowCoverage {
    fn has_pair(&self, latency: &OperandLatency) -> bool {
        self.pairs.iter().any(|(from, to)| *from == latency.from && *to == latency.to)
    }
}

/// The measured latency, or that of short chains if nearer to the published figure. Tables measured
/// with short chains contain the latter.
fn pick_nearer(ours: SideClaim, latency: &OperandLatency, theirs: CostSpan) -> SideClaim {
    let Some(regimes) = &latency.regimes else { return ours };
    let Some(value) = regimes.fresh.value else { return ours };
    let side = ComparedSide { cost: regimes.fresh, ..ours.side.clone() };
    nearer_claim(ours, SideClaim { side, span: CostSpan::from_value(value) }, theirs)
}

/// The claim that is nearer to a published figure; the first if both are as near.
fn nearer_claim(one: SideClaim, other: SideClaim, theirs: CostSpan) -> SideClaim {
    let off = |claim: &SideClaim| SpanGap::between(claim.span, theirs).difference.abs();
    if off(&other) < off(&one) { other } else { one }
}

/// The time of an instruction that repeats with its implied registers as they are. A table without
/// operands may list this as latency: instances pass the registers on, but can't come sooner than
/// their rate. `None` if the headline is not between implied registers, or the rate is no limit.
fn claim_repeated(row: &InstrRow, headline: &OperandLatency) -> Option<SideClaim> {
    let repeats = row.implicit.contains(&headline.from) && row.implicit.contains(&headline.to);
    let (throughput, value) = find_throughput(row)?;
    if !repeats || headline.cost.value? >= value {
        return None;
    }
    let side = ComparedSide { bound: Some(headline.bound), ..ComparedSide::from_throughput(row, throughput) };
    Some(SideClaim { side, span: CostSpan::from_value(value) })
}

/// The kind of a published latency.
fn published_bound(entry: &ReferenceEntry, figure: PublishedFigure) -> LatencyBound {
    match figure {
        PublishedFigure::AtMost(_) => LatencyBound::Upper,
        _ => entry.bound.unwrap_or(LatencyBound::Exact),
    }
}

fn to_span(figure: PublishedFigure) -> CostSpan {
    let (low, high) = figure.range();
    CostSpan { low, high }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::instr_row::LatencyRegimes;
    use crate::rows::instr_table::tests::{add, cost, counted_slots, latency, row};
    use cyclescope_measure::result::record::Quantity;

    fn compare(rows: &[InstrRow], csv: &str) -> TableComparison {
        compare_with_reference(rows, &ReferenceTable::read(csv.as_bytes()).unwrap(), Tolerance::PUBLISHED)
    }

    /// Agree, differ, only in A, only in B.
    fn counts(comparison: &TableComparison, kind: QuantityKind) -> [u64; 4] {
        let tally = comparison.quantities.iter().find(|tally| tally.kind == kind).unwrap();
        [tally.agree, tally.differ, tally.only_a, tally.only_b]
    }

    fn forms(comparison: &TableComparison) -> [u64; 3] {
        [comparison.forms.both, comparison.forms.only_a, comparison.forms.only_b]
    }

    #[test]
    fn published_slots_are_compared_with_numbers_and_bounds() {
        let rows = ["1", "2", "≤2", "microcoded", ""]
            .map(|slots| InstrRow { slots: counted_slots(slots), ..row(&format!("x{slots}"), "", Vec::new(), 1.0) });
        let csv = "mnemonic,operands,slots\nx1,,1\nx2,,1\nx≤2,,1\nxmicrocoded,,6\n";
        assert_eq!(counts(&compare(&rows, csv), QuantityKind::Slots), [2, 1, 0, 1]);
        assert_eq!(counts(&compare(&rows, "mnemonic,operands,slots\ny,,1\n"), QuantityKind::Slots), [0, 0, 3, 1]);
    }

    /// An addition from memory, with an exact latency, an upper bound and a sum.
    fn load() -> InstrRow {
        let latencies = vec![
            latency("op1", "op1", 1.0, LatencyBound::Exact),
            latency("mem_addr", "op1", 6.0, LatencyBound::Upper),
            latency("op1", "flags", 1.0, LatencyBound::Sum),
        ];
        row("add", "r64, m64", latencies, 0.5)
    }

    #[test]
    fn a_published_figure_is_compared_with_the_nearer_of_two_latencies() {
        let mut two = latency("op1", "op1", 2.0, LatencyBound::Exact);
        let regimes = LatencyRegimes { fresh: cost(1.0), saturated: cost(2.0), knee: cost(48.0) };
        two.regimes = Some(regimes);
        let rows = [row("vpaddd", "xmm, xmm", vec![two], 0.5)];
        for (published, agree) in [("1.04", 1), ("2", 1), ("3", 0)] {
            let csv = format!("mnemonic,operands,latency_cycles\nvpaddd,\"xmm, xmm\",{published}\n");
            assert_eq!(counts(&compare(&rows, &csv), QuantityKind::LatencyExact), [agree, 1 - agree, 0, 0]);
        }
    }

    #[test]
    fn a_published_number_is_compared_with_the_figures_of_this_immediate() {
        let mut adc = row("adc", "r64, imm8", vec![latency("op1", "op1", 2.0, LatencyBound::Exact)], 0.5);
        adc.immediate = Some("0x13".to_string());
        adc.tried = vec!["immediate 0x0".to_string(), "immediate -0x1".to_string()];
        let mut zero = latency("op1", "op1", 1.0, LatencyBound::Exact);
        zero.variant = Some("immediate 0x0".to_string());
        adc.latency.push(zero);
        let long = InstrRow { operands: "r64, imm32".to_string(), ..adc.clone() };
        let rows = [adc, long];
        for (operands, latency, counted) in
            [("r64, 0", 1, [1, 0, 2, 0]), ("r64, -1", 2, [1, 0, 2, 0]), ("r64, 2", 2, [0, 0, 2, 1])]
        {
            let csv = format!("mnemonic,operands,latency_cycles\nadc,\"{operands}\",{latency}\n");
            assert_eq!(counts(&compare(&rows, &csv), QuantityKind::LatencyExact), counted, "{operands}");
        }
    }

    #[test]
    fn string_instructions_are_found_by_any_spelling_of_their_operands() {
        let rows = [row("lodsb", "al", vec![latency("rsi", "op1", 4.0, LatencyBound::Exact)], 3.0)];
        for operands in ["", "al", "\"al, m8\"", "m8"] {
            let csv = format!("mnemonic,operands,latency_cycles\nLODSB,{operands},4\n");
            assert_eq!(forms(&compare(&rows, &csv)), [1, 0, 0], "{operands}");
        }
    }

    #[test]
    fn a_repeated_string_instruction_is_no_faster_than_its_rate() {
        let latencies =
            vec![latency("rdi", "rdi", 1.0, LatencyBound::Exact), latency("rdi", "flags", 5.0, LatencyBound::Exact)];
        let mut cmps = row("cmpsb", "", latencies, 3.0);
        cmps.implicit = ["rdi", "rsi"].map(str::to_string).to_vec();
        let rows = [cmps];
        for (fields, agree) in [(",,3", 1), (",,1", 1), (",,5", 0), ("rdi,rdi,3", 0), ("rdi,flags,5", 1)] {
            let csv = format!("mnemonic,operands,from,to,latency_cycles\ncmpsb,,{fields}\n");
            let found = counts(&compare(&rows, &csv), QuantityKind::LatencyExact);
            assert_eq!(found[..2], [agree, 1 - agree], "{fields}");
        }
    }

    #[test]
    fn refused_figures_are_not_compared_with_a_published_zero() {
        let mut refused = add();
        for latency in &mut refused.latency {
            latency.cost = Quantity::refused(Unit::CoreCycles);
        }
        refused.throughput.as_mut().unwrap().cost = Quantity::refused(Unit::CoreCycles);
        for (columns, fields) in [("", ""), ("from,to,", "op1,op1,")] {
            let csv =
                format!("mnemonic,operands,{columns}latency_cycles,rthroughput_cycles\nadd,\"r64, r64\",{fields}0,0\n");
            let found = compare(&[refused.clone()], &csv);
            assert_eq!(counts(&found, QuantityKind::LatencyExact), [0, 0, 0, 1]);
            assert_eq!(counts(&found, QuantityKind::Throughput), [0, 0, 0, 1]);
        }
    }

    #[test]
    fn a_latency_without_operands_is_compared_with_the_headline() {
        let csv = "mnemonic,operands,latency_cycles,rthroughput_cycles\n\
                   ADD,\"R64,R64\",1,0.25\nadd,\"reg64, mem64\",2,\n";
        let found = compare(&[add(), load()], csv);
        assert_eq!(counts(&found, QuantityKind::LatencyExact), [1, 1, 0, 0]);
        assert_eq!(counts(&found, QuantityKind::Throughput), [1, 0, 1, 0]);
        assert_eq!((counts(&found, QuantityKind::LatencyUpper), forms(&found)), ([0; 4], [2, 0, 0]));
        let worst = &found.differences[0];
        assert_eq!((worst.from.as_deref(), worst.relative, worst.b.line), (Some("op1"), -0.5, Some(3)));
        assert_eq!(found.named, [(0, 0), (1, 1)]);
    }

    #[test]
    fn latencies_with_operands_are_compared_one_by_one() {
        let csv = "mnemonic,operands,from,to,latency_cycles\n\
                   add,\"r64, m64\",op1,op1,1\nadd,\"r64, m64\",mem_addr,op1,7\nadd,\"r64, m64\",op1,of,1\n";
        let found = compare(&[load(), add()], csv);
        assert_eq!(counts(&found, QuantityKind::LatencyExact), [1, 0, 2, 1]);
        assert_eq!(counts(&found, QuantityKind::LatencyUpper), [0, 1, 0, 0]);
        assert_eq!(counts(&found, QuantityKind::LatencySum), [0, 0, 1, 0]);
        assert_eq!((counts(&found, QuantityKind::Throughput), forms(&found)), ([0, 0, 2, 0], [1, 1, 0]));
    }

    #[test]
    fn code_and_encoding_restrict_the_rows_that_a_line_matches() {
        let mut vex = add();
        vex.encoding = "vex".to_string();
        vex.code = "vex".to_string();
        for (fields, both) in [(",", 2), ("vex,", 1), (",vex", 1), ("vex,evex", 0), ("add_CODE,legacy", 1)] {
            let csv = format!("encoding,code,mnemonic,operands,latency_cycles\n,{fields}\n");
            let csv = csv.replace(&format!(",{fields}\n"), &swapped(fields));
            let found = compare(&[add(), vex.clone()], &csv);
            assert_eq!(forms(&found), [both, 2 - both, u64::from(both == 0)], "{fields}");
            assert_eq!(counts(&found, QuantityKind::LatencyExact), [both, 0, 2 - both, u64::from(both == 0)]);
        }
    }

    /// A line with these fields as code and encoding.
    fn swapped(fields: &str) -> String {
        let (code, encoding) = fields.split_once(',').unwrap();
        format!("{encoding},{code},add,\"r64, r64\",1\n")
    }

    #[test]
    fn lines_with_the_same_claim_count_once() {
        let csv = "mnemonic,operands,from,to,latency_cycles,rthroughput_cycles\n\
                   add,\"r64, r64\",op1,op1,1,0.25\nadd,\"r64, r64\",op2,op1,1,0.25\nadd,\"r64, r64\",op2,op1,1,0.5\n\
                   sub,r64,op1,op1,1,0.25\nsub,r64,op2,op1,1,0.25\n";
        let found = compare(&[add()], csv);
        assert_eq!(counts(&found, QuantityKind::LatencyExact), [2, 0, 0, 2]);
        assert_eq!(counts(&found, QuantityKind::Throughput), [1, 1, 0, 1]);
        assert_eq!(forms(&found), [1, 0, 1]);
    }

    #[test]
    fn published_bounds_and_ranges_are_compared_by_their_kind() {
        let csv = |figure: &str| format!("mnemonic,operands,latency_cycles\nadd,\"r64, r64\",{figure}\n");
        let cases = [
            ("<=7", QuantityKind::LatencyUpper, [1, 0]),
            ("≤0.5", QuantityKind::LatencyUpper, [0, 1]),
            ("1-3", QuantityKind::LatencyExact, [1, 0]),
            ("2-3", QuantityKind::LatencyExact, [0, 1]),
        ];
        for (figure, kind, expected) in cases {
            let found = compare(&[add()], &csv(figure));
            assert_eq!(counts(&found, kind)[..2], expected, "{figure}");
        }
        let found = compare(&[add()], &csv("2-3"));
        let there = &found.differences[0].b;
        assert_eq!((there.cost.value, there.cost.low, there.cost.high), (None, Some(2.0), Some(3.0)));
        assert_eq!(there.written.as_deref(), Some("2-3"));
    }
}
