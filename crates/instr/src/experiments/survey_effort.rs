//! How much to measure.

use serde::{Deserialize, Serialize};

/// How much to measure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SurveyEffort {
    /// Passes over all forms.
    pub passes: u32,
    /// Layouts of each program in a pass.
    pub layouts: usize,
    /// Timed rounds in each layout.
    pub rounds: u32,
    /// Throughput programs that are measured beyond a first look, the best ones; in the first of several passes all are.
    pub recipes: usize,
    /// Core cycles of a program's longest call, about.
    pub cycles: f64,
    /// Whether the rate from the decoders is measured too.
    pub decoders: bool,
    /// Whether chains are compared with short ones behind a fence.
    #[serde(default)]
    pub regimes: bool,
    /// Whether other constants are tried beside the general one.
    #[serde(default)]
    pub constants: bool,
}

impl SurveyEffort {
    /// The usual.
    pub const FULL: SurveyEffort = SurveyEffort {
        passes: 2,
        layouts: 6,
        rounds: 3,
        recipes: 4,
        cycles: 10_000.0,
        decoders: true,
        regimes: true,
        constants: true,
    };
    /// Quick.
    pub const QUICK: SurveyEffort = SurveyEffort {
        passes: 1,
        layouts: 3,
        rounds: 2,
        recipes: 3,
        cycles: 4_000.0,
        decoders: false,
        regimes: false,
        constants: false,
    };
}
