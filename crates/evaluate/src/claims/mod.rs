//! Claims of the documents about timing methods, and whether they hold on this machine.
//!
//! A claim is one entry of a table: a quotation, a tested statement, a criterion and the experiment
//! that decides. Times are compared in steps of the TSC, the finest that a single reading resolves.
//! Half a step counts as nothing. A claim holds if the whole interval of its figure lies on one
//! side of the bound, fails if it lies on the other, and is undecided otherwise. An event that
//! *may* occur confirms its claim when observed. Its absence refutes nothing.

mod claim_entry;
mod claim_judgement;
mod fault_claims;
mod notes_claims;
mod pair_claims;
mod paper_claims;
mod sample_claims;
#[cfg(test)]
mod tests;
mod tsc_claims;

pub(crate) use claim_judgement::ClaimEvidence;
pub use claim_judgement::ClaimFigure;

use super::contamination::Contamination;
use super::timing_facts::TimingFacts;
use claim_entry::{ClaimEntry, ClaimTest, FAULTS_BUT_STORES};
use claim_judgement::ClaimJudgement;
use cyclescope_core::statistics::Interval;
use serde::Serialize;

/// A claim and its result on this machine, kind `evaluate.claim`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DocumentClaim {
    /// Identifier of the claim.
    pub id: &'static str,
    /// The tested statement.
    pub text: &'static str,
    /// Quotation from the document.
    pub quote: &'static str,
    /// Document and section.
    pub source: String,
    /// Whether `text` is our inference, in other words than the document's.
    pub ours: bool,
    /// The conditions under which it holds and fails.
    pub criterion: &'static str,
    /// Whether it holds here; `None` if undecided.
    pub holds: Option<bool>,
    /// The figures that decide.
    pub figures: Vec<ClaimFigure>,
    /// The reason in words.
    pub why: String,
    /// The method that replaced one that cannot run here.
    pub stand_in: Option<&'static str>,
}

impl DocumentClaim {
    /// The verdict as text.
    pub fn verdict(&self) -> &'static str {
        match self.holds {
            Some(true) => "holds",
            Some(false) => "does not hold",
            None => "cannot be told",
        }
    }

    fn from_judgement(entry: &ClaimEntry, judgement: ClaimJudgement) -> DocumentClaim {
        let ClaimJudgement { holds, figures, why, stand_in } = judgement;
        DocumentClaim {
            id: entry.id,
            text: entry.text,
            quote: entry.quote,
            source: format!("{}, {}", entry.document.title(), entry.section),
            ours: entry.ours,
            criterion: entry.criterion,
            holds,
            figures,
            why,
            stand_in,
        }
    }
}

/// All claims: the paper's, then the notes'.
fn list_entries() -> impl Iterator<Item = &'static ClaimEntry> {
    paper_claims::CLAIMS.iter().chain(notes_claims::CLAIMS)
}

/// Judges all claims by this machine's results. For a method with two executors, the first one's
/// figures count.
pub(crate) fn judge_claims(seen: &ClaimEvidence) -> Vec<DocumentClaim> {
    list_entries().map(|entry| DocumentClaim::from_judgement(entry, run_claim_test(&entry.test, seen))).collect()
}

/// All claims, undecided for this reason.
pub(crate) fn undecided_claims(why: &str) -> Vec<DocumentClaim> {
    list_entries().map(|entry| DocumentClaim::from_judgement(entry, ClaimJudgement::new_undecided(why))).collect()
}

fn run_claim_test(test: &ClaimTest, seen: &ClaimEvidence) -> ClaimJudgement {
    let judged = match *test {
        ClaimTest::Excludes { method, faults } => fault_claims::judge_excludes(seen, method, faults),
        ClaimTest::LetsIn { method, fault } => fault_claims::judge_lets_in(seen, method, fault),
        ClaimTest::LeavesStores { method } => fault_claims::judge_leaves_stores(seen, method),
        ClaimTest::Alike { one, other } => fault_claims::judge_alike(seen, [one, other], FAULTS_BUT_STORES),
        ClaimTest::NothingBehind => fault_claims::judge_nothing_behind(seen),
        ClaimTest::Takes { method, side, step, time } => pair_claims::judge_step_time(seen, method, side, step, time),
        ClaimTest::AddsUp { method } => pair_claims::judge_adds_up(seen, method),
        ClaimTest::Cheaper { one, other } => pair_claims::judge_cheaper(seen, one, other),
        ClaimTest::Noisy { method, noisy } => sample_claims::judge_noise(seen, method, noisy),
        ClaimTest::ConstantMinimum { method, constant } => {
            sample_claims::judge_constant_minimum(seen, method, constant)
        }
        ClaimTest::ConstantVariance { method, constant } => {
            sample_claims::judge_constant_variance(seen, method, constant)
        }
        ClaimTest::Monotone { method } => sample_claims::judge_monotone(seen, method),
        ClaimTest::Resolves { method, most } => sample_claims::judge_resolution(seen, method, most),
        ClaimTest::FinerByMany => sample_claims::judge_finer_by_many(seen),
        ClaimTest::Multiples => tsc_claims::judge_multiples(seen),
        ClaimTest::StepIsSteady => tsc_claims::judge_steady_step(seen),
        ClaimTest::LfenceWaits => tsc_claims::judge_lfence(seen),
        ClaimTest::Asynchronous => tsc_claims::judge_asynchrony(seen),
        ClaimTest::TellsCpu => tsc_claims::judge_cpu_numbers(seen),
        ClaimTest::Untested { why } => Err(format!("it is not tested: {why}")),
    };
    judged.unwrap_or_else(|why| ClaimJudgement::new_undecided(&why))
}

/// Smallest cost in core cycles that this clock distinguishes from 0, at the observed core clock.
/// `step` is in raw units.
pub(crate) fn clock_detection_bound(step: f64, facts: &TimingFacts) -> f64 {
    let rate = facts.series.known().map_or(1.0, |series| series.raw_per_cycle[1]);
    claim_judgement::detection_bound(step / rate)
}

/// Whether a claim depends on this row of a method, and the row's interval is too wide to decide
/// it.
pub(crate) fn leaves_claim_open(method: &str, row: &Contamination, bound: f64) -> bool {
    let asked = list_entries().any(|entry| entry.test.asks_about(method, row.fault));
    let open = |cost: &Interval| fault_claims::is_row_undecided(row, cost, bound);
    asked && row.cost.known().is_none_or(open)
}
