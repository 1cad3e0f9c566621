//! What a report says besides its table, as text and as Markdown: why a benchmark is unclear, which
//! runs failed or lack it, and what is compared.

use super::record::{AbRow, explain_unclear};
use cyclescope::study::ab::UnclearReason;
use std::collections::BTreeMap;

/// Notes on the runs of all programs.
#[derive(Debug, Default)]
pub struct ReportNotes {
    /// The programs with failed runs.
    pub failed: Vec<FailedProgram>,
    /// Benchmarks that a program could not measure, with its reason.
    pub unmeasured: BTreeMap<String, String>,
    /// Benchmarks whose samples differ much in a run.
    pub mixed: Vec<String>,
    /// Whether whole programs are compared because none wrote samples.
    pub lacks_samples: bool,
}

/// A program with failed runs, which were repeated.
#[derive(Debug)]
pub struct FailedProgram {
    pub program: String,
    pub failed: usize,
    /// Number of all runs.
    pub runs: usize,
    /// How the first one failed.
    pub first: String,
}

impl ReportNotes {
    /// Notes on the runs. `quote` marks the text of others.
    pub fn about_runs(&self, quote: impl Fn(&str) -> String) -> Vec<String> {
        let failed = self.failed.iter().map(|FailedProgram { program, failed, runs, first }| {
            let program = quote(program);
            format!("{failed} of {runs} runs of {program} failed and were repeated. The first: {}.", quote(first))
        });
        let unmeasured = self.unmeasured.iter().map(|(name, why)| format!("{}: {}.", quote(name), quote(why)));
        let mixed = self.mixed.iter().map(|name| {
            format!(
                "{}: samples of a run differ by a factor of two. Two benchmarks of a name count as one.",
                quote(name)
            )
        });
        let whole = "The programs wrote no samples, so their CPU time is compared as a whole.";
        failed.chain(unmeasured).chain(mixed).chain(self.lacks_samples.then(|| whole.to_string())).collect()
    }
}

/// Notes on a row.
pub fn about_row(row: &AbRow) -> Vec<String> {
    let [old, new] = row.runs_without;
    let measured = row.why != Some(UnclearReason::NotMeasured);
    let without = (measured && row.runs_without != [0; 2])
        .then(|| format!("{old} runs of the old and {new} of the new program have no figure of it"));
    let why = row.why.filter(|_| measured).map(|why| explain_with_budget(why, row.budget_needed));
    why.into_iter().chain(without).collect()
}

/// Why a benchmark is unclear, and the seconds of `--budget` that would probably decide it.
fn explain_with_budget(why: UnclearReason, seconds: Option<f64>) -> String {
    let budget = seconds.map_or(String::new(), |seconds| format!(": {seconds} is probably enough"));
    explain_unclear(why).to_string() + &budget
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unclear_benchmark_says_which_budget_it_takes() {
        for why in [UnclearReason::TooNoisy, UnclearReason::NotConfirmed] {
            let text = explain_with_budget(why, Some(300.0));
            assert!(text.ends_with("a longer --budget: 300 is probably enough"), "{text}");
            assert!(explain_with_budget(why, None).ends_with("a longer --budget"));
        }
    }
}
