//! Facts about the core from measured code: its clock by the ruler, whether the phases of the TSC's step
//! are uniform, and which CPUs share the core.
//!
//! Plain results; `cyclescope_doctor` makes the experiments.

use serde::{Deserialize, Serialize};

use crate::statistics::Interval;
use crate::unit::Unit;

/// Facts about the core from the ruler.
#[derive(Debug, Clone, PartialEq)]
pub struct CoreStudy {
    /// The timing method.
    pub clock: &'static str,
    /// Unit of its readings.
    pub unit: Unit,
    /// Number of these units per core cycle.
    pub raw_per_cycle: Interval,
    /// The core clock in MHz; `None` where the rate of the timing method's clock is not known.
    pub megahertz: Option<Interval>,
    /// The core clock in MHz of the slowest and the fastest layout.
    pub range: Option<[f64; 2]>,
    /// Latency of `imul r64, r64` in units of that of `add r32, r32`, as measured.
    pub imul: Interval,
    /// The same as the data for the micro-architecture have it.
    pub imul_known: Option<u32>,
    /// The latency that the core cycle was derived with; `None` where the measured one is no whole number and
    /// the chain of additions had to do.
    pub imul_used: Option<u32>,
    /// Independent additions a core cycle: lowest, median and highest over the layouts.
    pub width: [f64; 3],
    /// Units of the core that add integers, as the data have it.
    pub adders: Option<u32>,
    /// Independent additions a cycle that a core with that many adders should show.
    pub width_known: Option<f64>,
    /// Whether most layouts found the core shared with a busy sibling.
    pub shared: bool,
    /// Layouts that the figures rest on.
    pub layouts: usize,
    /// Rounds used, in these layouts.
    pub kept: usize,
    /// Rounds dropped as disturbed, in these layouts.
    pub dropped: usize,
}

/// A ratio that is off by more than this share is not what the data say.
const LATENCY_TOLERANCE: f64 = 0.01;

impl CoreStudy {
    /// Core cycles of one `add` by the `imul` chain; 1 where the two chains agree.
    pub fn add_link_cycles(&self) -> Option<Interval> {
        let latency = f64::from(self.imul_used?);
        let Interval { value, low, high } = self.imul;
        Some(Interval { value: latency / value, low: latency / high, high: latency / low })
    }

    /// Whether the measured latency is the one in the data, within 1 %; `None` without data.
    pub fn matches_known_latency(&self) -> Option<bool> {
        let known = f64::from(self.imul_known?);
        let margin = LATENCY_TOLERANCE * known;
        Some(self.imul.low <= known + margin && self.imul.high >= known - margin)
    }
}

/// Whether durations of slightly different lengths have means on a straight line. Where a program keeps time
/// with the TSC's step, they form stairs instead.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StepPhases {
    /// The TSC's step as the timing method sees it, in raw units.
    pub step: f64,
    /// Root mean square distance from the line, in steps: up to 0.29 for stairs.
    pub off_line: f64,
    /// Whether that is small enough for means to see through the step.
    pub uniform: bool,
    /// Durations that were used.
    pub samples: usize,
}

/// Whether two CPUs use one core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CoreSharing {
    /// The core got narrower while the other CPU was busy.
    Shared,
    /// It stayed as wide as before.
    Separate,
    /// The experiment says neither.
    Unclear,
}

/// The experiment with one other CPU.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SiblingProof {
    /// The other CPU.
    pub cpu: u32,
    /// Conclusion.
    pub sharing: CoreSharing,
    /// Reason where the experiment is inconclusive.
    pub why: Option<String>,
    /// Independent additions a core cycle, the other CPU idle.
    pub alone: Option<f64>,
    /// The same while the other CPU was adding too.
    pub beside: Option<f64>,
    /// Rounds that ran while the other CPU certainly was adding.
    pub rounds: usize,
}

/// The experiments with other CPUs.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct SiblingStudy {
    /// Those that were made.
    pub proofs: Vec<SiblingProof>,
    /// Allowed CPUs that there was no time for.
    pub untested: Vec<u32>,
}

impl SiblingStudy {
    /// CPUs with that outcome.
    pub(crate) fn proofs_with(&self, sharing: CoreSharing) -> impl Iterator<Item = &SiblingProof> {
        self.proofs.iter().filter(move |proof| proof.sharing == sharing)
    }
}
