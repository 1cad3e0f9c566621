//! Tables of timing methods on one executor or two: the row of another than the default is below the default's.

use crate::output::Failure;
use crate::output::page::{Page, print, table};
use comfy_table::Table;
use cyclescope::executor::{DEFAULT, Offer};
use cyclescope::study::evaluate::Candidate;
use cyclescope::study::evaluate::plan::NotRun;

/// Where an executor's code runs, such as `ring 0`.
pub fn place(executor: &str) -> &str {
    Offer::named(executor).map_or(executor, |offer| offer.place)
}

/// A table under way.
pub struct Rows {
    table: Table,
    columns: usize,
    last: Option<&'static str>,
}

impl Rows {
    /// One without rows; the first column has the method.
    pub fn new(heading: &[&str]) -> Rows {
        Rows { table: table(heading), columns: heading.len(), last: None }
    }

    /// Adds what a method did on one executor, under a label that begins with its name.
    pub fn add(&mut self, candidate: Candidate, label: String, figures: impl Into<Vec<String>>) {
        let Candidate { clock, executor } = candidate;
        let mut cells = vec![label];
        if executor != DEFAULT.name {
            if self.last != Some(clock.name) {
                cells.resize(self.columns, "-".to_string());
                self.table.add_row(&cells);
            }
            cells = vec![format!("  in {}", place(executor))];
        }
        cells.extend(figures.into());
        self.table.add_row(cells);
        self.last = Some(clock.name);
    }

    /// Prints it.
    pub fn print(&self, page: &mut Page) -> Result<(), Failure> {
        print(page, &self.table)
    }
}

/// The methods that were not run, each with its reasons; `found` were, on one executor or two.
pub fn not_run(found: &[Candidate], not_run: &[NotRun]) -> Vec<String> {
    let of = |one: &NotRun, other: &NotRun| one.candidate.clock.name == other.candidate.clock.name;
    let mut texts = Vec::new();
    for (at, not) in not_run.iter().enumerate() {
        let Candidate { clock, executor } = not.candidate;
        let alike = |other: &&NotRun| of(not, other) && other.why.why == not.why.why;
        if not_run[..at].iter().any(|other| alike(&other)) {
            continue;
        }
        let partly = found.iter().any(|found| found.clock.name == clock.name)
            || not_run.iter().any(|other| of(not, other) && other.why.why != not.why.why);
        let place = if partly { format!(" in {}", place(executor)) } else { String::new() };
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
        Clock::named(name).unwrap()
    }

    #[test]
    fn rows_of_ring_0_stand_below_the_methods_name() {
        let mut rows = Rows::new(&["method", "min"]);
        for (name, executor) in [("rdtsc", "user"), ("rdtsc", "kernel"), ("cpuid-rdtsc-cr0-rdtsc", "kernel")]
        {
            rows.add(
                Candidate { clock: clock(name), executor },
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
    fn a_method_that_runs_nowhere_is_told_of_once() {
        let not = |name: &str, executor, why: &str| NotRun {
            candidate: Candidate { clock: clock(name), executor },
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
        let found = [Candidate { clock: clock("clock-gettime"), executor: user }];
        let expected = [
            "clock-gettime was not run in ring 0: it calls",
            "rdpru was not run: no RDPRU",
            "rdpmc was not run in user mode: forbidden",
            "rdpmc was not run in ring 0: no counter",
        ];
        assert_eq!(not_run(&found, &all), expected);
    }
}
