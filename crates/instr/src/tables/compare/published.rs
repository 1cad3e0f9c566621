//! A result file and a published table.

use super::agreement::{Gap, Span, Tolerance};
use super::{Claim, Comparison, Kind, Pairing, Side, headline, headlines, throughput};
use crate::rows::row::{Bound, Latency, Row};
use crate::tables::reference::{Entry, Figure, Reference, mnemonic, operands};
use std::collections::{HashMap, HashSet};

/// Holds each row of A against every line of the table that names it. A line without a code or an encoding may name
/// several rows; lines that say the same of a row count once.
pub fn against_reference(rows: &[Row], reference: &Reference, tolerance: Tolerance) -> Comparison {
    let mut search = Search { comparison: Comparison::new(tolerance), said: HashSet::new() };
    let mut index: HashMap<(String, String), Vec<usize>> = HashMap::new();
    for (place, row) in rows.iter().enumerate() {
        index.entry((mnemonic(&row.mnemonic), operands(&row.operands))).or_default().push(place);
    }
    let mut covered = vec![Covered::default(); rows.len()];
    let mut strange = HashSet::new();
    for entry in &reference.entries {
        let places = index.get(&(entry.mnemonic.clone(), entry.operands.clone()));
        let named: Vec<usize> =
            places.into_iter().flatten().copied().filter(|place| names(entry, &rows[*place])).collect();
        for place in &named {
            covered[*place].named = true;
            search.row(*place, &rows[*place], entry, &mut covered[*place]);
        }
        if named.is_empty() {
            search.without_row(entry);
            strange.insert((&entry.code, &entry.mnemonic, &entry.operands, &entry.encoding));
        }
    }
    search.comparison.forms.only_b = strange.len() as u64;
    for (row, covered) in rows.iter().zip(&covered) {
        search.left(row, covered, reference.has_pairs());
    }
    search.comparison.sorted()
}

fn names(entry: &Entry, row: &Row) -> bool {
    entry.code.as_ref().is_none_or(|code| code.eq_ignore_ascii_case(&row.code))
        && entry.encoding.as_ref().is_none_or(|encoding| *encoding == row.encoding)
}

/// What of a row the table has something about.
#[derive(Debug, Clone, Default)]
struct Covered {
    named: bool,
    latency: bool,
    pairs: HashSet<(String, String)>,
    throughput: bool,
}

/// The place of a row, or the key of a line without one, with a quantity and what is said of it.
type Saying = (Option<usize>, String);

struct Search {
    comparison: Comparison,
    said: HashSet<Saying>,
}

impl Search {
    fn row(&mut self, place: usize, row: &Row, entry: &Entry, covered: &mut Covered) {
        if let Some(figure) = entry.latency {
            match &entry.pair {
                Some(pair) => covered.pairs.insert(pair.clone()),
                None => std::mem::replace(&mut covered.latency, true),
            };
            if self.said.insert((Some(place), format!("{:?} {figure}", entry.pair))) {
                self.latency(row, entry, figure);
            }
        }
        if let Some(figure) = entry.throughput {
            covered.throughput = true;
            if self.said.insert((Some(place), format!("throughput {figure}"))) {
                self.throughput(row, entry, figure);
            }
        }
    }

    fn latency(&mut self, row: &Row, entry: &Entry, figure: Figure) {
        let ours = match &entry.pair {
            None => headline(row),
            Some((from, to)) => headlines(row)
                .filter(|latency| latency.from == *from && latency.to == *to)
                .min_by_key(|latency| latency.bound),
        };
        let theirs = stated(entry, figure);
        let Some((latency, span)) = ours.and_then(|latency| Some((latency, Span::latency(latency)?))) else {
            self.comparison.tally(Kind::latency(theirs)).only_b += 1;
            return;
        };
        let kind = Kind::latency(latency.bound.max(theirs));
        let pairing = Pairing { row, kind, pair: Some((&latency.from, &latency.to)) };
        let bound = (theirs != Bound::Exact).then_some(theirs).or(entry.bound);
        let ours = nearer(Claim { side: Side::latency(row, latency), span }, latency, range(figure));
        let theirs = Claim { side: Side::published(figure, bound, entry.line), span: range(figure) };
        self.comparison.judge(&pairing, ours, theirs);
    }

    fn throughput(&mut self, row: &Row, entry: &Entry, figure: Figure) {
        let Some((ours, value)) = throughput(row) else {
            self.comparison.tally(Kind::Throughput).only_b += 1;
            return;
        };
        let pairing = Pairing { row, kind: Kind::Throughput, pair: None };
        let ours = Claim { side: Side::throughput(row, ours), span: Span::point(value) };
        let theirs = Claim { side: Side::published(figure, None, entry.line), span: range(figure) };
        self.comparison.judge(&pairing, ours, theirs);
    }

    /// Counts what a line says of no row.
    fn without_row(&mut self, entry: &Entry) {
        let key = format!("{:?} {} {} {:?}", entry.code, entry.mnemonic, entry.operands, entry.encoding);
        let latency = entry
            .latency
            .map(|figure| (Kind::latency(stated(entry, figure)), format!("{key} {:?} {figure}", entry.pair)));
        let throughput =
            entry.throughput.map(|figure| (Kind::Throughput, format!("{key} throughput {figure}")));
        for (kind, saying) in latency.into_iter().chain(throughput) {
            let new = self.said.insert((None, saying));
            self.comparison.tally(kind).only_b += u64::from(new);
        }
    }

    /// Counts what the table says nothing about.
    fn left(&mut self, row: &Row, covered: &Covered, has_pairs: bool) {
        if covered.named {
            self.comparison.forms.both += 1;
        } else {
            self.comparison.forms.only_a += 1;
        }
        if !covered.throughput && throughput(row).is_some() {
            self.comparison.tally(Kind::Throughput).only_a += 1;
        }
        // A number without a pair speaks for the whole row.
        if covered.latency {
            return;
        }
        let missing: Vec<&Latency> = match has_pairs {
            true => headlines(row).filter(|latency| !covered.has(latency)).collect(),
            false => headline(row).into_iter().collect(),
        };
        for latency in missing {
            self.comparison.tally(Kind::latency(latency.bound)).only_a += 1;
        }
    }
}

impl Covered {
    fn has(&self, latency: &Latency) -> bool {
        self.pairs.iter().any(|(from, to)| *from == latency.from && *to == latency.to)
    }
}

/// Our latency, or that of short chains where a published number is nearer to it: tables that were measured with short
/// chains have that one.
fn nearer(ours: Claim, latency: &Latency, theirs: Span) -> Claim {
    let Some(regimes) = &latency.regimes else { return ours };
    let Some(value) = regimes.fresh.value else { return ours };
    let fresh = Span::point(value);
    let off = |span: Span| Gap::between(span, theirs).difference.abs();
    if off(fresh) >= off(ours.span) {
        return ours;
    }
    Claim { side: Side { cost: regimes.fresh, ..ours.side }, span: fresh }
}

/// What a published latency is.
fn stated(entry: &Entry, figure: Figure) -> Bound {
    match figure {
        Figure::AtMost(_) => Bound::Upper,
        _ => entry.bound.unwrap_or(Bound::Exact),
    }
}

fn range(figure: Figure) -> Span {
    let (low, high) = figure.range();
    Span { low, high }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::row::Regimes;
    use crate::rows::table::tests::{add, cost, latency, row};
    use cyclescope_core::unit::Unit;
    use cyclescope_measure::result::record::Quantity;

    fn compare(rows: &[Row], csv: &str) -> Comparison {
        against_reference(rows, &Reference::read(csv.as_bytes()).unwrap(), Tolerance::PUBLISHED)
    }

    /// Agree, differ, only in A, only in B.
    fn counts(comparison: &Comparison, kind: Kind) -> [u64; 4] {
        let tally = comparison.quantities.iter().find(|tally| tally.kind == kind).unwrap();
        [tally.agree, tally.differ, tally.only_a, tally.only_b]
    }

    fn forms(comparison: &Comparison) -> [u64; 3] {
        [comparison.forms.both, comparison.forms.only_a, comparison.forms.only_b]
    }

    /// A load that adds, with the sum of two and a bound.
    fn load() -> Row {
        let latencies = vec![
            latency("op1", "op1", 1.0, Bound::Exact),
            latency("mem_addr", "op1", 6.0, Bound::Upper),
            latency("op1", "flags", 1.0, Bound::Sum),
        ];
        row("add", "r64, m64", latencies, 0.5)
    }

    #[test]
    fn a_published_number_is_held_against_the_nearer_of_two_latencies() {
        let mut two = latency("op1", "op1", 2.0, Bound::Exact);
        let regimes = Regimes { fresh: cost(1.0), saturated: cost(2.0), knee: cost(48.0) };
        two.regimes = Some(regimes);
        let rows = [row("vpaddd", "xmm, xmm", vec![two], 0.5)];
        for (published, agree) in [("1.04", 1), ("2", 1), ("3", 0)] {
            let csv = format!("mnemonic,operands,latency_cycles\nvpaddd,\"xmm, xmm\",{published}\n");
            assert_eq!(counts(&compare(&rows, &csv), Kind::LatencyExact), [agree, 1 - agree, 0, 0]);
        }
    }

    #[test]
    fn a_published_zero_is_held_against_nothing_that_was_refused() {
        let mut refused = add();
        for latency in &mut refused.latency {
            latency.cost = Quantity::refused(Unit::CoreCycles);
        }
        refused.throughput.as_mut().unwrap().cost = Quantity::refused(Unit::CoreCycles);
        for (columns, fields) in [("", ""), ("from,to,", "op1,op1,")] {
            let csv = format!(
                "mnemonic,operands,{columns}latency_cycles,rthroughput_cycles\nadd,\"r64, r64\",{fields}0,0\n"
            );
            let found = compare(&[refused.clone()], &csv);
            assert_eq!(counts(&found, Kind::LatencyExact), [0, 0, 0, 1]);
            assert_eq!(counts(&found, Kind::Throughput), [0, 0, 0, 1]);
        }
    }

    #[test]
    fn without_pairs_the_headline_is_compared() {
        let csv = "mnemonic,operands,latency_cycles,rthroughput_cycles\n\
                   ADD,\"R64,R64\",1,0.25\nadd,\"reg64, mem64\",2,\n";
        let found = compare(&[add(), load()], csv);
        assert_eq!(counts(&found, Kind::LatencyExact), [1, 1, 0, 0]);
        assert_eq!(counts(&found, Kind::Throughput), [1, 0, 1, 0]);
        assert_eq!((counts(&found, Kind::LatencyUpper), forms(&found)), ([0; 4], [2, 0, 0]));
        let worst = &found.differences[0];
        assert_eq!((worst.from.as_deref(), worst.relative, worst.b.line), (Some("op1"), -0.5, Some(3)));
    }

    #[test]
    fn with_pairs_each_is_compared() {
        let csv = "mnemonic,operands,from,to,latency_cycles\n\
                   add,\"r64, m64\",op1,op1,1\nadd,\"r64, m64\",mem_addr,op1,7\nadd,\"r64, m64\",op1,of,1\n";
        let found = compare(&[load(), add()], csv);
        assert_eq!(counts(&found, Kind::LatencyExact), [1, 0, 2, 1]);
        assert_eq!(counts(&found, Kind::LatencyUpper), [0, 1, 0, 0]);
        assert_eq!(counts(&found, Kind::LatencySum), [0, 0, 1, 0]);
        assert_eq!((counts(&found, Kind::Throughput), forms(&found)), ([0, 0, 2, 0], [1, 1, 0]));
    }

    #[test]
    fn code_and_encoding_narrow_what_a_line_names() {
        let mut vex = add();
        vex.encoding = "vex".to_string();
        vex.code = "vex".to_string();
        for (fields, both) in [(",", 2), ("vex,", 1), (",vex", 1), ("vex,evex", 0), ("add_CODE,legacy", 1)] {
            let csv = format!("encoding,code,mnemonic,operands,latency_cycles\n,{fields}\n");
            let csv = csv.replace(&format!(",{fields}\n"), &swapped(fields));
            let found = compare(&[add(), vex.clone()], &csv);
            assert_eq!(forms(&found), [both, 2 - both, u64::from(both == 0)], "{fields}");
            assert_eq!(counts(&found, Kind::LatencyExact), [both, 0, 2 - both, u64::from(both == 0)]);
        }
    }

    /// A line that has these fields as code and encoding.
    fn swapped(fields: &str) -> String {
        let (code, encoding) = fields.split_once(',').unwrap();
        format!("{encoding},{code},add,\"r64, r64\",1\n")
    }

    #[test]
    fn lines_that_say_the_same_count_once() {
        let csv = "mnemonic,operands,from,to,latency_cycles,rthroughput_cycles\n\
                   add,\"r64, r64\",op1,op1,1,0.25\nadd,\"r64, r64\",op2,op1,1,0.25\nadd,\"r64, r64\",op2,op1,1,0.5\n\
                   sub,r64,op1,op1,1,0.25\nsub,r64,op2,op1,1,0.25\n";
        let found = compare(&[add()], csv);
        assert_eq!(counts(&found, Kind::LatencyExact), [2, 0, 0, 2]);
        assert_eq!(counts(&found, Kind::Throughput), [1, 1, 0, 1]);
        assert_eq!(forms(&found), [1, 0, 1]);
    }

    #[test]
    fn published_bounds_and_ranges_are_counted_as_what_they_are() {
        let csv = |figure: &str| format!("mnemonic,operands,latency_cycles\nadd,\"r64, r64\",{figure}\n");
        let cases = [
            ("<=7", Kind::LatencyUpper, [1, 0]),
            ("≤0.5", Kind::LatencyUpper, [0, 1]),
            ("1-3", Kind::LatencyExact, [1, 0]),
            ("2-3", Kind::LatencyExact, [0, 1]),
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
