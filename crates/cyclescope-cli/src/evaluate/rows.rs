//! Tables of timing methods in one mode or two: the row of ring 0 is below that of user mode.

use crate::failure::Failure;
use crate::page::{Page, print, table};
use comfy_table::Table;
use cyclescope::executor::Mode;
use cyclescope::study::evaluate::Candidate;
use cyclescope::study::evaluate::plan::NotRun;

/// The label of what was measured in ring 0, below the method's name.
pub const RING0: &str = "  in ring 0";

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

    /// Adds what a method did in one mode, under a label that begins with its name.
    pub fn add(&mut self, candidate: Candidate, label: String, figures: impl Into<Vec<String>>) {
        let Candidate { clock, mode } = candidate;
        let mut cells = vec![label];
        if mode == Mode::Kernel {
            if self.last != Some(clock.name) {
                cells.resize(self.columns, "-".to_string());
                self.table.add_row(&cells);
            }
            cells = vec![RING0.to_string()];
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

/// A method in a sentence.
pub fn named(Candidate { clock, mode }: Candidate) -> String {
    match mode {
        Mode::User => clock.name.to_string(),
        Mode::Kernel => format!("{} in ring 0", clock.name),
    }
}

/// The methods that were not run, each with its reasons; `found` were, in one mode or two.
pub fn not_run(found: &[Candidate], not_run: &[NotRun]) -> Vec<String> {
    let of = |one: &NotRun, other: &NotRun| one.candidate.clock.name == other.candidate.clock.name;
    let mut texts = Vec::new();
    for (at, not) in not_run.iter().enumerate() {
        let Candidate { clock, mode } = not.candidate;
        let alike = |other: &&NotRun| of(not, other) && other.why.why == not.why.why;
        if not_run[..at].iter().any(|other| alike(&other)) {
            continue;
        }
        let partly = found.iter().any(|found| found.clock.name == clock.name)
            || not_run.iter().any(|other| of(not, other) && other.why.why != not.why.why);
        let place = match mode {
            _ if !partly => "",
            Mode::User => " in user mode",
            Mode::Kernel => " in ring 0",
        };
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
        for (name, mode) in
            [("rdtsc", Mode::User), ("rdtsc", Mode::Kernel), ("cpuid-rdtsc-cr0-rdtsc", Mode::Kernel)]
        {
            rows.add(Candidate { clock: clock(name), mode }, name.to_string(), [format!("{}1", name.len())]);
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
        let not = |name: &str, mode, why: &str| NotRun {
            candidate: Candidate { clock: clock(name), mode },
            why: Unavailable { what: String::new(), why: why.to_string(), remedy: String::new() },
        };
        let (user, kernel) = (Mode::User, Mode::Kernel);
        let all = [
            not("clock-gettime", kernel, "it calls"),
            not("rdpru", user, "no RDPRU"),
            not("rdpru", kernel, "no RDPRU"),
            not("rdpmc", user, "forbidden"),
            not("rdpmc", kernel, "no counter"),
        ];
        let found = [Candidate { clock: clock("clock-gettime"), mode: user }];
        let expected = [
            "clock-gettime was not run in ring 0: it calls",
            "rdpru was not run: no RDPRU",
            "rdpmc was not run in user mode: forbidden",
            "rdpmc was not run in ring 0: no counter",
        ];
        assert_eq!(not_run(&found, &all), expected);
    }
}
