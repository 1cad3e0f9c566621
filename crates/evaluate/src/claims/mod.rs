//! What the documents say about timing methods, and what this machine says about it.
//!
//! A claim is one entry of a table: a quotation, what is tested of it, when it holds, and the experiment that decides.
//! Where times are compared, the unit is the step of the TSC, which no reading sees through: half a step is the bound
//! of what counts as nothing. A claim holds where the whole interval of its figure lies on one side of the bound, does
//! not hold where it lies on the other, and can't be told where it lies across. What a document says *may* happen holds
//! where it is seen; that it is not seen refutes nothing.

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

/// A claim, and what this machine says about it, kind `evaluate.claim`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DocumentClaim {
    /// A name for it.
    pub id: &'static str,
    /// What was tested.
    pub text: &'static str,
    /// What the document says.
    pub quote: &'static str,
    /// The document and the section.
    pub source: String,
    /// Whether `text` is our inference: the document does not say it in these words.
    pub ours: bool,
    /// When it holds, and when it does not.
    pub criterion: &'static str,
    /// Whether it holds here; `None` where that can't be told.
    pub holds: Option<bool>,
    /// The figures that say so.
    pub figures: Vec<ClaimFigure>,
    /// The same in words, or why nothing can be told.
    pub why: String,
    /// The method that stood in for one that can't run here.
    pub stand_in: Option<&'static str>,
}

impl DocumentClaim {
    /// The verdict in words.
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

/// All claims: the paper's, then those of the notes.
fn list_entries() -> impl Iterator<Item = &'static ClaimEntry> {
    paper_claims::CLAIMS.iter().chain(notes_claims::CLAIMS)
}

/// The documents' claims, as this machine has them. Of a method that two executors ran, the first one's figures count.
pub(crate) fn judge_claims(seen: &ClaimEvidence) -> Vec<DocumentClaim> {
    list_entries().map(|entry| DocumentClaim::from_judgement(entry, run_claim_test(&entry.test, seen))).collect()
}

/// The claims where nothing can be told of any of them, for this reason.
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
    };
    judged.unwrap_or_else(|why| ClaimJudgement::new_undecided(&why))
}

/// Below how many core cycles a clock of this step, in raw units, can't tell a figure from 0, by the core clock as it was
/// watched.
pub(crate) fn clock_detection_bound(step: f64, facts: &TimingFacts) -> f64 {
    let rate = facts.series.known().map_or(1.0, |series| series.raw_per_cycle[1]);
    claim_judgement::detection_bound(step / rate)
}

/// Whether a claim rests on this row of a method, and its interval is too wide to decide it.
pub(crate) fn leaves_claim_open(method: &str, row: &Contamination, bound: f64) -> bool {
    let asked = list_entries().any(|entry| entry.test.asks_about(method, row.fault));
    let open = |cost: &Interval| fault_claims::is_row_undecided(row, cost, bound);
    asked && row.cost.known().is_none_or(open)
}
