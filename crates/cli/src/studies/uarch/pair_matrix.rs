//! Numbers of pairs of CPUs, as a matrix on the page and as a picture.
//!
//! If the matrix is too wide for a terminal, each CPU instead has its smallest, median and largest
//! number, and its nearest CPU.

use super::record::UarchLine;
use crate::output::WIDTH;
use cyclescope::plot::{HeatMap, HeatRow};
use std::collections::BTreeMap;

/// Width of a number with the space before it, and of a CPU's name.
const NUMBER_WIDTH: usize = 6;
const NAME_WIDTH: usize = 9;

/// The pair numbers of one test.
#[derive(Debug)]
pub struct PairMatrix<'a> {
    /// All CPUs of any pair, in order.
    cpus: Vec<u32>,
    /// CPUs that are paired with all others.
    rows: Vec<u32>,
    pairs: BTreeMap<[u32; 2], &'a UarchLine>,
}

impl<'a> PairMatrix<'a> {
    /// Collects the records of pairs; `None` without any.
    pub fn from_records(records: impl IntoIterator<Item = &'a UarchLine>) -> Option<PairMatrix<'a>> {
        let pairs: BTreeMap<[u32; 2], &UarchLine> =
            records.into_iter().filter_map(|record| Some((record.pair.as_ref()?.cpus, record))).collect();
        let mut cpus: Vec<u32> = pairs.keys().flatten().copied().collect();
        cpus.sort_unstable();
        cpus.dedup();
        let of = |cpu: u32| pairs.keys().filter(move |pair| pair.contains(&cpu)).count() + 1;
        let rows = cpus.iter().copied().filter(|cpu| of(*cpu) == cpus.len()).collect();
        (!pairs.is_empty()).then_some(PairMatrix { cpus, rows, pairs })
    }

    /// The number of a pair of CPUs.
    fn pair_number(&self, row: u32, column: u32) -> Option<f64> {
        let record = self.pairs.get(&[row.min(column), row.max(column)])?;
        record.value.value.filter(|_| record.is_found())
    }

    /// A CPU's numbers with the other CPU of each, smallest first.
    fn row_numbers(&self, row: u32) -> Vec<(f64, u32)> {
        let mut all: Vec<(f64, u32)> =
            self.cpus.iter().filter_map(|&column| Some((self.pair_number(row, column)?, column))).collect();
        all.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        all
    }

    /// The lines for the page.
    pub fn page_lines(&self) -> Vec<String> {
        let fits = NAME_WIDTH + NUMBER_WIDTH * self.cpus.len() <= WIDTH;
        let mut lines = if fits { self.all_rows() } else { self.summary_rows() };
        lines.extend(self.cluster_lines());
        let (rows, all) = (self.rows.len(), self.cpus.len());
        if rows < all {
            lines.push(format!("  Only {rows} of {all} CPUs were measured with all others, for lack of time."));
        }
        lines
    }

    fn all_rows(&self) -> Vec<String> {
        let names: String = self.cpus.iter().map(|cpu| format!("{cpu:>NUMBER_WIDTH$}")).collect();
        let row = |row: &u32| {
            let cell = |column: &u32| match (row == column, self.pair_number(*row, *column)) {
                (true, _) => format!("{:>NUMBER_WIDTH$}", "-"),
                (false, number) => {
                    format!("{:>NUMBER_WIDTH$}", number.map_or("?".to_string(), format_number))
                }
            };
            let cells: String = self.cpus.iter().map(cell).collect();
            format!("{:<NAME_WIDTH$}{cells}", format!("  CPU {row}"))
        };
        let head = format!("{:<NAME_WIDTH$}{names}", "  ns");
        [head].into_iter().chain(self.rows.iter().map(row)).collect()
    }

    fn summary_rows(&self) -> Vec<String> {
        let head = format!("{:<NAME_WIDTH$}{:>9}{:>9}{:>9}   nearest", "  ns", "least", "median", "most");
        let row = |row: &u32| {
            let all = self.row_numbers(*row);
            let name = format!("  CPU {row}");
            let [Some((least, nearest)), Some((middle, _)), Some((most, _))] =
                [all.first(), all.get(all.len() / 2), all.last()]
            else {
                return format!("{name:<NAME_WIDTH$}{:>9}", "?");
            };
            let [least, middle, most] = [least, middle, most].map(|number| format_number(*number));
            format!("{name:<NAME_WIDTH$}{least:>9}{middle:>9}{most:>9}   CPU {nearest}")
        };
        [head].into_iter().chain(self.rows.iter().map(row)).collect()
    }

    /// Lists the clusters of similar pairs, if there are several.
    fn cluster_lines(&self) -> Vec<String> {
        let mut clusters: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for record in self.pairs.values() {
            if let (Some(cluster), Some(number)) =
                (record.pair.as_ref().and_then(|pair| pair.cluster), record.value.value)
            {
                clusters.entry(cluster).or_default().push(number);
            }
        }
        if clusters.len() < 2 {
            return Vec::new();
        }
        let line = |(cluster, numbers): (&usize, &Vec<f64>)| {
            let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
            let most = numbers.iter().copied().fold(0.0, f64::max);
            let [least, most] = [least, most].map(format_number);
            format!("  cluster {cluster}: {} pairs of {least} to {most} ns", numbers.len())
        };
        clusters.iter().map(line).collect()
    }

    /// Draws the matrix.
    pub fn draw_heat(&self, title: String, machine: &str) -> HeatMap {
        let row = |row: &u32| HeatRow {
            name: format!("CPU {row}"),
            cells: self.cpus.iter().map(|column| self.pair_number(*row, *column)).collect(),
        };
        let found = self.pairs.values().filter(|record| record.is_found()).count();
        HeatMap {
            title,
            note: format!("{machine}: {found} of {} pairs", self.pairs.len()),
            unit: "nanoseconds from one CPU to the other; grey: the same CPU, or no number".to_string(),
            columns: self.cpus.iter().map(u32::to_string).collect(),
            rows: self.rows.iter().map(row).collect(),
        }
    }
}

fn format_number(number: f64) -> String {
    if number < 10.0 { format!("{number:.1}") } else { format!("{number:.0}") }
}

#[cfg(test)]
mod tests {
    use super::super::simulated_lines;
    use super::*;

    /// Pairs of these CPUs in two clusters of equal size, each with a faster pair.
    fn records(cpus: u32, rows: u32) -> Vec<UarchLine> {
        let half = cpus / 2;
        let mut lines = Vec::new();
        for one in 0..rows {
            for other in one + 1..cpus {
                let (cluster, time) = match (one / half == other / half, other - one == 1 && one % half == 0) {
                    (true, true) => (1, 9.25),
                    (true, false) => (2, 50.0 + f64::from(other)),
                    _ => (3, 200.0),
                };
                let what = format!("core_to_core.{one}.{other}");
                let number = (other != 3).then_some([time; 3]);
                let verdict = if other != 3 { "found" } else { "unclear" };
                let mut line = simulated_lines::simulated_line("core_to_core", &what, verdict, number, "ns");
                let cluster = (other != 3).then_some(cluster);
                line["pair"] = serde_json::json!({ "cpus": [one, other], "cluster": cluster });
                lines.push(line);
            }
        }
        UarchLine::from_lines(&lines)
    }

    #[test]
    fn few_cpus_get_a_full_matrix() {
        let records = records(4, 4);
        let lines = PairMatrix::from_records(&records).expect("pairs").page_lines();
        let all = [
            "  ns          0     1     2     3",
            "  CPU 0       -   9.2   200     ?",
            "  CPU 1     9.2     -   200     ?",
            "  CPU 2     200   200     -     ?",
            "  CPU 3       ?     ?     ?     -",
            "  cluster 1: 1 pairs of 9.2 to 9.2 ns",
            "  cluster 3: 2 pairs of 200 to 200 ns",
        ];
        assert_eq!(lines, all);
    }

    #[test]
    fn many_cpus_get_the_extremes_of_each_row() {
        let records = records(16, 2);
        let lines = PairMatrix::from_records(&records).expect("pairs").page_lines();
        assert_eq!(lines[0], "  ns         least   median     most   nearest");
        assert_eq!(lines[1], "  CPU 0        9.2      200      200   CPU 1");
        assert_eq!(lines.len(), 7, "two rows, three clusters, and how many CPUs: {lines:?}");
        assert!(lines[6].contains("2 of 16 CPUs"), "{lines:?}");
        assert!(lines.iter().all(|line| line.chars().count() <= WIDTH), "{lines:?}");
    }

    #[test]
    fn picture_has_a_square_for_each_pair() {
        let records = records(4, 4);
        let heat =
            PairMatrix::from_records(&records).expect("pairs").draw_heat("From core to core".to_string(), "a machine");
        assert_eq!(heat.note, "a machine: 3 of 6 pairs");
        assert_eq!(heat.rows[1].cells, [Some(9.25), None, Some(200.0), None]);
        assert!(PairMatrix::from_records(&UarchLine::from_lines(&simulated_lines::simulated_lines())).is_none());
    }
}
