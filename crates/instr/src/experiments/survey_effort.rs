//! The effort of a survey: how much it measures.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The amount of measurement per form.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SurveyEffort {
    /// Passes over all forms.
    pub passes: u32,
    /// Layouts of each program in a pass.
    pub layouts: usize,
    /// Timed rounds in each layout.
    pub rounds: u32,
    /// Number of throughput programs measured beyond the first look: the best ones. The first of
    /// several passes measures all.
    pub recipes: usize,
    /// Approximate core cycles of a program's longest call.
    pub cycles: f64,
    /// Whether to measure the rate from the decoders.
    pub decoders: bool,
    /// Whether to compare chains with short ones behind a fence.
    #[serde(default)]
    pub regimes: bool,
    /// Whether to try constants other than the general one.
    #[serde(default)]
    pub constants: bool,
    /// Whether to count dispatch slots.
    #[serde(default)]
    pub slots: bool,
    /// Longest time of retries beside a busy sibling, in all forms of a pass together.
    #[serde(default)]
    pub wait: Duration,
}

impl SurveyEffort {
    /// The default effort.
    pub const FULL: SurveyEffort = SurveyEffort {
        passes: 2,
        layouts: 6,
        rounds: 3,
        recipes: 4,
        cycles: 8_000.0,
        decoders: true,
        regimes: true,
        constants: true,
        slots: true,
        wait: Duration::from_secs(60),
    };
    /// The effort of `--quick`.
    pub const QUICK: SurveyEffort = SurveyEffort {
        passes: 1,
        layouts: 3,
        rounds: 2,
        recipes: 3,
        cycles: 4_000.0,
        decoders: false,
        regimes: false,
        constants: false,
        slots: true,
        wait: Duration::from_secs(20),
    };
}
