//! Facts about the core from measured code: its clock by the ruler, the phases of the TSC's step,
//! and the CPUs that share the core.
//!
//! These are plain results; `cyclescope_doctor` runs the experiments.

use serde::{Deserialize, Serialize};

use super::integer_adders::IntegerAdders;
use crate::statistics::Interval;
use crate::unit::Unit;

/// Facts about the core from the ruler.
#[derive(Debug, Clone, PartialEq)]
pub struct CoreStudy {
    /// Name of the timing method.
    pub clock: &'static str,
    /// Unit of its readings.
    pub unit: Unit,
    /// Raw units per core cycle.
    pub raw_per_cycle: Interval,
    /// The core clock in MHz; `None` if the rate of the timing method's clock is unknown.
    pub megahertz: Option<Interval>,
    /// The core clock in MHz in the slowest and the fastest layout.
    pub range: Option<[f64; 2]>,
    /// Measured latency of `imul r64, r64` in units of the latency of `add r32, r32`.
    pub imul: Interval,
    /// The same latency from the table of micro-architectures.
    pub imul_known: Option<u32>,
    /// Latency used to derive the core cycle. `None` if the measured one is not a whole number; the
    /// chain of additions is then used instead.
    pub imul_used: Option<u32>,
    /// Independent additions per core cycle: lowest, median and highest over the layouts.
    pub width: [f64; 3],
    /// The core's integer adders, from the table.
    pub adders: Option<IntegerAdders>,
    /// Additions per cycle expected of a core with that many adders.
    pub width_known: Option<f64>,
    /// Whether most layouts shared the core with a busy sibling.
    pub shared: bool,
    /// Number of layouts behind the figures.
    pub layouts: usize,
    /// Rounds used in these layouts.
    pub kept: usize,
    /// Rounds dropped as disturbed in these layouts.
    pub dropped: usize,
}

/// A measured ratio that differs by more than this share contradicts the table.
const LATENCY_TOLERANCE: f64 = 0.01;

impl CoreStudy {
    /// Core cycles of one `add` according to the `imul` chain; 1 if the two chains agree.
    pub fn add_link_cycles(&self) -> Option<Interval> {
        let latency = f64::from(self.imul_used?);
        let Interval { value, low, high } = self.imul;
        Some(Interval { value: latency / value, low: latency / high, high: latency / low })
    }

    /// Whether the measured latency is within 1 % of that in the table; `None` if the table has
    /// none.
    pub fn matches_known_latency(&self) -> Option<bool> {
        let table_latency = f64::from(self.imul_known?);
        let margin = LATENCY_TOLERANCE * table_latency;
        Some(self.imul.low <= table_latency + margin && self.imul.high >= table_latency - margin)
    }
}

/// Whether the means of slightly different durations lie on a straight line. If a program locks to
/// the TSC's step, they form stairs instead.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StepPhases {
    /// The TSC's step as seen by the timing method, in raw units.
    pub step: f64,
    /// Root mean square distance from the line, in steps: up to 0.29 for stairs.
    pub off_line: f64,
    /// Whether the distance is small enough for means to resolve less than a step.
    pub uniform: bool,
    /// Number of durations used.
    pub samples: usize,
}

/// Whether two CPUs share one core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CoreSharing {
    /// The core became narrower while the other CPU was busy.
    Shared,
    /// Its width stayed the same.
    Separate,
    /// The experiment is inconclusive.
    Unclear,
}

/// Experiment with one other CPU.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SiblingProof {
    /// The other CPU.
    pub cpu: u32,
    /// Result.
    pub sharing: CoreSharing,
    /// Why the experiment is inconclusive, if it is.
    pub why: Option<String>,
    /// Independent additions per core cycle while the other CPU was idle.
    pub alone: Option<f64>,
    /// Independent additions per core cycle while the other CPU was adding too.
    pub beside: Option<f64>,
    /// Rounds that ran while the other CPU was certainly adding.
    pub rounds: usize,
}

/// Experiments with other CPUs.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct SiblingStudy {
    /// Completed experiments.
    pub proofs: Vec<SiblingProof>,
    /// Allowed CPUs that were skipped for lack of time.
    pub untested: Vec<u32>,
}

impl SiblingStudy {
    /// Experiments with this result.
    pub(crate) fn proofs_with(&self, sharing: CoreSharing) -> impl Iterator<Item = &SiblingProof> {
        self.proofs.iter().filter(move |proof| proof.sharing == sharing)
    }
}
