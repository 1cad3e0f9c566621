//! The records of a comparison that are printed and written to files.

use cyclescope::caveat::{Caveat, CaveatKind};
use cyclescope::record::Quantity;
use cyclescope::study::ab::{BenchmarkFigures, ChangeVerdict, ComparisonOutcome, UnclearReason};
use cyclescope::unit::Unit;
use serde::{Deserialize, Serialize};

/// The kinds of lines in a file: the session, each run, each failed run, each result.
pub const SESSION_KIND: &str = "ab.session";
pub const RUN_KIND: &str = "ab.run";
pub const FAILURE_KIND: &str = "ab.failure";
pub const RESULT_KIND: &str = "ab";

/// Name of a benchmark that is a whole program.
pub const WHOLE_PROGRAM: &str = "program";

/// What was run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AbSessionRecord {
    /// The programs. Later runs are compared with the last one.
    pub programs: Vec<String>,
    /// The processor and its CPU.
    pub core: String,
    pub cpu: u32,
    pub kernel: String,
    pub seed: u64,
}

/// One run of a program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AbRunRecord {
    /// Numbers of the program and its build, from 0.
    pub program: usize,
    #[serde(default)]
    pub build: usize,
    /// Microseconds of CPU time, in user mode and in the system.
    pub user_us: u64,
    pub system_us: u64,
    /// Core cycles per TSC tick before and after the run.
    pub rulers: [f64; 2],
    /// Core cycles of the program, or per iteration of each benchmark.
    pub cycles: BenchmarkFigures,
}

/// Most core cycles per microsecond of any core; processors are sold with up to 6.2 GHz.
const CYCLES_PER_US_MOST: f64 = 8e3;

impl AbRunRecord {
    /// What no run writes in a session of this number of programs.
    pub fn find_contradiction(&self, programs: usize) -> Option<&'static str> {
        let AbRunRecord { program, user_us, system_us, rulers, cycles, .. } = self;
        // Both times are rounded down.
        let time = *user_us as f64 + *system_us as f64 + 2.0;
        // A benchmark may also wait, whose time is not recorded.
        let most = |name: &str| if name == WHOLE_PROGRAM { CYCLES_PER_US_MOST * time } else { f64::INFINITY };
        let is_possible = |(name, cycles): (&String, &f64)| *cycles > 0.0 && *cycles <= most(name);
        if *program >= programs {
            Some("its program is not one of the session")
        } else if !rulers.iter().all(|ruler| *ruler > 0.0) {
            Some("a ruler is not positive")
        } else if !cycles.iter().all(is_possible) {
            Some("its core cycles do not fit into its time")
        } else if cycles.keys().any(|name| name.is_empty() || name.chars().any(char::is_control)) {
            Some("a benchmark's name is empty or has control characters")
        } else {
            None
        }
    }
}

/// A run that failed and was repeated.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AbFailureRecord {
    /// Numbers of the program and its build, from 0.
    pub program: usize,
    pub build: usize,
    /// How it failed.
    pub text: String,
}

/// The result of a benchmark, kind `ab`.
#[derive(Debug, Clone, Serialize)]
pub struct AbRow {
    /// Name of the benchmark.
    pub name: String,
    /// The number of the new program, from 0, and the ranks of the first and of the new program;
    /// only with more than two.
    #[serde(flatten)]
    pub ranked: Option<RankedProgram>,
    pub verdict: ChangeVerdict,
    /// Why it is unclear.
    pub why: Option<UnclearReason>,
    /// The change, as a share of the old cost.
    pub change: Quantity,
    pub confidence: f64,
    /// Median core cycles of the old and of the new program.
    pub old: Option<f64>,
    pub new: Option<f64>,
    /// Median microseconds of CPU time in user mode and in the system; only for whole programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_us: Option<[f64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_us: Option<[f64; 2]>,
    /// Failed runs of the old and of the new program, which were repeated.
    #[serde(skip_serializing_if = "is_zero")]
    pub failed_runs: [usize; 2],
    /// Runs of the old and of the new program that have no figure of this benchmark, though others
    /// have one.
    #[serde(skip_serializing_if = "is_zero")]
    pub runs_without: [usize; 2],
    /// Seconds of `--budget` that would probably decide a benchmark that is unclear for lack of pairs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_needed: Option<f64>,
    /// Pairs of runs in the first and the second batch. If the old runs were recorded, runs of the
    /// new program.
    pub pairs: [usize; 2],
    /// Whether the two programs ran in turn.
    pub interleaved: bool,
    /// Changes below this count as the same.
    pub within: f64,
    pub cpu: u32,
    pub seed: u64,
    pub caveats: Vec<Caveat>,
    pub repro: String,
}

/// A program of a ranking. A program without the benchmark has no rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RankedProgram {
    pub program: usize,
    pub old_rank: Option<usize>,
    pub new_rank: Option<usize>,
}

fn is_zero(counts: &[usize; 2]) -> bool {
    *counts == [0; 2]
}

/// The change as a quantity.
pub fn change_quantity(outcome: &ComparisonOutcome) -> Quantity {
    outcome.change.map_or_else(|| Quantity::refused(Unit::Share), |change| Quantity::new(change, Unit::Share))
}

/// Explains why a benchmark is unclear.
pub fn explain_unclear(why: UnclearReason) -> &'static str {
    match why {
        UnclearReason::TooFew => "too few runs for an interval",
        UnclearReason::TooNoisy => "the interval is too wide; use shorter runs or a longer --budget",
        UnclearReason::NotConfirmed => {
            "the first batch shows a change, but the second one is unclear; use a longer --budget"
        }
        UnclearReason::BatchesDisagree => "the two batches disagree, because something else changed meanwhile",
        UnclearReason::BuildsDiffer => "builds of one program differ as much, so code placement may be the cause",
        UnclearReason::NotMeasured => "the programs did not measure it",
    }
}

/// The reason as a caveat.
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
