//! Tables of timing methods on one or two executors. The row of a non-default executor follows the
//! default's.

use crate::output::Failure;
use crate::output::page::{TextPage, new_table, print_table};
use comfy_table::Table;
use cyclescope::executor::{DEFAULT_OFFER, ExecutorOffer};
use cyclescope::study::evaluate::MethodCandidate;
use cyclescope::study::evaluate::plan::RefusedMethod;

/// Where an executor's code runs, such as `ring 0`.
pub fn executor_place(executor: &str) -> &str {
    ExecutorOffer::find_by_name(executor).map_or(executor, |offer| offer.place)
}

/// A table that is being filled.
pub struct MethodTable {
    table: Table,
    columns: usize,
    last: Option<&'static str>,
}

impl MethodTable {
    /// Creates an empty table; its first column holds the method.
    pub fn new(heading: &[&str]) -> MethodTable {
        MethodTable { table: new_table(heading), columns: heading.len(), last: None }
    }

    /// Adds a method's figures on one executor; the label begins with the method's name.
    pub fn add_row(&mut self, candidate: MethodCandidate, label: String, figures: impl Into<Vec<String>>) {
        let MethodCandidate { clock, executor } = candidate;
        let mut cells = vec![label];
        if executor != DEFAULT_OFFER.name {
            if self.last != Some(clock.name) {
                cells.resize(self.columns, "-".to_string());
                self.table.add_row(&cells);
            }
            cells = vec![format!("  in {}", executor_place(executor))];
        }
        cells.extend(figures.into());
        self.table.add_row(cells);
        self.last = Some(clock.name);
    }

    /// Prints the table.
    pub fn print(&self, page: &mut TextPage) -> Result<(), Failure> {
        print_table(page, &self.table)
    }
}

/// Explains why methods weren't run. The methods in `found` ran on at least one executor.
pub fn explain_not_run(found: &[MethodCandidate], not_run: &[RefusedMethod]) -> Vec<String> {
    let of = |one: &RefusedMethod, other: &RefusedMethod| one.candidate.clock.name == other.candidate.clock.name;
    let mut texts = Vec::new();
    for (at, not) in not_run.iter().enumerate() {
        let MethodCandidate { clock, executor } = not.candidate;
        let alike = |other: &&RefusedMethod| of(not, other) && other.why.why == not.why.why;
        if not_run[..at].iter().any(|other| alike(&other)) {
            continue;
        }
        let partly = found.iter().any(|found| found.clock.name == clock.name)
            || not_run.iter().any(|other| of(not, other) && other.why.why != not.why.why);
        let place = if partly { format!(" in {}", executor_place(executor)) } else { String::new() };
        texts.push(format!("{} was not run{place}: {}", clock.name, not.why.why));
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope::clock::Clock;
    use cyclescope::error::Unavailable;

    fn clock(name: &str) -> &'static Clock {
        Clock::find_named(name).unwrap()
    }

    #[test]
    fn ring_0_rows_follow_the_method_name() {
        let mut rows = MethodTable::new(&["method", "min"]);
        for (name, executor) in [("rdtsc", "user"), ("rdtsc", "kernel"), ("cpuid-rdtsc-cr0-rdtsc", "kernel")] {
            rows.add_row(
                MethodCandidate { clock: clock(name), executor },
                name.to_string(),
                [format!("{}1", name.len())],
            );
        }
        let text: Vec<String> = rows.table.lines().collect();
        let cells: Vec<Vec<&str>> = text.iter().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(cells[1], ["rdtsc", "51"]);
        assert_eq!(cells[2], ["in", "ring", "0", "51"]);
        assert_eq!(cells[3], ["cpuid-rdtsc-cr0-rdtsc", "-"]);
        assert_eq!(cells[4], ["in", "ring", "0", "211"]);
    }

    #[test]
    fn method_that_runs_nowhere_is_listed_once() {
        let not = |name: &str, executor, why: &str| RefusedMethod {
            candidate: MethodCandidate { clock: clock(name), executor },
            why: Unavailable { what: String::new(), why: why.to_string(), remedy: String::new() },
        };
        let (user, kernel) = ("user", "kernel");
        let all = [
            not("clock-gettime", kernel, "it calls"),
            not("rdpru", user, "no RDPRU"),
            not("rdpru", kernel, "no RDPRU"),
            not("rdpmc", user, "forbidden"),
            not("rdpmc", kernel, "no counter"),
        ];
        let found = [MethodCandidate { clock: clock("clock-gettime"), executor: user }];
        let expected = [
            "clock-gettime was not run in ring 0: it calls",
            "rdpru was not run: no RDPRU",
            "rdpmc was not run in user mode: forbidden",
            "rdpmc was not run in ring 0: no counter",
        ];
        assert_eq!(explain_not_run(&found, &all), expected);
    }
}
