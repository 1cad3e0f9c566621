//! What is told of a comparison, and what a file keeps of it.

use cyclescope::caveat::{Caveat, CaveatKind};
use cyclescope::record::Quantity;
use cyclescope::study::ab::{BenchmarkFigures, ChangeVerdict, ComparisonOutcome, UnclearReason};
use cyclescope::unit::Unit;
use serde::{Deserialize, Serialize};

/// The kinds of the lines of a file: what was run, each run, each result.
pub const SESSION_KIND: &str = "ab.session";
pub const RUN_KIND: &str = "ab.run";
pub const RESULT_KIND: &str = "ab";

/// What was run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AbSessionRecord {
    /// The programs; the last one is what a later run is compared with.
    pub programs: Vec<String>,
    /// The processor, and which of its CPUs.
    pub core: String,
    pub cpu: u32,
    pub kernel: String,
    pub seed: u64,
}

/// One run of a program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AbRunRecord {
    /// Its number, from 0, and that of its build.
    pub program: usize,
    #[serde(default)]
    pub build: usize,
    /// Microseconds of CPU time, in user mode and in the system.
    pub user_us: u64,
    pub system_us: u64,
    /// Core cycles a TSC tick before it and after.
    pub rulers: [f64; 2],
    /// Core cycles of the program, or of an iteration of each benchmark.
    pub cycles: BenchmarkFigures,
}

/// The result of a benchmark, kind `ab`.
#[derive(Debug, Clone, Serialize)]
pub struct AbRow {
    /// Its name.
    pub name: String,
    pub verdict: ChangeVerdict,
    /// Why it is unclear.
    pub why: Option<UnclearReason>,
    /// What the new program takes more, as a share of the old one's.
    pub change: Quantity,
    pub confidence: f64,
    /// Core cycles of the old and of the new program, the median of their runs.
    pub old: Option<f64>,
    pub new: Option<f64>,
    /// Microseconds of CPU time in user mode and in the system, the median of their runs; of whole programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_us: Option<[f64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_us: Option<[f64; 2]>,
    /// Pairs of runs in the first and the second batch; runs of the new program, where the old one's were recorded.
    pub pairs: [usize; 2],
    /// Whether the two ran in turn.
    pub interleaved: bool,
    /// A change by less than this counts as the same.
    pub within: f64,
    pub cpu: u32,
    pub seed: u64,
    pub caveats: Vec<Caveat>,
    pub repro: String,
}

/// The change as a quantity.
pub fn change_quantity(outcome: &ComparisonOutcome) -> Quantity {
    outcome.change.map_or_else(|| Quantity::refused(Unit::Share), |change| Quantity::new(change, Unit::Share))
}

/// Why a benchmark is unclear, in words.
pub fn explain_unclear(why: UnclearReason) -> &'static str {
    match why {
        UnclearReason::TooFew => "too few runs for an interval",
        UnclearReason::TooNoisy => "the interval is too wide: a longer --budget, or shorter runs, make it narrower",
        UnclearReason::NotConfirmed => {
            "the first batch says a change, and the second one no more than that it is unclear"
        }
        UnclearReason::BatchesDisagree => "two batches disagree: something else changed meanwhile",
        UnclearReason::BuildsDiffer => "builds of one program differ by as much: it may be the place of the code",
    }
}

/// The same as a caveat.
pub fn unclear_caveats(why: Option<UnclearReason>) -> Vec<Caveat> {
    let caveat = |why: UnclearReason| {
        let code = match why {
            UnclearReason::BatchesDisagree => CaveatKind::NotRepeatable,
            UnclearReason::BuildsDiffer => CaveatKind::LayoutDependent,
            _ => CaveatKind::IntervalNotReached,
        };
        Caveat { code, text: explain_unclear(why).to_string() }
    };
    why.map(caveat).into_iter().collect()
}
