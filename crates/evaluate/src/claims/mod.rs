//! What the documents say about timing methods, and what this machine says about it.
//!
//! A claim is one entry of a table: a quotation, what is tested of it, when it holds, and the experiment that decides.
//! Where times are compared, the unit is the step of the TSC, which no reading sees through: half a step is the bound
//! of what counts as nothing. A claim holds where the whole interval of its figure lies on one side of the bound, does
//! not hold where it lies on the other, and can't be told where it lies across. What a document says *may* happen holds
//! where it is seen; that it is not seen refutes nothing.

mod by_parts;
mod by_readings;
mod by_samples;
mod by_tsc;
mod entry;
mod judgement;
mod notes;
mod paper;
#[cfg(test)]
mod tests;

pub use judgement::Figure;
pub(crate) use judgement::Seen;

use super::contamination::Contamination;
use super::facts::Facts;
use cyclescope_core::statistics::Interval;
use entry::{ALL_FOUR, Entry, Test};
use judgement::Judgement;
use serde::Serialize;

/// A claim, and what this machine says about it, kind `evaluate.claim`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Claim {
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
    pub figures: Vec<Figure>,
    /// The same in words, or why nothing can be told.
    pub why: String,
    /// The method that stood in for one that can't run here.
    pub stand_in: Option<&'static str>,
}

impl Claim {
    /// The verdict in words.
    pub fn verdict(&self) -> &'static str {
        match self.holds {
            Some(true) => "holds",
            Some(false) => "does not hold",
            None => "cannot be told",
        }
    }

    fn of(entry: &Entry, judgement: Judgement) -> Claim {
        let Judgement { holds, figures, why, stand_in } = judgement;
        Claim {
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
fn entries() -> impl Iterator<Item = &'static Entry> {
    paper::CLAIMS.iter().chain(notes::CLAIMS)
}

/// The documents' claims, as this machine has them. Of a method that two executors ran, the first one's figures count.
pub(crate) fn claims(seen: &Seen) -> Vec<Claim> {
    entries().map(|entry| Claim::of(entry, judge(&entry.test, seen))).collect()
}

/// The claims where nothing can be told of any of them, for this reason.
pub(crate) fn untold(why: &str) -> Vec<Claim> {
    entries().map(|entry| Claim::of(entry, Judgement::open(why))).collect()
}

fn judge(test: &Test, seen: &Seen) -> Judgement {
    let judged = match *test {
        Test::Excludes { method, faults } => by_readings::excludes(seen, method, faults),
        Test::LetsIn { method, fault } => by_readings::lets_in(seen, method, fault),
        Test::LeavesStores { method } => by_readings::leaves_stores(seen, method),
        Test::Alike { one, other } => by_readings::alike(seen, [one, other], ALL_FOUR),
        Test::NothingBehind => by_readings::nothing_behind(seen),
        Test::Takes { method, side, step, time } => by_parts::takes(seen, method, side, step, time),
        Test::AddsUp { method } => by_parts::adds_up(seen, method),
        Test::Cheaper { one, other } => by_parts::cheaper(seen, one, other),
        Test::Noisy { method, noisy } => by_samples::noisy(seen, method, noisy),
        Test::ConstantMinimum { method, constant } => by_samples::constant_minimum(seen, method, constant),
        Test::ConstantVariance { method, constant } => by_samples::constant_variance(seen, method, constant),
        Test::Monotone { method } => by_samples::monotone(seen, method),
        Test::Resolves { method, most } => by_samples::resolves(seen, method, most),
        Test::FinerByMany => by_samples::finer_by_many(seen),
        Test::Multiples => by_tsc::multiples(seen),
        Test::StepIsSteady => by_tsc::step_is_steady(seen),
        Test::LfenceWaits => by_tsc::lfence_waits(seen),
        Test::Asynchronous => by_tsc::asynchronous(seen),
    };
    judged.unwrap_or_else(|why| Judgement::open(&why))
}

/// Below how many core cycles a clock of this step, in raw units, can't tell a figure from 0, by the core clock as it was
/// watched.
pub(crate) fn bound(step: f64, facts: &Facts) -> f64 {
    let rate = facts.series.known().map_or(1.0, |series| series.raw_per_cycle[1]);
    judgement::bound(step / rate)
}

/// Whether a claim rests on this row of a method, and its interval is too wide to decide it.
pub(crate) fn leaves_open(method: &str, row: &Contamination, bound: f64) -> bool {
    let asked = entries().any(|entry| entry.test.asks(method, row.fault));
    let open = |cost: &Interval| by_readings::is_open(row, cost, bound);
    asked && row.cost.known().is_none_or(open)
}
